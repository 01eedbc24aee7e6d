// The facts of a processor that closed forms of kernels' features need.
#pragma once

#include <cstdint>

namespace collage::inline v0::tune {

/// One kind of processor. The defaults are those of a core with AVX-512, as in the table of benchmarks/families.
struct machine {
  int lanes = 16;                             ///< float32 numbers of a vector register
  int registers = 32;                         ///< vector registers
  int threads = 1;                            ///< that share the work
  std::int64_t first_level_bytes = 32768;     ///< data cache of one core
  std::int64_t second_level_bytes = 1 << 20;  ///< of one core
  std::int64_t third_level_bytes = 32 << 20;  ///< shared
};

}  // namespace collage::inline v0::tune
