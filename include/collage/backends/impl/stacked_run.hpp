// Runs a program over tiles.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <collage/backends/impl/stacked_load.hpp>
#include <collage/backends/impl/stacked_program.hpp>
#include <collage/backends/impl/stacked_table.hpp>
#include <collage/backends/impl/team.hpp>
#include <collage/run/kernel.hpp>
#include <collage/shape.hpp>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace collage::inline v0::detail::host {
namespace {

/// The run of one thread. The places of operands are pointers, set for each tile.
class tile_runner {
 public:
  tile_runner(const tile_program& p, const kernel_call& call, std::byte* memory) : p_(p), call_(call) {
    tiles_ = reinterpret_cast<float*>(memory);
    gathered_ = memory + p.tile_registers * p.tile_bytes();
    numbers_ = gathered_ + p.folds.size() * p.gathered_bytes();
    set_places();
  }

  /// Runs rows [row, row + rows) of the last outer dimension, and the elements [first, last) of each row. `rest` is the
  /// index into the outer dimensions before the last.
  void run(std::int64_t rest, std::int64_t row, std::int64_t rows, std::int64_t first, std::int64_t last) {
    rows_ = rows;
    aim_at_rows(rest, row);
    for (const tile_phase& phase : p_.phases) {
      for (const tile_step& step : phase.numbers) compute_numbers(step);
      for (const std::uint32_t f : phase.folds)
        if (!p_.folds[f].is_direct) std::fill_n(gathered(f), rows_, nothing(p_.folds[f].how));
      for (std::int64_t c = first; c < last; c += p_.tile_columns) {
        aim_at_columns(c, std::min(p_.tile_columns, last - c));
        for (const tile_step& step : phase.tiles) compute(step);
      }
      for (const std::uint32_t f : phase.folds)
        if (!p_.folds[f].is_direct) finish(f);
    }
  }

 private:
  using role = tile_place::role;

  double* gathered(std::uint32_t fold) const {
    return reinterpret_cast<double*>(gathered_ + fold * p_.gathered_bytes());
  }
  float* numbers(std::uint32_t index) const { return reinterpret_cast<float*>(numbers_ + index * p_.number_bytes()); }

  /// Sets the places that do not move: memory of this thread or of the program.
  void set_places() {
    for (std::uint32_t i = 0; i < p_.places.size(); ++i) {
      const tile_place& place = p_.places[i];
      step_[i] = 1;
      switch (place.what) {
        case role::tile: at_[i] = tiles_ + place.index * (p_.tile_bytes() / sizeof(float)); break;
        case role::numbers: at_[i] = numbers(place.index); break;
        case role::constant:
          // Never written: places have one pointer type, for reading and for writing.
          at_[i] = const_cast<float*>(p_.constants.data()) + place.index;
          step_[i] = 0;
          break;
        case role::leaf: step_[i] = step_of(p_.leaves[place.index]); break;
        case role::leaf_numbers: step_[i] = p_.leaves[place.index].row_step(); break;
        case role::output: step_[i] = step_of(p_.outputs[place.index]); break;
        case role::leaf_beyond:
        case role::output_numbers:
        case role::output_beyond: break;
      }
      // With rows in lanes, all elements of a row use the same vector of numbers.
      if (p_.has_lanes &&
          (place.what == role::numbers || place.what == role::leaf_numbers || place.what == role::output_numbers))
        step_[i] = 0;
    }
  }
  /// The step from one row of a tile to the next; in a tile with lanes, from one element of the rows to the next.
  std::int64_t step_of(const tile_leaf& l) const { return p_.has_lanes ? l.inner_steps[0] : l.row_step(); }
  void aim_at_rows(std::int64_t rest, std::int64_t row) {
    for (std::size_t i = p_.outer.size(); i-- > 0;) {
      outer_[i] = row;
      if (i + 1 == p_.outer.size()) continue;
      outer_[i] = rest % p_.outer[i];
      rest /= p_.outer[i];
    }
    for (const std::uint32_t i : p_.moving) {
      const tile_place& place = p_.places[i];
      start_[i] = place.is_output() ? start_of(static_cast<std::byte*>(call_.out[place.index]), p_.outputs[place.index])
                                    : const_cast<std::byte*>(start_of(p_.leaves[place.index]));
      at_[i] = reinterpret_cast<float*>(start_[i]);
    }
  }
  /// The beginning of the first row. A tensor without elements may have no address; nothing is read there.
  template <class Byte>
  Byte* start_of(Byte* data, const tile_leaf& l) const {
    if (data == nullptr) return data;
    std::int64_t offset = l.offset;
    for (std::size_t d = 0; d < l.outer_steps.size(); ++d) offset += outer_[d] * l.outer_steps[d];
    return data + offset * (l.is_bytes ? 1 : static_cast<std::int64_t>(sizeof(float)));
  }
  const std::byte* start_of(const tile_leaf& l) const {
    const void* const data =
        l.argument < p_.arguments ? call_.in[l.argument] : p_.tables[l.argument - p_.arguments].data();
    return start_of(static_cast<const std::byte*>(data), l);
  }
  void aim_at_columns(std::int64_t first, std::int64_t columns) {
    first_ = first;
    columns_ = columns;
    for (const std::uint32_t i : p_.moving)
      if (p_.places[i].is_tile()) at_[i] = reinterpret_cast<float*>(start_[i]) + first * (p_.has_lanes ? step_[i] : 1);
    const std::int64_t step = p_.has_lanes ? rows_ : columns;
    if (tile_step_ == step) return;
    tile_step_ = step;
    for (std::uint32_t i = 0; i < p_.places.size(); ++i)
      if (p_.places[i].what == role::tile) step_[i] = step;
  }

