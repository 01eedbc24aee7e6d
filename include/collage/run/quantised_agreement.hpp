// The rule by which values of quantised networks agree with the reference: but for what rounding may decide.
#pragma once

#include <algorithm>
#include <collage/graph/graph.hpp>
#include <collage/op/quantise.hpp>
#include <collage/run/agreement.hpp>
#include <collage/run/elements.hpp>
#include <collage/run/tensor.hpp>
#include <cstdint>
#include <cstdlib>

namespace collage::inline v0 {

/// Whether a value is computed by quantize_linear, as integers of 8 bits.
inline bool is_quantised(const graph& network, std::uint32_t value) {
  const value_record& v = network.at(value);
  if (v.producer < 0 || !is_8_bit_integer(v.type.type)) return false;
  return network.view().kind_id_of(static_cast<std::uint32_t>(v.producer)) == kind_id<struct ops::quantize_linear>;
}

/// Compares integers that quantize_linear made with the reference's, where any of them may differ. For differences pass on from one
/// operator to the next. So at most a third of the elements may differ, by at most `steps`. `group_reference`
/// has the rule for kernels.
inline agreement compare_quantised(const const_tensor_view& actual, const oracle_value& expected, std::int64_t steps) {
  agreement found = compare(actual, expected);
  if (found.agrees) return found;
  const oracle_value a = to_oracle(actual);
  std::int64_t differ = 0;
  for (std::size_t i = 0; i < a.integer.size(); ++i) {
    const std::int64_t distance = std::abs(a.integer[i] - expected.integer[i]);
    differ += distance != 0 ? 1 : 0;
    if (distance <= steps) continue;
    found.worst_index = static_cast<std::int64_t>(i);
    found.actual = static_cast<double>(a.integer[i]);
    found.expected = static_cast<double>(expected.integer[i]);
    found.why = "it differs from the reference by more than the step that rounding may decide";
    return found;
  }
  if (differ > static_cast<std::int64_t>(a.integer.size()) / 3 + 1) {
    found.why = "it differs from the reference by a step in more places than rounding can decide";
    return found;
  }
  return {};
}

/// How far numbers may be from the reference's, relative to the largest, where integers of 8 bits lie between operators.
inline constexpr double inner_rounding = 2e-2;

/// How much an element may err, in error bounds of a plan that rounds values: the bound is a mean, over samples.
inline constexpr double most_rounding_ratio = 8;

/// Compares a value of a whole network with the reference's. Where a network quantises values in between, a step in one of them
/// passes on to all that follow. So numbers may be farther apart there, by `inner_rounding` of the largest, and integers by four steps.
/// The same by `most_rounding_ratio` times `rounding`, the error that a plan may have because it rounds values; 0: it rounds none.
inline agreement compare_within(const graph& network, std::uint32_t value, const const_tensor_view& actual,
                                const oracle_value& expected, double rounding = 0) {
  const bool quantises = [&] {
    for (std::uint32_t n = 0; n < network.nodes().size(); ++n)
      if (is_quantised(network, network.view().output_of(n))) return true;
    return false;
  }();
  if (!quantises && rounding == 0) return compare(actual, expected);
  if (is_quantised(network, value)) return compare_quantised(actual, expected, 4);
  tolerance allowed = tolerance_of(actual.type.type);
  if (is_floating(actual.type.type))
    allowed.relative = std::max({allowed.relative, quantises ? inner_rounding : 0, most_rounding_ratio * rounding});
  return compare(actual, expected, allowed);
}

}  // namespace collage::inline v0
