// A group as expressions over the elements of one shape. Each reader of a value states which elements it reads. So movers and
// broadcasts only change the steps through the values that are read.
#pragma once

#include <algorithm>
#include <collage/backends/impl/stacked_access.hpp>
#include <collage/backends/impl/stacked_expression.hpp>
#include <collage/graph/graph.hpp>
#include <collage/op/norm.hpp>
#include <collage/op/order.hpp>
#include <collage/op/reduce.hpp>
#include <collage/ops.hpp>
#include <collage/run/node_group.hpp>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace collage::inline v0::detail::host {
namespace {

/// Part of a row: elements of one tensor, or a number.
struct walked_part {
  walked_box box{};
  bool is_number = false;
  float number = 0;
  walked_leaf leaf{};
};

struct group_output {
  std::uint32_t expression = 0;
  bool is_numbers = false;  ///< one for each row
  walked_leaf to{};
};

/// The shape that a group's kernel walks over, and the dimensions that form a row.
struct walked_space {
  shape dims{};
  std::uint32_t rows = 0;  ///< a bit for each dimension of a row; no bit if no operator works on rows

  bool is_row(std::size_t dimension) const { return (rows >> dimension & 1U) != 0; }
};

class group_reader {
 public:
  group_reader(const graph& network, const node_group& group)
      : network_(network), view_(network.view()), group_(group) {
    if (group.outputs.empty()) refuse_group("no value of the group is read outside it");
  }

 protected:
  template <class Kind>
  bool is(std::uint32_t node, const Kind&) const {
    return view_.kind_id_of(node) == kind_id<Kind>;
  }
  template <class Kind>
  typename Kind::attributes attributes(std::uint32_t node, const Kind&) const {
    return from_words<typename Kind::attributes>(view_.words_of(node));
  }
  const shape& dims_of(std::uint32_t value) const { return network_.type_of(value).dims; }
  bool is_boolean(std::uint32_t value) const { return network_.type_of(value).type == dtype::boolean; }
  bool is_reduction(std::uint32_t n) const {
    return is(n, ops::reduce_sum) || is(n, ops::reduce_mean) || is(n, ops::reduce_max) || is(n, ops::reduce_min) ||
           is(n, ops::reduce_log_sum_exp);
  }
  /// The dimensions of the rows that an operator works on, a bit for each; 0 for an operator that does not work on
  /// rows.
  std::uint32_t rows_of(std::uint32_t n) const {
    std::uint32_t rows = 0;
    const std::size_t rank = dims_of(view_.inputs_of(n)[0]).size();
    if (is_reduction(n)) {
      for (const std::int64_t axis : attributes(n, ops::reduce_sum).axes) rows |= 1U << axis;
    } else if (is(n, ops::softmax) || is(n, ops::log_softmax)) {
      rows = 1U << attributes(n, ops::softmax).axis;
    } else if (is(n, ops::layer_norm)) {
      const std::int64_t first = attributes(n, ops::layer_norm).axis;
      for (std::size_t i = static_cast<std::size_t>(first); i < rank; ++i) rows |= 1U << i;
    }
    return rows;
  }

  const graph& network_;
  graph_view view_;
  const node_group& group_;
};

/// Finds the walked shape. All operators on rows must work on the same rows.
class space_finder : group_reader {
 public:
  space_finder(const graph& network, const node_group& group) : group_reader(network, group) {
    for (const std::uint32_t n : group.nodes) {
      const std::uint32_t rows = rows_of(n);
      if (rows == 0) continue;
      const shape& x = dims_of(view_.inputs_of(n)[0]);
      if (found.rows != 0 && !(found.rows == rows && x == found.dims))
        refuse_group("its operators reduce rows of different shapes");
      found = {x, rows};
    }
    if (found.rows == 0) found.dims = dims_of(group.outputs[0]);
  }
  walked_space found;
};

class expression_maker : group_reader {
 public:
  /// Makes the expressions for the elements of a box. If `cut` is set, they mean nothing, and the box must be cut.
  expression_maker(const graph& network, const node_group& group, const walked_space& space, const walked_box& box)
      : group_reader(network, group), space_(space), box_(box), movers_(network) {
    for (std::uint32_t i = 0; i < group.outputs.size(); ++i) outputs_.push_back(output(i));
  }

