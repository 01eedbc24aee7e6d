// The work of a kernel as expressions. Each is a function of other expressions, of elements or of a number. Equal
// expressions are stored once.
#pragma once

#include <algorithm>
#include <cmath>
#include <collage/backends/impl/element_operators.hpp>
#include <collage/backends/impl/stacked_table.hpp>
#include <collage/error.hpp>
#include <collage/op/body.hpp>
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

/// One expression: elements of a tensor, a number, or a function of expressions with smaller indices.
struct expression_node {
  enum class what : std::uint8_t {
    leaf,
    pieces,  ///< elements of several tensors, side by side
    number,
    code,
    extra,
    fold
  };
  what is = what::number;
  opcode code = opcode::constant;
  tile_extra extra = tile_extra::copy;
  row_fold how = row_fold::sum;
  fold_answer answer = fold_answer::all;
  std::uint32_t operands = 0;
  std::uint32_t operand[3] = {};
  std::uint32_t leaf = 0;  ///< the leaf or the pieces; for a fold its partner, another fold of the same operand
  float number = 0;
  double epsilon = 0;
};

class expression_list {
 public:
  static constexpr std::size_t most_expressions = 512;

  const std::vector<expression_node>& nodes() const { return nodes_; }

  std::uint32_t leaf(std::uint32_t index) { return add({.is = what::leaf, .leaf = index}); }
  std::uint32_t pieces(std::uint32_t index) { return add({.is = what::pieces, .leaf = index}); }
  std::uint32_t number(double value) {
    expression_node made{.is = what::number};
    made.number = static_cast<float>(value);
    return add(made);
  }
  std::uint32_t fold(row_fold how, std::uint32_t x, fold_answer answer = fold_answer::all) {
    expression_node made{.is = what::fold, .how = how, .answer = answer, .operands = 1};
    made.operand[0] = x;
    return add(made);
  }
  /// `off` is the mean of the same operand.
  std::uint32_t inverse_deviation(std::uint32_t x, std::uint32_t off, double epsilon) {
    expression_node made{.is = what::fold,
                         .how = row_fold::sum_of_squares,
                         .answer = fold_answer::inverse_deviation,
                         .operands = 1,
                         .leaf = off,
                         .epsilon = epsilon};
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
      // A division takes ten times as long as a product. The inverse must be exact: floor and round see a last digit.
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

  /// A traced body. `operand(i)` is the expression of its operand i, and `words` are its encoded attributes.
  template <class Words, class Operand>
  std::uint32_t body(const traced_body& recorded, const Words& words, const Operand& operand) {
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

  /// 1 where the expression is not 0, NaN included; else 0.
  std::uint32_t truth(std::uint32_t e) {
    const expression_node& n = nodes_[e];
    const bool is_one = n.is == what::code && n.code >= opcode::less && n.code <= opcode::logical_or;
    return is_one ? e : code(opcode::logical_not, code(opcode::logical_not, e));
  }

 private:
  using what = expression_node::what;

  std::uint32_t add(const expression_node& made) {
    std::vector<std::int64_t> key = {static_cast<std::int64_t>(made.is),
                                     static_cast<std::int64_t>(made.code),
                                     static_cast<std::int64_t>(made.extra),
                                     static_cast<std::int64_t>(made.how),
                                     static_cast<std::int64_t>(made.answer),
                                     made.leaf,
                                     __builtin_bit_cast(std::int32_t, made.number),
                                     __builtin_bit_cast(std::int64_t, made.epsilon)};
    key.insert(key.end(), made.operand, made.operand + made.operands);
    const auto [at, is_new] = same_.try_emplace(std::move(key), static_cast<std::uint32_t>(nodes_.size()));
    if (is_new) nodes_.push_back(made);
    if (nodes_.size() > most_expressions) refuse_group("its values would be computed again too often");
    return at->second;
  }
  bool is_number(std::uint32_t e) const { return nodes_[e].is == what::number; }
  bool is_number(std::uint32_t e, float value) const { return is_number(e) && !(nodes_[e].number != value); }

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

  std::vector<expression_node> nodes_;
  std::map<std::vector<std::int64_t>, std::uint32_t> same_;
};

}  // namespace
}  // namespace collage::inline v0::detail::host
