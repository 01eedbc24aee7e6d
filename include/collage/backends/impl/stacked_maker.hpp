// Makes a program over tiles from a group's expressions.
#pragma once

#include <algorithm>
#include <collage/backends/impl/stacked_access.hpp>
#include <collage/backends/impl/stacked_expression.hpp>
#include <collage/backends/impl/stacked_group.hpp>
#include <collage/backends/impl/stacked_program.hpp>
#include <collage/backends/impl/stacked_sizes.hpp>
#include <collage/backends/impl/stacked_table.hpp>
#include <collage/backends/impl/stacked_walk.hpp>
#include <collage/graph/graph.hpp>
#include <collage/op/body.hpp>
#include <collage/run/node_group.hpp>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace collage::inline v0::detail::host {
namespace {

class program_of_tiles {
 public:
  program_of_tiles(const expression_maker& group, const tile_table& table)
      : group_(group), nodes_(group.expressions()), table_(table), program_(walk_of_group(group).take()) {
    number_phases();
    count_uses();
    output_of_.assign(nodes_.size(), nothing);
    for (std::uint32_t i = 0; i < group.outputs().size(); ++i) {
      std::uint32_t& of = output_of_[group.outputs()[i].expression];
      if (of == nothing) of = i;
    }
    place_of_.assign(nodes_.size(), nothing);
    fold_of_.assign(nodes_.size(), nothing);
    spread_.assign(2 * nodes_.size(), nothing);
    for (std::uint32_t phase = 0; phase < program_.phases.size(); ++phase) make_phase(phase);
    for (std::uint32_t i = 0; i < program_.places.size(); ++i) {
      const role of = program_.places[i].what;
      if (of != role::tile && of != role::numbers && of != role::constant) program_.moving.push_back(i);
    }
    size_program(program_).run();
  }

  tile_program take() { return std::move(program_); }

 private:
  using what = expression_node::what;
  using action = tile_step::action;
  using role = tile_place::role;
  static constexpr std::uint32_t nothing = 0xFFFFFFFF;

  // Rows and phases -----------------------------------------------------------------------------------------------------

  /// Finds the phase in which each expression can be computed, and whether it changes along a row.
  void number_phases() {
    std::uint32_t last = 0;
    phase_.assign(nodes_.size(), 0);
    varies_.assign(nodes_.size(), false);
    for (std::size_t e = 0; e < nodes_.size(); ++e) {
      const expression_node& n = nodes_[e];
      if (n.is == what::leaf) varies_[e] = program_.leaves[n.leaf].varies();
      if (n.is == what::pieces) varies_[e] = true;
      for (std::uint32_t i = 0; i < n.operands; ++i) {
        phase_[e] = std::max(phase_[e], phase_[n.operand[i]]);
        varies_[e] = varies_[e] || varies_[n.operand[i]];
      }
      if (n.is != what::fold) continue;
      ++phase_[e];  // its result is available from the next phase on
      varies_[e] = false;
    }
    for (const group_output& o : group_.outputs()) last = std::max(last, phase_[o.expression]);
    program_.phases.resize(last + 1);
  }

  // Steps ---------------------------------------------------------------------------------------------------------------

  void make_phase(std::uint32_t phase) {
    current_ = &program_.phases[phase];
    for (std::uint32_t e = 0; e < nodes_.size(); ++e)
      if (nodes_[e].is == what::fold && phase_[e] == phase + 1 && uses_[e] > 0) make_fold(e);
    for (std::uint32_t i = 0; i < group_.outputs().size(); ++i)
      if (phase_[group_.outputs()[i].expression] == phase) make_output(i);
    if (program_.holds_rows()) return;
    // Too long a row is not held: the next phase computes once more the tiles that it needs.
    for (std::uint32_t& place : place_of_)
      if (place != nothing && program_.places[place].what == role::tile) place = nothing;
    for (std::uint32_t& place : spread_)
      if (place != nothing && program_.places[place].what == role::tile) place = nothing;
  }

