// Makes a program over tiles of a group's expressions.
#pragma once

#include <algorithm>
#include <collage/backends/impl/stacked_expression.hpp>
#include <collage/backends/impl/stacked_program.hpp>
#include <collage/backends/impl/stacked_table.hpp>
#include <collage/op/body.hpp>
#include <collage/shape.hpp>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace collage::inline v0::detail::host {
namespace {

/// Dimensions [first, last) without those of extent 1, neighbours joined where all lists of steps lead through both at
/// one step.
inline shape joined(const shape& dims, std::size_t first, std::size_t last, std::span<const shape> all,
                    std::vector<shape>& steps) {
  shape result;
  steps.assign(all.size(), shape{});
  for (std::size_t i = first; i < last; ++i) {
    if (dims[i] == 1) continue;
    bool joins = !result.empty();
    for (std::size_t k = 0; joins && k < all.size(); ++k) joins = steps[k][result.size() - 1] == all[k][i] * dims[i];
    if (joins) result[result.size() - 1] *= dims[i];
    else result.push_back(dims[i]);
    for (std::size_t k = 0; k < all.size(); ++k) {
      if (!joins) steps[k].push_back(0);
      steps[k][result.size() - 1] = all[k][i];
    }
  }
  return result;
}

class program_of_tiles {
 public:
  program_of_tiles(const expression_maker& group, const tile_table& table)
      : group_(group), nodes_(group.expressions()), table_(table) {
    choose_rows();
    number_phases();
    count_uses();
    output_of_.assign(nodes_.size(), nothing);
    for (std::uint32_t i = 0; i < group.outputs().size(); ++i) {
      std::uint32_t& of = output_of_[group.outputs()[i].expression];
      if (of == nothing) of = i;
    }
    program_.outputs = group.outputs().size();
    place_of_.assign(nodes_.size(), nothing);
    spread_.assign(2 * nodes_.size(), nothing);
    for (std::uint32_t phase = 0; phase < program_.phases.size(); ++phase) make_phase(phase);
    for (std::uint32_t i = 0; i < program_.places.size(); ++i) {
      const role of = program_.places[i].what;
      if (of != role::tile && of != role::numbers && of != role::constant) program_.moving.push_back(i);
    }
    assign_registers();
    choose_tiles();
  }

  tile_program take() { return std::move(program_); }

 private:
  using what = expression_node::what;
  using action = tile_step::action;
  using role = tile_place::role;
  static constexpr std::uint32_t nothing = 0xFFFFFFFF;
  static constexpr std::int64_t most_held = 4096;  // elements of a row that is held as a whole
  static constexpr std::int64_t short_row = 32;    // below, broadcast operands are spread out

  // Rows and phases -----------------------------------------------------------------------------------------------------

  void choose_rows() {
    const shape& dims = group_.dims();
    std::vector<shape> all, outer, inner;
    for (const walked_leaf& l : group_.leaves()) all.push_back(l.steps);
    shape row;
    if (group_.has_rows()) {
      program_.outer = joined(dims, 0, group_.first_of_row(), all, outer);
      row = joined(dims, group_.first_of_row(), dims.size(), all, inner);
      program_.pieces_apart = false;
    } else {
      const shape together = joined(dims, 0, dims.size(), all, inner);
      row = together;
      outer.assign(all.size(), shape{});
      if (together.size() > 1 && together[together.size() - 1] >= short_row) {
        const std::size_t last = together.size() - 1;
        program_.outer = together.first(last);
        row = together.from(last);
        for (std::size_t k = 0; k < all.size(); ++k) {
          outer[k] = inner[k].first(last);
          inner[k] = inner[k].from(last);
        }
      }
    }
    program_.row = row.elements();
    for (std::size_t k = 0; k < all.size(); ++k) {
      const walked_leaf& l = group_.leaves()[k];
      tile_leaf made{.argument = l.argument, .offset = l.offset, .outer_steps = outer[k]};
      std::vector<shape> own;
      made.inner_dims = joined(row, 0, row.size(), std::span(&inner[k], 1), own);
      made.inner_steps = own[0];
      program_.leaves.push_back(made);
    }
  }

