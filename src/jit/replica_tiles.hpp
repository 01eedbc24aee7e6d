// The replica for the current target of hwy/foreach_target.h, which includes this file once for each target.
#if defined(COLLAGE_JIT_REPLICA) == defined(HWY_TARGET_TOGGLE)
#ifdef COLLAGE_JIT_REPLICA
#undef COLLAGE_JIT_REPLICA
#else
#define COLLAGE_JIT_REPLICA
#endif

#include "replica.hpp"
#include "tile_plan.hpp"
#include "vector_instructions.hpp"

#include <hwy/highway.h>
#include <collage/backends/impl/stacked_tiles.hpp>
#include <collage/op/body.hpp>

#include <cstddef>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace collage::inline v0::detail::jit {
namespace {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
namespace tiles = host::HWY_NAMESPACE;
using tiles::lanes;
using tiles::tag;
using tiles::vector;

template <class T>
HWY_INLINE T* moved(T* from, std::int64_t bytes) {
  return reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(from) + static_cast<std::uintptr_t>(bytes));
}

/// Up to one vector of a row of the tile.
struct piece {
  int row = 0;
  std::int64_t column = 0, count = 0;

  HWY_INLINE vector load(const float* row_begin) const {
    return count == lanes ? tiles::load(row_begin + column) : tiles::load_some(row_begin + column, count);
  }
  HWY_INLINE void store(vector x, float* row_begin) const {
    if (count == lanes) tiles::store(x, row_begin + column);
    else tiles::store_some(x, row_begin + column, count);
  }
};

HWY_INLINE vector combined(store_mode mode, vector product, const float* row_begin, const piece& at) {
  if (mode == store_mode::set) return product;
  if (mode == store_mode::set_negative) return hn::Sub(hn::Zero(tag), product);
  const vector before = at.load(row_begin);
  return mode == store_mode::add ? hn::Add(before, product) : hn::Sub(before, product);
}

HWY_INLINE vector of_operand(const tile_call& call, std::uint32_t index, const piece& at) {
  const float* const from = call.operand[index];
  switch (call.plan->finish.operands[index]) {
    case operand_shape::per_row: return tiles::number(from[at.row]);
    case operand_shape::single: return tiles::number(*from);
    case operand_shape::per_column: return at.load(from);
    default: return at.load(moved(from, at.row * call.operand_step[index]));
  }
}

/// The epilogue, then its outputs.
inline void finish_piece(const tile_call& call, vector product, const piece& at) {
  using source = epilogue_value::source;
  const epilogue& e = call.plan->finish;
  vector made[epilogue::most_steps];
  const auto value = [&](const epilogue_value& v) HWY_ATTR {
    switch (v.from) {
      case source::product: return product;
      case source::operand: return of_operand(call, v.index, at);
      case source::number: return tiles::number(e.numbers[v.index]);
      default: return made[v.index];
    }
  };
  for (std::size_t i = 0; i < e.steps.size(); ++i) {
    const epilogue_step& s = e.steps[i];
    const int operands = operands_of(s.code);
    const vector a = value(s.a);
    made[i] = instruction_of(s.code, a, operands > 1 ? value(s.b) : a, operands > 2 ? value(s.c) : a);
  }
  vector results[epilogue::most_outputs];
  for (std::size_t i = 0; i < e.outputs.size(); ++i) results[i] = value(e.outputs[i]);
  for (std::size_t i = 0; i < e.outputs.size(); ++i)
    at.store(results[i], moved(call.output[i], at.row * call.output_step[i]));
}

inline void write_piece(const tile_call& call, vector product, const piece& at) {
  const tile_plan& plan = *call.plan;
  const auto row_of = [&](std::size_t d) HWY_ATTR { return moved(call.to[d], at.row * call.to_step); };
  const std::size_t first = plan.finish.empty() ? 0 : 1;
  for (std::size_t d = first; d < plan.destinations.size(); ++d)
    at.store(combined(plan.destinations[d], product, row_of(d), at), row_of(d));
  if (first == 0) return;
  const store_mode mode = plan.destinations[0];
  finish_piece(call, combined(mode, product, reads_destination(mode) ? row_of(0) : nullptr, at), at);
}

/// Rows [row, row + Rows) of one vector of columns.
template <int Rows>
void some_rows(const tile_call& call, int row, std::int64_t column) {
  const tile_plan& plan = *call.plan;
  const std::int64_t width = static_cast<std::int64_t>(plan.vectors()) * plan.how.lanes();
  const float* b = call.b + column;
  vector sums[Rows];
  const float* a[Rows];
  for (int i = 0; i < Rows; ++i) {
    sums[i] = hn::Zero(tag);
    a[i] = moved(call.a, (row + i) * call.a_step);
  }
  piece at{.column = column, .count = plan.columns - column < lanes ? plan.columns - column : lanes};
  for (std::int64_t k = 0; k < call.depth; ++k, b += width) {
    const vector y = at.count == lanes ? tiles::load(b) : tiles::load_some(b, at.count);
    for (int i = 0; i < Rows; ++i) sums[i] = hn::MulAdd(tiles::number(a[i][k]), y, sums[i]);
  }
  for (int i = 0; i < Rows; ++i) {
    at.row = row + i;
    write_piece(call, sums[i], at);
  }
}

inline void run_tile(const tile_call* call) {
  const tile_plan& plan = *call->plan;
  for (std::int64_t column = 0; column < plan.columns; column += lanes) {
    int row = 0;
    for (; row + 6 <= plan.rows; row += 6) some_rows<6>(*call, row, column);
    for (; row < plan.rows; ++row) some_rows<1>(*call, row, column);
  }
}

inline replica_choice this_target() { return {run_tile, hwy::TargetName(HWY_TARGET)}; }

}  // namespace HWY_NAMESPACE
}  // namespace
}  // namespace collage::inline v0::detail::jit
HWY_AFTER_NAMESPACE();

#endif