  void compute(const tile_step& step) {
    switch (step.what) {
      case tile_step::action::fold: return fold(step);
      case tile_step::action::load: return load(step);
      case tile_step::action::load_pieces: return load_pieces(step);
      case tile_step::action::store: return store(step);
      default: break;
    }
    tile_call call = call_of(step);
    call.rows = p_.has_lanes ? columns_ : rows_;
    call.columns = p_.has_lanes ? rows_ : columns_;
    if (step.joins_rows) {
      call.rows = 1;
      call.columns = columns_ * rows_;
    }
    step.run(call);
  }
  void load(const tile_step& step) {
    const tile_leaf& leaf = p_.leaves[step.index];
    const std::byte* const start = start_[step.a];
    float* const to = at_[step.y];
    if (leaf.is_bytes) {
      const auto* const from = reinterpret_cast<const std::uint8_t*>(start);
      if (step.run == nullptr) return load(leaf, from, to, step_[step.y]);
      return step.run({.y = to,
                       .y_step = step_[step.y],
                       .a_step = leaf.row_step(),
                       .rows = rows_,
                       .columns = columns_,
                       .a_bytes = from + first_});
    }
    const auto* const from = reinterpret_cast<const float*>(start);
    if (step.run == nullptr || rows_ == 1) return load(leaf, from, to, step_[step.y]);
    if (p_.has_lanes)
      return step.run({.y = to,
                       .a = from + first_,
                       .y_step = step_[step.y],
                       .a_step = leaf.row_step(),
                       .rows = columns_,
                       .columns = rows_});
    const std::int64_t by = leaf.inner_steps[0];
    step.run(
        {.y = to, .a = from + first_ * by, .y_step = step_[step.y], .a_step = by, .rows = rows_, .columns = columns_});
  }
  template <class T>
  void load(const tile_leaf& leaf, const T* from, float* to, std::int64_t step) {
    if (p_.has_lanes) return load_lanes(leaf, from, rows_, first_, columns_, to);
    for (std::int64_t r = 0; r < rows_; ++r)
      load_row(leaf, from + r * leaf.row_step(), first_, columns_, to + r * step);
  }
  void load_pieces(const tile_step& step) {
    const tile_pieces& pieces = p_.pieces[step.index];
    for (const tile_part& part : pieces.parts) {
      const std::byte* const start = part.is_number ? nullptr : start_of(part.from);
      for (std::int64_t r = 0; r < rows_; ++r) {
        float* const to = at_[step.y] + r * step_[step.y];
        const std::int64_t row = r * part.from.row_step();
        if (part.from.is_bytes)
          load_part(pieces.dims, part, reinterpret_cast<const std::uint8_t*>(start) + row, first_, columns_, to);
        else load_part(pieces.dims, part, reinterpret_cast<const float*>(start) + row, first_, columns_, to);
      }
    }
  }
  void store(const tile_step& step) {
    const tile_leaf& leaf = p_.outputs[step.index];
    if (leaf.is_bytes) {
      auto* const to = reinterpret_cast<std::uint8_t*>(start_[step.y]);
      if (step.run == nullptr) return store(leaf, to, at_[step.a], step_[step.a]);
      return step.run({.a = at_[step.a],
                       .y_step = leaf.row_step(),
                       .a_step = step_[step.a],
                       .rows = rows_,
                       .columns = columns_,
                       .y_bytes = to + first_});
    }
    auto* const to = reinterpret_cast<float*>(start_[step.y]);
    if (step.run == nullptr) return store(leaf, to, at_[step.a], step_[step.a]);
    step.run({.y = to + first_,
              .a = at_[step.a],
              .y_step = leaf.row_step(),
              .a_step = step_[step.a],
              .rows = rows_,
              .columns = columns_});
  }
  template <class T>
  void store(const tile_leaf& leaf, T* to, const float* from, std::int64_t step) {
    if (p_.has_lanes) return store_lanes(leaf, to, rows_, first_, columns_, from, step);
    for (std::int64_t r = 0; r < rows_; ++r)
      store_row(leaf, to + r * leaf.row_step(), first_, columns_, from + r * step);
  }