  /// In which phase an expression can be computed, and whether it changes along a row.
  void number_phases() {
    std::uint32_t last = 0;
    phase_.assign(nodes_.size(), 0);
    varies_.assign(nodes_.size(), false);
    for (std::size_t e = 0; e < nodes_.size(); ++e) {
      const expression_node& n = nodes_[e];
      if (n.is == what::leaf) varies_[e] = program_.leaves[n.leaf].varies();
      for (std::uint32_t i = 0; i < n.operands; ++i) {
        phase_[e] = std::max(phase_[e], phase_[n.operand[i]]);
        varies_[e] = varies_[e] || varies_[n.operand[i]];
      }
      if (n.is != what::fold) continue;
      ++phase_[e];  // of its result
      varies_[e] = false;
    }
    for (const group_output& o : group_.outputs()) last = std::max(last, phase_[o.expression]);
    program_.phases.resize(last + 1);
  }

  // Steps ---------------------------------------------------------------------------------------------------------------

  bool holds_rows() const { return program_.pieces_apart || program_.row <= most_held; }

  void make_phase(std::uint32_t phase) {
    current_ = &program_.phases[phase];
    for (std::uint32_t e = 0; e < nodes_.size(); ++e)
      if (nodes_[e].is == what::fold && phase_[e] == phase + 1 && uses_[e] > 0) make_fold(e);
    for (std::uint32_t i = 0; i < group_.outputs().size(); ++i)
      if (phase_[group_.outputs()[i].expression] == phase) make_output(i);
    if (holds_rows()) return;
    // Of a row that is too long to be held, what the next phase needs is computed once more.
    for (std::uint32_t& place : place_of_)
      if (place != nothing && program_.places[place].what == role::tile) place = nothing;
    for (std::uint32_t& place : spread_)
      if (place != nothing && program_.places[place].what == role::tile) place = nothing;
  }

  /// How often each expression is read by what an output needs.
  void count_uses() {
    uses_.assign(nodes_.size(), 0);
    for (const group_output& o : group_.outputs()) ++uses_[o.expression];
    for (std::size_t n = nodes_.size(); n-- > 0;)
      for (std::uint32_t i = 0; uses_[n] > 0 && i < nodes_[n].operands; ++i)
        // A square reads its operand once.
        if (i == 0 || nodes_[n].operand[i] != nodes_[n].operand[i - 1]) ++uses_[nodes_[n].operand[i]];
  }

  void make_fold(std::uint32_t e) {
    const expression_node& n = nodes_[e];
    const auto index = static_cast<std::uint32_t>(program_.folds.size());
    std::uint32_t of = n.operand[0];
    row_fold how = n.how;
    if (how == row_fold::sum && is_passing(of, opcode::multiply) && nodes_[of].operand[0] == nodes_[of].operand[1]) {
      how = row_fold::sum_of_squares;
      of = nodes_[of].operand[0];
    }
    tile_step step{.what = action::fold, .run = table_.of(how), .index = index};
    step.y = step.a = step.b = step.c = as_tile(of, true);
    current_->tiles.push_back(step);
    current_->folds.push_back(index);
    program_.cost += 1;
    program_.folds.push_back({how, n.is_mean, result_place(e, false)});
    place_of_[e] = program_.folds.back().result;
  }

  void make_output(std::uint32_t i) {
    const group_output& o = group_.outputs()[i];
    const bool tiles = !o.is_numbers;
    if (!tiles && varies_[o.expression]) refuse_group("an output of one number for each row changes along it");
    const std::uint32_t from = computed(o.expression);
    const tile_place to{tiles ? role::output : role::output_numbers, i};
    if (program_.places[from].what == to.what && program_.places[from].index == to.index) return;
    if (!tiles && is_scattered(from)) {
      const std::uint32_t y = add_place(to);
      current_->numbers.push_back(
          {.what = action::load_numbers, .index = program_.places[from].index, .y = y, .a = from, .b = y, .c = y});
      return;
    }
    const bool spreads = tiles ? !program_.places[from].is_tile() : is_uniform(from);
    emit(tiles, {.run = table_.of(spreads ? tile_extra::spread : tile_extra::copy), .y = add_place(to), .a = from}, 1);
  }

