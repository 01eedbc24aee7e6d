// A group as expressions over the elements of one shape: who reads a value says at which of its elements, so that movers
// and broadcasts leave nothing but other steps through what is read.
#pragma once

#include <algorithm>
#include <cmath>
#include <collage/backends/impl/element_operators.hpp>
#include <collage/backends/impl/stacked_table.hpp>
#include <collage/error.hpp>
#include <collage/graph/graph.hpp>
#include <collage/op/movement.hpp>
#include <collage/op/norm.hpp>
#include <collage/op/reduce.hpp>
#include <collage/op/slice.hpp>
#include <collage/ops.hpp>
#include <collage/run/node_group.hpp>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace collage::inline v0::detail::host {
namespace {

[[noreturn]] inline void refuse_group(const std::string& why) { throw error(error_kind::unsupported, why, "stacked"); }

/// The element of a value that belongs to an element of the walked shape: dimension i of the value is at offset[i] +
/// step[i] * (the walked index in dimension from[i]).
struct element_access {
  static constexpr std::int64_t nowhere = -1;
  shape offset{}, step{}, from{};

  void push_back(std::int64_t o, std::int64_t s, std::int64_t f) {
    const bool fixed = s == 0 || f == nowhere;
    offset.push_back(o);
    step.push_back(fixed ? 0 : s);
    from.push_back(fixed ? nowhere : f);
  }
  std::size_t size() const { return offset.size(); }
};

/// One expression: a tensor, a number, or what is computed of others, which have smaller indices.
struct expression_node {
  enum class what : std::uint8_t { leaf, number, code, extra, fold };
  what is = what::number;
  opcode code = opcode::constant;
  tile_extra extra = tile_extra::copy;
  row_fold how = row_fold::sum;
  bool is_mean = false;
  std::uint32_t operands = 0;
  std::uint32_t operand[3] = {};
  std::uint32_t leaf = 0;
  float number = 0;
};

/// Steps by the walked dimensions through an argument.
struct walked_leaf {
  std::uint32_t argument = 0;
  std::int64_t offset = 0;
  shape steps{};
};

struct group_output {
  std::uint32_t expression = 0;
  bool is_numbers = false;  ///< one for each row
};

class expression_maker {
 public:
  static constexpr std::size_t most_expressions = 512;

  expression_maker(const graph& network, const node_group& group)
      : network_(network), view_(network.view()), group_(group) {
    for (const std::uint32_t n : group.nodes) take_rows_of(n);
    if (group.outputs.empty()) refuse_group("a group that nobody reads has nothing to compute");
    if (!has_rows_) dims_ = network.type_of(group.outputs[0]).dims;
    for (const std::uint32_t v : group.outputs) outputs_.push_back(output(v));
  }

  const shape& dims() const { return dims_; }
  bool has_rows() const { return has_rows_; }
  std::size_t first_of_row() const { return first_; }  ///< the first dimension of a row
  const std::vector<expression_node>& expressions() const { return nodes_; }
  const std::vector<walked_leaf>& leaves() const { return leaves_; }
  const std::vector<group_output>& outputs() const { return outputs_; }

 private:
  using what = expression_node::what;

  template <class Kind>
  bool is(std::uint32_t node, const Kind&) const {
    return view_.kind_id_of(node) == kind_id<Kind>;
  }
  template <class Kind>
  typename Kind::attributes attributes(std::uint32_t node, const Kind&) const {
    return from_words<typename Kind::attributes>(view_.words_of(node));
  }
  const shape& dims_of(std::uint32_t value) const { return network_.type_of(value).dims; }
  bool is_reduction(std::uint32_t n) const {
    return is(n, ops::reduce_sum) || is(n, ops::reduce_mean) || is(n, ops::reduce_max) || is(n, ops::reduce_min);
  }

  /// All operators on rows must work on the same ones.
  void take_rows_of(std::uint32_t n) {
    const shape& x = dims_of(view_.inputs_of(n)[0]);
    std::size_t first = 0;
    if (is_reduction(n)) first = x.size() - attributes(n, ops::reduce_sum).axes.size();
    else if (is(n, ops::softmax) || is(n, ops::log_softmax)) first = x.size() - 1;
    else if (is(n, ops::layer_norm)) first = static_cast<std::size_t>(attributes(n, ops::layer_norm).axis);
    else return;
    if (has_rows_ && !(first == first_ && x == dims_)) refuse_group("its operators work on different rows");
    has_rows_ = true;
    dims_ = x;
    first_ = first;
  }

