// float32 weights as int8, for kernels on integers of 8 bits: one scale for each filter, channel or column, and no zero point. `calibrate`
// rounds weights in the same way when it measures their errors (weight_quantisation).
#pragma once

#include <algorithm>
#include <cmath>
#include <collage/dtype.hpp>
#include <collage/error.hpp>
#include <collage/run/value_scales.hpp>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace collage::inline v0::detail {

/// The scales of `count` parts of weights, of `each` elements. `at(part, i)` returns an element. Errors: one is not finite; `who` is the
/// backend.
template <class At>
std::vector<float> scales_of_weights(std::int64_t count, std::int64_t each, const char* who, const At& at) {
  std::vector<float> list;
  for (std::int64_t part = 0; part < count; ++part) {
    float largest = 0;
    for (std::int64_t i = 0; i < each; ++i) {
      const float x = at(part, i);
      if (!std::isfinite(x)) throw error(error_kind::unsupported, "weights contain NaN or infinity", who);
      largest = std::max(largest, std::abs(x));
    }
    list.push_back(scale_for(dtype::i8, -largest, largest).scale);
  }
  return list;
}

/// The integer that stands for an element of a part with this scale.
inline std::int8_t rounded_weight(float x, float scale) {
  return static_cast<std::int8_t>(integer_for(x, {scale, 0}, dtype::i8));
}

/// Parts one after the other, `each` elements a scale, as int8.
inline std::vector<std::int8_t> rounded_weights(const float* contents, const std::vector<float>& scales,
                                                std::int64_t each) {
  std::vector<std::int8_t> made;
  made.reserve(scales.size() * static_cast<std::size_t>(each));
  for (const float scale : scales)
    for (std::int64_t i = 0; i < each; ++i) made.push_back(rounded_weight(*contents++, scale));
  return made;
}

}  // namespace collage::inline v0::detail