  /// Where an expression lies once the steps before have run: makes those that are missing.
  std::uint32_t computed(std::uint32_t e) {
    if (place_of_[e] != nothing) return place_of_[e];
    const expression_node& n = nodes_[e];
    switch (n.is) {
      case what::number:
        program_.constants.push_back(n.number);
        return place_of_[e] = add_place({role::constant, static_cast<std::uint32_t>(program_.constants.size() - 1)});
      case what::leaf: return place_of_[e] = leaf(e);
      case what::fold: refuse_group("a fold of rows is read before it is there");
      default: break;
    }
    if (const std::uint32_t pair = computed_pair(e); pair != nothing) return place_of_[e] = pair;
    // Operands first; each makes steps of its own.
    std::uint32_t place[3] = {};
    const bool tiles = varies_[e];
    for (std::uint32_t i = 0; i < n.operands; ++i) {
      place[i] = computed(n.operand[i]);
      if (!tiles && is_scattered(place[i])) place[i] = spread(n.operand[i], false);
    }
    const auto is_full = [&](std::uint32_t p) { return tiles ? program_.places[p].is_tile() : !is_uniform(p); };
    tile_function run = nullptr;
    if (n.is == what::extra && n.operands == 2 && is_full(place[0]) && !is_full(place[1])) {
      run = table_.of(n.extra);
    } else if (n.is == what::extra && n.operands == 1) {
      run = table_.of(n.extra);
    } else if (n.is == what::code && n.operands == 2) {
      const bool a = is_full(place[0]), b = is_full(place[1]);
      if (a && !b) run = table_.of(n.code, tile_form::tile_number);
      if (!a && b) run = table_.of(n.code, tile_form::number_tile);
    }
    if (run == nullptr || n.operands == 1) {
      for (std::uint32_t i = 0; i < n.operands; ++i)
        if (!is_full(place[i])) place[i] = spread(n.operand[i], tiles);
      if (n.is == what::extra && n.operands == 2) return place_of_[e] = distance(e, place[0], place[1], tiles);
      if (n.is == what::code) run = table_.of(n.code, tile_form::tiles);
    }
    if (run == nullptr) refuse_group("it does not compute an instruction of an operator");
    const std::uint32_t y = result_place(e, tiles);
    emit(tiles,
         {.run = run, .y = y, .a = place[0], .b = n.operands > 1 ? place[1] : y, .c = n.operands > 2 ? place[2] : y},
         cost_of(n));
    return place_of_[e] = y;
  }

  /// Whether an expression is a tile that one other expression reads and nobody else, and not there yet.
  bool is_passing(std::uint32_t e, opcode code) const {
    return nodes_[e].is == what::code && nodes_[e].code == code && varies_[e] && uses_[e] == 1 &&
           output_of_[e] == nothing && place_of_[e] == nothing;
  }
  /// Of a sum of two products neither may be rounded alone: x x - y y would be nonzero where x = y.
  bool is_product(std::uint32_t e) const {
    if (!varies_[e]) return false;
    while (nodes_[e].is == what::code && nodes_[e].code == opcode::negate) e = nodes_[e].operand[0];
    return nodes_[e].is == what::code && nodes_[e].code == opcode::multiply;
  }
  /// a + b or a b + c, with max(_, 0) behind it or without, in one step; nothing where it is no such thing.
  std::uint32_t computed_pair(std::uint32_t e) {
    if (!varies_[e] || nodes_[e].is != what::code) return nothing;
    std::uint32_t sum = e;
    const expression_node& n = nodes_[e];
    const bool is_positive = n.code == opcode::maximum && nodes_[n.operand[1]].is == what::number &&
                             !(nodes_[n.operand[1]].number != 0) && is_passing(n.operand[0], opcode::add);
    if (is_positive) sum = n.operand[0];
    if (nodes_[sum].code != opcode::add) return nothing;
    std::uint32_t a = nodes_[sum].operand[0], b = nodes_[sum].operand[1];
    if (is_passing(b, opcode::multiply)) std::swap(a, b);
    const bool multiplies = is_passing(a, opcode::multiply) && !is_product(b);
    if (!is_positive && !multiplies) return nothing;
    std::uint32_t c = b;
    if (multiplies) {
      b = nodes_[a].operand[1];
      a = nodes_[a].operand[0];
    }
    if (!varies_[a]) std::swap(a, b);
    std::uint32_t place[3] = {computed(a), computed(b), computed(c)};
    const auto is_tile = [&](std::size_t i) { return program_.places[place[i]].is_tile(); };
    const std::uint32_t y = result_place(e, true);
    tile_step step{.y = y, .a = place[0], .b = place[1], .c = place[2]};
    if (multiplies) step.run = table_.multiply_add[is_tile(1) ? 0 : 1][is_tile(2) ? 0 : 1][is_positive ? 1 : 0];
    else step.run = table_.add[is_tile(1) ? 0 : 1][1];
    emit(true, step, 3);
    return y;
  }