  /// Counts how often each expression is read, by outputs and by expressions that outputs need.
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
    tile_step step{.what = action::fold, .run = table_.of(how, program_.has_lanes), .index = index};
    step.y = step.a = step.b = step.c = as_tile(of);
    current_->tiles.push_back(step);
    current_->folds.push_back(index);
    program_.cost += 1;
    fold_of_[e] = index;
    tile_fold made{.how = how, .answer = n.answer, .result = result_place(e, false), .epsilon = n.epsilon};
    if (n.answer == fold_answer::inverse_deviation) made.partner = fold_of_[n.leaf];
    program_.folds.push_back(made);
    place_of_[e] = made.result;
  }

  void make_output(std::uint32_t i) {
    const group_output& o = group_.outputs()[i];
    if (o.is_numbers && varies_[o.expression]) refuse_group("an output with one number per row varies along the row");
    if (o.is_numbers) return make_numbers(i);
    std::uint32_t from = computed(o.expression);
    const tile_place to{role::output, i};
    if (program_.places[from].what == to.what && program_.places[from].index == i) return;
    if (!lies_in_place(program_.outputs[i])) {
      const std::uint32_t y = add_place({role::output_beyond, i});
      from = as_tile(o.expression);
      const bool turns = program_.has_lanes && !program_.outputs[i].is_bytes && program_.outputs[i].is_dense();
      const bool packs = !program_.has_lanes && program_.outputs[i].is_bytes && program_.outputs[i].is_dense();
      emit(true,
           {.what = action::store,
            .run = turns   ? table_.transpose
                   : packs ? table_.store_bytes
                           : nullptr,
            .index = i,
            .y = y,
            .a = from,
            .b = y,
            .c = y},
           turns || packs ? 2 : 4);
      return;
    }
    if (program_.has_lanes) from = as_tile(o.expression);
    const tile_extra how = reads_as_tile(from) ? tile_extra::copy : tile_extra::spread;
    emit(true, {.run = table_.of(how), .y = add_place(to), .a = from}, 1);
  }
  void make_numbers(std::uint32_t i) {
    const std::uint32_t e = group_.outputs()[i].expression;
    std::uint32_t from = computed(e);
    const tile_place to{role::output_numbers, i};
    if (program_.places[from].what == to.what && program_.places[from].index == i) return;
    if (!lies_in_a_line(program_.outputs[i])) {
      if (is_uniform(from) || is_scattered(from)) from = spread(e, false);
      const std::uint32_t y = add_place({role::output_beyond, i});
      current_->numbers.push_back({.what = action::store_numbers, .index = i, .y = y, .a = from, .b = y, .c = y});
      return;
    }
    const std::uint32_t y = add_place(to);
    if (is_scattered(from))
      current_->numbers.push_back(
          {.what = action::load_numbers, .index = program_.places[from].index, .y = y, .a = from, .b = y, .c = y});
    else
      emit(false, {.run = table_.of(is_uniform(from) ? tile_extra::spread : tile_extra::copy), .y = y, .a = from}, 1);
  }

  /// Whether tiles read or write elements in place.
  bool lies_in_place(const tile_leaf& l) const {
    if (l.is_bytes) return false;
    return program_.has_lanes ? l.inner_dims.size() == 1 && l.row_step() == 1 : l.is_dense();
  }
  /// Whether numbers, one for each row, are written in place.
  bool lies_in_a_line(const tile_leaf& l) const { return !l.is_bytes && (program_.last() <= 1 || l.row_step() == 1); }

