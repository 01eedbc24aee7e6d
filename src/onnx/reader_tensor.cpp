#include "reader_tensor.hpp"

#include <onnx/onnx_pb.h>

#include <charconv>
#include <cmath>
#include <collage/detail/small_types.hpp>
#include <collage/error.hpp>
#include <collage/graph/graph.hpp>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

namespace collage::inline v0::onnx {

std::optional<dtype> element_type_of(int number) {
  switch (number) {
    case 1: return dtype::f32;
    case 2: return dtype::u8;
    case 3: return dtype::i8;
    case 4: return dtype::u16;
    case 5: return dtype::i16;
    case 6: return dtype::i32;
    case 7: return dtype::i64;
    case 9: return dtype::boolean;
    case 10: return dtype::f16;
    case 11: return dtype::f64;
    case 12: return dtype::u32;
    case 13: return dtype::u64;
    case 16: return dtype::bf16;
    case 17: return dtype::f8e4m3fn;
    case 18: return dtype::f8e4m3fnuz;
    case 19: return dtype::f8e5m2;
    case 20: return dtype::f8e5m2fnuz;
    case 21: return dtype::u4;
    case 22: return dtype::i4;
    case 23: return dtype::f4e2m1;
    case 24: return dtype::f8e8m0;
    case 25: return dtype::u2;
    case 26: return dtype::i2;
    default: return std::nullopt;
  }
}

std::string element_type_name(int number) {
  static constexpr const char* names[] = {
      "undefined", "float",      "uint8",      "int8",         "uint16",         "int16",      "int32",
      "int64",     "string",     "bool",       "float16",      "double",         "uint32",     "uint64",
      "complex64", "complex128", "bfloat16",   "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz",
      "uint4",     "int4",       "float4e2m1", "float8e8m0",   "uint2",          "int2"};
  if (number < 0 || static_cast<std::size_t>(number) >= std::size(names)) return "type " + std::to_string(number);
  return names[number];
}

namespace detail {

namespace {

const char* name_of_field(std::uint32_t field) {
  switch (field) {
    case float_data: return "float_data";
    case int32_data: return "int32_data";
    case int64_data: return "int64_data";
    case double_data: return "double_data";
    case uint64_data: return "uint64_data";
    default: return "raw_data";
  }
}

/// The field that holds single elements of a type.
std::uint32_t field_of(dtype type) {
  switch (type) {
    case dtype::f32: return float_data;
    case dtype::f64: return double_data;
    case dtype::i64: return int64_data;
    case dtype::u32:
    case dtype::u64: return uint64_data;
    default: return int32_data;
  }
}

/// The generator of a tensor without data: "uniform LOW HIGH".
std::optional<uniform> rule_in(std::string_view text) {
  std::vector<std::string_view> words;
  while (true) {
    const std::size_t first = text.find_first_not_of(" \t\r\n");
    if (first == std::string_view::npos) break;
    text.remove_prefix(first);
    words.push_back(text.substr(0, text.find_first_of(" \t\r\n")));
    text.remove_prefix(words.back().size());
    if (words.size() > 3) return std::nullopt;
  }
  if (words.size() != 3 || words[0] != "uniform") return std::nullopt;
  float bounds[2];
  for (std::size_t i = 0; i < 2; ++i) {
    const std::string_view word = words[i + 1];
    double number = 0;
    const auto [end, failed] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (failed != std::errc() || end != word.data() + word.size()) return std::nullopt;
    bounds[i] = static_cast<float>(number);
    if (!std::isfinite(bounds[i])) return std::nullopt;
  }
  return uniform{bounds[0], bounds[1]};
}

/// How many elements of a type ONNX puts into one byte.
std::size_t elements_in_byte(dtype type) {
  return size_of(type) == 1 && type != dtype::boolean ? 8 / bits_of(type) : 1;
}

/// The bytes of data that a file has for a tensor.
std::size_t bytes_in_file(dtype type, std::size_t elements) {
  return size_of(type) * ((elements + elements_in_byte(type) - 1) / elements_in_byte(type));
}

/// Makes bytes of a file the elements of a tensor, in place: booleans become 0 or 1, as memory of bool must be. Packed elements get
/// a byte each; the first of a byte is in its low bits.
void to_elements(std::byte* bytes, dtype type, std::size_t elements) {
  if (type == dtype::boolean)
    for (std::size_t i = 0; i < elements; ++i) bytes[i] = bytes[i] != std::byte{0} ? std::byte{1} : std::byte{0};
  const std::size_t packed = elements_in_byte(type), bits = bits_of(type);
  if (packed == 1) return;
  for (std::size_t i = elements; i-- > 0;) {  // from the end, so that no byte is overwritten before it is read
    const auto code = std::to_integer<std::uint32_t>(bytes[i / packed]) >> (i % packed * bits) & ((1U << bits) - 1U);
    bytes[i] = static_cast<std::byte>(is_floating(type) ? code : collage::detail::wrap_small(type, code));
  }
}

}  // namespace

void tensor_reader::refuse(const std::string& called, const std::string& what) const {
  throw error(error_kind::invalid_argument, called + " " + what, *path_);
}

void tensor_reader::take_bytes(const std::string& called, std::size_t bytes) {
  if (bytes > bytes_left_)
    refuse(called, "takes " + std::to_string(bytes) + " bytes, but the limit load_options::most_bytes leaves only " +
                       std::to_string(bytes_left_));
  bytes_left_ -= bytes;
}

std::shared_ptr<std::byte> tensor_reader::memory_for(const wanted& w) {
  take_bytes(w.called, w.bytes);
  return allocate_bytes(w.bytes);
}

std::size_t tensor_reader::elements_of(const std::vector<std::int64_t>& extents, const std::string& called) const {
  // The product of the other extents must fit even if one is 0, because other code may multiply only some of them.
  std::int64_t most = 8;
  bool is_empty = false;
  for (const std::int64_t extent : extents) {
    if (extent < 0) refuse(called, "has the extent " + std::to_string(extent));
    is_empty = is_empty || extent == 0;
    if (extent > 0 && __builtin_mul_overflow(most, extent, &most))
      refuse(called, "has extents whose product is too large");
  }
  return is_empty ? 0 : static_cast<std::size_t>(most / 8);
}

model_tensor tensor_reader::read(const ::onnx::TensorProto& from, const std::string& called) {
  model_tensor made;
  made.name = from.name();
  made.element_type = from.data_type();
  made.extents.assign(from.dims().begin(), from.dims().end());
  const std::size_t elements = elements_of(made.extents, called);

  if (from.has_segment()) made.refusal = "it is a segment of a larger tensor";
  const std::optional<dtype> type = element_type_of(made.element_type);
  if (!type) made.refusal = "its element type " + element_type_name(made.element_type) + " is not supported";
  else if (made.extents.size() > shape::max_rank)
    made.refusal = "its rank is " + std::to_string(made.extents.size()) + ", and at most " +
                   std::to_string(shape::max_rank) + " is supported";
  if (!made.refusal.empty()) return made;

  const wanted w{
      called, {*type, shape(std::span<const std::int64_t>(made.extents))}, elements, elements * size_of(*type)};
  const bool is_external = from.data_location() == ::onnx::TensorProto::EXTERNAL;
  if (from.has_raw_data()) {
    if (is_external) refuse(called, "has data both in the file and outside");
    std::uint64_t entry = 0;
    std::memcpy(&entry, from.raw_data().data(), sizeof entry);
    made.bytes = inside(w, static_cast<std::size_t>(entry));
  } else if (is_external) {
    made.bytes = beside(w, from);
  } else if (elements == 0) {
    made.bytes = allocate_bytes(0);
  } else {
    if (*type == dtype::f32) made.fill = rule_in(from.doc_string());
    if (!made.fill) refuse(called, "has no data, and no rule 'uniform LOW HIGH' for float numbers in its doc_string");
    take_bytes(called, w.bytes);
  }
  return made;
}

model_tensor tensor_reader::read(const ::onnx::SparseTensorProto& from, const std::string& called) {
  const model_tensor values = read(from.values(), "the list of values of " + called);
  model_tensor made;
  made.name = values.name;
  made.element_type = values.element_type;
  made.extents.assign(from.dims().begin(), from.dims().end());
  made.refusal = values.refusal;
  const std::size_t elements = elements_of(made.extents, called), rank = made.extents.size();
  if (made.refusal.empty() && rank > shape::max_rank) made.refusal = "its rank is " + std::to_string(rank);
  if (!made.refusal.empty()) return made;
  if (values.extents.size() != 1 || values.bytes == nullptr) refuse(called, "has no list of values");
  const auto count = static_cast<std::size_t>(values.extents[0]);

  // Places are numbers of elements, or an index for each dimension.
  model_tensor places;
  if (count != 0) places = read(from.indices(), "the list of indices of " + called);
  const bool is_linear = places.extents.size() == 1;
  const std::vector<std::int64_t> by_dimension = {values.extents[0], static_cast<std::int64_t>(rank)};
  if (count != 0 && (element_type_of(places.element_type) != dtype::i64 || places.bytes == nullptr ||
                     places.extents != (is_linear ? values.extents : by_dimension)))
    refuse(called, "has no int64 index for each of its values");
  const std::size_t size = size_of(*element_type_of(made.element_type));
  take_bytes(called, elements * size);
  const std::shared_ptr<std::byte> bytes = allocate_bytes(elements * size);
  if (elements != 0) std::memset(bytes.get(), 0, elements * size);
  std::size_t next = 0;  // the indices ascend
  for (std::size_t i = 0; i < count; ++i) {
    std::size_t at = 0;
    for (std::size_t d = 0; d < (is_linear ? 1 : rank); ++d) {
      std::int64_t index = 0;
      std::memcpy(&index, places.bytes.get() + (is_linear ? i : i * rank + d) * sizeof index, sizeof index);
      const std::size_t extent = is_linear ? elements : static_cast<std::size_t>(made.extents[d]);
      if (index < 0 || static_cast<std::size_t>(index) >= extent)
        refuse(called, "has the index " + std::to_string(index) + ", which is outside of it");
      at = at * extent + static_cast<std::size_t>(index);
    }
    if (at >= elements || at < next) refuse(called, "has indices that do not ascend");
    next = at + 1;
    std::memcpy(bytes.get() + at * size, values.bytes.get() + i * size, size);
  }
  made.bytes = bytes;
  return made;
}

std::shared_ptr<const std::byte> tensor_reader::inside(const wanted& w, std::size_t entry) {
  const data_chunk* const first = parts_->chunks.data() + parts_->data[entry].first;
  const data_chunk* const last = parts_->chunks.data() + parts_->data[entry].second;
  const std::uint32_t field = first->field;
  for (const data_chunk* c = first; c != last; ++c)
    if (c->field != field || (field == raw_data && c != first)) refuse(w.called, "has data in more than one form");
  if (field != raw_data) return decoded(w, first, last);

  const std::size_t there = bytes_in_file(w.type.type, w.elements);
  if (first->length != there)
    refuse(w.called, "has " + std::to_string(first->length) + " bytes of data, and " +
                         collage::detail::to_string(w.type) + " takes " + std::to_string(there));
  std::shared_ptr<std::byte> bytes = memory_for(w);
  if (const std::string why = file_->read(first->offset, bytes.get(), there); !why.empty()) refuse(w.called, why);
  to_elements(bytes.get(), w.type.type, w.elements);
  return bytes;
}

std::shared_ptr<std::byte> tensor_reader::decoded(const wanted& w, const data_chunk* first, const data_chunk* last) {
  const std::uint32_t field = first->field;
  if (field != field_of(w.type.type))
    refuse(w.called,
           std::string("has its data in ") + name_of_field(field) + ", which is not for " + name_of(w.type.type));
  const std::size_t width = element_width(field);
  const auto for_each_element = [&](auto take) {
    try {
      for (const data_chunk* c = first; c != last; ++c) {
        const std::uint64_t end = c->offset + c->length;
        for (wire_.move_to(c->offset); wire_.at() < end;) {
          if (c->tagged) wire_.varint(end);
          take(width == 0 ? wire_.varint(end) : wire_.fixed(width, end));
        }
      }
    } catch (const damage& found) { refuse(w.called, "has damaged data: " + found.what); }
  };
  // Counted first, so that no more memory is allocated than the file fills.
  std::size_t count = 0;
  for_each_element([&](std::uint64_t) { ++count; });
  // Packed elements have an entry for each byte.
  const std::size_t entries = elements_in_byte(w.type.type) == 1 ? w.elements : bytes_in_file(w.type.type, w.elements);
  if (count != entries)
    refuse(w.called, "has " + std::to_string(count) + " elements of data, and " + collage::detail::to_string(w.type) +
                         " takes " + std::to_string(entries));

  std::shared_ptr<std::byte> bytes = memory_for(w);
  std::byte* to = bytes.get();
  const auto store = [&]<class T>(T) {
    for_each_element([&to](std::uint64_t bits) {
      const T element = static_cast<T>(bits);
      std::memcpy(to, &element, sizeof element);
      to += sizeof element;
    });
  };
  if (w.type.type == dtype::boolean) {
    for_each_element([&to](std::uint64_t bits) { *to++ = std::byte{bits != 0}; });
    return bytes;
  }
  // The field holds the bits of narrower types, so truncation is right whatever the sign.
  switch (size_of(w.type.type)) {
    case 1: store(std::uint8_t{}); break;
    case 2: store(std::uint16_t{}); break;
    case 4: store(std::uint32_t{}); break;
    default: store(std::uint64_t{}); break;
  }
  to_elements(bytes.get(), w.type.type, w.elements);
  return bytes;
}

std::shared_ptr<const std::byte> tensor_reader::beside(const wanted& w, const ::onnx::TensorProto& from) {
  std::string location;
  const std::size_t there = bytes_in_file(w.type.type, w.elements);
  std::uint64_t offset = 0, length = there;
  for (const auto& entry : from.external_data()) {
    if (entry.key() == "location") location = entry.value();
    if (entry.key() != "offset" && entry.key() != "length") continue;
    const std::string& text = entry.value();
    std::uint64_t& number = entry.key() == "offset" ? offset : length;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (failed != std::errc() || end != text.data() + text.size())
      refuse(w.called, "has external data whose " + entry.key() + " " + quoted(text) + " is no number");
  }
  if (length == 0) length = there;  // as if it were left out: some writers put 0 there
  const std::string named = "has external data in " + quoted(location) + ", which ";
  if (!external_ || location_ != location) {
    if (file_->is_in_memory())
      refuse(w.called,
             "has external data in " + quoted(location) + ", but a model in memory has no folder; load its file");
    std::string why;
    external_ = input_file::open_beside(*path_, location, why);
    if (!external_) refuse(w.called, named + why);
    location_ = location;
  }
  if (length != there)
    refuse(w.called, "has " + std::to_string(length) + " bytes of external data, and " +
                         collage::detail::to_string(w.type) + " takes " + std::to_string(there));
  if (offset > external_.size() || length > external_.size() - offset)
    refuse(w.called, named + "ends at byte " + std::to_string(external_.size()) + ", before " + std::to_string(length) +
                         " bytes from byte " + std::to_string(offset));
  std::shared_ptr<std::byte> bytes = memory_for(w);
  if (const std::string why = external_.read(offset, bytes.get(), there); !why.empty()) refuse(w.called, named + why);
  to_elements(bytes.get(), w.type.type, w.elements);
  return bytes;
}

}  // namespace detail

}  // namespace collage::inline v0::onnx