  /// exp(a - b) where neither is one number for each row.
  std::uint32_t distance(std::uint32_t e, std::uint32_t a, std::uint32_t b, bool tiles) {
    const std::uint32_t between = add_register(tiles);
    emit(tiles, {.run = table_.of(opcode::subtract, tile_form::tiles), .y = between, .a = a, .b = b, .c = between}, 1);
    const std::uint32_t y = result_place(e, tiles);
    emit(tiles, {.run = table_.of(opcode::exponential, tile_form::tiles), .y = y, .a = between, .b = y, .c = y}, 10);
    return y;
  }

  std::uint32_t leaf(std::uint32_t e) {
    const std::uint32_t index = nodes_[e].leaf;
    const tile_leaf& l = program_.leaves[index];
    program_.cost += 1;
    if (varies_[e]) {
      const std::uint32_t there = add_place({role::leaf, index});
      if (l.is_dense()) return there;
      const std::uint32_t y = result_place(e, true);
      emit(true,
           {.what = action::load,
            .run = l.is_transposed() ? table_.transpose : nullptr,
            .index = index,
            .y = y,
            .a = there,
            .b = y,
            .c = y},
           4);
      return y;
    }
    const std::uint32_t there = add_place({role::leaf_numbers, index});
    return there;
  }

  /// An operand as a whole tile, in `numbers` steps as numbers one behind the other.
  std::uint32_t spread(std::uint32_t e, bool tiles) {
    std::uint32_t& known = spread_[2 * e + (tiles ? 1 : 0)];
    if (known != nothing) return known;
    const std::uint32_t from = place_of_[e];
    known = add_register(tiles);
    const tile_place& place = program_.places[from];
    if (!tiles && is_scattered(from))
      current_->numbers.push_back(
          {.what = action::load_numbers, .index = place.index, .y = known, .a = from, .b = known, .c = known});
    else emit(tiles, {.run = table_.of(tile_extra::spread), .y = known, .a = from, .b = known, .c = known}, 1);
    return known;
  }
  std::uint32_t as_tile(std::uint32_t e, bool tiles) {
    const std::uint32_t place = computed(e);
    return program_.places[place].is_tile() ? place : spread(e, tiles);
  }

  /// In steps over numbers: whether a place is one number for all rows, or a number for each that do not lie one behind
  /// the other.
  bool is_uniform(std::uint32_t place) const {
    const tile_place& p = program_.places[place];
    return p.what == role::constant || (p.what == role::leaf_numbers && program_.leaves[p.index].row_step() == 0);
  }
  bool is_scattered(std::uint32_t place) const {
    const tile_place& p = program_.places[place];
    if (p.what != role::leaf_numbers) return false;
    const std::int64_t step = program_.leaves[p.index].row_step();
    return step != 0 && step != 1;
  }

