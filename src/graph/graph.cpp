// Run-time graphs: part of the target collage::reference, which every program with such graphs links.
#include "parts.hpp"

#include <collage/detail/small_types.hpp>
#include <collage/graph/graph.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

namespace collage::inline v0 {

namespace detail {

/// CRC-32 as in zlib (polynomial 0xEDB88320), bit by bit: names are short.
static std::uint32_t crc32(const std::string& text) {
  std::uint32_t crc = 0xFFFFFFFFU;
  for (const char c : text) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (0xEDB88320U & (0U - (crc & 1U)));
  }
  return ~crc;
}

/// A shape as people write it, "1x64x56x56"; a scalar is "scalar".
std::string to_string(const shape& dims) {
  if (dims.empty()) return "scalar";
  std::string text;
  for (const std::int64_t extent : dims) {
    if (!text.empty()) text += 'x';
    text += extent < 0 ? std::string("?") : std::to_string(extent);
  }
  return text;
}

std::string to_string(const tensor_type& type) {
  return std::string(name_of(type.type)) + "[" + to_string(type.dims) + "]";
}

bool store_number(std::byte* to, dtype type, double number) {
  const auto put = [&]<class T>(T v) {
    std::memcpy(to, &v, sizeof v);
    return true;
  };
  // Converting what does not fit would be undefined; 2^bits is exact where the largest integer is not.
  const auto put_integer = [&]<class T>(T) {
    const double limit = 2.0 * static_cast<double>(std::numeric_limits<T>::max() / 2 + 1);
    const bool fits = number < limit && number >= static_cast<double>(std::numeric_limits<T>::min());
    return fits && put(static_cast<T>(number));
  };
  switch (type) {
    case dtype::f32: return put(static_cast<float>(number));
    case dtype::f64: return put(number);
    case dtype::i8: return put_integer(std::int8_t{});
    case dtype::i16: return put_integer(std::int16_t{});
    case dtype::i32: return put_integer(std::int32_t{});
    case dtype::i64: return put_integer(std::int64_t{});
    case dtype::u8: return put_integer(std::uint8_t{});
    case dtype::u16: return put_integer(std::uint16_t{});
    case dtype::u32: return put_integer(std::uint32_t{});
    case dtype::u64: return put_integer(std::uint64_t{});
    case dtype::boolean: return put(static_cast<std::uint8_t>(number != 0));
    case dtype::i4:
    case dtype::u4:
    case dtype::i2:
    case dtype::u2: {
      const bool fits = number > -9 && number < 16 &&
                        clamp_small(type, static_cast<std::int64_t>(number)) == static_cast<std::int64_t>(number);
      return fits && put(static_cast<std::int8_t>(number));
    }
    default: return false;  // numbers of the other types are rounded by `cast`
  }
  return false;
}

/// Names of values for a message, the first few: "w, b and 3 more".
static std::string some_names(const graph& network, std::span<const std::uint32_t> values) {
  constexpr std::size_t most = 6;
  std::string text;
  for (std::size_t i = 0; i < values.size() && i < most; ++i) {
    if (i > 0) text += i + 1 == values.size() ? " and " : ", ";
    text += network.value_name(values[i]);
  }
  if (values.size() > most) text += " and " + std::to_string(values.size() - most) + " more";
  return text;
}

}  // namespace detail

