// Bodies of elementwise operators, traced once with symbolic values into a flat expression.
//
// A body is a function over any value type: `auto body(auto x) { return x / (1.0 + math::exp(-x)); }`. A call with
// symbols records the operations. The reference, Eigen, SIMD loops and CUDA source are all made from the record.
#pragma once

#include <collage/detail/indices.hpp>
#include <cstddef>
#include <cstdint>

namespace collage::inline v0 {

/// The operation of one instruction of a body. Comparisons and logic give 0 or 1.
enum class opcode : std::uint8_t {
  input,      ///< operand `a` of the operator
  attribute,  ///< word `a` of its encoded attributes, as a double
  constant,   ///< `value`
  add,
  subtract,
  multiply,
  divide,
  minimum,    ///< NaN if either is NaN
  maximum,    ///< NaN if either is NaN
  remainder,  ///< of truncating division, with the dividend's sign; of integers, 0 if the divisor is 0
  power,
  negate,
  absolute,
  exponential,
  logarithm,
  square_root,
  sine,
  cosine,
  tangent,
  arc_sine,
  arc_cosine,
  arc_tangent,
  sine_hyperbolic,
  cosine_hyperbolic,
  tangent_hyperbolic,
  area_sine_hyperbolic,  ///< these three: the inverse functions
  area_cosine_hyperbolic,
  area_tangent_hyperbolic,
  error_function,
  floor,
  ceiling,
  round_to_even,
  less,
  equal,
  logical_not,
  logical_and,
  logical_or,
  bitwise_and,  ///< these six: integers only
  bitwise_or,
  bitwise_xor,
  shift_left,   ///< a count outside [0, bits of the type) shifts everything out
  shift_right,  ///< a signed number keeps its sign
  bitwise_not,
  select,  ///< a != 0 ? b : c
};

/// The number of earlier results that an instruction reads.
constexpr int operands_of(opcode code) {
  switch (code) {
    case opcode::input:
    case opcode::attribute:
    case opcode::constant: return 0;
    case opcode::add:
    case opcode::subtract:
    case opcode::multiply:
    case opcode::divide:
    case opcode::minimum:
    case opcode::maximum:
    case opcode::remainder:
    case opcode::power:
    case opcode::less:
    case opcode::equal:
    case opcode::logical_and:
    case opcode::logical_or:
    case opcode::bitwise_and:
    case opcode::bitwise_or:
    case opcode::bitwise_xor:
    case opcode::shift_left:
    case opcode::shift_right: return 2;
    case opcode::select: return 3;
    default: return 1;
  }
}

/// One instruction. Its operands are indices of earlier instructions.
struct instruction {
  opcode code = opcode::constant;
  std::uint8_t a = 0, b = 0, c = 0;
  double value = 0;
};

/// A traced body. Its last instruction is the result.
struct traced_body {
  static constexpr std::size_t max_size = 48;
  instruction code[max_size] = {};
  std::uint32_t size = 0;
  std::uint32_t inputs = 0;
};

namespace detail {

/// A value during tracing: the instruction that computes it. It exists in constant evaluation only.
struct symbol {
  traced_body* into = nullptr;
  std::uint8_t index = 0;

  constexpr symbol emit(opcode code, std::uint8_t x, std::uint8_t y = 0, std::uint8_t z = 0, double value = 0) const {
    if (into->size < traced_body::max_size) into->code[into->size] = {code, x, y, z, value};  // the check reports it
    return {into, static_cast<std::uint8_t>(into->size++)};
  }
  constexpr symbol literal(double v) const { return emit(opcode::constant, 0, 0, 0, v); }
  constexpr symbol unary(opcode code) const { return emit(code, index); }
  constexpr symbol binary(opcode code, symbol other) const { return emit(code, index, other.index); }

  friend constexpr symbol operator+(symbol x, symbol y) { return x.binary(opcode::add, y); }
  friend constexpr symbol operator-(symbol x, symbol y) { return x.binary(opcode::subtract, y); }
  friend constexpr symbol operator*(symbol x, symbol y) { return x.binary(opcode::multiply, y); }
  friend constexpr symbol operator/(symbol x, symbol y) { return x.binary(opcode::divide, y); }
  friend constexpr symbol operator<(symbol x, symbol y) { return x.binary(opcode::less, y); }
  friend constexpr symbol operator==(symbol x, symbol y) { return x.binary(opcode::equal, y); }
  friend constexpr symbol operator&&(symbol x, symbol y) { return x.binary(opcode::logical_and, y); }
  friend constexpr symbol operator||(symbol x, symbol y) { return x.binary(opcode::logical_or, y); }

  friend constexpr symbol operator+(symbol x, double y) { return x + x.literal(y); }
  friend constexpr symbol operator-(symbol x, double y) { return x - x.literal(y); }
  friend constexpr symbol operator*(symbol x, double y) { return x * x.literal(y); }
  friend constexpr symbol operator/(symbol x, double y) { return x / x.literal(y); }
  friend constexpr symbol operator<(symbol x, double y) { return x < x.literal(y); }
  friend constexpr symbol operator==(symbol x, double y) { return x == x.literal(y); }
  friend constexpr symbol operator+(double x, symbol y) { return y.literal(x) + y; }
  friend constexpr symbol operator-(double x, symbol y) { return y.literal(x) - y; }
  friend constexpr symbol operator*(double x, symbol y) { return y.literal(x) * y; }
  friend constexpr symbol operator/(double x, symbol y) { return y.literal(x) / y; }
  friend constexpr symbol operator<(double x, symbol y) { return y.literal(x) < y; }