  const walked_cut& cut() const { return cut_; }
  const walked_space& space() const { return space_; }
  const walked_box& box() const { return box_; }
  const std::vector<expression_node>& expressions() const { return list_.nodes(); }
  const std::vector<walked_leaf>& leaves() const { return leaves_; }
  const std::vector<std::vector<walked_part>>& pieces() const { return pieces_; }
  const std::vector<group_output>& outputs() const { return outputs_; }
  const std::vector<std::vector<float>>& tables() const { return tables_; }
  std::uint32_t arguments() const { return static_cast<std::uint32_t>(group_.arguments.size()); }

 private:
  static constexpr std::size_t most_parts = 64;

  group_output output(std::uint32_t index) {
    const std::uint32_t value = group_.outputs[index];
    const shape& dims = dims_of(value);
    const element_access at = whole(dims);
    group_output made{.to = leaf_of(index, network_.type_of(value), at, space_.dims.size())};
    if (dims != space_.dims) {
      bool fits = space_.rows != 0 && (dims.size() == space_.dims.size() || dims.size() == kept().size());
      for (std::size_t i = 0; fits && i < dims.size(); ++i) {
        const std::size_t d = dims.size() == space_.dims.size() ? i : kept()[i];
        fits = dims[i] == (space_.is_row(d) ? 1 : space_.dims[d]);
      }
      if (!fits) refuse_group("its outputs have different shapes");
      made.is_numbers = true;
    }
    made.expression = read(value, at);
    return made;
  }

  /// The dimensions that belong to no row.
  std::vector<std::size_t> kept() const {
    std::vector<std::size_t> list;
    for (std::size_t i = 0; i < space_.dims.size(); ++i)
      if (!space_.is_row(i)) list.push_back(i);
    return list;
  }
  /// The access to a whole value. The value has all walked dimensions, some perhaps of extent 1, or only the dimensions that
  /// belong to no row.
  element_access whole(const shape& dims) const {
    element_access a;
    const std::vector<std::size_t> outer = kept();
    const bool has_all = dims.size() == space_.dims.size();
    for (std::size_t i = 0; i < dims.size(); ++i) {
      const std::size_t d = has_all || i >= outer.size() ? i : outer[i];
      a.push_back(0, dims[i] == 1 ? 0 : 1, static_cast<std::int64_t>(d));
    }
    return a;
  }

  std::uint32_t read(std::uint32_t value, const element_access& at) {
    std::vector<std::int64_t> key = {static_cast<std::int64_t>(value)};
    for (const shape& s : {at.offset, at.step, at.from}) key.insert(key.end(), s.begin(), s.end());
    const auto found = known_.find(key);
    if (found != known_.end()) return found->second;
    const std::int32_t producer = producer_of(value);
    const std::uint32_t made =
        producer >= 0 ? compute(static_cast<std::uint32_t>(producer), value, at) : argument(value, at);
    return known_[std::move(key)] = made;
  }
  /// The node of this group that computes a value, or -1.
  std::int32_t producer_of(std::uint32_t value) const {
    const std::int32_t producer = network_.at(value).producer;
    return producer >= 0 && group_.contains(static_cast<std::uint32_t>(producer)) ? producer : -1;
  }

  bool is_number(std::uint32_t value) const { return network_.at(value).has_scalar; }
  double number_of(std::uint32_t value) const {
    const double number = network_.at(value).scalar;
    return is_boolean(value) ? (number != 0 ? 1.0 : 0.0) : number;
  }
  walked_leaf leaf(std::uint32_t value, const element_access& at) const {
    const auto index = std::ranges::find(group_.arguments, value) - group_.arguments.begin();
    return leaf_of(static_cast<std::uint32_t>(index), network_.type_of(value), at, space_.dims.size());
  }
  std::uint32_t argument(std::uint32_t value, const element_access& at) {
    return is_number(value) ? list_.number(number_of(value)) : elements(leaf(value, at));
  }
  std::uint32_t elements(const walked_leaf& leaf) {
    const auto same = std::ranges::find(leaves_, leaf);
    const auto index = static_cast<std::uint32_t>(same - leaves_.begin());
    if (same == leaves_.end()) leaves_.push_back(leaf);
    return list_.leaf(index);
  }

  std::uint32_t compute(std::uint32_t n, std::uint32_t value, const element_access& at) {
    if (network_.node(n).kind->has_body) return body(n, at);
    if (movers_.contain(n)) return moved(n, value, at);
    if (is(n, ops::trilu)) return triangle(n, at);
    if (rows_of(n) != 0) {
      check_rows(n, at);
      return row_operator(n, at);
    }
    refuse_group(std::string("it does not compute the operator ") + network_.node(n).kind->name);
  }