graph::graph(const detail::lists_view& lists)
    : nodes_(lists.nodes, lists.nodes + lists.sizes.nodes),
      values_(lists.values, lists.values + lists.sizes.values),
      operands_(lists.operands, lists.operands + lists.sizes.operands),
      uses_(lists.uses, lists.uses + lists.sizes.operands),
      words_(lists.words, lists.words + lists.sizes.words),
      inputs_(lists.inputs, lists.inputs + lists.sizes.inputs),
      outputs_(lists.outputs, lists.outputs + lists.sizes.outputs),
      constants_(lists.sizes.values) {
  node_names_.reserve(nodes_.size());
  for (const node_record& node : nodes_) node_names_.emplace_back(lists.value_name(node.first_output));
  value_names_.reserve(values_.size());
  for (std::uint32_t v = 0; v < lists.sizes.values; ++v) value_names_.emplace_back(lists.value_name(v));
  output_names_.reserve(outputs_.size());
  for (std::uint32_t i = 0; i < lists.sizes.outputs; ++i) output_names_.emplace_back(lists.output_name(i));
  for (std::uint32_t i = 0; i < lists.sizes.constants; ++i) {
    const detail::constant_record& from = lists.constants[i];
    constant_data& to = constants_[from.value];
    to.source = from.source;
    to.fill = from.fill;
    if (from.source != contents_source::given) continue;
    const tensor_type& type = values_[from.value].type;
    const std::shared_ptr<std::byte> bytes = allocate_bytes(type.bytes());
    if (from.is_list) std::memcpy(bytes.get(), lists.integers + from.first_integer, type.bytes());
    else detail::store_number(bytes.get(), type.type, from.number);
    to.bytes = bytes;
  }
}

std::span<const std::byte> graph::bytes_of(std::uint32_t value) const {
  const constant_data& data = constants_[value];
  if (data.bytes == nullptr) {
    const std::string& name = value_names_[value];
    if (data.source == contents_source::unbound)
      throw error(error_kind::invalid_argument, "its contents were not bound", "constant " + name,
                  "call bind(\"" + name + "\", data) first");
    throw error(error_kind::failure, "its contents were not loaded", "constant " + name,
                "call fill_constants(graph) first");
  }
  return {data.bytes.get(), values_[value].type.bytes()};
}

std::uint32_t graph::bindable(text_ref name, std::size_t bytes, const dtype* type) const {
  const std::string text(name.data, name.size), where = "bind " + text;
  const auto refuse = [&](const std::string& what, const std::string& remedy) {
    throw error(error_kind::invalid_argument, what, where, remedy);
  };
  const auto found = std::find(value_names_.begin(), value_names_.end(), text);
  const auto v = static_cast<std::uint32_t>(found - value_names_.begin());
  if (found == value_names_.end() || values_[v].role != value_role::constant) {
    const std::vector<std::uint32_t> missing = unbound();
    refuse(found == value_names_.end() ? "the network has no constant of this name" : "this value is no constant",
           missing.empty() ? std::string("every constant has contents already")
                           : "constants without contents: " + detail::some_names(*this, missing));
  }
  const value_record& record = values_[v];
  if (constants_[v].source == contents_source::given && (record.has_scalar || record.type.type == dtype::i64))
    refuse("its contents are part of the network", "bind constants that were added without contents");
  if (type != nullptr && record.type.type != *type)
    refuse(std::string("it has type ") + name_of(record.type.type) + ", but the given elements have " + name_of(*type),
           "convert the elements, or give them as bytes");
  if (bytes != record.type.bytes())
    refuse("it has " + std::to_string(record.type.bytes()) + " bytes, " + detail::to_string(record.type) +
               ", but was given " + std::to_string(bytes),
           "give as many bytes as it has");
  return v;
}

void graph::bind(text_ref name, const element_list& elements) {
  const std::size_t size = elements.is_raw ? elements.count : elements.count * size_of(elements.type);
  const std::uint32_t v = bindable(name, size, elements.is_raw ? nullptr : &elements.type);
  const std::shared_ptr<std::byte> bytes = allocate_bytes(size);
  if (size != 0) std::memcpy(bytes.get(), elements.data, size);
  constants_[v].bytes = bytes;
}

void graph::bind(text_ref name, std::shared_ptr<const std::byte> bytes, std::size_t size) {
  const std::uint32_t v = bindable(name, size, nullptr);
  if (bytes == nullptr || reinterpret_cast<std::uintptr_t>(bytes.get()) % 64 != 0)
    throw error(error_kind::invalid_argument, "its memory must be aligned to 64 bytes",
                "bind " + std::string(name.data, name.size),
                "take it from allocate_bytes, or bind a span to be copied");
  constants_[v].bytes = std::move(bytes);
}

