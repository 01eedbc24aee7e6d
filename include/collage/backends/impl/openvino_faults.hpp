// Operators that OpenVINO computes wrongly next to their neighbours: its own fusions make other networks of them. Each rule names
// the fusion, and holds wherever the fusion could apply. Found with version 2026.4.
#pragma once

#include <algorithm>
#include <collage/graph/graph.hpp>
#include <collage/graph/view.hpp>
#include <collage/op/attributes.hpp>
#include <collage/op/kind.hpp>
#include <collage/ops.hpp>
#include <collage/shape.hpp>
#include <collage/verdict.hpp>
#include <cstddef>
#include <cstdint>
#include <span>

namespace collage::inline v0::detail::openvino {
namespace {

template <class... Kinds>
bool is_one_of(const graph& network, std::uint32_t node, const Kinds&...) {
  const std::uint64_t id = network.node(node).kind->id;
  return ((id == kind_id<Kinds>) || ...);
}
template <class Kind>
typename Kind::attributes read_attributes(const graph& network, std::uint32_t node, const Kind&) {
  return from_words<typename Kind::attributes>(network.view().words_of(node));
}
inline bool is_elementwise(const graph& network, std::uint32_t node) {
  return network.node(node).kind->body != nullptr;
}

/// Whether an elementwise operator never decreases. It then gives the same result before and after a maximum.
inline bool never_decreases(const graph& network, std::uint32_t node) {
  if (is_one_of(network, node, ops::leaky_relu)) return read_attributes(network, node, ops::leaky_relu).alpha >= 0;
  if (is_one_of(network, node, ops::elu)) return read_attributes(network, node, ops::elu).alpha >= 0;
  if (is_one_of(network, node, ops::hard_sigmoid)) return read_attributes(network, node, ops::hard_sigmoid).alpha >= 0;
  return is_one_of(network, node, ops::relu, ops::sigmoid, ops::tanh, ops::exp, ops::log, ops::sqrt, ops::erf,
                   ops::floor, ops::ceil, ops::softplus, ops::softsign, ops::clip);
}

/// Whether a value comes from a convolution over elementwise operators with constants, which the library folds into it.
inline bool comes_from_conv(const graph& network, std::uint32_t value) {
  constexpr int most_steps = 8;
  for (int step = 0; step < most_steps; ++step) {
    if (network.at(value).producer < 0) return false;
    const auto node = static_cast<std::uint32_t>(network.at(value).producer);
    if (is_one_of(network, node, ops::conv, ops::conv_transpose)) return true;
    if (!is_elementwise(network, node)) return false;
    const auto operands = network.view().inputs_of(node);
    const auto computed =
        std::ranges::find_if(operands, [&](std::uint32_t v) { return network.at(v).role != value_role::constant; });
    if (computed == operands.end()) return false;
    value = *computed;
  }
  return false;
}

/// The library moves an activation from behind a maximum pooling to the convolution before it. That is right only for
/// activations that never decrease. It finds activations of several operators, too, such as SiLU and GELU: they read the pooling
/// more than once.
inline verdict keeps_activation_after_pool(const graph& network, std::uint32_t node) {
  const graph_view view = network.view();
  const auto readers = view.uses_of(view.output_of(node));
  const auto is_within = [&](const use& u) { return is_elementwise(network, u.node); };
  if (network.at(view.output_of(node)).is_output || readers.empty() || !std::ranges::all_of(readers, is_within))
    return {};
  if (std::ranges::all_of(readers, [&](const use& u) { return never_decreases(network, u.node); })) return {};
  if (readers.size() == 1 && view.inputs_of(readers[0].node).size() > 1)
    return {};  // no activation of the pooling alone
  return {!comes_from_conv(network, view.inputs_of(node)[0]),
          "openvino applies an activation that may decrease before the pooling, not after it"};
}

/// The library moves the strides of a convolution of one tap to the operators before it, and forgets its pads.
inline verdict keeps_pads(const graph& network, std::uint32_t node) {
  const auto a = read_attributes(network, node, ops::conv);
  const shape window = network.type_of(network.view().inputs_of(node)[1]).dims.from(2);
  const auto is = [](const shape& list, std::int64_t number) {
    return std::ranges::all_of(list, [number](std::int64_t x) { return x == number; });
  };
  return {!is(window, 1) || is(a.strides, 1) || (is(a.pads_begin, 0) && is(a.pads_end, 0)),
          "openvino forgets the pads of a convolution of one tap with strides"};
}

/// Whether a value comes, over elementwise operators, from a reduction that does not keep its dimensions, and lies elsewhere in a
/// broadcast than with them.
inline bool is_reduced_elsewhere(const graph& network, std::uint32_t value, int steps = 12) {
  if (steps == 0 || network.at(value).producer < 0) return false;
  const auto node = static_cast<std::uint32_t>(network.at(value).producer);
  const graph_view view = network.view();
  if (is_one_of(network, node, ops::reduce_mean, ops::reduce_sum, ops::reduce_max, ops::reduce_min, ops::reduce_prod)) {
    const auto a = read_attributes(network, node, ops::reduce_sum);
    const shape& x = network.type_of(view.inputs_of(node)[0]).dims;
    const auto rank = static_cast<std::int64_t>(x.size());
    if (a.keep_dims || a.axes.size() == 0) return false;
    // Reductions of the leading dimensions alone lie in the same place.
    std::int64_t last = 0;
    for (const std::int64_t axis : a.axes) last = std::max(last, axis < 0 ? axis + rank : axis);
    return last >= static_cast<std::int64_t>(a.axes.size()) && static_cast<std::int64_t>(a.axes.size()) < rank;
  }
  if (!is_elementwise(network, node)) return false;
  return std::ranges::any_of(view.inputs_of(node),
                             [&](std::uint32_t v) { return is_reduced_elsewhere(network, v, steps - 1); });
}

/// The library takes x - mean(x) and the like for a normalisation, also where the mean has lost its dimensions and so broadcasts
/// along others.
inline verdict broadcasts_as_written(const graph& network, std::uint32_t node) {
  const graph_view view = network.view();
  const auto operands = view.inputs_of(node);
  if (operands.size() < 2) return {};
  const shape& result = network.type_of(view.output_of(node)).dims;
  for (const std::uint32_t v : operands)
    if (network.type_of(v).dims.size() < result.size() && is_reduced_elsewhere(network, v))
      return {false, "openvino broadcasts a reduction without kept dimensions as if it had kept them"};
  return {};
}

/// Whether no fusion of the library makes another network of a node and the nodes that it reads.
inline verdict joins_what_it_reads(const graph& network, std::uint32_t node) {
  if (is_one_of(network, node, ops::conv)) return keeps_pads(network, node);
  if (!is_elementwise(network, node)) return {};
  for (const std::uint32_t v : network.view().inputs_of(node)) {
    if (network.at(v).producer < 0) continue;
    const auto from = static_cast<std::uint32_t>(network.at(v).producer);
    if (!is_one_of(network, from, ops::max_pool)) continue;
    if (const verdict kept = keeps_activation_after_pool(network, from); !kept) return kept;
  }
  return broadcasts_as_written(network, node);
}

}  // namespace
}  // namespace collage::inline v0::detail::openvino
