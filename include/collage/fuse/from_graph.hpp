// The dataflow of a run-time graph.
#pragma once

#include <collage/fuse/dataflow.hpp>
#include <collage/graph/graph.hpp>
#include <collage/op/movement.hpp>
#include <collage/op/norm.hpp>
#include <collage/op/reduce.hpp>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace collage::inline v0::fuse {

/// The facts about one node that fusion needs.
struct node_class {
  fusion_kind kind = fusion_kind::opaque;
  node_role role = node_role::operation;
  std::uint32_t row = 0;  ///< elements of the rows on which the node works one by one; 0 if it does not
};

namespace detail {

/// The number of elements from dimension `first` on; 0 if it is unknown or out of range.
inline std::uint32_t elements_from(const shape& dims, std::int64_t first) {
  if (first < 0 || first >= static_cast<std::int64_t>(dims.size())) return 0;
  const std::int64_t count = dims.from(static_cast<std::size_t>(first)).elements();
  return count > 0 && count < none ? static_cast<std::uint32_t>(count) : 0;
}

}  // namespace detail

/// The kind of a node is its operator's. Softmax over the last dimension, layer norm, and reductions over trailing
/// dimensions work on rows. A reshape is a view: no kernel runs for it, and no group holds it. With `views` false, it
/// is a mover like others.
inline node_class class_of(const graph& g, std::uint32_t node, bool views = true) {
  const graph_view view = g.view();
  const std::uint64_t id = view.kind_id_of(node);
  node_class answer{view.nodes[node].kind->fusion};
  const auto is = [&]<class Kind>(const Kind&) { return id == kind_of<Kind>.id; };
  const auto attributes = [&]<class Kind>(const Kind&) {
    return from_words<typename Kind::attributes>(view.words_of(node));
  };
  if (views && is(ops::reshape)) return {fusion_kind::opaque, node_role::host, 0};
  if (view.nodes[node].inputs == 0) return answer;
  const shape& dims = view.values[view.inputs_of(node)[0]].type.dims;
  const auto rank = static_cast<std::int64_t>(dims.size());
  const auto softmax = [&](const auto& kind) {
    if (is(kind) && attributes(kind).axis == rank - 1) answer.row = detail::elements_from(dims, rank - 1);
  };
  const auto reduce = [&](const auto& kind) {
    if (!is(kind)) return;
    const shape axes = attributes(kind).axes;  // sorted
    const std::int64_t first = rank - static_cast<std::int64_t>(axes.size());
    if (!axes.empty() && axes[0] == first) answer.row = detail::elements_from(dims, first);
  };
  softmax(ops::softmax);
  softmax(ops::log_softmax);
  if (is(ops::layer_norm)) answer.row = detail::elements_from(dims, attributes(ops::layer_norm).axis);
  reduce(ops::reduce_mean);
  reduce(ops::reduce_sum);
  reduce(ops::reduce_max);
  reduce(ops::reduce_min);
  reduce(ops::reduce_log_sum_exp);
  return answer;
}

/// The graph as fusion sees it; nodes have the same numbers. Values of unknown extents count no bytes.
/// `classify(graph, node)` returns a node_class.
template <class Classify>
dataflow dataflow_of(const graph& g, Classify&& classify) {
  const graph_view view = g.view();
  flow_builder b;
  std::map<std::vector<std::int64_t>, std::uint32_t> spaces;
  const auto facts = [&](const tensor_type& type) {
    const auto next = static_cast<std::uint32_t>(spaces.size());
    const auto known = spaces.try_emplace({type.dims.begin(), type.dims.end()}, next).first;
    return value_facts{type.dims.is_concrete() ? type.bytes() : 0, known->second};
  };
  std::vector<std::uint32_t> named(view.values.size(), none);
  for (std::uint32_t v = 0; v < view.values.size(); ++v) {
    const value_record& value = view.values[v];
    if (value.producer < 0) named[v] = b.given(facts(value.type), value.role == value_role::constant);
  }
  std::vector<std::uint32_t> operands;
  std::vector<value_facts> outputs;
  for (std::uint32_t n = 0; n < view.node_count(); ++n) {
    operands.clear();
    outputs.clear();
    for (const std::uint32_t v : view.inputs_of(n)) operands.push_back(named[v]);
    for (std::uint32_t i = 0; i < view.nodes[n].outputs; ++i) outputs.push_back(facts(g.type_of(view.output_of(n, i))));
    const node_class c = classify(g, n);
    const std::uint32_t first = b.node(c.kind, operands, outputs, c.role, c.row);
    for (std::uint32_t i = 0; i < view.nodes[n].outputs; ++i) {
      const std::uint32_t v = view.output_of(n, i);
      named[v] = first + i;
      if (view.values[v].is_output) b.output(named[v]);
    }
  }
  return b.finish();
}
inline dataflow dataflow_of(const graph& g) {
  return dataflow_of(g, [](const graph& of, std::uint32_t node) { return class_of(of, node); });
}

}  // namespace collage::inline v0::fuse