  friend constexpr symbol operator-(symbol x) { return x.unary(opcode::negate); }
  friend constexpr symbol operator!(symbol x) { return x.unary(opcode::logical_not); }
};

}  // namespace detail

/// The functions for writing bodies. They are qualified, as in `math::exp(x)`, since `exp` alone is an operator kind.
namespace math {

using detail::symbol;

constexpr symbol abs(symbol x) { return x.unary(opcode::absolute); }
constexpr symbol exp(symbol x) { return x.unary(opcode::exponential); }
constexpr symbol log(symbol x) { return x.unary(opcode::logarithm); }
constexpr symbol sqrt(symbol x) { return x.unary(opcode::square_root); }
constexpr symbol sin(symbol x) { return x.unary(opcode::sine); }
constexpr symbol cos(symbol x) { return x.unary(opcode::cosine); }
constexpr symbol tan(symbol x) { return x.unary(opcode::tangent); }
constexpr symbol asin(symbol x) { return x.unary(opcode::arc_sine); }
constexpr symbol acos(symbol x) { return x.unary(opcode::arc_cosine); }
constexpr symbol atan(symbol x) { return x.unary(opcode::arc_tangent); }
constexpr symbol sinh(symbol x) { return x.unary(opcode::sine_hyperbolic); }
constexpr symbol cosh(symbol x) { return x.unary(opcode::cosine_hyperbolic); }
constexpr symbol tanh(symbol x) { return x.unary(opcode::tangent_hyperbolic); }
constexpr symbol asinh(symbol x) { return x.unary(opcode::area_sine_hyperbolic); }
constexpr symbol acosh(symbol x) { return x.unary(opcode::area_cosine_hyperbolic); }
constexpr symbol atanh(symbol x) { return x.unary(opcode::area_tangent_hyperbolic); }
constexpr symbol erf(symbol x) { return x.unary(opcode::error_function); }
constexpr symbol floor(symbol x) { return x.unary(opcode::floor); }
constexpr symbol ceil(symbol x) { return x.unary(opcode::ceiling); }
constexpr symbol round(symbol x) { return x.unary(opcode::round_to_even); }
constexpr symbol pow(symbol x, symbol y) { return x.binary(opcode::power, y); }
constexpr symbol remainder(symbol x, symbol y) { return x.binary(opcode::remainder, y); }
constexpr symbol min(symbol x, symbol y) { return x.binary(opcode::minimum, y); }
constexpr symbol max(symbol x, symbol y) { return x.binary(opcode::maximum, y); }
constexpr symbol min(symbol x, double y) { return min(x, x.literal(y)); }
constexpr symbol max(symbol x, double y) { return max(x, x.literal(y)); }
constexpr symbol bitwise_and(symbol x, symbol y) { return x.binary(opcode::bitwise_and, y); }
constexpr symbol bitwise_or(symbol x, symbol y) { return x.binary(opcode::bitwise_or, y); }
constexpr symbol bitwise_xor(symbol x, symbol y) { return x.binary(opcode::bitwise_xor, y); }
constexpr symbol bitwise_not(symbol x) { return x.unary(opcode::bitwise_not); }
constexpr symbol shift_left(symbol x, symbol y) { return x.binary(opcode::shift_left, y); }
constexpr symbol shift_right(symbol x, symbol y) { return x.binary(opcode::shift_right, y); }
constexpr symbol select(symbol p, symbol x, symbol y) { return p.emit(opcode::select, p.index, x.index, y.index); }

}  // namespace math

/// Records `Kind::body`, called with one value per operand and then one per word of the encoded attributes. The words
/// that the body reads must be doubles.
template <class Kind, std::size_t Inputs, std::size_t Attributes>
constexpr traced_body trace() {
  traced_body recorded;
  recorded.inputs = Inputs;
  const detail::symbol start{&recorded, 0};
  return [&]<std::size_t... I, std::size_t... A>(detail::indices<I...>, detail::indices<A...>) {
    // A braced list evaluates in order, so inputs come first in the record.
    const detail::symbol arguments[] = {start.emit(opcode::input, static_cast<std::uint8_t>(I))...,
                                        start.emit(opcode::attribute, static_cast<std::uint8_t>(A))...};
    const detail::symbol result = Kind::body(arguments[I]..., arguments[Inputs + A]...);
    // The last instruction must be the result, so a body that returns an argument unchanged gets a copy of it.
    if (result.index + 1U != recorded.size) {
      if (recorded.size < traced_body::max_size) recorded.code[recorded.size] = recorded.code[result.index];
      ++recorded.size;
    }
    return recorded;
  }(detail::make_indices<Inputs>{}, detail::make_indices<Attributes>{});
}

}  // namespace collage::inline v0