  /// Where a result goes: to an output, if it is one.
  std::uint32_t result_place(std::uint32_t e, bool tiles) {
    const std::uint32_t output = output_of_[e];
    if (output != nothing && tiles == !group_.outputs()[output].is_numbers)
      return add_place({tiles ? role::output : role::output_numbers, output});
    return add_register(tiles);
  }
  std::uint32_t add_register(bool tiles) {
    return add_place(tiles ? tile_place{role::tile, tiles_made_++}
                           : tile_place{role::numbers, program_.number_registers++});
  }
  std::uint32_t add_place(tile_place place) {
    for (std::uint32_t i = 0; i < program_.places.size(); ++i)
      if (program_.places[i].what == place.what && program_.places[i].index == place.index) return i;
    program_.places.push_back(place);
    return static_cast<std::uint32_t>(program_.places.size() - 1);
  }
  void emit(bool tiles, tile_step step, double cost) {
    step.what = step.what != action::compute ? step.what : tiles ? action::compute : action::compute_numbers;
    if (table_.of(tile_extra::copy) == step.run || table_.of(tile_extra::spread) == step.run) step.b = step.c = step.y;
    (tiles ? current_->tiles : current_->numbers).push_back(step);
    if (tiles) program_.cost += cost;
  }
  static double cost_of(const expression_node& n) {
    if (n.is == what::extra) return 10;
    if (n.code == opcode::power || n.code == opcode::remainder) return 100;
    if (n.code == opcode::tangent || (n.code >= opcode::arc_sine && n.code <= opcode::cosine_hyperbolic) ||
        (n.code >= opcode::area_sine_hyperbolic && n.code <= opcode::area_tangent_hyperbolic))
      return 100;
    if (n.code >= opcode::exponential && n.code <= opcode::error_function) return 10;
    return n.code == opcode::divide ? 4 : 2;
  }

  // Registers and sizes --------------------------------------------------------------------------------------------------

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
      streams += p.what == role::output || (p.what == role::leaf && !repeats(p.index)) ? 1 : 0;
    constexpr std::int64_t cache = 6144;  // elements: three quarters of a first-level cache
    const std::int64_t fits = std::clamp<std::int64_t>(cache / std::max<std::int64_t>(streams, 1), 256, 2048);
    const std::int64_t row = program_.row;
    bool transposes = false;
    for (const tile_leaf& l : program_.leaves) transposes = transposes || (l.varies() && l.is_transposed());
    const std::int64_t last = program_.outer.empty() ? 1 : program_.outer[program_.outer.size() - 1];
    program_.tile_columns = std::max<std::int64_t>(row, 1);
    if (transposes && program_.pieces_apart) {
      // Squares, of which whole lines of memory are read and written.
      program_.tile_columns = std::clamp<std::int64_t>(row, 1, 32);
      program_.tile_rows = std::clamp<std::int64_t>(last, 1, 32);
    } else if (row > (program_.pieces_apart ? fits : most_held)) {
      const std::int64_t pieces = (row + fits - 1) / fits;
      program_.tile_columns = ((row + pieces - 1) / pieces + 15) / 16 * 16;
    } else {
      constexpr std::int64_t most_rows = 64;
      // Rows without gaps between them are one.
      for (tile_phase& phase : program_.phases)
        for (tile_step& step : phase.tiles)
          step.joins_rows = follows(step.y) && follows(step.a) && follows(step.b) && follows(step.c);
      program_.tile_rows = std::clamp<std::int64_t>(fits / program_.tile_columns, 1,
                                                    std::min(most_rows, std::max<std::int64_t>(last, 1)));
    }
  }

  /// Whether all rows of a leaf are the same.
  bool repeats(std::uint32_t leaf) const { return !program_.outer.empty() && program_.leaves[leaf].row_step() == 0; }

  /// Whether rows of a place lie one behind the other; of numbers: whether all rows have the same.
  bool follows(std::uint32_t place) const {
    const tile_place& p = program_.places[place];
    switch (p.what) {
      case role::tile:
      case role::output: return true;
      case role::leaf: return program_.leaves[p.index].row_step() == program_.row;
      case role::constant: return true;
      default: return is_uniform(place);
    }
  }

  const expression_maker& group_;
  const std::vector<expression_node>& nodes_;
  const tile_table& table_;
  tile_program program_;
  tile_phase* current_ = nullptr;
  std::vector<std::uint32_t> phase_;
  std::vector<bool> varies_;
  std::vector<std::uint32_t> uses_;
  std::vector<std::uint32_t> output_of_;  // of expressions: the first output that is one
  std::vector<std::uint32_t> place_of_, spread_;
  std::uint32_t tiles_made_ = 0;
};

}  // namespace
}  // namespace collage::inline v0::detail::host
