// Checks of extents that a shape names, in constant evaluation.
#pragma once

#include <collage/detail/sentence.hpp>

#include <cstdint>

namespace collage::inline v0::detail::jit {

/// Whether an extent or a pad is below `least` or above 2147483647. If so, `why` says it, with what it is.
constexpr bool is_outside(sentence& why, const char* what, std::int64_t value, std::int64_t least) {
  constexpr std::int64_t most = std::int64_t{1} << 31U;
  if (value >= least && value < most) return false;
  why << what << " is " << value << ", and must be from " << least << " to " << most - 1;
  return true;
}

}  // namespace collage::inline v0::detail::jit
