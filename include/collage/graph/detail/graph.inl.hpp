// Definitions of graph/graph.hpp.
#pragma once

#include <array>
#include <cstring>
#include <limits>
#include <unordered_set>
#include <utility>

namespace collage::inline v0 {

namespace detail {

/// CRC-32 as in zlib (polynomial 0xEDB88320), bit by bit: names are short.
inline std::uint32_t crc32(const std::string& text) {
  std::uint32_t crc = 0xFFFFFFFFU;
  for (const char c : text) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (0xEDB88320U & (0U - (crc & 1U)));
  }
  return ~crc;
}

/// A shape as people write it, "1x64x56x56"; a scalar is "scalar".
inline std::string to_string(const shape& dims) {
  if (dims.empty()) return "scalar";
  std::string text;
  for (const std::int64_t extent : dims) {
    if (!text.empty()) text += 'x';
    text += extent < 0 ? std::string("?") : std::to_string(extent);
  }
  return text;
}

inline std::string to_string(const tensor_type& type) {
  return std::string(name_of(type.type)) + "[" + to_string(type.dims) + "]";
}

/// Stores a number as one element of a type; answers false where the type cannot hold it, or has no plain C++
/// counterpart.
inline bool store_number(std::byte* to, dtype type, double number) {
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
    case dtype::f16:
    case dtype::bf16: return false;
  }
  return false;
}

/// What a node's sub-graphs take and answer, as shape rules see it.
struct signatures_of_bodies {
  std::vector<tensor_type> types;
  std::vector<body_signature> list;

  explicit signatures_of_bodies(std::span<const std::shared_ptr<const graph>> bodies) {
    std::size_t count = 0;
    for (const auto& body : bodies) count += body->inputs().size() + body->outputs().size();
    types.reserve(count);  // so that the spans into it stay
    for (const auto& body : bodies) {
      const auto put = [&](std::span<const std::uint32_t> values) {
        for (const std::uint32_t v : values) types.push_back(body->type_of(v));
        return std::span<const tensor_type>(types).last(values.size());
      };
      const std::span<const tensor_type> in = put(body->inputs());
      list.push_back({in, put(body->outputs())});
    }
  }
};

/// How many outputs a node has.
inline std::size_t outputs_of(const kind_info& kind, std::span<const std::uint64_t> words,
                              std::span<const body_signature> bodies) {
  return kind.count_outputs != nullptr ? kind.count_outputs(words, bodies) : kind.outputs;
}

}  // namespace detail