  // Operators that move elements ------------------------------------------------------------------------------------------

  std::uint32_t moved(std::uint32_t n, std::uint32_t value, const element_access& at) {
    const moved_access from = movers_.through(n, at, box_);
    if (from.cut)
      return space_.rows == 0 || !space_.is_row(static_cast<std::size_t>(from.cut.dimension)) ? cut_at(from.cut)
                                                                                              : side_by_side(value, at);
    return from.is_zero ? list_.number(0) : read(from.value, from.at);
  }
  std::uint32_t cut_at(const walked_cut& cut) {
    cut_ = cut;
    return list_.number(0);
  }

  /// A row of parts from different sources: the parts are copied side by side.
  std::uint32_t side_by_side(std::uint32_t value, const element_access& at) {
    std::vector<walked_box> todo = {box_};
    std::vector<walked_part> parts;
    while (!todo.empty()) {
      walked_part part{.box = todo.back()};
      todo.pop_back();
      if (todo.size() + parts.size() > most_parts) refuse_group("its rows consist of too many parts");
      const walked_cut cut = source_of(value, at, part);
      if (!cut) {
        parts.push_back(part);
      } else if (!space_.is_row(static_cast<std::size_t>(cut.dimension))) {
        return cut_at(cut);
      } else {
        const auto [first, second] = cut.parts(part.box);
        todo.push_back(second);
        todo.push_back(first);
      }
    }
    pieces_.push_back(std::move(parts));
    return list_.pieces(static_cast<std::uint32_t>(pieces_.size() - 1));
  }
  walked_cut source_of(std::uint32_t value, element_access at, walked_part& part) const {
    std::int32_t n = 0;
    for (; (n = producer_of(value)) >= 0;) {
      if (!movers_.contain(static_cast<std::uint32_t>(n)))
        refuse_group("a concatenation of rows reads values that the group computes");
      moved_access from = movers_.through(static_cast<std::uint32_t>(n), at, part.box);
      if (from.cut) return from.cut;
      part.is_number = from.is_zero;
      if (from.is_zero) return {};
      value = from.value;
      at = std::move(from.at);
    }
    part.is_number = is_number(value);
    if (part.is_number) part.number = static_cast<float>(number_of(value));
    else part.leaf = leaf(value, at);
    return {};
  }

  /// A table of 0 or 1 for each diagonal says which elements a triangle keeps.
  std::uint32_t triangle(std::uint32_t n, const element_access& at) {
    const ops::trilu_attributes a = attributes(n, ops::trilu);
    const shape& dims = dims_of(view_.output_of(n));
    const std::size_t column = dims.size() - 1, row = column - 1;
    std::vector<float> table;
    for (std::int64_t d = 1 - dims[row]; d < dims[column]; ++d)
      table.push_back((a.upper ? d >= a.k : d <= a.k) ? 1.0F : 0.0F);
    walked_leaf kept{.offset = at.offset[column] - at.offset[row] + dims[row] - 1};
    kept.argument = static_cast<std::uint32_t>(group_.arguments.size() + tables_.size());
    kept.steps = shape::filled(space_.dims.size(), 0);
    if (at.step[column] != 0) kept.steps[static_cast<std::size_t>(at.from[column])] += at.step[column];
    if (at.step[row] != 0) kept.steps[static_cast<std::size_t>(at.from[row])] -= at.step[row];
    tables_.push_back(std::move(table));
    const std::uint32_t condition = elements(kept);
    return list_.code(opcode::select, condition, read(view_.inputs_of(n)[0], at), list_.number(0));
  }

  // Operators on rows -----------------------------------------------------------------------------------------------------

  /// The result of an operator on rows can be read only in the order in which the rows are walked.
  void check_rows(std::uint32_t n, const element_access& at) const {
    const shape& y = dims_of(view_.output_of(n));
    const element_access wanted = whole(y);
    bool same = true;
    for (std::size_t i = 0; i < y.size(); ++i)
      same = same && (y[i] == 1 || (at.offset[i] == 0 && at.step[i] == 1 && at.from[i] == wanted.from[i]));
    if (!same) refuse_group("a result of its rows is read in another order or at other rows");
  }

