// Generates the code of kernels, by Xbyak.
#pragma once

#include "tile_plan.hpp"

#include <cstdint>
#include <vector>

namespace collage::inline v0::detail::jit {

/// Code for one tile. It runs at any address, keeps to the calling convention of System V for x86-64, and changes neither
/// MXCSR nor the direction of strings. Its result for k = 0 is that of a product of zeros.
/// Error (unsupported): the epilogue needs more registers than the tile leaves free, or the code becomes too large.
std::vector<std::uint8_t> generate(const tile_plan& plan);

}  // namespace collage::inline v0::detail::jit
