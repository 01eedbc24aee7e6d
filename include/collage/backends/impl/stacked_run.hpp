// Runs a program over tiles.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <collage/backends/impl/stacked_program.hpp>
#include <collage/backends/impl/stacked_table.hpp>
#include <collage/backends/impl/team.hpp>
#include <collage/run/kernel.hpp>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace collage::inline v0::detail::host {
namespace {

/// Copies `count` elements of a row of a leaf from element `first` on; `row` points to the row's beginning.
inline void load_row(const tile_leaf& leaf, const float* row, std::int64_t first, std::int64_t count, float* to) {
  const std::size_t rank = leaf.inner_dims.size();
  if (rank == 0) {
    if (count > 0) *to = *row;
    return;
  }
  std::array<std::int64_t, shape::max_rank> at{};
  std::int64_t offset = 0;
  for (std::size_t i = rank; i-- > 0;) {
    at[i] = first % leaf.inner_dims[i];
    first /= leaf.inner_dims[i];
    offset += at[i] * leaf.inner_steps[i];
  }
  const std::int64_t step = leaf.inner_steps[rank - 1], extent = leaf.inner_dims[rank - 1];
  if (rank == 2 && step == 1 && leaf.inner_steps[0] == 0 && extent < count) {
    // The same again and again (a bias for each of a few channels): what is there already is copied.
    const std::int64_t done = extent - at[1];
    std::copy_n(row + at[1], done, to);
    std::copy_n(row, at[1], to + done);
    for (std::int64_t there = extent; there < count; there *= 2)
      std::copy_n(to, std::min(there, count - there), to + there);
    return;
  }
  while (count > 0) {
    const std::int64_t run = std::min(count, extent - at[rank - 1]);
    const float* const from = row + offset;
    if (step == 1) std::copy_n(from, run, to);
    else if (step == 0) std::fill_n(to, run, *from);
    else
      for (std::int64_t i = 0; i < run; ++i) to[i] = from[i * step];
    to += run;
    count -= run;
    offset -= at[rank - 1] * step;
    at[rank - 1] = 0;
    for (std::size_t i = rank - 1; i-- > 0;) {
      offset += leaf.inner_steps[i];
      if (++at[i] < leaf.inner_dims[i]) break;
      offset -= at[i] * leaf.inner_steps[i];
      at[i] = 0;
    }
  }
}

/// One thread's run: places of operands as pointers, set anew for each tile.
class tile_runner {
 public:
  tile_runner(const tile_program& p, const kernel_call& call, std::byte* memory) : p_(p), call_(call) {
    tiles_ = reinterpret_cast<float*>(memory);
    gathered_ = memory + p.tile_registers * p.tile_bytes();
    numbers_ = gathered_ + p.folds.size() * p.gathered_bytes();
    set_places();
  }

  /// Rows [row, row + rows) of the last outer dimension, `rest` being the index into those before it; of each the
  /// elements [first, last).
  void run(std::int64_t rest, std::int64_t row, std::int64_t rows, std::int64_t first, std::int64_t last) {
    rows_ = rows;
    aim_at_rows(rest, row);
    for (const tile_phase& phase : p_.phases) {
      for (const tile_step& step : phase.numbers) compute_numbers(step);
      for (const std::uint32_t f : phase.folds) std::fill_n(gathered(f), rows_, nothing(p_.folds[f].how));
      for (std::int64_t c = first; c < last; c += p_.tile_columns) {
        aim_at_columns(c, std::min(p_.tile_columns, last - c));
        for (const tile_step& step : phase.tiles) compute(step);
      }
      for (const std::uint32_t f : phase.folds) finish(f);
    }
  }

 private:
  using role = tile_place::role;

  double* gathered(std::uint32_t fold) const {
    return reinterpret_cast<double*>(gathered_ + fold * p_.gathered_bytes());
  }
  float* numbers(std::uint32_t index) const { return reinterpret_cast<float*>(numbers_ + index * p_.number_bytes()); }

