// The replica for every target, and the choice among them. Nothing else of Highway is in this file.
#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#endif
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "jit/replica_tiles.hpp"
#include <hwy/foreach_target.h>  // includes that file for all targets but one
#include <hwy/highway.h>

#include "jit/replica.hpp"
#include "jit/replica_tiles.hpp"  // for that one

namespace collage::inline v0::detail::jit {
namespace {

HWY_EXPORT(this_target);

}  // namespace

replica_choice replica() { return HWY_DYNAMIC_DISPATCH(this_target)(); }

}  // namespace collage::inline v0::detail::jit
