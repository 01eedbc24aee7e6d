// The functions of attention_rows.hpp for every target, and the choice among them.
#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#endif
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "jit/attention_row_tiles.hpp"
#include <hwy/foreach_target.h>  // includes that file for all targets but one
#include <hwy/highway.h>

#include "jit/attention_row_tiles.hpp"  // for that one
#include "jit/attention_rows.hpp"

namespace collage::inline v0::detail::jit {
namespace {

HWY_EXPORT(attention_rows_of_target);

}  // namespace

attention_row_functions attention_rows() { return HWY_DYNAMIC_DISPATCH(attention_rows_of_target)(); }

}  // namespace collage::inline v0::detail::jit