  /// The place of an expression; makes the steps that compute it where they are missing.
  std::uint32_t computed(std::uint32_t e) {
    if (place_of_[e] != nothing) return place_of_[e];
    const expression_node& n = nodes_[e];
    switch (n.is) {
      case what::number:
        program_.constants.push_back(n.number);
        return place_of_[e] = add_place({role::constant, static_cast<std::uint32_t>(program_.constants.size() - 1)});
      case what::leaf: return place_of_[e] = leaf(e);
      case what::pieces: {
        const std::uint32_t y = result_place(e, true);
        emit(true, {.what = action::load_pieces, .index = n.leaf, .y = y, .a = y, .b = y, .c = y}, 4);
        return place_of_[e] = y;
      }
      case what::fold: refuse_group("a reduction of rows is read before it is computed");
      default: break;
    }
    if (const std::uint32_t pair = computed_pair(e); pair != nothing) return place_of_[e] = pair;
    // Operands first: each makes its own steps.
    std::uint32_t place[3] = {};
    const bool tiles = varies_[e];
    for (std::uint32_t i = 0; i < n.operands; ++i) {
      place[i] = computed(n.operand[i]);
      if ((!tiles || program_.has_lanes) && is_scattered(place[i])) place[i] = spread(n.operand[i], false);
    }
    const auto is_full = [&](std::uint32_t p) { return tiles ? reads_as_tile(p) : !is_uniform(p); };
    tile_function run = nullptr;
    if (n.is == what::extra && n.operands == 2 && is_full(place[0]) && !is_full(place[1])) {
      run = table_.of(n.extra);
    } else if (n.is == what::extra && n.operands == 1) {
      run = table_.of(n.extra);
    } else if (n.is == what::code && n.operands == 2) {
      const bool a = is_full(place[0]), b = is_full(place[1]);
      if (a && !b) run = table_.of(n.code, tile_form::tile_number);
      if (!a && b) run = table_.of(n.code, tile_form::number_tile);
    } else if (n.is == what::code && n.code == opcode::select && is_full(place[0])) {
      run = table_.select[is_full(place[1]) ? 0 : 1][is_full(place[2]) ? 0 : 1];
    }
    if (run == nullptr || n.operands == 1) {
      for (std::uint32_t i = 0; i < n.operands; ++i)
        if (!is_full(place[i])) place[i] = spread(n.operand[i], tiles);
      if (n.is == what::extra && n.operands == 2) return place_of_[e] = distance(e, place[0], place[1], tiles);
      if (n.is == what::code) run = table_.of(n.code, tile_form::tiles);
    }
    if (run == nullptr) refuse_group("it has no code for an instruction of an operator");
    const std::uint32_t y = result_place(e, tiles);
    emit(tiles,
         {.run = run, .y = y, .a = place[0], .b = n.operands > 1 ? place[1] : y, .c = n.operands > 2 ? place[2] : y},
         cost_of(n));
    return place_of_[e] = y;
  }

