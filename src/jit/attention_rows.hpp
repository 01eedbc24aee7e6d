// Rows of scores, and matrices that lie the other way round: what attention computes beside products.
#pragma once

#include <cstdint>

namespace collage::inline v0::detail::jit {

struct attention_row_functions {
  /// Replaces x by exp(x - the largest of the row) and returns the sum. NaN if an element is NaN, or if the largest is infinite.
  float (*exponentials)(float* row, std::int64_t count);
  /// to[r * to_step + c] = from[c * from_step + r], for r below `rows` and c below `columns`.
  void (*transpose)(const float* from, std::int64_t from_step, std::int64_t rows, std::int64_t columns, float* to,
                    std::int64_t to_step);
};

/// Those for the processor that this process runs on.
attention_row_functions attention_rows();

}  // namespace collage::inline v0::detail::jit
