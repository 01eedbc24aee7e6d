// The run-time graph: the flat records of graph/view.hpp in vectors, with names and the contents of constants.
#pragma once

#include <collage/detail/host_memory.hpp>
#include <collage/detail/memory_check.hpp>
#include <collage/dtype.hpp>
#include <collage/error.hpp>
#include <collage/graph/build.hpp>
#include <collage/graph/define.hpp>
#include <collage/graph/view.hpp>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace collage::inline v0 {

/// The contents of a constant, or their source. Graphs share the bytes. `bytes` is null until they are bound (`graph::bind`) or
/// generated (`fill_constants`).
struct constant_data {
  std::shared_ptr<const std::byte> bytes;
  contents_source source = contents_source::unbound;
  uniform fill;
};

/// A view of elements of one type: a span, vector or array of numbers, or of std::byte for elements of any type.
struct element_list {
  template <class List>
    requires requires(const List& list) {
      list.size();
      *list.data();
    }
  element_list(const List& list) : data(list.data()), count(list.size()) {
    using element = std::remove_cvref_t<decltype(*list.data())>;
    if constexpr (std::is_same_v<element, std::byte>) is_raw = true;
    else type = dtype_of<element>;
  }

  /// Elements in braces: `network.bind("bias", {0.5F, -1})`. Only valid within the same expression.
  element_list(std::initializer_list<float> list) : data(list.begin()), count(list.size()) {}

  const void* data;
  std::size_t count;  ///< elements, or bytes
  dtype type = dtype::f32;
  bool is_raw = false;
};

/// A network. `graph_builder` makes it, and passes make new ones. Only the contents of its constants change. Nodes are in
/// topological order. Copies share the contents of constants.
class graph {
 public:
  graph() = default;
  /// The run-time form of a graph defined at compile time (graph/define.hpp): a copy of its records and names. Contents that
  /// the definition states are included; others must be bound or filled.
  template <static_graph Tag>
  graph(const Tag&) : graph(Tag::graph.lists()) {}
  template <std::derived_from<detail::defined> Defined>
  graph(const Defined& made) : graph(made.lists()) {}

  graph_view view() const { return {nodes_, values_, operands_, uses_, words_}; }
  std::span<const node_record> nodes() const { return nodes_; }
  std::span<const value_record> values() const { return values_; }
  const node_record& node(std::uint32_t index) const { return nodes_[index]; }
  const value_record& at(std::uint32_t value) const { return values_[value]; }
  const tensor_type& type_of(std::uint32_t value) const { return values_[value].type; }

  /// Values that the user passes in and reads, in order of declaration. A value can be an output twice.
  std::span<const std::uint32_t> inputs() const { return inputs_; }
  std::span<const std::uint32_t> outputs() const { return outputs_; }
  const std::string& output_name(std::size_t which) const { return output_names_[which]; }

  /// Names are unique among nodes and among values. An unnamed node is called by its kind and a number.
  const std::string& node_name(std::uint32_t index) const { return node_names_[index]; }
  const std::string& value_name(std::uint32_t index) const { return value_names_[index]; }

  /// The subgraphs that a node owns. The kind determines the inputs of each. A subgraph reads nothing else of this graph.
  std::span<const std::shared_ptr<const graph>> bodies_of(std::uint32_t node) const {
    return std::span(bodies_).subspan(nodes_[node].first_body, nodes_[node].bodies);
  }

  /// The contents of a constant. Errors: they are neither bound nor generated.
  std::span<const std::byte> bytes_of(std::uint32_t value) const;
  /// Only meaningful for constants.
  const constant_data& constant(std::uint32_t value) const { return constants_[value]; }
  void set_bytes(std::uint32_t value, std::shared_ptr<const std::byte> bytes) {
    constants_[value].bytes = std::move(bytes);
  }

  /// Copies contents into a constant: `network.bind("w", weights)`. They replace contents that a rule would generate. Errors:
  /// no constant has this name; it is a scalar, or holds integers that shapes depend on; another element type or number of
  /// elements.
  void bind(text_ref name, const element_list& elements);
  /// The same without copying. The memory must be aligned to 64 bytes, and 64 bytes past its end must be readable, as
  /// `allocate_bytes` guarantees.
  void bind(text_ref name, std::shared_ptr<const std::byte> bytes, std::size_t size);
  /// The constants that are still to be bound.
  std::vector<std::uint32_t> unbound() const;