inline std::uint64_t graph::fingerprint() const {
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

inline value graph_builder::add_value(const tensor_type& type, value_role role, std::string name) {
  if (role == value_role::constant && !type.dims.is_concrete())
    throw error(error_kind::invalid_argument,
                "every extent of a constant must be known, and it is " + detail::to_string(type), name);
  const std::int64_t extent_limit = std::int64_t{1} << 48;
  std::int64_t elements = 1;
  for (const std::int64_t extent : type.dims) {
    if (extent < 0) continue;
    // Overflow is caught before it happens: extents are below 2^48 and so is the product so far.
    if (extent > extent_limit || (extent > 0 && elements > extent_limit / extent))
      throw error(error_kind::invalid_argument, "a tensor of " + detail::to_string(type) + " is too large", name);
    elements *= extent == 0 ? 1 : extent;
  }
  value_record record;
  record.type = type;
  record.role = role;
  graph_.values_.push_back(record);
  graph_.value_names_.push_back(std::move(name));
  graph_.constants_.emplace_back();
  return {static_cast<std::uint32_t>(graph_.values_.size() - 1)};
}

inline value graph_builder::constant(text_ref name, const tensor_type& type, std::shared_ptr<const std::byte> bytes) {
  if (bytes == nullptr) throw error(error_kind::invalid_argument, "a constant needs contents", name);
  const value v = add_value(type, value_role::constant, std::string(name.data, name.size));
  value_record& record = graph_.values_[v.index];
  // `type` may be that of a value of this graph, which has moved: read the copy.
  if (record.type.dims.elements() == 1) {
    record.has_scalar = true;
    const std::byte* at = bytes.get();
    const auto load = [at]<class T>(T from) {
      std::memcpy(&from, at, sizeof from);
      return static_cast<double>(from);
    };
    switch (record.type.type) {
      case dtype::f32: record.scalar = load(float{}); break;
      case dtype::f64: record.scalar = load(double{}); break;
      case dtype::i64: record.scalar = load(std::int64_t{}); break;
      case dtype::i32: record.scalar = load(std::int32_t{}); break;
      default: record.has_scalar = false; break;
    }
  }
  graph_.constants_[v.index].bytes = std::move(bytes);
  return v;
}

inline value graph_builder::constant(const graph& from, std::uint32_t which) {
  const value_record& original = from.at(which);
  const value v = add_value(original.type, value_role::constant, from.value_name(which));
  graph_.values_[v.index].has_scalar = original.has_scalar;
  graph_.values_[v.index].scalar = original.scalar;
  graph_.constants_[v.index] = from.constant(which);
  return v;
}

inline value graph_builder::scalar(text_ref name, double number, dtype type) {
  const std::shared_ptr<std::byte> bytes = allocate_bytes(size_of(type));
  if (!detail::store_number(bytes.get(), type, number))
    throw error(error_kind::invalid_argument, std::string("its value cannot be stored as ") + name_of(type), name);
  return constant(name, tensor_type{type, {}}, bytes);
}

inline value graph_builder::add(const kind_info& kind, std::span<const value> operands,
                                const attribute_words& attributes, text_ref name,
                                std::span<const std::shared_ptr<const graph>> bodies) {
  const auto index = static_cast<std::uint32_t>(graph_.nodes_.size());
  std::string node_name =
      name.size == 0 ? std::string(kind.name) + "_" + std::to_string(unnamed_++) : std::string(name.data, name.size);
  const std::string where = "node " + node_name + " (" + kind.name + ")";
  if (operands.size() < kind.inputs.least || operands.size() > kind.inputs.most)
    throw error(error_kind::invalid_argument,
                "takes " + std::to_string(kind.inputs.least) +
                    (kind.inputs.most == kind.inputs.least ? std::string()
                     : kind.inputs.most == any_number      ? std::string(" or more")
                                                           : " to " + std::to_string(kind.inputs.most)) +
                    (kind.inputs.most == 1 ? " operand, not " : " operands, not ") + std::to_string(operands.size()),
                where);
  std::vector<tensor_type> in;
  std::vector<std::span<const std::int64_t>> contents;
  for (const value v : operands) {
    check(v, where.c_str());
    in.push_back(type_of(v));
    contents.push_back(integers(v));
  }
  if (bodies.size() != kind.bodies)
    throw error(error_kind::invalid_argument,
                "owns " + std::to_string(kind.bodies) + " sub-graphs, not " + std::to_string(bodies.size()), where);
  const detail::signatures_of_bodies signatures(bodies);
  attribute_words words = attributes;
  if (kind.normalise != nullptr) kind.normalise(words, in);
  std::vector<tensor_type> out(detail::outputs_of(kind, words.list(), signatures.list));
  inference io{in, out, contents, signatures.list};
  if (const verdict v = kind.infer(words.list(), io); !v) {
    std::string shapes;
    for (const tensor_type& t : in) shapes += (shapes.empty() ? "" : ", ") + detail::to_string(t);
    throw error(error_kind::invalid_argument,
                std::string(v.rule) + (v.operand >= 0 ? " (operand " + std::to_string(v.operand) + ")" : "") +
                    "; its operands are " + shapes,
                where);
  }
  node_record record;
  record.kind = &kind;
  record.first_input = static_cast<std::uint32_t>(graph_.operands_.size());
  record.inputs = static_cast<std::uint32_t>(operands.size());
  for (const value v : operands) graph_.operands_.push_back(v.index);
  record.first_word = static_cast<std::uint32_t>(graph_.words_.size());
  record.words = static_cast<std::uint32_t>(words.size);
  graph_.words_.insert(graph_.words_.end(), words.word, words.word + words.size);
  record.first_output = static_cast<std::uint32_t>(graph_.values_.size());
  record.outputs = static_cast<std::uint32_t>(out.size());
  record.first_body = static_cast<std::uint32_t>(graph_.bodies_.size());
  record.bodies = static_cast<std::uint32_t>(bodies.size());
  graph_.bodies_.insert(graph_.bodies_.end(), bodies.begin(), bodies.end());
  for (std::uint32_t i = 0; i < record.outputs; ++i) {
    const value v = add_value(out[i], value_role::computed, i == 0 ? node_name : node_name + ":" + std::to_string(i));
    graph_.values_[v.index].producer = static_cast<std::int32_t>(index);
  }
  graph_.nodes_.push_back(record);
  graph_.node_names_.push_back(std::move(node_name));
  return {record.first_output};
}

inline graph graph_builder::finish() {
  // Equal names would make plans and messages ambiguous.
  std::unordered_set<std::string> seen;
  for (std::size_t i = 0; i < graph_.value_names_.size(); ++i)
    if (!seen.insert(graph_.value_names_[i]).second)
      throw error(error_kind::invalid_argument, "the name is used twice", "value " + graph_.value_names_[i],
                  "give every input, constant and node a name of its own");
  seen.clear();
  for (const std::string& name : graph_.output_names_)
    if (!seen.insert(name).second)
      throw error(error_kind::invalid_argument, "the name is used twice", "output " + name,
                  "give every output a name of its own");
  for (value_record& v : graph_.values_) v.uses = 0;
  for (const std::uint32_t v : graph_.operands_) ++graph_.values_[v].uses;
  std::uint32_t at = 0;
  for (value_record& v : graph_.values_) {
    v.first_use = at;
    at += v.uses;
    v.uses = 0;
  }
  graph_.uses_.resize(at);
  for (std::uint32_t n = 0; n < graph_.nodes_.size(); ++n) {
    const node_record& node = graph_.nodes_[n];
    for (std::uint32_t i = 0; i < node.inputs; ++i) {
      value_record& v = graph_.values_[graph_.operands_[node.first_input + i]];
      graph_.uses_[v.first_use + v.uses++] = {n, i};
    }
  }
  unnamed_ = 0;
  return std::exchange(graph_, graph{});
}

inline void fill_uniform(std::span<float> to, const std::string& name, uniform range) {
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

inline void fill_constants(graph& network) {
  for (std::uint32_t n = 0; n < network.nodes().size(); ++n)
    for (std::size_t i = 0; i < network.bodies_of(n).size(); ++i) {
      const auto filled = std::make_shared<graph>(*network.bodies_of(n)[i]);
      fill_constants(*filled);
      network.set_body(n, i, filled);
    }
  for (std::uint32_t v = 0; v < network.values().size(); ++v) {
    if (network.at(v).role != value_role::constant || network.constant(v).bytes != nullptr) continue;
    const std::shared_ptr<std::byte> bytes = allocate_bytes(network.type_of(v).bytes());
    const auto count = static_cast<std::size_t>(network.type_of(v).dims.elements());
    fill_uniform({reinterpret_cast<float*>(bytes.get()), count}, network.value_name(v), network.constant(v).fill);
    network.set_bytes(v, bytes);
  }
}

}  // namespace collage::inline v0
