// The functions of attention_rows.hpp for the current target of hwy/foreach_target.h, which includes this file once for each.
#if defined(COLLAGE_JIT_ATTENTION_ROWS) == defined(HWY_TARGET_TOGGLE)
#ifdef COLLAGE_JIT_ATTENTION_ROWS
#undef COLLAGE_JIT_ATTENTION_ROWS
#else
#define COLLAGE_JIT_ATTENTION_ROWS
#endif

#include "attention_rows.hpp"

#include <hwy/highway.h>
#include <collage/backends/impl/stacked_math.hpp>
#include <collage/backends/impl/stacked_memory.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>

HWY_BEFORE_NAMESPACE();
namespace collage::inline v0::detail::jit {
namespace {
namespace HWY_NAMESPACE {

namespace row_tiles = host::HWY_NAMESPACE;
namespace row_vectors = hwy::HWY_NAMESPACE;

/// A row's last elements, with `rest` in place of those behind them.
HWY_INLINE row_tiles::vector last_of_row(const float* from, std::int64_t count, float rest) {
  const auto inside = row_vectors::FirstN(row_tiles::tag, static_cast<std::size_t>(count));
  return row_vectors::IfThenElse(inside, row_tiles::load_some(from, count), row_tiles::number(rest));
}

inline float exponentials_of_row(float* row, std::int64_t count) {
  namespace hn = row_vectors;
  using row_tiles::lanes;
  constexpr float none = -std::numeric_limits<float>::infinity();
  // NaN need not be the largest: its own exponential is NaN in any case.
  row_tiles::vector largest = row_tiles::number(none);
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) largest = hn::Max(largest, row_tiles::load(row + i));
  if (i < count) largest = hn::Max(largest, last_of_row(row + i, count - i, none));
  const row_tiles::vector most = hn::MaxOfLanes(row_tiles::tag, largest);
  row_tiles::vector sum = hn::Zero(row_tiles::tag);
  for (i = 0; i + lanes <= count; i += lanes) {
    const row_tiles::vector power = row_tiles::exponential(hn::Sub(row_tiles::load(row + i), most));
    row_tiles::store(power, row + i);
    sum = hn::Add(sum, power);
  }
  if (i < count) {
    const row_tiles::vector power = row_tiles::exponential(hn::Sub(last_of_row(row + i, count - i, 0), most));
    row_tiles::store_some(power, row + i, count - i);
    sum = hn::Add(sum, hn::IfThenElseZero(hn::FirstN(row_tiles::tag, static_cast<std::size_t>(count - i)), power));
  }
  return hn::GetLane(hn::SumOfLanes(row_tiles::tag, sum));
}

inline void transpose_matrix(const float* from, std::int64_t from_step, std::int64_t rows, std::int64_t columns,
                             float* to, std::int64_t to_step) {
  host::tile_call t;
  t.a = from;
  t.a_step = from_step;
  t.y = to;
  t.y_step = to_step;
  t.rows = rows;
  t.columns = columns;
  row_tiles::transpose(t);
}

attention_row_functions attention_rows_of_target() { return {&exponentials_of_row, &transpose_matrix}; }

}  // namespace HWY_NAMESPACE
}  // namespace
}  // namespace collage::inline v0::detail::jit
HWY_AFTER_NAMESPACE();

#endif