  void compute_numbers(const tile_step& step) {
    if (step.what == tile_step::action::load_numbers) {
      const tile_leaf& leaf = p_.leaves[step.index];
      if (leaf.is_bytes)
        load_run(reinterpret_cast<const std::uint8_t*>(start_[step.a]), leaf.row_step(), rows_, at_[step.y]);
      else load_run(reinterpret_cast<const float*>(start_[step.a]), leaf.row_step(), rows_, at_[step.y]);
      return;
    }
    if (step.what == tile_step::action::store_numbers) {
      const tile_leaf& leaf = p_.outputs[step.index];
      for (std::int64_t r = 0; r < rows_; ++r)
        if (leaf.is_bytes) assign(reinterpret_cast<std::uint8_t*>(start_[step.y])[r * leaf.row_step()], at_[step.a][r]);
        else assign(reinterpret_cast<float*>(start_[step.y])[r * leaf.row_step()], at_[step.a][r]);
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
    const tile_fold& f = p_.folds[step.index];
    float* const answered = f.is_direct ? at_[f.result] : numbers(p_.number_registers);
    step.run({.y = answered,
              .a = at_[step.a],
              .y_step = 1,
              .a_step = step_[step.a],
              .rows = p_.has_lanes ? columns_ : rows_,
              .columns = p_.has_lanes ? rows_ : columns_});
    const bool is_sum = f.how == row_fold::sum || f.how == row_fold::sum_of_squares;
    const bool has_doubts = is_sum && !are_trusted(f, answered);
    if (f.is_direct) {
      for (std::int64_t r = 0; has_doubts && r < rows_; ++r)
        if (!is_trusted(f, answered[r])) {
          const double sum = sum_with_room(f, step.a, r);
          answered[r] = static_cast<float>(f.answer == fold_answer::mean ? sum / static_cast<double>(p_.row) : sum);
        } else if (f.answer == fold_answer::mean) {
          answered[r] /= static_cast<float>(p_.row);
        }
      if (f.answer == fold_answer::mean && !has_doubts)
        for (std::int64_t r = 0; r < rows_; ++r) answered[r] /= static_cast<float>(p_.row);
      return;
    }
    double* const to = gathered(step.index);
    if (is_sum && !has_doubts)
      for (std::int64_t r = 0; r < rows_; ++r) to[r] += static_cast<double>(answered[r]);
    else
      for (std::int64_t r = 0; r < rows_; ++r) {
        const double more = static_cast<double>(answered[r]);
        if (f.how == row_fold::largest) to[r] = more > to[r] || more != more ? more : to[r];
        else if (f.how == row_fold::smallest) to[r] = more < to[r] || more != more ? more : to[r];
        else to[r] += is_trusted(f, answered[r]) ? more : sum_with_room(f, step.a, r);
      }
  }
  /// Whether a sum can stay. Otherwise it is computed again in double: it may have overflowed on the way although the
  /// sum, or its mean, is small. Squares may be too small for a float and still count.
  static bool is_trusted(const tile_fold& f, float sum) {
    constexpr float too_small = 0x1p-80F;
    return std::isfinite(sum) &&
           !(f.answer == fold_answer::inverse_deviation && sum < too_small && f.epsilon < 0x1p-56);
  }
  bool are_trusted(const tile_fold& f, const float* sums) const {
    if (f.answer == fold_answer::inverse_deviation && f.epsilon < 0x1p-56) return false;
    std::int32_t most = 0;  // absolute values are ordered as their bits are; this loop is vectorised
    for (std::int64_t r = 0; r < rows_; ++r)
      most = std::max(most, __builtin_bit_cast(std::int32_t, sums[r]) & 0x7FFFFFFF);
    return most < __builtin_bit_cast(std::int32_t, std::numeric_limits<float>::infinity());
  }
  double sum_with_room(const tile_fold& f, std::uint32_t place, std::int64_t row) const {
    const float* const from = at_[place] + row * (p_.has_lanes ? 1 : step_[place]);
    const std::int64_t step = p_.has_lanes ? step_[place] : 1;
    double sum = 0;
    for (std::int64_t i = 0; i < columns_; ++i) {
      const float x = from[i * step];
      // A square that is an operator of its own is rounded to float, and so is rounded here as well.
      sum += f.how == row_fold::sum                       ? static_cast<double>(x)
             : f.answer == fold_answer::inverse_deviation ? static_cast<double>(x) * static_cast<double>(x)
                                                          : static_cast<double>(x * x);
    }
    return sum;
  }
  void finish(std::uint32_t index) {
    const tile_fold& f = p_.folds[index];
    const double* const from = gathered(index);
    const double* const partner = gathered(f.partner);
    float* const to = at_[f.result];
    const auto row = static_cast<double>(p_.row);
    for (std::int64_t r = 0; r < rows_; ++r) {
      double x = f.answer == fold_answer::all ? from[r] : from[r] / row;
      if (f.answer == fold_answer::inverse_deviation) {
        const double off = partner[r] / row, variance = x - off * off;
        x = 1 / std::sqrt((variance < 0 ? 0 : variance) + f.epsilon);
      }
      to[r] = static_cast<float>(x);
    }
  }

  const tile_program& p_;
  const kernel_call& call_;
  float* tiles_;
  std::byte* gathered_;
  std::byte* numbers_;
  std::int64_t rows_ = 0, first_ = 0, columns_ = 0, tile_step_ = -1;
  std::array<std::int64_t, shape::max_rank> outer_{};       // index of the first row
  std::array<std::byte*, tile_program::max_places> start_;  // where the rows begin
  std::array<float*, tile_program::max_places> at_;         // where the tile begins
  std::array<std::int64_t, tile_program::max_places> step_;
};

/// The kernel: programs for parts of its outputs.
struct stacked_kernel {
  std::vector<tile_program> programs;
  int threads = 1;