  /// What lies in memory of this thread or of the program stays where it is.
  void set_places() {
    for (std::uint32_t i = 0; i < p_.places.size(); ++i) {
      const tile_place& place = p_.places[i];
      step_[i] = 1;
      switch (place.what) {
        case role::tile: at_[i] = tiles_ + place.index * (p_.tile_bytes() / sizeof(float)); break;
        case role::numbers: at_[i] = numbers(place.index); break;
        case role::constant:
          // Never written: places hold what is read and what is written alike.
          at_[i] = const_cast<float*>(p_.constants.data()) + place.index;
          step_[i] = 0;
          break;
        case role::leaf:
        case role::leaf_numbers: step_[i] = p_.leaves[place.index].row_step(); break;
        case role::output: step_[i] = p_.row; break;
        case role::output_numbers: break;
      }
    }
  }
  void aim_at_rows(std::int64_t rest, std::int64_t row) {
    const std::int64_t index = rest * p_.last() + row;
    std::array<std::int64_t, shape::max_rank> at{};
    for (std::size_t i = p_.outer.size(); i-- > 0;) {
      at[i] = row;
      if (i + 1 == p_.outer.size()) continue;
      at[i] = rest % p_.outer[i];
      rest /= p_.outer[i];
    }
    for (const std::uint32_t i : p_.moving) {
      const tile_place& place = p_.places[i];
      if (place.what == role::output || place.what == role::output_numbers) {
        float* const to = static_cast<float*>(call_.out[place.index]);
        start_[i] = to + (place.what == role::output ? index * p_.row : index);
      } else {
        const tile_leaf& leaf = p_.leaves[place.index];
        std::int64_t offset = leaf.offset;
        for (std::size_t d = 0; d < leaf.outer_steps.size(); ++d) offset += at[d] * leaf.outer_steps[d];
        start_[i] = const_cast<float*>(static_cast<const float*>(call_.in[leaf.argument])) + offset;
      }
      at_[i] = start_[i];
    }
  }
  void aim_at_columns(std::int64_t first, std::int64_t columns) {
    first_ = first;
    for (const std::uint32_t i : p_.moving)
      if (p_.places[i].is_tile()) at_[i] = start_[i] + first;
    if (columns_ == columns) return;
    columns_ = columns;
    for (std::uint32_t i = 0; i < p_.places.size(); ++i)
      if (p_.places[i].what == role::tile) step_[i] = columns;
  }

  void compute(const tile_step& step) {
    if (step.what == tile_step::action::fold) return fold(step);
    if (step.what == tile_step::action::load) {
      const tile_leaf& leaf = p_.leaves[step.index];
      if (step.run != nullptr && rows_ > 1) {
        const std::int64_t by = leaf.inner_steps[0];
        return step.run({.y = at_[step.y],
                         .a = start_[step.a] + first_ * by,
                         .y_step = step_[step.y],
                         .a_step = by,
                         .rows = rows_,
                         .columns = columns_});
      }
      for (std::int64_t r = 0; r < rows_; ++r)
        load_row(leaf, start_[step.a] + r * leaf.row_step(), first_, columns_, at_[step.y] + r * step_[step.y]);
      return;
    }
    tile_call call = call_of(step);
    call.rows = step.joins_rows ? 1 : rows_;
    call.columns = step.joins_rows ? columns_ * rows_ : columns_;
    step.run(call);
  }
  void compute_numbers(const tile_step& step) {
    if (step.what == tile_step::action::load_numbers) {
      const std::int64_t by = p_.leaves[step.index].row_step();
      for (std::int64_t r = 0; r < rows_; ++r) at_[step.y][r] = at_[step.a][r * by];
      return;
    }
    tile_call call = call_of(step);
    call.rows = 1;
    call.columns = rows_;
    step.run(call);
  }
  tile_call call_of(const tile_step& step) const {
    return {.y = at_[step.y],
            .a = at_[step.a],
            .b = at_[step.b],
            .c = at_[step.c],
            .y_step = step_[step.y],
            .a_step = step_[step.a],
            .b_step = step_[step.b],
            .c_step = step_[step.c]};
  }

