// Weights of convolutions and products, multiplied by a factor for each of their channels.
#pragma once

#include <algorithm>
#include <cmath>
#include <collage/dtype.hpp>
#include <collage/graph/graph.hpp>
#include <collage/run/elements.hpp>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

namespace collage::inline v0::detail {

/// The channels that a weight connects. Weights lie as [outer, middle, inner]. The outer index is that of an output
/// channel or of an input channel; the middle index counts the other channel within a group.
struct weight_layout {
  std::int64_t outer = 0, middle = 0, inner = 0;
  bool outer_is_output = true;
  std::int64_t outer_per_group = 1;

  std::size_t output_of(std::int64_t o, std::int64_t m) const {
    return static_cast<std::size_t>(outer_is_output ? o : other(o, m));
  }
  std::size_t input_of(std::int64_t o, std::int64_t m) const {
    return static_cast<std::size_t>(outer_is_output ? other(o, m) : o);
  }

 private:
  std::int64_t other(std::int64_t o, std::int64_t m) const { return o / outer_per_group * middle + m; }
};

/// The magnitudes that an element type holds.
struct magnitudes {
  double smallest;         ///< above 0
  double smallest_normal;  ///< numbers below it have fewer digits
  double largest;          ///< finite
};
inline magnitudes magnitudes_of(dtype type) {
  const auto of = []<class T>(T) {
    using limits = std::numeric_limits<T>;
    return magnitudes{limits::denorm_min(), limits::min(), limits::max()};
  };
  if (type == dtype::f64) return of(double{});
  if (type == dtype::f16) return {0x1p-24, 0x1p-14, 65504};
  if (type == dtype::bf16) return {0x1p-133, 0x1p-126, 0x1.FEp127};
  return of(float{});
}

/// The weights times the factor of their output channel and the factor of their input channel, rounded once. An empty
/// list of factors means 1. All factors are finite. Null where the result would not do the same work:
/// - a weight would overflow;
/// - the weights of one output channel (with input factors: of one input channel in it) would all become subnormal, and
///   lose digits that they have.
///
/// A weight that would vanish becomes the smallest number of its sign, because only a weight of 0 makes NaN of
/// infinity.
inline std::shared_ptr<const std::byte> scale_weights(dtype type, std::span<const std::byte> weights,
                                                      const weight_layout& layout, std::span<const double> of_outputs,
                                                      std::span<const double> of_inputs) {
  const magnitudes range = magnitudes_of(type);
  const std::shared_ptr<std::byte> made = allocate_bytes(weights.size());
  struct extreme {
    double before = 0, after = 0;
    bool vanishes(const magnitudes& r) const { return before >= r.smallest_normal && after < r.smallest_normal; }
  };
  std::vector<extreme> of_channel(of_outputs.size());
  const auto row_size = static_cast<std::size_t>(layout.middle * layout.inner);
  const std::size_t row_bytes = row_size * size_of(type);
  std::vector<double> row(row_size);
  for (std::int64_t o = 0; o < layout.outer; ++o) {
    const std::size_t at = static_cast<std::size_t>(o) * row_bytes;
    load_elements(type, weights.data() + at, std::span<double>(row));
    for (std::int64_t m = 0; m < layout.middle; ++m) {
      const std::size_t output = layout.output_of(o, m);
      const double of_output = of_outputs.empty() ? 1.0 : of_outputs[output];
      const double of_input = of_inputs.empty() ? 1.0 : of_inputs[layout.input_of(o, m)];
      const bool to_zero = of_output == 0 || of_input == 0;
      extreme of_block;
      const auto first = static_cast<std::size_t>(m * layout.inner);
      for (double& weight : std::span(row).subspan(first, static_cast<std::size_t>(layout.inner))) {
        double product = weight * of_output * of_input;
        if (weight != 0 && !to_zero && std::abs(product) < range.smallest)
          product = std::copysign(range.smallest, product);
        if (std::isfinite(weight) && !(std::abs(product) <= range.largest)) return nullptr;
        of_block.before = std::max(of_block.before, std::abs(weight));
        of_block.after = std::max(of_block.after, std::abs(product));
        weight = product;
      }
      if (to_zero) continue;
      if (!of_inputs.empty() && of_block.vanishes(range)) return nullptr;
      if (of_inputs.empty() && !of_outputs.empty()) {
        extreme& all = of_channel[output];
        all = {std::max(all.before, of_block.before), std::max(all.after, of_block.after)};
      }
    }
    store_elements(type, std::span<const double>(row), made.get() + at);
  }
  for (const extreme& all : of_channel)
    if (all.vanishes(range)) return nullptr;
  return made;
}

/// For each output channel, the sum of its weights, each times the shift of its input channel.
inline std::vector<double> shifted_sums(dtype type, std::span<const std::byte> weights, const weight_layout& layout,
                                        std::span<const double> shift_of_inputs, std::size_t outputs) {
  std::vector<double> sums(outputs);
  std::vector<double> row(static_cast<std::size_t>(layout.middle * layout.inner));
  for (std::int64_t o = 0; o < layout.outer; ++o) {
    load_elements(type, weights.data() + static_cast<std::size_t>(o) * row.size() * size_of(type),
                  std::span<double>(row));
    for (std::int64_t m = 0; m < layout.middle; ++m)
      for (std::int64_t i = 0; i < layout.inner; ++i)
        sums[layout.output_of(o, m)] +=
            row[static_cast<std::size_t>(m * layout.inner + i)] * shift_of_inputs[layout.input_of(o, m)];
  }
  return sums;
}

}  // namespace collage::inline v0::detail
