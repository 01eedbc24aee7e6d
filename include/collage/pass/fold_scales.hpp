// The pass that folds scales and shifts into weights, such as those that batch normalisation leaves.
#pragma once

#include <algorithm>
#include <cmath>
#include <collage/graph/graph.hpp>
#include <collage/op/conv.hpp>
#include <collage/op/conv_transpose.hpp>
#include <collage/op/elementwise.hpp>
#include <collage/op/matmul.hpp>
#include <collage/pass/detail/affine.hpp>
#include <collage/pass/detail/scale_weights.hpp>
#include <collage/pass/rewrite.hpp>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace collage::inline v0 {

struct fold_scales_options {
  /// Weights that other nodes read as well are scaled in a copy, up to this size in bytes.
  std::size_t largest_copy = std::size_t{16} << 20;
};

namespace detail {

/// A node that can take scales into its weights.
struct weighted_node {
  weight_layout layout;
  std::size_t rank = 0;          ///< of its output
  channel_axis outputs, inputs;  ///< of its output and of its first operand
  bool takes_bias = true;
  bool takes_scale_before = true;
  bool takes_shift_before = true;
};

inline std::optional<weighted_node> weighted_node_of(const graph& network, std::uint32_t node) {
  const graph_view view = network.view();
  const bool forward = is_kind(network, node, ops::conv), transposed = is_kind(network, node, ops::conv_transpose);
  if (!forward && !transposed && !is_kind(network, node, ops::matmul)) return {};
  const std::uint32_t weights = view.inputs_of(node)[1];
  if (!view.is_constant(weights) || !is_floating(network.type_of(weights).type)) return {};
  const shape& w = network.type_of(weights).dims;
  weighted_node n;
  n.rank = network.type_of(view.output_of(node)).rank();
  if (forward || transposed) {
    const shape window = w.from(2);
    std::int64_t groups = 0;
    if (forward) {
      const auto a = from_words<ops::conv_attributes>(view.words_of(node));
      groups = a.groups;
      for (std::size_t d = 0; d < window.size(); ++d)
        n.takes_shift_before = n.takes_shift_before && a.pads_begin[d] == 0 && a.pads_end[d] == 0;
    } else {
      groups = from_words<ops::conv_transpose_attributes>(view.words_of(node)).groups;
      n.takes_shift_before = false;  // fewer taps reach the places at its borders
    }
    n.layout = {w[0], w[1], window.elements(), forward, std::max<std::int64_t>(1, w[0] / groups)};
    n.outputs = {1, forward ? w[0] : w[1] * groups};
    n.inputs = {1, forward ? w[1] * groups : w[0]};
  } else {
    const bool across = from_words<ops::matmul_attributes>(view.words_of(node)).transpose_b && w.rank > 1;
    const std::int64_t columns = w.rank == 1 ? 1 : w[w.rank - (across ? 2 : 1)];
    const std::int64_t depth = w[w.rank - (across || w.rank == 1 ? 1 : 2)];
    std::int64_t batches = 1;
    for (std::size_t d = 0; d + 2 < w.rank; ++d) batches *= w[d];
    n.layout = {across ? batches : batches * depth, columns, across ? depth : 1, false,
                std::max<std::int64_t>(1, batches * depth)};
    if (w.rank > 1) n.outputs = {n.rank - 1, columns};
    n.takes_bias = n.takes_scale_before = n.takes_shift_before = false;
  }
  return n;
}

/// One node that takes over the work of its neighbours.
struct scale_fold {
  std::uint32_t node = 0;
  std::uint32_t source = 0;                  ///< the old value that it reads from now on
  std::uint32_t last = 0;                    ///< the old node whose result it computes from now on
  std::shared_ptr<const std::byte> weights;  ///< null: unchanged
  std::shared_ptr<const std::byte> bias;     ///< null: unchanged; for a product, the operand of an addition after it
};

/// Finds the folds in one graph, and makes the new weights.
class scale_plan {
 public:
  scale_plan(const graph& network, const fold_scales_options& options)
      : network_(network), options_(options), gone_(network.nodes().size()), fold_at_(network.nodes().size(), none) {
    for (const bool behind : {true, false})
      for (std::uint32_t n = 0; n < network.nodes().size(); ++n)
        if (const auto weighted = weighted_node_of(network, n); weighted && !gone_[n]) follow(n, *weighted, behind);
  }

