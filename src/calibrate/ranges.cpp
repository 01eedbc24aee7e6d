#include <collage/calibrate/ranges.hpp>
#include <collage/error.hpp>
#include <collage/graph/graph.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace collage::inline v0 {
namespace {

/// A scale that float32 can hold and divide by.
float usable_scale(double scale) {
  return static_cast<float>(std::clamp(scale, static_cast<double>(std::numeric_limits<float>::min()),
                                       static_cast<double>(std::numeric_limits<float>::max())));
}

/// Calls f(first element, count, index of the axis) for each run of elements that share an index of the axis.
template <class F>
void for_each_run(std::size_t elements, const shape& dims, std::int32_t axis, F f) {
  if (axis < 0) {
    f(std::size_t{0}, elements, std::size_t{0});
    return;
  }
  std::size_t inner = 1;
  for (std::size_t i = static_cast<std::size_t>(axis) + 1; i < dims.size(); ++i)
    inner *= static_cast<std::size_t>(dims[i]);
  const auto count = static_cast<std::size_t>(dims[static_cast<std::size_t>(axis)]);
  for (std::size_t at = 0, index = 0; at < elements; at += inner, index = (index + 1) % count) f(at, inner, index);
}

void check_axis(const shape& dims, std::int32_t axis) {
  if (axis < -1 || axis >= static_cast<std::int32_t>(dims.size()))
    throw error(error_kind::invalid_argument,
                "has no dimension " + std::to_string(axis) + " for scales: its shape is " + detail::to_string(dims),
                "quantisation");
}

}  // namespace

const char* name_of(quantisation_schema schema) {
  switch (schema) {
    case quantisation_schema::asymmetric: return "asymmetric";
    case quantisation_schema::symmetric: return "symmetric";
    case quantisation_schema::symmetric_unsigned: return "symmetric-unsigned";
  }
  return "?";
}

const char* name_of(range_method method) {
  switch (method) {
    case range_method::minmax: return "minmax";
    case range_method::percentile: return "percentile";
    case range_method::entropy: return "entropy";
    case range_method::mse: return "mse";
  }
  return "?";
}

quantisation quantisation_of(interval range, quantisation_schema schema) {
  if (!std::isfinite(range.low) || !std::isfinite(range.high) || range.low > range.high)
    throw error(error_kind::invalid_argument, "its ends are not two finite numbers in order", "interval");
  const double low = std::min(0.0, static_cast<double>(range.low)),
               high = std::max(0.0, static_cast<double>(range.high));
  if (low == high) throw error(error_kind::invalid_argument, "is empty: both ends are 0", "interval");

  if (schema == quantisation_schema::asymmetric) {
    const float scale = usable_scale((high - low) / 255);
    const auto zero = static_cast<std::int32_t>(std::nearbyint(-low / static_cast<double>(scale)));
    return {dtype::u8, -1, {scale}, {std::clamp(zero, 0, 255)}};
  }
  if (schema == quantisation_schema::symmetric_unsigned && low == 0)
    return {dtype::u8, -1, {usable_scale(high / 255)}, {0}};
  return {dtype::i8, -1, {usable_scale(std::max(-low, high) / 127)}, {0}};
}

quantisation weight_quantisation(std::span<const float> contents, const shape& dims, std::int32_t axis) {
  check_axis(dims, axis);
  const std::size_t count = axis < 0 ? 1 : static_cast<std::size_t>(dims[static_cast<std::size_t>(axis)]);
  std::vector<float> largest(count, 0.0F);
  for_each_run(contents.size(), dims, axis, [&](std::size_t from, std::size_t many, std::size_t index) {
    for (const float x : contents.subspan(from, many)) {
      if (!std::isfinite(x)) throw error(error_kind::invalid_argument, "contain NaN or infinity", "weights");
      largest[index] = std::max(largest[index], std::abs(x));
    }
  });
  quantisation how{dtype::i8, axis, {}, std::vector<std::int32_t>(count, 0)};
  for (const float most : largest)
    how.scales.push_back(most == 0 ? 1.0F : usable_scale(static_cast<double>(most) / 127));
  return how;
}

quantisation bias_quantisation(const quantisation& of_input, const quantisation& weights) {
  if (of_input.scales.size() != 1)
    throw error(error_kind::invalid_argument, "the input must have one scale", "quantisation of a bias");
  quantisation how{dtype::i32, weights.scales.size() == 1 ? -1 : 0, {}, {}};
  for (const float scale : weights.scales)
    how.scales.push_back(usable_scale(static_cast<double>(scale) * static_cast<double>(of_input.scales[0])));
  how.zero_points.assign(how.scales.size(), 0);
  return how;
}

std::int32_t number_of(float x, const quantisation& how, std::size_t which) {
  const double zero = how.zero_points[which];
  const double number = static_cast<double>(std::nearbyint(x / how.scales[which])) + zero;
  if (how.element == dtype::i32)
    return static_cast<std::int32_t>(std::clamp(number, static_cast<double>(std::numeric_limits<std::int32_t>::min()),
                                                static_cast<double>(std::numeric_limits<std::int32_t>::max())));
  const number_limits limits = limits_of(how.element);
  return static_cast<std::int32_t>(
      std::clamp(number, static_cast<double>(limits.low), static_cast<double>(limits.high)));
}

void round_to(const quantisation& how, std::span<float> contents, const shape& dims) {
  check_axis(dims, how.axis);
  const std::size_t count = how.axis < 0 ? 1 : static_cast<std::size_t>(dims[static_cast<std::size_t>(how.axis)]);
  if (how.scales.size() != count || how.zero_points.size() != count)
    throw error(error_kind::invalid_argument,
                "has " + std::to_string(how.scales.size()) + " scales for " + std::to_string(count) + " indices",
                "quantisation");
  for_each_run(contents.size(), dims, how.axis, [&](std::size_t from, std::size_t many, std::size_t index) {
    for (float& x : contents.subspan(from, many))
      x = how.scales[index] * static_cast<float>(number_of(x, how, index) - how.zero_points[index]);
  });
}

const value_range* find_range(const graph_ranges& in, std::uint32_t value) {
  const auto at = std::ranges::lower_bound(in.values, value, {}, &value_range::value);
  return at != in.values.end() && at->value == value ? &*at : nullptr;
}

}  // namespace collage::inline v0
