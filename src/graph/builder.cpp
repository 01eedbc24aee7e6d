// The builder of run-time graphs.
#include "parts.hpp"

#include <collage/graph/detail/signatures.hpp>
#include <collage/graph/graph.hpp>

#include <cstdint>
#include <cstring>
#include <unordered_set>
#include <utility>

namespace collage::inline v0 {

void graph_builder::check(value v, const std::string& where) const {
  const auto refuse = [&](const std::string& what, const char* remedy) {
    throw error(error_kind::invalid_argument, what, where, remedy);
  };
  const std::uint32_t first = v.index - v.output;
  if (v.output != 0 && first < graph_.values_.size()) {
    const std::int32_t producer = graph_.values_[first].producer;
    const std::uint32_t outputs = producer < 0 ? 0 : graph_.nodes_[static_cast<std::size_t>(producer)].outputs;
    if (v.output >= outputs)
      refuse("asks for output " + std::to_string(v.output) + " of " + graph_.value_names_[first] + ", which has " +
                 (producer < 0 ? "none: no node computes it" : std::to_string(outputs)),
             "count outputs from 0");
  }
  if (v.index >= graph_.values_.size())
    refuse("names value " + std::to_string(v.index) + ", which does not exist yet",
           "add values before the nodes that read them");
}

value graph_builder::add_value(const tensor_type& type, value_role role, std::string name) {
  if (role == value_role::constant && !type.dims.is_concrete())
    throw error(error_kind::invalid_argument,
                "every extent of a constant must be known, and it is " + detail::to_string(type), name);
  if (detail::is_too_large(type.dims))
    throw error(error_kind::invalid_argument, "a tensor of " + detail::to_string(type) + " is too large", name,
                "its extents and their product must be at most 2^48");
  value_record record;
  record.type = type;
  record.role = role;
  graph_.values_.push_back(record);
  graph_.value_names_.push_back(std::move(name));
  graph_.constants_.emplace_back();
  return {static_cast<std::uint32_t>(graph_.values_.size() - 1)};
}

value graph_builder::constant(text_ref name, const tensor_type& type, std::shared_ptr<const std::byte> bytes) {
  if (bytes == nullptr)
    throw error(error_kind::invalid_argument, "a constant needs contents", name,
                "pass its bytes, or add it unbound and call bind");
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
      case dtype::i8: record.scalar = load(std::int8_t{}); break;  // zero points
      case dtype::u8: record.scalar = load(std::uint8_t{}); break;
      default: record.has_scalar = false; break;
    }
  }
  graph_.constants_[v.index].source = contents_source::given;
  graph_.constants_[v.index].bytes = std::move(bytes);
  return v;
}

value graph_builder::constant(const graph& from, std::uint32_t which) {
  const value_record& original = from.at(which);
  const value v = add_value(original.type, value_role::constant, from.value_name(which));
  graph_.values_[v.index].has_scalar = original.has_scalar;
  graph_.values_[v.index].scalar = original.scalar;
  graph_.constants_[v.index] = from.constant(which);
  return v;
}

value graph_builder::add_input(text_ref name, const tensor_type& type) {
  const value v = add_value(type, value_role::input, std::string(name.data, name.size));
  graph_.inputs_.push_back(v.index);
  return v;
}

value graph_builder::add_constant(text_ref name, const tensor_type& type, contents_source source, uniform fill) {
  if (source == contents_source::rule && type.type != dtype::f32)
    throw error(error_kind::invalid_argument, "only float32 constants can be filled by the generator", name,
                "bind the contents instead");
  const value v = add_value(type, value_role::constant, std::string(name.data, name.size));
  graph_.constants_[v.index].source = source;
  graph_.constants_[v.index].fill = fill;
  return v;
}

value graph_builder::add_integers(text_ref name, std::span<const std::int64_t> list) {
  const std::shared_ptr<std::byte> bytes = allocate_bytes(list.size_bytes());
  if (!list.empty()) std::memcpy(bytes.get(), list.data(), list.size_bytes());
  return constant(name, tensor_type{dtype::i64, {list.size()}}, bytes);
}

void graph_builder::add_output(text_ref name, value v) {
  check(v, "output");
  graph_.values_[v.index].is_output = true;
  graph_.outputs_.push_back(v.index);
  if (name.size == 0) graph_.output_names_.push_back(graph_.value_names_[v.index]);
  else graph_.output_names_.emplace_back(name.data, name.size);
}

value graph_builder::add_scalar(text_ref name, double number, dtype type) {
  const std::shared_ptr<std::byte> bytes = allocate_bytes(size_of(type));
  if (!detail::store_number(bytes.get(), type, number))
    throw error(error_kind::invalid_argument, std::string("its value cannot be stored as ") + name_of(type), name,
                "choose an element type that holds it");
  return constant(name, tensor_type{type, {}}, bytes);
}

value graph_builder::add(const kind_info& kind, std::span<const value> operands, const attribute_words& attributes,
                         text_ref name, std::span<const std::shared_ptr<const graph>> bodies) {
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
  std::vector<list_view<const std::int64_t>> contents;
  for (const value v : operands) {
    check(v, where);
    in.push_back(type_of(v));
    contents.push_back(integers(v));
  }
  if (bodies.size() != kind.bodies)
    throw error(error_kind::invalid_argument,
                "owns " + std::to_string(kind.bodies) + " subgraphs, not " + std::to_string(bodies.size()), where);
  const detail::signatures_of_bodies signatures(bodies);
  attribute_words words = attributes;
  if (kind.normalise != nullptr) kind.normalise(words, in);
  const std::size_t outputs = kind.output_count(words.list(), signatures.list);
  if (outputs == 0 || outputs > any_number) throw error(error_kind::invalid_argument, output_count_rule, where);
  std::vector<tensor_type> out(outputs);
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

graph graph_builder::finish() {
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
  detail::link_alike(graph_.nodes_);
  graph_.uses_.resize(graph_.operands_.size());
  detail::list_uses(graph_.nodes_, graph_.operands_, graph_.values_, graph_.uses_);
  unnamed_ = 0;
  return std::exchange(graph_, graph{});
}

}  // namespace collage::inline v0
