#include "reader_wire.hpp"

#include <limits>

namespace collage::inline v0::onnx::detail {

namespace {

enum class wire_type : std::uint8_t { varint = 0, eight_bytes = 1, bytes = 2, four_bytes = 5 };

/// The treatment of a field. Fields without a rule are copied.
enum class treatment : std::uint8_t { copied, dropped, entered, data };
struct field_rule {
  message_kind in;
  std::uint32_t number;
  treatment what = treatment::copied;
  message_kind entered = message_kind::model;
};

constexpr field_rule rules[] = {
    {message_kind::model, 7, treatment::entered, message_kind::graph},
    {message_kind::model, 20, treatment::dropped},  // training_info: graphs that nothing here runs
    {message_kind::model, 25, treatment::entered, message_kind::function},
    {message_kind::function, 7, treatment::entered, message_kind::node},
    {message_kind::function, 11, treatment::entered, message_kind::attribute},
    {message_kind::graph, 1, treatment::entered, message_kind::node},
    {message_kind::graph, 5, treatment::entered, message_kind::tensor},
    {message_kind::graph, 15, treatment::entered, message_kind::sparse_tensor},
    {message_kind::node, 5, treatment::entered, message_kind::attribute},
    {message_kind::attribute, 5, treatment::entered, message_kind::tensor},
    {message_kind::attribute, 6, treatment::entered, message_kind::graph},
    {message_kind::attribute, 10, treatment::entered, message_kind::tensor},
    {message_kind::attribute, 11, treatment::entered, message_kind::graph},
    {message_kind::attribute, 22, treatment::entered, message_kind::sparse_tensor},
    {message_kind::attribute, 23, treatment::entered, message_kind::sparse_tensor},
    {message_kind::sparse_tensor, 1, treatment::entered, message_kind::tensor},
    {message_kind::sparse_tensor, 2, treatment::entered, message_kind::tensor},
    {message_kind::tensor, float_data, treatment::data},
    {message_kind::tensor, int32_data, treatment::data},
    {message_kind::tensor, string_data, treatment::dropped},  // strings have no element type
    {message_kind::tensor, int64_data, treatment::data},
    {message_kind::tensor, raw_data, treatment::data},
    {message_kind::tensor, double_data, treatment::data},
    {message_kind::tensor, uint64_data, treatment::data},
};

constexpr wire_type element_form(std::uint32_t number) {
  return element_width(number) == 4   ? wire_type::four_bytes
         : element_width(number) == 8 ? wire_type::eight_bytes
                                      : wire_type::varint;
}

/// The form that a field of the outermost message must have. It distinguishes files of this kind from other files.
struct outer_field {
  message_kind in;
  std::uint32_t number;
  wire_type type;
};
constexpr outer_field outer_fields[] = {
    {message_kind::model, 1, wire_type::varint},   // ir_version
    {message_kind::model, 2, wire_type::bytes},    // producer_name
    {message_kind::model, 3, wire_type::bytes},    // producer_version
    {message_kind::model, 4, wire_type::bytes},    // domain
    {message_kind::model, 5, wire_type::varint},   // model_version
    {message_kind::model, 6, wire_type::bytes},    // doc_string
    {message_kind::model, 7, wire_type::bytes},    // graph
    {message_kind::model, 8, wire_type::bytes},    // opset_import
    {message_kind::tensor, 2, wire_type::varint},  // data_type
    {message_kind::tensor, 8, wire_type::bytes},   // name
    {message_kind::tensor, 9, wire_type::bytes},   // raw_data
};

/// The limit of nesting, which is also protobuf's.
constexpr int deepest = 100;

field_rule rule_of(message_kind in, std::uint32_t number) {
  for (const field_rule& r : rules)
    if (r.in == in && r.number == number) return r;
  return {in, number};
}

class walker {
 public:
  walker(const input_file& file, std::size_t most_fields) : file_(&file), in_(file), fields_left_(most_fields) {}

  stripped_file walk(message_kind kind) {
    outermost_ = kind;
    try {
      message(kind, file_->size(), 0);
    } catch (damage& found) {
      found.inside_graph = entered_;
      throw;
    }
    return std::move(out_);
  }

 private:
  void message(message_kind kind, std::uint64_t end, int depth) {
    if (depth > deepest) throw damage{"it is nested deeper than " + std::to_string(deepest) + " messages"};
    const std::size_t first_chunk = out_.chunks.size();
    while (in_.at() < end) field(kind, end, depth);
    if (kind != message_kind::tensor || out_.chunks.size() == first_chunk) return;
    const std::uint64_t entry = out_.data.size();
    out_.data.emplace_back(first_chunk, out_.chunks.size());
    put_varint(raw_data << 3 | static_cast<std::uint32_t>(wire_type::bytes));
    put_varint(sizeof entry);
    out_.message.append(reinterpret_cast<const char*>(&entry), sizeof entry);
  }

