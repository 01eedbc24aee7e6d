// The transforms for every target, and the choice among them.
#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#endif
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "jit/transform_tiles.hpp"
#include <hwy/foreach_target.h>  // includes that file for all targets but one
#include <hwy/highway.h>

#include "jit/transform_tiles.hpp"  // for that one
#include "jit/transforms.hpp"

namespace collage::inline v0::detail::jit {
namespace {

HWY_EXPORT(transforms_of_target);

}  // namespace

transform_functions transforms_of(int family) { return HWY_DYNAMIC_DISPATCH(transforms_of_target)(family); }

image_steps steps_of(image_layout layout, std::int64_t channels, std::int64_t height, std::int64_t width,
                     std::int64_t depth) {
  const std::int64_t slice = height * width, area = depth * slice;
  switch (layout) {
    case image_layout::plain: return {channels * area, 16 * area, area, width, 1, false, slice};
    case image_layout::channels_last:
      return {channels * area, 16, 1, width * channels, channels, false, slice * channels};
    default: return {(channels + 15) / 16 * 16 * area, 16 * area, 1, width * 16, 16, true, slice * 16};
  }
}

std::int64_t image_floats(image_layout layout, std::int64_t batch, std::int64_t channels, std::int64_t height,
                          std::int64_t width, std::int64_t depth) {
  return batch * steps_of(layout, channels, height, width, depth).image;
}

}  // namespace collage::inline v0::detail::jit
