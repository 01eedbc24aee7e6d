// The functions of tiles for every target, and the choice among them. Included by exactly one file of a program, which
// includes nothing else of Highway.
#pragma once

// SSE4, AVX2, AVX-512 and what every processor has: the others gain nothing here and take long to compile.
#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#endif
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE <collage/backends/impl/stacked_tiles.hpp>
#include <hwy/foreach_target.h>  // includes that file for all targets but one
#include <hwy/highway.h>

#include <collage/backends/impl/stacked_table.hpp>
#include <collage/backends/impl/stacked_tiles.hpp>  // for that one

namespace collage::inline v0::detail::host {
namespace {

HWY_EXPORT(tile_functions);

/// Those for the best target that this processor has.
inline const tile_table& best_tile_functions() { return *HWY_DYNAMIC_DISPATCH(tile_functions)(); }

}  // namespace
}  // namespace collage::inline v0::detail::host