  void field(message_kind kind, std::uint64_t end, int depth) {
    const std::uint64_t start = in_.at();
    const std::uint64_t tag = in_.varint(end);
    if (tag < 8 || tag > std::numeric_limits<std::uint32_t>::max())
      throw damage{"byte " + std::to_string(start) + " begins no field"};
    const auto number = static_cast<std::uint32_t>(tag >> 3);
    const auto type = static_cast<wire_type>(tag & 7);
    if (depth == 0) check_outer(number, type, start);

    const field_rule rule = rule_of(kind, number);
    if (rule.what == treatment::data) return data(number, type, start, end);
    take_field();
    if (type == wire_type::bytes) {
      entered_ = entered_ || rule.what == treatment::entered;
      const std::uint64_t length = length_within(start, end);
      const std::uint64_t after = in_.at() + length;
      if (rule.what == treatment::dropped) return in_.move_to(after);
      put_varint(tag);
      if (rule.what == treatment::entered) {
        // The length of the copy is known only after copying, so the longest form of a length is reserved now.
        const std::size_t place = out_.message.size();
        out_.message.append(length_bytes, '\0');
        message(rule.entered, after, depth + 1);
        set_length(place);
      } else {
        put_varint(length);
        in_.copy(length, out_.message);
      }
    } else {
      const std::uint64_t value = scalar(type, start, end);
      put_varint(tag);
      if (type == wire_type::varint) put_varint(value);
      else out_.message.append(reinterpret_cast<const char*>(&value), type == wire_type::four_bytes ? 4 : 8);
    }
    check_size();
  }

  /// Records where a tensor's data is.
  void data(std::uint32_t number, wire_type type, std::uint64_t start, std::uint64_t end) {
    data_chunk found{start, 0, number, true};
    if (type == wire_type::bytes) {
      found.length = length_within(start, end);
      found.offset = in_.at();
      found.tagged = false;
      in_.move_to(found.offset + found.length);
    } else {
      if (number == raw_data || type != element_form(number))
        throw damage{"the data at byte " + std::to_string(start) + " has another form"};
      scalar(type, start, end);
      found.length = in_.at() - start;
    }
    if (found.length == 0) return;
    if (found.tagged && !out_.chunks.empty()) {
      data_chunk& last = out_.chunks.back();
      if (last.tagged && last.field == number && last.offset + last.length == start) {
        last.length += found.length;
        return;
      }
    }
    take_field();
    out_.chunks.push_back(found);
  }

  void take_field() {
    if (fields_left_-- == 0) throw damage{"it has more fields than the limit of its reader allows"};
  }
  std::uint64_t scalar(wire_type type, std::uint64_t start, std::uint64_t end) {
    switch (type) {
      case wire_type::varint: return in_.varint(end);
      case wire_type::four_bytes: return in_.fixed(4, end);
      case wire_type::eight_bytes: return in_.fixed(8, end);
      case wire_type::bytes: break;
    }
    throw damage{"the field at byte " + std::to_string(start) + " has an unknown form"};
  }

  std::uint64_t length_within(std::uint64_t start, std::uint64_t end) {
    const std::uint64_t length = in_.varint(end);
    if (length > end - in_.at())
      throw damage{"the field at byte " + std::to_string(start) + " claims " + std::to_string(length) +
                   " bytes, and there are " + std::to_string(end - in_.at())};
    return length;
  }

  void check_outer(std::uint32_t number, wire_type type, std::uint64_t start) const {
    for (const outer_field& f : outer_fields)
      if (f.in == outermost_ && f.number == number && f.type != type)
        throw damage{"the field at byte " + std::to_string(start) + " has another form"};
  }

  static constexpr std::size_t length_bytes = 5;  // the longest form of a length below 2^31

  void put_varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) out_.message += static_cast<char>(value | 0x80);
    out_.message += static_cast<char>(value);
  }
  void set_length(std::size_t place) {
    check_size();
    std::size_t length = out_.message.size() - place - length_bytes;
    for (std::size_t i = 0; i < length_bytes; ++i, length >>= 7)
      out_.message[place + i] = static_cast<char>((length & 0x7F) | (i + 1 < length_bytes ? 0x80 : 0));
  }
  void check_size() const {
    if (out_.message.size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
      throw damage{"it has 2 GiB beside its tensors, more than protobuf reads"};
  }

  const input_file* file_;
  wire_reader in_;
  std::size_t fields_left_;
  message_kind outermost_ = message_kind::model;
  bool entered_ = false;
  stripped_file out_;
};

}  // namespace

void wire_reader::fill() {
  start_ += next_;
  next_ = filled_ = 0;
  const std::size_t bytes = std::min<std::uint64_t>(window_size, file_->size() - start_);
  if (std::string why = file_->read(start_, window_.get(), bytes); !why.empty()) throw damage{"it " + why};
  filled_ = bytes;
}

stripped_file strip(const input_file& file, message_kind kind, std::size_t most_fields) {
  return walker(file, most_fields).walk(kind);
}

}  // namespace collage::inline v0::onnx::detail