  /// Replaces a subgraph by one with the same types of inputs and outputs.
  void set_body(std::uint32_t node, std::size_t which, std::shared_ptr<const graph> body) {
    bodies_[nodes_[node].first_body + which] = std::move(body);
  }

  /// A hash of structure, attributes, types and known scalars. Names and other contents of constants are not part of it.
  std::uint64_t fingerprint() const;

 private:
  friend class graph_builder;
  explicit graph(const detail::lists_view& lists);
  std::uint32_t bindable(text_ref name, std::size_t bytes, const dtype* type) const;

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

/// Memory for the contents of a constant, aligned for any vector unit. A kernel may read up to 64 bytes past the end.
inline std::shared_ptr<std::byte> allocate_bytes(std::size_t size) {
  detail::check_memory(size, "constant");
  void* memory = detail::allocate_host(size);
  if (memory == nullptr)
    throw error(error_kind::environment, "out of memory for " + std::to_string(size) + " bytes", "constant");
  return {static_cast<std::byte*>(memory), [size](std::byte* p) { detail::release_host(p, size); }};
}

/// Builds a run-time graph node by node, and infers shapes as nodes are added. Every mistake is a `collage::error` that names
/// the node and the rule.
class graph_builder : public graph_calls<graph_builder> {
 public:
  using graph_calls<graph_builder>::constant;
  using graph_calls<graph_builder>::integers;
  /// A constant with given contents of type.bytes() bytes, which are shared, not copied.
  value constant(text_ref name, const tensor_type& type, std::shared_ptr<const std::byte> bytes);
  /// A copy of a constant of another graph: name, type, contents (shared) and rule.
  value constant(const graph& from, std::uint32_t which);
  /// Adds a node of any kind and returns its first output. Its other outputs have the next indices. `name` may be empty.
  /// `bodies` are the subgraphs, for a kind that owns any.
  value add(const kind_info& kind, std::span<const value> operands, const attribute_words& attributes, text_ref name,
            std::span<const std::shared_ptr<const graph>> bodies = {});

  /// The type of a value built so far.
  const tensor_type& type_of(value v) const { return graph_.values_[v.index].type; }
  const value_record& at(value v) const { return graph_.values_[v.index]; }
  /// The contents of a constant built so far, or their rule.
  const constant_data& contents_of(value v) const { return graph_.constants_[v.index]; }
  std::size_t node_count() const { return graph_.nodes_.size(); }
  /// The nodes so far with their operands. Its list of uses is empty until `finish`. Valid until the next call that adds anything.
  graph_view view() const { return graph_.view(); }
  /// The contents of a constant of type int64; empty if unknown.
  std::span<const std::int64_t> integers(value v) const {
    const value_record& r = graph_.values_[v.index];
    const constant_data& data = graph_.constants_[v.index];
    if (r.role != value_role::constant || r.type.type != dtype::i64 || data.bytes == nullptr) return {};
    return {reinterpret_cast<const std::int64_t*>(data.bytes.get()), static_cast<std::size_t>(r.type.dims.elements())};
  }

  /// Returns the finished graph, and leaves the builder empty.
  graph finish();

  // The implementation of the calls of graph_calls.
  value add_input(text_ref name, const tensor_type& type);
  value add_constant(text_ref name, const tensor_type& type, contents_source source, uniform fill);
  value add_scalar(text_ref name, double number, dtype type);
  value add_integers(text_ref name, std::span<const std::int64_t> list);
  void add_output(text_ref name, value v);

 private:
  value add_value(const tensor_type& type, value_role role, std::string name);
  void check(value v, const std::string& where) const;

  graph graph_;
  std::uint64_t unnamed_ = 0;
};

namespace detail {
/// A shape as text: "1x64x56x56". A scalar is "scalar", an unknown extent is "?".
std::string to_string(const shape& dims);
/// "float32[1x64x56x56]".
std::string to_string(const tensor_type& type);
}  // namespace detail

/// Throws an error that names every constant that is read and has no contents, with the remedy. `place` and engines call it.
void check_contents(const graph& network);

/// Generates the contents of every constant with a rule. The generator is SplitMix64, seeded with the CRC-32 of the name, so
/// contents are the same in every run and on every machine.
void fill_constants(graph& network);

/// Fills one list of floats by a rule.
void fill_uniform(std::span<float> to, const std::string& name, uniform range);

}  // namespace collage::inline v0
