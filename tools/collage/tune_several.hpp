// `collage tune` for several shapes of one network: it fills the store, and writes no plan.
#pragma once

#include "options.hpp"

namespace program {

/// Whether a --shape has several values of an extent.
bool names_several_shapes(const options& given);

/// Tunes shapes among those that the options name, and prints what that brought. Returns the exit status.
int tune_several(const options& given);

}  // namespace program
