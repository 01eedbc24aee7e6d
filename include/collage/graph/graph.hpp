// The run-time graph: the flat records of graph/view.hpp in vectors, with names and the contents of constants.
#pragma once

#include <collage/error.hpp>
#include <collage/graph/build.hpp>
#include <collage/graph/view.hpp>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace collage::inline v0 {

/// The contents of a constant: bytes, shared between graphs, or the rule that makes them. `bytes` is null until
/// `fill_constants` ran.
struct constant_data {
  std::shared_ptr<const std::byte> bytes;
  uniform fill;
};

/// A network. Immutable but for the contents of its constants; made by `graph_builder`, remade by passes. Nodes stand
/// in a topological order. Copies share the contents of constants.
class graph {
 public:
  graph_view view() const { return {nodes_, values_, operands_, uses_, words_}; }
  std::span<const node_record> nodes() const { return nodes_; }
  std::span<const value_record> values() const { return values_; }
  const node_record& node(std::uint32_t index) const { return nodes_[index]; }
  const value_record& at(std::uint32_t value) const { return values_[value]; }
  const tensor_type& type_of(std::uint32_t value) const { return values_[value].type; }

  /// Values that the user gives and reads, in order of declaration. A value can be an output twice.
  std::span<const std::uint32_t> inputs() const { return inputs_; }
  std::span<const std::uint32_t> outputs() const { return outputs_; }
  const std::string& output_name(std::size_t which) const { return output_names_[which]; }

  /// Names are unique among nodes and among values. A node without a name of its own has its kind's and a number.
  const std::string& node_name(std::uint32_t index) const { return node_names_[index]; }
  const std::string& value_name(std::uint32_t index) const { return value_names_[index]; }

  /// The sub-graphs that a node owns. Each takes as inputs what its kind says and reads nothing else of this graph.
  std::span<const std::shared_ptr<const graph>> bodies_of(std::uint32_t node) const {
    return std::span(bodies_).subspan(nodes_[node].first_body, nodes_[node].bodies);
  }

  /// The contents of a constant. An error if `fill_constants` has not run.
  std::span<const std::byte> bytes_of(std::uint32_t value) const {
    const constant_data& data = constants_[value];
    if (data.bytes == nullptr)
      throw error(error_kind::failure, "its contents were not loaded", "constant " + value_names_[value],
                  "call fill_constants(graph) first");
    return {data.bytes.get(), values_[value].type.bytes()};
  }
  /// Only meaningful for constants.
  const constant_data& constant(std::uint32_t value) const { return constants_[value]; }
  void set_bytes(std::uint32_t value, std::shared_ptr<const std::byte> bytes) {
    constants_[value].bytes = std::move(bytes);
  }

  /// Replaces a sub-graph by one that takes and answers the same types.
  void set_body(std::uint32_t node, std::size_t which, std::shared_ptr<const graph> body) {
    bodies_[nodes_[node].first_body + which] = std::move(body);
  }

  /// A hash over structure, attributes, types and names' absence: equal for equal networks whatever their weights are.
  std::uint64_t fingerprint() const;

 private:
  friend class graph_builder;
  std::vector<node_record> nodes_;
  std::vector<value_record> values_;
  std::vector<std::uint32_t> operands_;
  std::vector<use> uses_;
  std::vector<std::uint64_t> words_;
  std::vector<std::shared_ptr<const graph>> bodies_;
  std::vector<std::uint32_t> inputs_, outputs_;
  std::vector<std::string> node_names_, value_names_, output_names_;
  std::vector<constant_data> constants_;  // one per value; empty for values that are not constants
};

/// Memory for the contents of a constant, aligned for any vector unit and padded so that a kernel may read 64 bytes on.
inline std::shared_ptr<std::byte> allocate_bytes(std::size_t size) {
  constexpr std::size_t alignment = 64;
  const std::size_t padded = (size + 2 * alignment - 1) / alignment * alignment;
  void* memory = std::aligned_alloc(alignment, padded);
  if (memory == nullptr)
    throw error(error_kind::environment, "out of memory for " + std::to_string(size) + " bytes", "constant");
  return {static_cast<std::byte*>(memory), [](std::byte* p) { std::free(p); }};
}

/// Builds a run-time graph node by node; shapes are inferred as nodes are added. Every mistake is a `collage::error`
/// that names the node and the rule.
class graph_builder : public graph_calls<graph_builder> {
 public:
  value input(text_ref name, const tensor_type& type) {
    const value v = add_value(type, value_role::input, std::string(name.data, name.size));
    graph_.inputs_.push_back(v.index);
    return v;
  }
  /// A constant whose elements come from the generator, in `fill_constants`.
  value constant(text_ref name, const tensor_type& type, uniform fill) {
    if (type.type != dtype::f32)
      throw error(error_kind::invalid_argument, "only float32 constants can be filled by rule", name);
    const value v = add_value(type, value_role::constant, std::string(name.data, name.size));
    graph_.constants_[v.index].fill = fill;
    return v;
  }
  /// A constant with given contents (type.bytes() bytes), which are shared, not copied.
  value constant(text_ref name, const tensor_type& type, std::shared_ptr<const std::byte> bytes);
  /// The same constant as in another graph: name, type, contents (shared) and rule.
  value constant(const graph& from, std::uint32_t which);
  /// A constant of rank 0.
  value scalar(text_ref name, double number, dtype type = dtype::f32);

  void output(text_ref name, value v) {
    check(v, "output");
    graph_.values_[v.index].is_output = true;
    graph_.outputs_.push_back(v.index);
    graph_.output_names_.emplace_back(name.data, name.size);
  }
  /// Adds a node of any kind; answers its first output, behind which the others have consecutive indices. `name` may be
  /// empty. `bodies` are the sub-graphs of a kind that owns any.
  value add(const kind_info& kind, std::span<const value> operands, const attribute_words& attributes, text_ref name,
            std::span<const std::shared_ptr<const graph>> bodies = {});

  /// The type of a value built so far.
  const tensor_type& type_of(value v) const { return graph_.values_[v.index].type; }
  const value_record& at(value v) const { return graph_.values_[v.index]; }
  /// The contents of a constant built so far, or the rule that makes them.
  const constant_data& contents_of(value v) const { return graph_.constants_[v.index]; }
  std::size_t node_count() const { return graph_.nodes_.size(); }
  /// The int64 contents of a small constant, or nothing.
  std::span<const std::int64_t> integers(value v) const {
    const value_record& r = graph_.values_[v.index];
    const constant_data& data = graph_.constants_[v.index];
    if (r.role != value_role::constant || r.type.type != dtype::i64 || data.bytes == nullptr) return {};
    return {reinterpret_cast<const std::int64_t*>(data.bytes.get()), static_cast<std::size_t>(r.type.dims.elements())};
  }

  /// The finished graph; the builder is left empty.
  graph finish();

 private:
  value add_value(const tensor_type& type, value_role role, std::string name);
  void check(value v, const char* where) const {
    if (v.index >= graph_.values_.size())
      throw error(error_kind::invalid_argument, "names value " + std::to_string(v.index) + ", which does not exist yet",
                  where, "add values before the nodes that read them");
  }

  graph graph_;
  std::uint64_t unnamed_ = 0;
};

/// Makes the contents of every constant that is given by a rule; SplitMix64 seeded with the CRC-32 of the name, so the
/// same for every run and machine.
void fill_constants(graph& network);

/// Fills one list of floats by the rule.
void fill_uniform(std::span<float> to, const std::string& name, uniform range);

}  // namespace collage::inline v0

#include <collage/graph/detail/graph.inl.hpp>