  group_output output(std::uint32_t value) {
    const shape& dims = dims_of(value);
    if (dims == dims_) return {read(value, whole(dims)), false};
    bool is_row = has_rows_ && (dims.size() == dims_.size() || dims.size() == first_);
    for (std::size_t i = 0; is_row && i < dims.size(); ++i) is_row = dims[i] == (i < first_ ? dims_[i] : 1);
    if (!is_row) refuse_group("its outputs have different shapes");
    return {read(value, whole(dims)), true};
  }

  /// Of a value whose dimensions are the first of the walked ones, or 1.
  element_access whole(const shape& dims) const {
    element_access a;
    for (std::size_t i = 0; i < dims.size(); ++i) a.push_back(0, dims[i] == 1 ? 0 : 1, static_cast<std::int64_t>(i));
    return a;
  }
  /// Of an operand that broadcasts to what is accessed.
  element_access broadcast(const element_access& to, const shape& operand) const {
    element_access a;
    const std::size_t more = to.size() - operand.size();
    for (std::size_t i = 0; i < operand.size(); ++i)
      if (operand[i] == 1) a.push_back(0, 0, element_access::nowhere);
      else a.push_back(to.offset[i + more], to.step[i + more], to.from[i + more]);
    return a;
  }

  std::uint32_t read(std::uint32_t value, const element_access& at) {
    std::vector<std::int64_t> key = {static_cast<std::int64_t>(value)};
    for (const shape& s : {at.offset, at.step, at.from}) key.insert(key.end(), s.begin(), s.end());
    const auto found = known_.find(key);
    if (found != known_.end()) return found->second;
    const std::int32_t producer = network_.at(value).producer;
    const std::uint32_t made = producer >= 0 && group_.contains(static_cast<std::uint32_t>(producer))
                                   ? compute(static_cast<std::uint32_t>(producer), at)
                                   : argument(value, at);
    return known_[std::move(key)] = made;
  }

  std::uint32_t argument(std::uint32_t value, const element_access& at) {
    const value_record& record = network_.at(value);
    if (record.has_scalar) return number(record.scalar);
    walked_leaf leaf;
    leaf.argument = static_cast<std::uint32_t>(std::ranges::find(group_.arguments, value) - group_.arguments.begin());
    leaf.steps = shape::filled(dims_.size(), 0);
    std::int64_t stride = 1;
    for (std::size_t i = at.size(); i-- > 0; stride *= record.type.dims[i]) {
      leaf.offset += at.offset[i] * stride;
      if (at.step[i] != 0) leaf.steps[static_cast<std::size_t>(at.from[i])] += at.step[i] * stride;
    }
    expression_node made{.is = what::leaf};
    const auto same = std::ranges::find_if(leaves_, [&](const walked_leaf& l) {
      return l.argument == leaf.argument && l.offset == leaf.offset && l.steps == leaf.steps;
    });
    made.leaf = static_cast<std::uint32_t>(same - leaves_.begin());
    if (same == leaves_.end()) leaves_.push_back(leaf);
    return add(made);
  }

  std::uint32_t compute(std::uint32_t n, const element_access& at) {
    const list_view<const std::uint32_t> in = view_.inputs_of(n);
    if (network_.node(n).kind->has_body) return body(n, at);
    if (is(n, ops::transpose)) {
      const shape permutation = attributes(n, ops::transpose).permutation;
      element_access of_input{at};
      for (std::size_t i = 0; i < at.size(); ++i) {
        const auto to = static_cast<std::size_t>(permutation[i]);
        of_input.offset[to] = at.offset[i];
        of_input.step[to] = at.step[i];
        of_input.from[to] = at.from[i];
      }
      return read(in[0], of_input);
    }
    if (is(n, ops::slice)) {
      const ops::slice_attributes a = attributes(n, ops::slice);
      element_access of_input;
      for (std::size_t i = 0; i < at.size(); ++i)
        of_input.push_back(a.starts[i] + a.steps[i] * at.offset[i], a.steps[i] * at.step[i], at.from[i]);
      return read(in[0], of_input);
    }
    if (is(n, ops::expand)) return read(in[0], broadcast(at, dims_of(in[0])));
    if (is_reduction(n) || is(n, ops::softmax) || is(n, ops::log_softmax) || is(n, ops::layer_norm)) {
      check_rows(n, at);
      return row_operator(n, at);
    }
    refuse_group(std::string("it does not compute the operator ") + network_.node(n).kind->name);
  }