  std::uint32_t row_operator(std::uint32_t n, const element_access& at) {
    const list_view<const std::uint32_t> in = view_.inputs_of(n);
    const std::uint32_t x = read(in[0], whole(space_.dims));
    if (is(n, ops::reduce_sum)) return fold(row_fold::sum, x);
    if (is(n, ops::reduce_mean)) return fold(row_fold::sum, x, fold_answer::mean);
    if (is(n, ops::reduce_max)) return fold(row_fold::largest, x);
    if (is(n, ops::reduce_min)) return fold(row_fold::smallest, x);
    if (is(n, ops::layer_norm)) {
      const std::uint32_t distance = list_.code(opcode::subtract, x, list_.fold(row_fold::sum, x, fold_answer::mean));
      // The mean is rounded. Its error, the mean of the distances, matters where it is large beside the distances.
      const std::uint32_t off = list_.fold(row_fold::sum, distance, fold_answer::mean);
      const std::uint32_t inverse = list_.inverse_deviation(distance, off, attributes(n, ops::layer_norm).epsilon);
      std::uint32_t y = list_.code(opcode::multiply, list_.code(opcode::subtract, distance, off), inverse);
      y = list_.code(opcode::multiply, y, read(in[1], broadcast_access(at, dims_of(in[1]))));
      return in.size() == 2 ? y : list_.code(opcode::add, y, read(in[2], broadcast_access(at, dims_of(in[2]))));
    }
    const std::uint32_t largest = fold(row_fold::largest, x);
    if (is(n, ops::reduce_log_sum_exp)) {
      // The largest is infinite if all elements are -infinity or one is infinity. No distance to infinity is a number, so 0
      // takes the place of the largest.
      const std::uint32_t huge = list_.number(__builtin_huge_val());
      const std::uint32_t is_far = list_.code(opcode::equal, list_.code(opcode::absolute, largest), huge);
      const std::uint32_t middle = list_.code(opcode::select, is_far, list_.number(0), largest);
      const std::uint32_t sum = fold(row_fold::sum, list_.extra(tile_extra::distance_exponential, x, middle));
      return list_.code(opcode::add, list_.code(opcode::logarithm, sum), middle);
    }
    const std::uint32_t power = list_.extra(tile_extra::distance_exponential, x, largest);
    const std::uint32_t sum = fold(row_fold::sum, power);
    if (is(n, ops::softmax))
      return list_.code(opcode::multiply, power, list_.code(opcode::divide, list_.number(1), sum));
    return list_.code(opcode::subtract, list_.code(opcode::subtract, x, largest), list_.code(opcode::logarithm, sum));
  }
  /// Folds a row; a row of one element folds to this element.
  std::uint32_t fold(row_fold how, std::uint32_t x, fold_answer answer = fold_answer::all) {
    return elements_of_row() == 1 ? x : list_.fold(how, x, answer);
  }
  std::int64_t elements_of_row() const {
    std::int64_t count = 1;
    for (std::size_t i = 0; i < space_.dims.size(); ++i) count *= space_.is_row(i) ? space_.dims[i] : 1;
    return count;
  }

  // Elementwise operators -------------------------------------------------------------------------------------------------

  std::uint32_t body(std::uint32_t n, const element_access& at) {
    const list_view<const std::uint32_t> in = view_.inputs_of(n);
    const auto operand = [&](std::size_t i) { return read(in[i], broadcast_access(at, dims_of(in[i]))); };
    if (is(n, ops::sigmoid)) return list_.extra(tile_extra::sigmoid, operand(0));
    const std::uint32_t made = list_.body(*network_.node(n).kind->body, view_.words_of(n), operand);
    // The body of a cast to booleans returns the number itself.
    const bool becomes_boolean =
        is_boolean(view_.output_of(n)) && !std::ranges::all_of(in, [&](std::uint32_t v) { return is_boolean(v); });
    return becomes_boolean ? list_.truth(made) : made;
  }

  walked_space space_;
  walked_box box_;
  movers movers_;
  walked_cut cut_;
  expression_list list_;
  std::vector<walked_leaf> leaves_;
  std::vector<std::vector<walked_part>> pieces_;
  std::vector<group_output> outputs_;
  std::vector<std::vector<float>> tables_;
  std::map<std::vector<std::int64_t>, std::uint32_t> known_;  // by value and access
};

}  // namespace
}  // namespace collage::inline v0::detail::host
