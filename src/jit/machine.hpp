// This processor as search spaces see it.
#pragma once

#include "instruction_set.hpp"

#include <collage/tune/machine.hpp>

namespace collage::inline v0::detail::jit {

/// For kernels of an instruction set. Sizes of caches that the system hides are the usual ones.
tune::machine machine_of(instruction_set set, int threads);

}  // namespace collage::inline v0::detail::jit