  /// An operator on rows can be read only where they are walked over.
  void check_rows(std::uint32_t n, const element_access& at) const {
    const shape& y = dims_of(view_.output_of(n));
    const element_access wanted = whole(y);
    bool same = true;
    for (std::size_t i = 0; i < y.size(); ++i)
      same = same && (y[i] == 1 || (at.offset[i] == 0 && at.step[i] == 1 && at.from[i] == wanted.from[i]));
    if (!same) refuse_group("what its rows give is read in another order, or at other rows");
  }

  std::uint32_t row_operator(std::uint32_t n, const element_access& at) {
    const list_view<const std::uint32_t> in = view_.inputs_of(n);
    const std::uint32_t x = read(in[0], whole(dims_));
    if (is(n, ops::reduce_sum)) return fold(row_fold::sum, x);
    if (is(n, ops::reduce_mean)) return fold(row_fold::sum, x, true);
    if (is(n, ops::reduce_max)) return fold(row_fold::largest, x);
    if (is(n, ops::reduce_min)) return fold(row_fold::smallest, x);
    if (is(n, ops::layer_norm)) {
      const std::uint32_t distance = code(opcode::subtract, x, fold(row_fold::sum, x, true));
      // The mean is rounded: what it is off by, the mean of the distances, counts where it is large beside them.
      const std::uint32_t off = fold(row_fold::sum, distance, true);
      const std::uint32_t squares = fold(row_fold::sum, code(opcode::multiply, distance, distance), true);
      const std::uint32_t variance =
          code(opcode::maximum, code(opcode::subtract, squares, code(opcode::multiply, off, off)), number(0));
      const std::uint32_t epsilon = number(attributes(n, ops::layer_norm).epsilon);
      const std::uint32_t deviation = code(opcode::square_root, code(opcode::add, variance, epsilon));
      const std::uint32_t inverse = code(opcode::divide, number(1), deviation);
      std::uint32_t y = code(opcode::multiply, code(opcode::subtract, distance, off), inverse);
      y = code(opcode::multiply, y, read(in[1], broadcast(at, dims_of(in[1]))));
      return in.size() == 2 ? y : code(opcode::add, y, read(in[2], broadcast(at, dims_of(in[2]))));
    }
    const std::uint32_t largest = fold(row_fold::largest, x);
    const std::uint32_t power = extra(tile_extra::distance_exponential, x, largest);
    const std::uint32_t sum = fold(row_fold::sum, power);
    if (is(n, ops::softmax)) return code(opcode::multiply, power, code(opcode::divide, number(1), sum));
    return code(opcode::subtract, code(opcode::subtract, x, largest), code(opcode::logarithm, sum));
  }

  std::uint32_t body(std::uint32_t n, const element_access& at) {
    const list_view<const std::uint32_t> in = view_.inputs_of(n);
    const auto operand = [&](std::size_t i) { return read(in[i], broadcast(at, dims_of(in[i]))); };
    if (is(n, ops::sigmoid)) return extra(tile_extra::sigmoid, operand(0));
    const traced_body& recorded = *network_.node(n).kind->body;
    const list_view<const std::uint64_t> words = view_.words_of(n);
    std::vector<std::uint32_t> values;
    for (std::uint32_t i = 0; i < recorded.size; ++i) {
      const instruction& step = recorded.code[i];
      switch (operands_of(step.code)) {
        case 1: values.push_back(code(step.code, values[step.a])); break;
        case 2: values.push_back(code(step.code, values[step.a], values[step.b])); break;
        case 3: values.push_back(code(step.code, values[step.a], values[step.b], values[step.c])); break;
        default:
          values.push_back(step.code == opcode::input       ? operand(step.a)
                           : step.code == opcode::attribute ? number(__builtin_bit_cast(double, words[step.a]))
                                                            : number(step.value));
      }
    }
    return values.back();
  }

  // Single expressions; equal ones are one -----------------------------------------------------------------------------

