// Depthwise convolutions for every target, and the choice among them.
#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#endif
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "jit/depthwise_tiles.hpp"
#include <hwy/foreach_target.h>  // includes that file for all targets but one
#include <hwy/highway.h>

#include "jit/depthwise.hpp"
#include "jit/depthwise_tiles.hpp"  // for that one

#include <algorithm>

namespace collage::inline v0::detail::jit {
namespace {

HWY_EXPORT(depthwise_of_target);

}  // namespace

depthwise_function depthwise_rows(std::int64_t window, std::int64_t stride) {
  return HWY_DYNAMIC_DISPATCH(depthwise_of_target)(window, stride);
}

void pack_depthwise(const depthwise_shape& s, const float* weights, float* to) {
  std::fill_n(to, s.weight_floats(), 0.0F);
  const std::int64_t taps = s.window * s.window;
  for (std::int64_t c = 0; c < s.channels; ++c)
    for (std::int64_t tap = 0; tap < taps; ++tap) to[tap * s.weight_step() + c] = weights[c * taps + tap];
}

}  // namespace collage::inline v0::detail::jit