  bool empty() const { return folds_.empty(); }
  bool drops(std::uint32_t node) const { return gone_[node]; }
  /// The fold whose result takes the place of this node's result; null if no fold does.
  const scale_fold* fold_of(std::uint32_t node) const {
    return fold_at_[node] == none ? nullptr : &folds_[fold_at_[node]];
  }

 private:
  static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();

  bool read_once(std::uint32_t value) const { return network_.at(value).uses == 1 && !network_.at(value).is_output; }

  /// Whether a node applies one number to the result of an elementwise node. The node may be the end of an activation,
  /// as in x * clip(x + 3, 0, 6) / 6. Backends know such an activation as a whole, and would not find it without its
  /// end.
  bool ends_activation(std::uint32_t node, std::uint32_t data) const {
    for (const std::uint32_t operand : network_.view().inputs_of(node))
      if (operand != data && network_.type_of(operand).dims.elements() != 1) return false;
    const std::int32_t producer = network_.at(data).producer;
    return producer >= 0 && network_.node(static_cast<std::uint32_t>(producer)).kind->body != nullptr;
  }

  /// Looks after (or before) one node for work that it can take over.
  void follow(std::uint32_t node, const weighted_node& n, bool behind) {
    const graph_view view = network_.view();
    scale_fold fold{.node = node, .source = view.inputs_of(node)[0], .last = node, .weights = {}, .bias = {}};
    std::vector<std::uint32_t> taken;
    affine after = affine::identity(static_cast<std::size_t>(n.outputs.channels));
    affine before = affine::identity(static_cast<std::size_t>(n.inputs.channels));
    if (behind) {
      for (std::uint32_t v = view.output_of(node); read_once(v); v = view.output_of(fold.last)) {
        const std::uint32_t next = view.uses_of(v)[0].node;
        const auto step = affine_of(network_, next, v, n.outputs);
        if (!step) break;
        affine both = compose(*step, after);
        if (!both.is_finite()) break;
        after = std::move(both);
        taken.push_back(std::exchange(fold.last, next));
      }
      // A product has no bias. Folding a single shift after it would leave one addition, so there is nothing to gain.
      if (!n.takes_bias && taken.size() == 1 && !after.scales() && after.shifts()) return;
    } else if (n.takes_scale_before) {
      while (network_.at(fold.source).producer >= 0 && read_once(fold.source)) {
        const auto producer = static_cast<std::uint32_t>(network_.at(fold.source).producer);
        const std::span<const std::uint32_t> operands = view.inputs_of(producer);
        if (gone_[producer] || fold_at_[producer] != none || operands.empty()) break;
        const std::uint32_t data = operands[operands.size() > 1 && view.is_constant(operands[0]) ? 1 : 0];
        if (ends_activation(producer, data)) break;
        const auto step = affine_of(network_, producer, data, n.inputs);
        if (!step || (step->shifts() && !n.takes_shift_before)) break;
        affine both = compose(before, *step);
        if (!both.is_finite()) break;
        before = std::move(both);
        fold.source = data;
        taken.push_back(producer);
      }
    }
    if (taken.empty() || !change_weights(fold, n, after, before)) return;
    for (const std::uint32_t t : taken) gone_[t] = true;
    fold_at_[fold.last] = folds_.size();
    folds_.push_back(std::move(fold));
  }

  bool change_weights(scale_fold& fold, const weighted_node& n, const affine& after, const affine& before) const {
    const std::span<const std::uint32_t> operands = network_.view().inputs_of(fold.node);
    const value_record& w = network_.at(operands[1]);
    const auto outputs = static_cast<std::size_t>(n.outputs.channels);
    std::vector<double> bias(outputs);
    if (after.scales() || before.scales() || before.shifts()) {
      if (network_.constant(operands[1]).bytes == nullptr) return false;
      if (before.shifts())
        bias = shifted_sums(w.type.type, network_.bytes_of(operands[1]), n.layout, before.shift, outputs);
    }
    if (after.scales() || before.scales()) {
      if ((w.uses > 1 || w.is_output) && w.type.bytes() > options_.largest_copy) return false;
      const auto factors = [](const affine& a) { return std::span(a.scale).first(a.scales() ? a.scale.size() : 0); };
      fold.weights =
          scale_weights(w.type.type, network_.bytes_of(operands[1]), n.layout, factors(after), factors(before));
      if (fold.weights == nullptr) return false;
    }
    const bool has_bias = operands.size() > 2;
    if (!after.shifts() && !before.shifts() && !(has_bias && after.scales())) return true;
    if (has_bias) {
      const auto old = per_channel(network_, operands[2], 1, {0, n.outputs.channels});
      if (!old) return false;
      for (std::size_t i = 0; i < outputs; ++i) bias[i] += (*old)[i];
    }
    for (std::size_t i = 0; i < outputs; ++i) {
      bias[i] = after.scale[i] * bias[i] + after.shift[i];
      if (!(std::abs(bias[i]) <= magnitudes_of(w.type.type).largest)) return false;
    }
    const std::shared_ptr<std::byte> bytes = allocate_bytes(outputs * size_of(w.type.type));
    store_elements(w.type.type, std::span<const double>(bias), bytes.get());
    fold.bias = bytes;
    return true;
  }

