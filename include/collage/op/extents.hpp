// What shape rules ask about extents; nothing here overflows, whatever it is given.
#pragma once

#include <collage/shape.hpp>
#include <cstdint>

namespace collage::inline v0::detail {

/// What no tensor has more elements than: times the bytes of an element it does not overflow.
inline constexpr std::int64_t most_elements = std::int64_t{1} << 59;

/// Whether the extents that are known multiply to no more than `most`, in any order.
constexpr bool is_countable(const shape& dims, std::int64_t most = most_elements) {
  std::int64_t product = 1;
  for (std::uint32_t i = 0; i < dims.rank; ++i) {
    const std::int64_t extent = dims.extent[i] > 1 ? dims.extent[i] : 1;
    if (product > most / extent) return false;
    product *= extent;
  }
  return true;
}

/// A tensor of one element, whatever its rank.
constexpr bool is_one_element(const shape& dims) {
  for (const std::int64_t extent : dims)
    if (extent >= 0 && extent != 1) return false;
  return true;
}

/// Whether `axis` is one of a tensor's dimensions.
constexpr bool is_axis(std::int64_t axis, const shape& dims) {
  return axis >= 0 && axis < static_cast<std::int64_t>(dims.rank);
}

/// Whether two extents, of which any may be unknown, can be the same.
constexpr bool may_equal(std::int64_t a, std::int64_t b) { return a < 0 || b < 0 || a == b; }

}  // namespace collage::inline v0::detail
