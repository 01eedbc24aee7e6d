#include "scheme_product.hpp"

#include <collage/backends/impl/team.hpp>

#include <algorithm>
#include <array>
#include <cstring>

namespace collage::inline v0::detail::jit {
namespace {

/// to = alpha x + beta y.
[[gnu::always_inline]] inline void combine_all(float* to, const float* x, float alpha, const float* y, float beta,
                                               std::int64_t count) {
  if (beta == 0) {  // 0 times infinity would be NaN
    for (std::int64_t i = 0; i < count; ++i) to[i] = alpha * x[i];
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) to[i] = alpha * x[i] + beta * y[i];
}
void combine_narrow(float* to, const float* x, float alpha, const float* y, float beta, std::int64_t count) {
  combine_all(to, x, alpha, y, beta, count);
}
#if defined(__x86_64__)
[[gnu::target("avx2")]] void combine_wide(float* to, const float* x, float alpha, const float* y, float beta,
                                          std::int64_t count) {
  combine_all(to, x, alpha, y, beta, count);
}
#endif

void combine(unsigned features, float* to, const float* x, float alpha, const float* y, float beta,
             std::int64_t count) {
#if defined(__x86_64__)
  if ((features & feature_avx2) != 0) return combine_wide(to, x, alpha, y, beta, count);
#else
  static_cast<void>(features);
#endif
  combine_narrow(to, x, alpha, y, beta, count);
}

}  // namespace

/// Row `row` of block `block` of A, filled up with zeros in the room where the block is cut.
const float* scheme_product::input_row(const call& c, std::int64_t row, std::size_t block, float* room) const {
  const auto i = static_cast<std::int64_t>(block / algorithm_.inner);
  const auto l = static_cast<std::int64_t>(block % algorithm_.inner);
  const std::int64_t from = i * block_m_ + row, first = l * block_k_;
  const std::int64_t count = from < rows_ ? std::clamp<std::int64_t>(depth_ - first, 0, block_k_) : 0;
  if (count == block_k_) return c.a + from * depth_ + first;
  float* const copy = room + static_cast<std::int64_t>(block) * value_step();
  if (count > 0) std::copy_n(c.a + from * depth_ + first, count, copy);
  std::fill(copy + count, copy + block_k_, 0.0F);
  return copy;
}

/// Computes the left program for one row of all blocks.
void scheme_product::sum_row(const call& c, std::int64_t row, float* room) const {
  const bilinear::program_view& left = algorithm_.left;
  std::array<const float*, most_left_values> value;
  const auto kept = [&](std::size_t v) { return c.workspace + (slot_of_[v] * block_m_ + row) * sum_step_; };
  for (std::size_t v = 0; v < left.inputs; ++v) {
    value[v] = input_row(c, row, v, room);
    if (slot_of_[v] >= 0) std::copy_n(value[v], block_k_, kept(v));
  }
  for (std::size_t i = 0; i < left.code.size(); ++i) {
    const std::size_t v = left.inputs + i;
    float* const to = slot_of_[v] >= 0 ? kept(v) : room + static_cast<std::int64_t>(v) * value_step();
    const bilinear::instruction& s = left.code[i];
    combine(features_, to, value[s.a], s.alpha.as<float>(), value[s.b], s.beta.as<float>(), block_k_);
    value[v] = to;
  }
}

scheme_product::task scheme_product::task_of(std::int64_t index) const {
  std::size_t which = 0;
  for (; index >= tasks(strips_[which]); ++which) index -= tasks(strips_[which]);
  const strip& s = strips_[which];
  const std::int64_t chunk = s.panels_first ? index / panels(s) : index % s.chunks;
  const std::int64_t panel = s.panels_first ? index % panels(s) : index / s.chunks;
  return {which, chunk * s.chunk, std::min((chunk + 1) * s.chunk, block_m_), panel};
}

/// Where the epilogue reads and writes for a tile that begins at an element of the result.
void scheme_product::point_at(tile_call& tile, const right_call& c, const strip& s, std::int64_t row,
                              std::int64_t column) {
  for (std::size_t i = 0; i < s.operands.size(); ++i) {
    const std::int64_t offset = s.operands[i] == operand_shape::whole     ? row * s.columns + column
                                : s.operands[i] == operand_shape::per_row ? row
                                : s.operands[i] == operand_shape::single  ? 0
                                                                          : column;
    tile.operand[i] = c.operands[i] + offset;
    tile.operand_step[i] = s.columns * 4;
  }
  for (std::size_t i = 0; i < s.outputs; ++i) {
    tile.output[i] = c.outputs[i] + row * s.columns + column;
    tile.output_step[i] = s.columns * 4;
  }
}

void scheme_product::multiply(const call& c, const task& t, std::size_t product, float* room) const {
  const strip& s = strips_[t.which];
  const right_call& to = c.right[t.which];
  const product_step& step = s.steps[product];
  const auto inner = static_cast<std::int64_t>(algorithm_.inner);
  const std::int64_t slot = slot_of_[step.left];
  const float* const rows = slot >= 0 ? c.workspace + slot * block_m_ * sum_step_
                                      : c.a + step.left / inner * block_m_ * depth_ + step.left % inner * block_k_;
  const std::int64_t a_step = slot >= 0 ? sum_step_ : depth_;
  const std::int64_t column = t.panel * how_.columns();
  tile_call tile;
  tile.a_step = a_step * 4;
  tile.depth = block_k_;
  tile.b = to.packed + block_k_ * (static_cast<std::int64_t>(algorithm_.rank) * column +
                                   static_cast<std::int64_t>(product) * panel_width(s, t.panel));
  tile.to_step = (s.is_direct ? s.columns : how_.columns()) * 4;
  const std::size_t is_narrow = panel_columns(s, t.panel) < how_.columns() ? 1 : 0;
  for (std::int64_t row = t.first_row; row < t.last_row; row += how_.rows) {
    const kernel& chosen = kernels_[step.kernels[row + how_.rows > block_m_ ? 1 : 0][is_narrow]];
    tile.plan = chosen.plan.get();
    tile.constants = tile.plan->constants.data();
    tile.a = rows + row * a_step;
    if (s.is_direct) {
      tile.to[0] = to.outputs[0] + row * s.columns + column;
      point_at(tile, to, s, row, column);
    } else {
      for (std::size_t d = 0; d < step.blocks.size(); ++d)
        tile.to[d] =
            room + static_cast<std::int64_t>(step.blocks[d]) * part_size(s) + (row - t.first_row) * how_.columns();
    }
    chosen.run(&tile);
  }
}

/// Writes a complete part of a block to the result, through the epilogue.
void scheme_product::finish_block(const right_call& c, const task& t, std::size_t block, float* part) const {
  const strip& s = strips_[t.which];
  const auto i = static_cast<std::int64_t>(block / algorithm_.columns);
  const auto j = static_cast<std::int64_t>(block % algorithm_.columns);
  const std::int64_t first = i * block_m_ + t.first_row, column = j * s.block_n + t.panel * how_.columns();
  const std::int64_t rows = std::min(t.last_row - t.first_row, rows_ - first);
  const std::int64_t columns = std::min(panel_columns(s, t.panel), s.columns - column);
  if (rows <= 0 || columns <= 0) return;
  if (s.outputs == 0) {
    for (std::int64_t row = 0; row < rows; ++row)
      std::copy_n(part + row * how_.columns(), columns, c.outputs[0] + (first + row) * s.columns + column);
    return;
  }
  tile_call tile;
  tile.a = tile.b = part;
  tile.a_step = tile.to_step = how_.columns() * 4;
  for (std::int64_t row = 0; row < rows;) {
    const bool is_whole = row + s.finish_rows <= rows;
    const kernel& chosen = kernels_[s.finish[static_cast<std::size_t>(columns)][is_whole ? 0 : 1]];
    tile.plan = chosen.plan.get();
    tile.constants = tile.plan->constants.data();
    tile.to[0] = part + row * how_.columns();
    point_at(tile, c, s, first + row, column);
    chosen.run(&tile);
    row += is_whole ? s.finish_rows : 1;
  }
}

void scheme_product::run_task(const call& c, const task& t, float* room) const {
  const strip& s = strips_[t.which];
  for (std::size_t p = 0; p < s.steps.size(); ++p) multiply(c, t, p, room);
  if (s.is_direct) return;
  for (std::size_t b = 0; b < static_cast<std::size_t>(blocks()); ++b)
    finish_block(c.right[t.which], t, b, room + static_cast<std::int64_t>(b) * part_size(s));
}

void scheme_product::run(const call& c) const {
  std::int64_t all = 0;
  for (const strip& s : strips_) all += tasks(s);  // none if there are no rows or no columns
  if (all == 0) return;
  const auto threads = static_cast<int>(threads_);
  float* const rooms = c.workspace + sums_size();
  const auto room = [&](int thread) { return rooms + thread * room_size(); };
  constexpr std::int64_t together = 8;
  if (slots_ > 0)
    host::parallel(threads, (block_m_ + together - 1) / together, [&](std::int64_t part, int thread) {
      const std::int64_t last = std::min((part + 1) * together, block_m_);
      for (std::int64_t row = part * together; row < last; ++row) sum_row(c, row, room(thread));
    });
  host::parallel(threads, all, [&](std::int64_t index, int thread) { run_task(c, task_of(index), room(thread)); });
}

}  // namespace collage::inline v0::detail::jit