std::vector<std::uint32_t> graph::unbound() const {
  std::vector<std::uint32_t> list;
  for (std::uint32_t v = 0; v < values_.size(); ++v)
    if (values_[v].role == value_role::constant && constants_[v].bytes == nullptr &&
        constants_[v].source == contents_source::unbound)
      list.push_back(v);
  return list;
}

void check_contents(const graph& network) {
  std::vector<std::uint32_t> unbound, unfilled;
  for (std::uint32_t v = 0; v < network.values().size(); ++v) {
    const value_record& record = network.at(v);
    if (record.role != value_role::constant || (record.uses == 0 && !record.is_output)) continue;
    const constant_data& data = network.constant(v);
    if (data.bytes == nullptr) (data.source == contents_source::unbound ? unbound : unfilled).push_back(v);
  }
  const auto refuse = [&](const std::vector<std::uint32_t>& list, error_kind kind, const char* remedy) {
    if (list.empty()) return;
    throw error(kind, list.size() == 1 ? "its contents are missing" : "their contents are missing",
                (list.size() == 1 ? "constant " : "constants ") + detail::some_names(network, list), remedy);
  };
  refuse(unbound, error_kind::invalid_argument, "call bind(name, data) for each first");
  refuse(unfilled, error_kind::failure, "call fill_constants(graph) first");
  for (std::uint32_t n = 0; n < network.nodes().size(); ++n)
    for (const std::shared_ptr<const graph>& body : network.bodies_of(n)) check_contents(*body);
}

std::uint64_t graph::fingerprint() const {
  std::uint64_t h = detail::hash("graph");
  const auto add_type = [&h](const tensor_type& type) {
    h = detail::combine(h, static_cast<std::uint64_t>(type.type));
    h = detail::combine(h, type.dims.rank);
    for (const std::int64_t extent : type.dims) h = detail::combine(h, static_cast<std::uint64_t>(extent));
  };
  for (const value_record& v : values_) {
    h = detail::combine(h, static_cast<std::uint64_t>(v.role));
    add_type(v.type);
    if (v.has_scalar) h = detail::combine(h, __builtin_bit_cast(std::uint64_t, v.scalar));
  }
  for (std::uint32_t n = 0; n < nodes_.size(); ++n) {
    h = detail::combine(h, nodes_[n].kind->id);
    for (const std::uint32_t v : view().inputs_of(n)) h = detail::combine(h, v);
    for (const std::uint64_t w : view().words_of(n)) h = detail::combine(h, w);
    for (const std::shared_ptr<const graph>& body : bodies_of(n)) h = detail::combine(h, body->fingerprint());
  }
  for (const std::uint32_t v : outputs_) h = detail::combine(h, v);
  return h;
}

void fill_uniform(std::span<float> to, const std::string& name, uniform range) {
  std::uint64_t state = detail::crc32(name);
  const float width = range.high - range.low;
  // Two loops, so that no compiler contracts product and sum into a fused multiply-add: each operation rounds on its
  // own.
  for (float& x : to) {
    state += 0x9E3779B97F4A7C15ULL;
    x = width * (static_cast<float>(detail::mix(state) >> 40) * 0x1p-24F);
  }
  for (float& x : to) x = range.low + x;
}

void fill_constants(graph& network) {
  for (std::uint32_t n = 0; n < network.nodes().size(); ++n)
    for (std::size_t i = 0; i < network.bodies_of(n).size(); ++i) {
      const auto filled = std::make_shared<graph>(*network.bodies_of(n)[i]);
      fill_constants(*filled);
      network.set_body(n, i, filled);
    }
  for (std::uint32_t v = 0; v < network.values().size(); ++v) {
    if (network.at(v).role != value_role::constant || network.constant(v).bytes != nullptr ||
        network.constant(v).source != contents_source::rule)
      continue;
    const std::shared_ptr<std::byte> bytes = allocate_bytes(network.type_of(v).bytes());
    const auto count = static_cast<std::size_t>(network.type_of(v).dims.elements());
    fill_uniform({reinterpret_cast<float*>(bytes.get()), count}, network.value_name(v), network.constant(v).fill);
    network.set_bytes(v, bytes);
  }
}

}  // namespace collage::inline v0
