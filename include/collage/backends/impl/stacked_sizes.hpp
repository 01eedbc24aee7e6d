// Gives a program its registers and the size of its tiles.
#pragma once

#include <algorithm>
#include <collage/backends/impl/stacked_expression.hpp>
#include <collage/backends/impl/stacked_program.hpp>
#include <collage/backends/impl/stacked_table.hpp>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace collage::inline v0::detail::host {
namespace {

class size_program {
 public:
  explicit size_program(tile_program& program) : program_(program) {}
  void run() {
    assign_registers();
    choose_tiles();
    choose_direct_folds();
  }

 private:
  using action = tile_step::action;
  using role = tile_place::role;

  /// Gives each result a register from its step on to where it is read last. A step may write the register that it
  /// reads last: each element is read before it is written.
  void assign_registers() {
    std::vector<std::size_t> last_use(program_.places.size(), 0);
    std::vector<tile_step*> steps;
    for (tile_phase& phase : program_.phases)
      for (tile_step& step : phase.tiles) steps.push_back(&step);
    for (std::size_t i = 0; i < steps.size(); ++i)
      for (const std::uint32_t place : {steps[i]->y, steps[i]->a, steps[i]->b, steps[i]->c}) last_use[place] = i;
    std::vector<std::uint32_t> free;
    std::vector<bool> has_register(program_.places.size(), false);
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const tile_step& step = *steps[i];
      const auto release = [&](std::uint32_t place) {
        if (program_.places[place].what != role::tile || last_use[place] != i || !has_register[place]) return;
        has_register[place] = false;
        free.push_back(program_.places[place].index);
      };
      release(step.a);
      release(step.b);
      release(step.c);
      tile_place& y = program_.places[step.y];
      if (step.what == action::fold || y.what != role::tile) continue;
      if (free.empty()) free.push_back(program_.tile_registers++);
      y.index = free.back();
      free.pop_back();
      has_register[step.y] = true;
    }
  }

  void choose_tiles() {
    if (program_.places.size() > tile_program::max_places) refuse_group("it needs too many registers");
    std::int64_t streams = program_.tile_registers;
    for (const tile_place& p : program_.places)
      streams += p.what == role::output || ((p.what == role::leaf || p.what == role::leaf_beyond) && !repeats(p.index))
                     ? 1
                     : 0;
    constexpr std::int64_t cache = 6144;  // elements: three quarters of a first-level cache
    const std::int64_t fits = std::clamp<std::int64_t>(cache / std::max<std::int64_t>(streams, 1), 256, 2048);
    const std::int64_t row = program_.row;
    bool transposes = false;
    for (const tile_leaf& l : program_.leaves) transposes = transposes || (l.varies() && l.is_transposed());
    const std::int64_t last = program_.last();
    program_.tile_columns = std::max<std::int64_t>(row, 1);
    if (program_.has_lanes) {
      constexpr std::int64_t most_lanes = 512, longest = 128;
      program_.tile_rows = std::clamp<std::int64_t>(program_.holds_rows() ? fits / program_.tile_columns : longest, 16,
                                                    std::min(most_lanes, std::max<std::int64_t>(last, 16)));
      if (!program_.holds_rows()) program_.tile_columns = std::max<std::int64_t>(fits / program_.tile_rows, 1);
      join_rows();
    } else if (transposes && program_.pieces_apart) {
      // Squares, of which whole lines of memory are read and written.
      program_.tile_columns = std::clamp<std::int64_t>(row, 1, 32);
      program_.tile_rows = std::clamp<std::int64_t>(last, 1, 32);
    } else if (program_.pieces_apart ? row > fits : !program_.holds_rows()) {
      const std::int64_t pieces = (row + fits - 1) / fits;
      program_.tile_columns = ((row + pieces - 1) / pieces + 15) / 16 * 16;
    } else {
      constexpr std::int64_t most_rows = 64;
      join_rows();
      program_.tile_rows = std::clamp<std::int64_t>(fits / program_.tile_columns, 1,
                                                    std::min(most_rows, std::max<std::int64_t>(last, 1)));
    }
  }

  void choose_direct_folds() {
    const bool is_whole = !program_.pieces_apart && program_.row > 0 && program_.row <= program_.tile_columns;
    for (tile_fold& f : program_.folds) f.is_direct = is_whole && f.answer != fold_answer::inverse_deviation;
    for (const tile_fold& f : program_.folds)
      if (f.answer == fold_answer::inverse_deviation) program_.folds[f.partner].is_direct = false;
  }

  /// Rows without gaps between them are one.
  void join_rows() {
    for (tile_phase& phase : program_.phases)
      for (tile_step& step : phase.tiles)
        step.joins_rows = follows(step.y) && follows(step.a) && follows(step.b) && follows(step.c);
  }

  /// Whether all rows of a leaf are the same.
  bool repeats(std::uint32_t leaf) const { return !program_.outer.empty() && program_.leaves[leaf].row_step() == 0; }

  /// Whether the rows of a place follow each other in memory. For a place that is a number: whether all rows have the same number.
  bool follows(std::uint32_t place) const {
    const tile_place& p = program_.places[place];
    switch (p.what) {
      case role::tile: return true;
      case role::output: return !program_.has_lanes && program_.outputs[p.index].row_step() == program_.row;
      case role::leaf: return !program_.has_lanes && program_.leaves[p.index].row_step() == program_.row;
      case role::constant: return true;
      default: return program_.is_uniform(place);
    }
  }

  tile_program& program_;
};

}  // namespace
}  // namespace collage::inline v0::detail::host
