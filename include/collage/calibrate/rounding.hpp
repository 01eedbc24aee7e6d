// Roundings: what storing float32 elements in fewer bits does to them.
#pragma once

#include <collage/calibrate/ranges.hpp>
#include <collage/dtype.hpp>
#include <collage/shape.hpp>
#include <functional>
#include <span>
#include <string>

namespace collage::inline v0 {

/// A change of float32 elements: each becomes the number that another element type stores for it.
struct rounding {
  /// Says all that the change depends on, as "bfloat16" or "uint8 0.0235 * (n - 12)". Two roundings of one name are the same.
  std::string name;
  /// Changes the elements in place. `dims` is their shape, in plain order.
  std::function<void(std::span<float> elements, const shape& dims)> apply;
};

/// Storage as bfloat16 or float16: nearest, ties to even. Numbers beyond the range become infinite; NaN stays NaN. Errors: another
/// type.
rounding rounding_to(dtype element);

/// Storage as 8-bit numbers with these scales: `round_to`, and NaN stays NaN. Errors, when it is applied: the shape has another
/// number of indices than there are scales.
rounding rounding_to(const quantisation& how);

}  // namespace collage::inline v0