  std::uint32_t add(const expression_node& made) {
    std::vector<std::int64_t> key = {static_cast<std::int64_t>(made.is),           static_cast<std::int64_t>(made.code),
                                     static_cast<std::int64_t>(made.extra),        static_cast<std::int64_t>(made.how),
                                     static_cast<std::int64_t>(made.is_mean),      made.leaf,
                                     __builtin_bit_cast(std::int32_t, made.number)};
    key.insert(key.end(), made.operand, made.operand + made.operands);
    const auto [at, is_new] = same_.try_emplace(std::move(key), static_cast<std::uint32_t>(nodes_.size()));
    if (is_new) nodes_.push_back(made);
    if (nodes_.size() > most_expressions) refuse_group("its values would be computed too many times over");
    return at->second;
  }
  std::uint32_t number(double value) {
    expression_node made{.is = what::number};
    made.number = static_cast<float>(value);
    return add(made);
  }
  bool is_number(std::uint32_t e) const { return nodes_[e].is == what::number; }
  bool is_number(std::uint32_t e, float value) const { return is_number(e) && !(nodes_[e].number != value); }

  std::uint32_t fold(row_fold how, std::uint32_t x, bool is_mean = false) {
    expression_node made{.is = what::fold, .how = how, .is_mean = is_mean, .operands = 1};
    made.operand[0] = x;
    return add(made);
  }
  std::uint32_t extra(tile_extra which, std::uint32_t a) {
    expression_node made{.is = what::extra, .extra = which, .operands = 1};
    made.operand[0] = a;
    return add(made);
  }
  std::uint32_t extra(tile_extra which, std::uint32_t a, std::uint32_t b) {
    expression_node made{.is = what::extra, .extra = which, .operands = 2};
    made.operand[0] = a;
    made.operand[1] = b;
    return add(made);
  }
  std::uint32_t code(opcode of, std::uint32_t a) { return operation(of, {a}); }
  std::uint32_t code(opcode of, std::uint32_t a, std::uint32_t b) {
    if (of == opcode::divide && is_number(b) && !is_number(a)) {
      // A division takes ten times as long. Only where the inverse is exact: floor and round see a last digit.
      const float by = std::abs(nodes_[b].number);
      int exponent = 0;
      if (by > 0x1p-60F && by < 0x1p60F && std::frexp(by, &exponent) <= 0.5F)
        return code(opcode::multiply, a, number(1.0 / static_cast<double>(nodes_[b].number)));
    }
    if (of == opcode::power && !is_number(a)) {
      if (is_number(b, 1)) return a;
      if (is_number(b, 2)) return code(opcode::multiply, a, a);
      if (is_number(b, 3)) return code(opcode::multiply, code(opcode::multiply, a, a), a);
      if (is_number(b, -1)) return code(opcode::divide, number(1), a);
      if (is_number(b, 0.5F)) return extra(tile_extra::root_of_power, a);
    }
    return operation(of, {a, b});
  }
  std::uint32_t code(opcode of, std::uint32_t a, std::uint32_t b, std::uint32_t c) { return operation(of, {a, b, c}); }

  std::uint32_t operation(opcode of, std::initializer_list<std::uint32_t> operands) {
    expression_node made{.is = what::code, .code = of, .operands = static_cast<std::uint32_t>(operands.size())};
    std::copy(operands.begin(), operands.end(), made.operand);
    if (!std::ranges::all_of(operands, [&](std::uint32_t e) { return is_number(e); })) return add(made);
    block_operand<double> in[3] = {};
    for (std::uint32_t i = 0; i < made.operands; ++i)
      in[i] = {nullptr, static_cast<double>(nodes_[made.operand[i]].number)};
    double y = 0;
    run_instruction<standard_math>(of, 1, &y, in[0], in[1], in[2]);
    return number(y);
  }

  const graph& network_;
  graph_view view_;
  const node_group& group_;
  shape dims_;
  bool has_rows_ = false;
  std::size_t first_ = 0;
  std::vector<expression_node> nodes_;
  std::vector<walked_leaf> leaves_;
  std::vector<group_output> outputs_;
  std::map<std::vector<std::int64_t>, std::uint32_t> known_;  // by value and access
  std::map<std::vector<std::int64_t>, std::uint32_t> same_;
};

}  // namespace
}  // namespace collage::inline v0::detail::host
