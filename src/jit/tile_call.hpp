// The call of a kernel for one tile: one function type for generated code and for the portable replica.
#pragma once

#include <cstdint>

namespace collage::inline v0::detail::jit {

struct tile_plan;

/// Generated code reads this struct and the memory that it points to, and nothing else. Entries that a kernel does not
/// need may have any value. All distances are in bytes.
struct tile_call {
  static constexpr int most_destinations = 16, most_operands = 6, most_outputs = 4;

  const float* a = nullptr;  ///< row i begins at i * a_step
  std::int64_t a_step = 0;
  const float* b = nullptr;                  ///< packed: one row of whole vectors for each step over k
  std::int64_t depth = 0;                    ///< k
  std::int64_t to_step = 0;                  ///< between rows of each destination
  const std::uint32_t* constants = nullptr;  ///< the plan's
  const tile_plan* plan = nullptr;           ///< read by the replica only
  float* to[most_destinations];
  const float* operand[most_operands];       ///< where the tile's first element, row or column is
  std::int64_t operand_step[most_operands];  ///< between rows of whole operands
  float* output[most_outputs];
  std::int64_t output_step[most_outputs];
};

using tile_function = void (*)(const tile_call* call);

}  // namespace collage::inline v0::detail::jit
