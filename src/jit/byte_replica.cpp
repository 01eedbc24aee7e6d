// Depthwise convolutions of bytes for every target, and the choice among them.
#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#endif
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "jit/byte_replica_tiles.hpp"
#include <hwy/foreach_target.h>  // includes that file for all targets but one
#include <hwy/highway.h>

#include "jit/byte_replica.hpp"
#include "jit/byte_replica_tiles.hpp"  // for that one

namespace collage::inline v0::detail::jit {
namespace {

HWY_EXPORT(byte_row_of_target);

}  // namespace

byte_replica_function byte_replica(dtype source) { return HWY_DYNAMIC_DISPATCH(byte_row_of_target)(source); }

}  // namespace collage::inline v0::detail::jit
