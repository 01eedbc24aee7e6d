// The results of the reference for a group of nodes, and the rule by which those of kernels agree with them.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <collage/backends/reference.hpp>
#include <collage/dtype.hpp>
#include <collage/graph/graph.hpp>
#include <collage/op/cast.hpp>
#include <collage/op/quantise.hpp>
#include <collage/run/agreement.hpp>
#include <collage/run/elements.hpp>
#include <collage/run/quantised_agreement.hpp>
#include <collage/run/tensor.hpp>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace collage::inline v0 {

/// The results of the reference for a group of nodes, and the rule by which those of kernels agree with them.
///
/// A kernel computes what it quantises in float32, and the reference in double precision. Near a tie, both integers are right. So each
/// number that a quantize_linear divides stands for an interval: the number, and as far on both sides as float32 may err. An integer
/// agrees if it lies between the integers of both ends. The integers inside a group may differ in the same way. So a group that goes
/// on with them is computed twice, from the low and from the high ones. That is right if only elementwise operators follow a
/// single quantisation. For other groups integers may differ as in `compare_quantised`, and numbers by `inner_rounding`.
class group_reference {
 public:
  /// Evaluates `wanted` as evaluate_group does. Copies what it needs of `known`. `network` must outlive this object.
  group_reference(const graph& network, std::span<const std::uint32_t> nodes, std::span<const known_value> known,
                  std::span<const std::uint32_t> wanted)
      : network_(&network) {
    std::vector<std::uint32_t> inner;
    for (const std::uint32_t n : nodes)
      if (const std::uint32_t v = network.view().output_of(n);
          is_quantised(network, v) && std::ranges::find(wanted, v) == wanted.end())
        inner.push_back(v);
    is_bounded_ = inner.empty() || (inner.size() == 1 && goes_on_elementwise(nodes, inner[0]));
    std::vector<std::uint32_t> all(wanted.begin(), wanted.end());
    const auto add_operands = [&](std::uint32_t v) {
      const auto in = operands_of(v);
      const std::size_t first = all.size();
      all.insert(all.end(), in.begin(), in.end());
      return first;
    };
    const std::size_t of_inner = !inner.empty() && is_bounded_ ? add_operands(inner[0]) : 0;
    results_.resize(wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i)
      if (is_quantised(network, wanted[i])) results_[i].quantizer = wanted[i];
    if (inner.empty())
      for (result& r : results_)
        if (r.quantizer) r.first = add_operands(*r.quantizer);
    std::vector<oracle_value> found = evaluate_group(network, nodes, known, all);
    for (std::size_t i = 0; i < wanted.size(); ++i) results_[i].expected = std::move(found[i]);
    for (result& r : results_)
      if (r.quantizer && inner.empty()) r.take_ends(found, found, operands_of(*r.quantizer).size());
    for (result& r : results_)
      if (r.quantizer) r.is_given = is_given(known, operands_of(*r.quantizer)[0]);
    if (!inner.empty() && is_bounded_)
      go_on(nodes, known, wanted, inner[0], std::span(found).subspan(of_inner, operands_of(inner[0]).size()));
  }

  /// Frees the results of wanted values after the first `count`.
  void keep(std::size_t count) { results_.resize(count); }
  /// The reference's result for the wanted value number `which`.
  const oracle_value& expected(std::size_t which) const { return results_[which].expected; }

  /// Compares a kernel's result for the wanted value number `which`. `allowed`: how far floating-point numbers may be from the
  /// reference's, also those that are quantised. Errors: those of `compare`.
  agreement compare(std::size_t which, const const_tensor_view& actual, const tolerance& allowed) const {
    const result& r = results_[which];
    if (!is_bounded_) {
      if (r.quantizer) return compare_quantised(actual, r.expected, 1);
      return collage::compare(actual, r.expected, is_floating(r.expected.type.type) ? widened(allowed) : allowed);
    }
    if (r.ends[0].size() == 0) return collage::compare(actual, r.expected, allowed);
    if (!r.quantizer) return compare_between(actual, r.expected, r.ends[0], r.ends[1], allowed);
    agreement exact = collage::compare(actual, r.expected, allowed);
    if (exact) return exact;
    const auto [low, high] = integers_between(*r.quantizer, r.ends, r.rest, r.is_given, allowed);
    agreement near = compare_between(actual, r.expected, low, high, allowed);
    if (!near) {
      near.expected = static_cast<double>(r.expected.integer[static_cast<std::size_t>(near.worst_index)]);
      near.why = "it differs from the reference, and not only by a step where a quotient lies near a tie";
    }
    return near;
  }

 private:
  using two_values = std::array<oracle_value, 2>;
  /// One wanted value.
  struct result {
    oracle_value expected;
    std::optional<std::uint32_t> quantizer;  ///< the value, if quantize_linear computes it
    bool is_given = false;                   ///< what is quantised is an argument of the group: no sum errs in it
    std::size_t first = 0;
    /// The numbers that are quantised, or the result itself: from low integers inside the group, and from high ones. Empty: exact.
    two_values ends;
    std::vector<oracle_value> rest;  ///< scale and perhaps zero point

    void take_ends(std::vector<oracle_value>& low, std::vector<oracle_value>& high, std::size_t operands) {
      ends = {low[first], high[first]};
      rest.assign(low.begin() + static_cast<std::ptrdiff_t>(first) + 1,
                  low.begin() + static_cast<std::ptrdiff_t>(first + operands));
    }
  };