  static double nothing(row_fold how) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    return how == row_fold::largest ? -infinity : how == row_fold::smallest ? infinity : 0;
  }
  void fold(const tile_step& step) {
    float* const answered = numbers(p_.number_registers);
    step.run(
        {.y = answered, .a = at_[step.a], .y_step = 1, .a_step = step_[step.a], .rows = rows_, .columns = columns_});
    double* const to = gathered(step.index);
    const row_fold how = p_.folds[step.index].how;
    for (std::int64_t r = 0; r < rows_; ++r) {
      double more = static_cast<double>(answered[r]);
      if (how == row_fold::sum || how == row_fold::sum_of_squares) {
        // A sum that overflows on the way may yet be small, or its mean: once more with room for it. A square that
        // overflows has no such right: the operator alone would give infinity.
        if (!std::isfinite(more)) {
          const float* const from = at_[step.a] + r * step_[step.a];
          more = 0;
          for (std::int64_t i = 0; i < columns_; ++i)
            more += static_cast<double>(how == row_fold::sum ? from[i] : from[i] * from[i]);
        }
        to[r] += more;
      } else if (how == row_fold::largest) {
        to[r] = more > to[r] || more != more ? more : to[r];
      } else {
        to[r] = more < to[r] || more != more ? more : to[r];
      }
    }
  }
  void finish(std::uint32_t index) {
    const tile_fold& f = p_.folds[index];
    const double* const from = gathered(index);
    float* const to = at_[f.result];
    for (std::int64_t r = 0; r < rows_; ++r)
      to[r] = static_cast<float>(f.is_mean ? from[r] / static_cast<double>(p_.row) : from[r]);
  }

  const tile_program& p_;
  const kernel_call& call_;
  float* tiles_;
  std::byte* gathered_;
  std::byte* numbers_;
  std::int64_t rows_ = 0, first_ = 0, columns_ = 0;
  std::array<float*, tile_program::max_places> start_;  // of the rows
  std::array<float*, tile_program::max_places> at_;     // in them
  std::array<std::int64_t, tile_program::max_places> step_;
};

/// The kernel.
struct stacked_kernel {
  tile_program program;
  int threads = 1;

  std::size_t workspace() const { return static_cast<std::size_t>(threads) * program.thread_bytes(); }

  void operator()(const kernel_call& call) const {
    const tile_program& p = program;
    const std::int64_t bands = (p.last() + p.tile_rows - 1) / p.tile_rows;  // of rows that tiles do not cross
    const std::int64_t width = p.pieces_apart ? p.tile_columns : p.row;
    const std::int64_t pieces = p.row == 0 ? 1 : (p.row + width - 1) / width;
    if (p.rows() == 0) return;
    const std::int64_t items = p.rows() / p.last() * bands * pieces;
    const double all = static_cast<double>(p.rows()) * static_cast<double>(p.row) * p.cost;
    constexpr double least = 131072;  // as in parallel_parts
    const auto wanted = static_cast<std::int64_t>(std::min(all / least, 4.0 * threads));
    const std::int64_t parts = threads <= 1 ? 1 : std::clamp<std::int64_t>(wanted, 1, items);
    parallel(threads, parts, [&](std::int64_t part, int thread) {
      auto* const memory = static_cast<std::byte*>(call.workspace);
      tile_runner runner(p, call, memory + static_cast<std::size_t>(thread) * p.thread_bytes());
      for (std::int64_t item = items * part / parts; item < items * (part + 1) / parts; ++item) {
        const std::int64_t piece = item % pieces, band = item / pieces % bands, rest = item / pieces / bands;
        const std::int64_t row = band * p.tile_rows, first = piece * width;
        runner.run(rest, row, std::min(p.tile_rows, p.last() - row), first, std::min(p.row, first + width));
      }
    });
  }
};

}  // namespace
}  // namespace collage::inline v0::detail::host
