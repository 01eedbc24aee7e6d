// The portable replica of generated kernels, on Highway: the same function type, interpreting the plan.
//
// It runs where the processor lacks the instructions or the system allows no generated code, and tests compare with it.
#pragma once

#include "tile_call.hpp"

namespace collage::inline v0::detail::jit {

struct replica_choice {
  tile_function run;
  const char* target;  ///< its name
};

/// The replica for the best of SSE4, AVX2 and AVX-512 that this processor has, if any. `tile_call::plan` must be set.
replica_choice replica();

}  // namespace collage::inline v0::detail::jit