  std::size_t workspace() const {
    std::size_t most = 0;
    for (const tile_program& p : programs) most = std::max(most, p.thread_bytes());
    return static_cast<std::size_t>(threads) * most;
  }

  void operator()(const kernel_call& call) const {
    const std::size_t own = workspace() / static_cast<std::size_t>(threads);
    double all = 0;
    std::int64_t items = 0;
    for (const tile_program& p : programs) {
      all += static_cast<double>(p.rows()) * static_cast<double>(p.row) * p.cost;
      items += p.items();
    }
    if (items == 0) return;
    constexpr double least = 131072;  // as in parallel_parts
    const auto wanted = static_cast<std::int64_t>(std::min(all / least, 4.0 * threads));
    const std::int64_t parts = threads <= 1 ? 1 : std::clamp<std::int64_t>(wanted, 1, items);
    parallel(threads, parts, [&](std::int64_t part, int thread) {
      auto* const memory = static_cast<std::byte*>(call.workspace) + static_cast<std::size_t>(thread) * own;
      std::int64_t first = items * part / parts, last = items * (part + 1) / parts;
      for (const tile_program& p : programs) {
        const std::int64_t count = p.items();
        if (first < count && last > 0) run(p, call, memory, std::max<std::int64_t>(first, 0), std::min(last, count));
        first -= count;
        last -= count;
      }
    });
  }

 private:
  static void run(const tile_program& p, const kernel_call& call, std::byte* memory, std::int64_t first,
                  std::int64_t last) {
    tile_runner runner(p, call, memory);
    const std::int64_t bands = p.bands(), pieces = p.pieces_of_row();
    for (std::int64_t item = first; item < last; ++item) {
      const std::int64_t piece = item % pieces, band = item / pieces % bands, rest = item / pieces / bands;
      const std::int64_t row = band * p.tile_rows, begin = piece * p.width();
      runner.run(rest, row, std::min(p.tile_rows, p.last() - row), begin, std::min(p.row, begin + p.width()));
    }
  }
};

}  // namespace
}  // namespace collage::inline v0::detail::host
