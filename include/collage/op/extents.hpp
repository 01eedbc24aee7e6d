// Checks of extents for shape rules. Nothing here overflows, whatever the extents.
#pragma once

#include <collage/shape.hpp>
#include <cstdint>

namespace collage::inline v0::detail {

/// No tensor has more elements. Their size in bytes does not overflow.
inline constexpr std::int64_t most_elements = std::int64_t{1} << 59;

/// Whether the known extents multiply to at most `most`, in any order. An extent of 0 counts as 1.
constexpr bool is_countable(const shape& dims, std::int64_t most = most_elements) {
  std::int64_t product = 1;
  for (std::uint32_t i = 0; i < dims.rank; ++i) {
    const std::int64_t extent = dims.extent[i] > 1 ? dims.extent[i] : 1;
    if (product > most / extent) return false;
    product *= extent;
  }
  return true;
}

/// Whether a tensor of any rank has one element. Unknown extents may be 1.
constexpr bool is_one_element(const shape& dims) {
  for (const std::int64_t extent : dims)
    if (extent >= 0 && extent != 1) return false;
  return true;
}

/// Whether `axis` is a dimension of a tensor.
constexpr bool is_axis(std::int64_t axis, const shape& dims) {
  return axis >= 0 && axis < static_cast<std::int64_t>(dims.rank);
}

/// Whether two extents can be equal. Either may be unknown.
constexpr bool may_equal(std::int64_t a, std::int64_t b) { return a < 0 || b < 0 || a == b; }

}  // namespace collage::inline v0::detail