  list_view<const std::uint32_t> operands_of(std::uint32_t quantised) const {
    return network_->view().inputs_of(static_cast<std::uint32_t>(network_->at(quantised).producer));
  }
  static tolerance widened(tolerance allowed) {
    allowed.relative = std::max(allowed.relative, inner_rounding);
    return allowed;
  }
  bool is_given(std::span<const known_value> known, std::uint32_t value) const {
    return network_->view().is_constant(value) || std::ranges::find(known, value, &known_value::value) != known.end();
  }

  /// Whether each element that depends on a quantised value depends on one element of it.
  bool goes_on_elementwise(std::span<const std::uint32_t> nodes, std::uint32_t quantised) const {
    const graph_view view = network_->view();
    std::vector<std::uint32_t> open{quantised};
    for (std::size_t i = 0; i < open.size(); ++i)
      for (const use& u : view.uses_of(open[i])) {
        if (std::ranges::find(nodes, u.node) == nodes.end()) continue;
        const kind_info& kind = *network_->node(u.node).kind;
        const bool is_elementwise = kind.has_body || kind.id == kind_id<struct ops::quantize_linear> ||
                                    kind.id == kind_id<struct ops::dequantize_linear> ||
                                    kind.id == kind_id<struct ops::cast>;
        const std::uint32_t made = view.output_of(u.node);
        if (!is_elementwise) return false;
        if (std::ranges::find(open, made) == open.end()) open.push_back(made);
      }
    return true;
  }

  /// The integers of both ends of an interval around numbers. `ends`: of the numbers; `rest`: the other operands of quantize_linear.
  two_values integers_between(std::uint32_t quantised, const two_values& ends, const std::vector<oracle_value>& rest,
                              bool is_given, const tolerance& allowed) const {
    const auto producer = static_cast<std::uint32_t>(network_->at(quantised).producer);
    const kind_info& kind = *network_->node(producer).kind;
    std::vector<oracle_value> in{ends[0]};
    in.insert(in.end(), rest.begin(), rest.end());
    const auto quantise = [&] { return std::move(evaluate_node(kind, network_->view().words_of(producer), in)[0]); };
    if (!is_floating(ends[0].type.type)) return {quantise(), quantise()};
    double largest = 0;
    for (const oracle_value& end : ends)
      for (const double number : end.real)
        if (std::isfinite(number)) largest = std::max(largest, std::abs(number));
    const double slack = is_given ? 0 : allowed.relative * largest + allowed.absolute;
    two_values made;
    for (const std::size_t side : {0U, 1U}) {
      for (std::size_t i = 0; i < in[0].real.size(); ++i) {
        const double a = ends[0].real[i], b = ends[1].real[i], number = side == 0 ? std::min(a, b) : std::max(a, b);
        // The quotient itself is rounded to float32.
        const double away = slack + std::abs(number) * 0x1p-22;
        in[0].real[i] = !std::isfinite(number) ? number : side == 0 ? number - away : number + away;
      }
      made[side] = quantise();
    }
    return made;
  }

  /// Computes the group from the low and the high integers of the quantised value inside it.
  void go_on(std::span<const std::uint32_t> nodes, std::span<const known_value> known,
             std::span<const std::uint32_t> wanted, std::uint32_t inner, std::span<const oracle_value> operands) {
    const std::vector<oracle_value> rest(operands.begin() + 1, operands.end());
    const two_values between =
        integers_between(inner, {operands[0], operands[0]}, rest, is_given(known, operands_of(inner)[0]),
                         tolerance_of(operands[0].type.type));
    std::vector<std::uint32_t> all(wanted.begin(), wanted.end());
    for (result& r : results_) {
      if (!r.quantizer) continue;
      r.first = all.size();
      const auto in = operands_of(*r.quantizer);
      all.insert(all.end(), in.begin(), in.end());
    }
    std::array<std::vector<oracle_value>, 2> found;
    for (const std::size_t side : {0U, 1U}) {
      const tensor integers(between[side].type);
      from_oracle(between[side], integers.data());
      std::vector<known_value> more(known.begin(), known.end());
      more.push_back({inner, integers});
      found[side] = evaluate_group(*network_, nodes, more, all);
    }
    for (std::size_t i = 0; i < results_.size(); ++i) {
      result& r = results_[i];
      if (r.quantizer) r.take_ends(found[0], found[1], operands_of(*r.quantizer).size());
      else r.ends = {std::move(found[0][i]), std::move(found[1][i])};
    }
  }

  /// Compares with the number between two ends that is nearest. NaN and infinity must be where the reference has them.
  static agreement compare_between(const const_tensor_view& actual, const oracle_value& expected,
                                   const oracle_value& one, const oracle_value& other, const tolerance& allowed) {
    const oracle_value a = to_oracle(actual);
    oracle_value nearest = expected;
    for (std::size_t i = 0; i < std::min(a.real.size(), nearest.real.size()); ++i) {
      const auto [low, high] = std::minmax(one.real[i], other.real[i]);
      if (std::isfinite(a.real[i]) && std::isfinite(low) && std::isfinite(high))
        nearest.real[i] = std::clamp(a.real[i], low, high);
    }
    for (std::size_t i = 0; i < std::min(a.integer.size(), nearest.integer.size()); ++i) {
      const auto [low, high] = std::minmax(one.integer[i], other.integer[i]);
      nearest.integer[i] = std::clamp(a.integer[i], low, high);
    }
    return collage::compare(actual, nearest, allowed);
  }

  const graph* network_;
  bool is_bounded_ = true;  ///< what may differ is known for each element
  std::vector<result> results_;
};

}  // namespace collage::inline v0