  const graph& network_;
  const fold_scales_options& options_;
  std::vector<bool> gone_;  // by old node: another node does its work
  std::vector<scale_fold> folds_;
  std::vector<std::size_t> fold_at_;  // by old node: the fold that computes its result
};

/// Adds the nodes of a fold in the place of its last node.
inline void apply_fold(rewriter& r, const scale_fold& fold) {
  const graph& from = r.from();
  const std::span<const std::uint32_t> old = from.view().inputs_of(fold.node);
  const tensor_type& type = from.type_of(old[1]);
  const auto constant = [&r](const std::string& like, const tensor_type& t, std::shared_ptr<const std::byte> bytes) {
    return r.to().constant(r.fresh_name(like), t, std::move(bytes));
  };
  const weighted_node n = *weighted_node_of(from, fold.node);
  std::vector<value> operands = {r.of(fold.source), r.of(old[1])};
  if (fold.weights != nullptr) operands[1] = constant(from.value_name(old[1]), type, fold.weights);
  const bool one_channel = n.outputs.axis >= n.rank;
  const tensor_type bias_type = {type.type, one_channel ? shape{} : shape{n.outputs.channels}};
  value bias;
  if (fold.bias != nullptr)
    bias =
        constant(old.size() > 2 ? from.value_name(old[2]) : from.node_name(fold.node) + ".bias", bias_type, fold.bias);
  else if (old.size() > 2) bias = r.of(old[2]);

  const kind_info& kind = *from.node(fold.node).kind;
  if (n.takes_bias && (fold.bias != nullptr || old.size() > 2)) operands.push_back(bias);
  const bool adds = !n.takes_bias && fold.bias != nullptr;
  r.replace(adds ? fold.node : fold.last, kind, operands, r.words_of(fold.node));
  if (!adds) return;
  const value sum[] = {r.of(from.view().output_of(fold.node)), bias};
  r.replace(fold.last, kind_of<decltype(ops::add)>, sum, {});
}

}  // namespace detail

/// Returns the graph with multiplications, divisions, additions and subtractions by constants, and negations, folded
/// into weights and biases of neighbours. A constant must have one number for all channels, or one for each. They are
/// folded if they are
/// - after a convolution (transposed ones too), which gets a bias if it has none;
/// - after a product with a constant second operand, where the constant runs along the columns: one addition may stay
///   after the product;
/// - before a convolution: factors always, shifts where there is no padding, since padding is not shifted with the
///   rest. A single number after other elementwise nodes stays: it may be part of an activation.
///
/// Only values without other readers disappear; the result has the name of the last node. Factors and sums are computed
/// in double precision and rounded once. Constants that are not loaded are left alone. Constants that are no longer
/// read stay for `remove_dead`.
///
/// Infinity and NaN in data come out as before. Factors that are not finite are not folded, since they make NaN of
/// weights that are 0. A factor of 0 is folded, since it makes NaN of infinity on either side of the sum. Weights that
/// would overflow or lose digits are left. Scaling a sum term by term may change where it overflows. Data near the
/// limits of the element type can overflow where they did not before, or the other way round.
inline graph fold_scales(const graph& network, const fold_scales_options& options = {}) {
  graph result = network;
  // A second look rarely finds more: a chain that was too much for its weights, and has become shorter.
  for (bool changes = true, first = true; changes; first = false) {
    const detail::scale_plan plan(result, options);
    changes = !plan.empty();
    if (!changes && !first) break;
    graph next = rewrite(result, {.constant = {},
                                  .node =
                                      [&](rewriter& r, std::uint32_t node) {
                                        if (const detail::scale_fold* fold = plan.fold_of(node))
                                          detail::apply_fold(r, *fold);
                                        else if (!plan.drops(node)) r.copy_node(node);
                                      },
                                  .body = [&](const graph& body) { return fold_scales(body, options); }});
    result = std::move(next);
  }
  return result;
}

}  // namespace collage::inline v0