  /// Whether an expression is a tile that exactly one other expression reads, and is not computed yet.
  bool is_passing(std::uint32_t e, opcode code) const {
    return nodes_[e].is == what::code && nodes_[e].code == code && varies_[e] && uses_[e] == 1 &&
           output_of_[e] == nothing && place_of_[e] == nothing;
  }
  /// Whether an expression is a product, perhaps negated. In a sum of two products neither may be rounded alone: x x -
  /// y y would be nonzero where x = y.
  bool is_product(std::uint32_t e) const {
    if (!varies_[e]) return false;
    while (nodes_[e].is == what::code && nodes_[e].code == opcode::negate) e = nodes_[e].operand[0];
    return nodes_[e].is == what::code && nodes_[e].code == opcode::multiply;
  }
  /// Computes a b + c, max(a b + c, 0) or max(a + b, 0) in one step; returns `nothing` for any other expression.
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
    std::uint32_t place[3] = {};
    for (const auto& [i, operand] : {std::pair(0U, a), std::pair(1U, b), std::pair(2U, c)}) {
      place[i] = computed(operand);
      if (program_.has_lanes && is_scattered(place[i])) place[i] = spread(operand, false);
    }
    const auto is_tile = [&](std::size_t i) { return reads_as_tile(place[i]); };
    const std::uint32_t y = result_place(e, true);
    tile_step step{.y = y, .a = place[0], .b = place[1], .c = place[2]};
    if (multiplies) step.run = table_.multiply_add[is_tile(1) ? 0 : 1][is_tile(2) ? 0 : 1][is_positive ? 1 : 0];
    else step.run = table_.add[is_tile(1) ? 0 : 1][1];
    emit(true, step, 3);
    return y;
  }

  /// Computes exp(a - b) where neither operand is one number for each row.
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
    if (!varies_[e]) {
      const std::uint32_t there = add_place({l.is_bytes ? role::leaf_beyond : role::leaf_numbers, index});
      if (!l.is_bytes) return there;
      const std::uint32_t y = add_register(false);
      current_->numbers.push_back({.what = action::load_numbers, .index = index, .y = y, .a = there, .b = y, .c = y});
      return y;
    }
    const std::uint32_t there = add_place({lies_in_place(l) ? role::leaf : role::leaf_beyond, index});
    if (lies_in_place(l)) return there;
    const std::uint32_t y = result_place(e, true);
    tile_function run = nullptr;
    if (!l.is_bytes && (program_.has_lanes ? l.is_dense() : l.is_transposed())) run = table_.transpose;
    if (l.is_bytes && !program_.has_lanes && l.is_dense()) run = table_.load_bytes;
    emit(true, {.what = action::load, .run = run, .index = index, .y = y, .a = there, .b = y, .c = y},
         run == table_.load_bytes ? 2 : 4);
    return y;
  }

  /// An operand as a whole tile, or with `tiles` false as numbers that lie one after the other.
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
  std::uint32_t as_tile(std::uint32_t e) {
    std::uint32_t place = computed(e);
    if (program_.has_lanes && is_scattered(place)) place = spread(e, false);
    return reads_as_tile(place) ? place : spread(e, true);
  }
  /// Whether steps over tiles read a place as a whole tile. Where rows lie in lanes, their numbers are whole tiles too.
  bool reads_as_tile(std::uint32_t place) const {
    return program_.places[place].is_tile() || (program_.has_lanes && !is_uniform(place));
  }

  bool is_uniform(std::uint32_t place) const { return program_.is_uniform(place); }
  /// Whether a place has a number for each row, and these numbers do not lie one after the other.
  bool is_scattered(std::uint32_t place) const {
    const tile_place& p = program_.places[place];
    if (p.what != role::leaf_numbers) return false;
    const std::int64_t step = program_.leaves[p.index].row_step();
    return step != 0 && step != 1;
  }

  /// The place for a result: an output, if the result is one and is written in place.
  std::uint32_t result_place(std::uint32_t e, bool tiles) {
    const std::uint32_t output = output_of_[e];
    if (output != nothing && tiles == !group_.outputs()[output].is_numbers &&
        (tiles ? lies_in_place(program_.outputs[output]) : lies_in_a_line(program_.outputs[output])))
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

  const expression_maker& group_;
  const std::vector<expression_node>& nodes_;
  const tile_table& table_;
  tile_program program_;
  tile_phase* current_ = nullptr;
  std::vector<std::uint32_t> phase_;
  std::vector<bool> varies_;
  std::vector<std::uint32_t> uses_;
  std::vector<std::uint32_t> output_of_;  // by expression: the first output that it is
  std::vector<std::uint32_t> place_of_, spread_;
  std::vector<std::uint32_t> fold_of_;  // by expression
  std::uint32_t tiles_made_ = 0;
};

/// One program for each part of the walked shape. Concatenations and similar operators cut the shape into parts.
inline std::vector<tile_program> programs_of(const graph& network, const node_group& group, const tile_table& table) {
  constexpr std::size_t most_parts = 64;
  const walked_space space = space_finder(network, group).found;
  std::vector<walked_box> todo = {walked_box::whole(space.dims)};
  std::vector<tile_program> made;
  while (!todo.empty()) {
    const walked_box box = todo.back();
    todo.pop_back();
    if (todo.size() + made.size() > most_parts) refuse_group("it concatenates too many parts");
    const expression_maker expressions(network, group, space, box);
    if (!expressions.cut()) {
      made.push_back(program_of_tiles(expressions, table).take());
      continue;
    }
    const auto [first, second] = expressions.cut().parts(box);
    todo.push_back(second);
    todo.push_back(first);
  }
  return made;
}

}  // namespace
}  // namespace collage::inline v0::detail::host
