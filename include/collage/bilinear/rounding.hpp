// How rounding errors grow in a bilinear algorithm: a bound for every input.
//
// Every value of a program is a sum of inputs times coefficients. A term of it is rounded once by each operation on its way.
// So a computed output is the exact sum with each term multiplied by at most `depth` factors 1 + d, |d| <= u. Its error is at
// most ((1 + u)^depth - 1) times the sum of the terms' magnitudes, and `growth` bounds that sum. Overflow and underflow are not
// considered. The analysis is that of these papers:
//
// - Bini and Lotti: Stability of fast algorithms for matrix multiplication, Numerische Mathematik 36, 1980
// - Ballard, Benson, Druinsky, Lipshitz and Schwartz: Improving the numerical stability of fast matrix multiplication, SIAM J.
//   Matrix Analysis and Applications 37, 2016
// - for Toom-Cook, Barabasz, Anderson, Soodhalter and Gregg: Error analysis and improving the accuracy of Winograd convolution
//   for deep neural networks, ACM Transactions on Mathematical Software 46, 2020
//
// Here it follows the programs instead of the matrices, so it also holds for shared subexpressions.
#pragma once

#include <collage/bilinear/linear_program.hpp>
#include <cstddef>
#include <cstdint>

namespace collage::inline v0::bilinear {

/// A bound on the error of an algorithm.
struct error_growth {
  /// The largest output if all inputs are 1 and no coefficient is negative: the largest row of |W| (|U| 1 * |V| 1). It is 12
  /// for Strassen's scheme, 18 for Winograd's, and K for the definition of a matrix product.
  double growth = 0;
  /// The most roundings on the way from an input to an output.
  std::size_t depth = 0;
  /// `growth` divided by that of the definition.
  double amplification = 0;

  /// The largest error of an output, divided by the largest magnitudes of a left and of a right element. `unit_roundoff` is
  /// 2^-24 for float. Each product may itself be a sum of `inner` products, as for blocks of matrices and for channels.
  /// Infinite where the bound says nothing, because there are as many roundings as the precision has steps.
  constexpr double bound(double unit_roundoff, std::size_t inner = 1) const {
    const double roundings = static_cast<double>(depth + inner - 1) * unit_roundoff;
    if (roundings >= 1) return __builtin_huge_val();
    return growth * static_cast<double>(inner) * roundings / (1 - roundings);
  }
};

namespace detail {

/// The roundings of a product with a coefficient: none for powers of two. A coefficient of more than eight bits counts as rounded
/// itself, which is right for bfloat16 and careful for wider types.
constexpr std::size_t roundings_of(const rational& factor) {
  std::int64_t numerator = factor.magnitude().numerator(), denominator = factor.denominator();
  if (numerator == 0) return 0;
  while (numerator % 2 == 0) numerator /= 2;
  while (denominator != 0 && denominator % 2 == 0) denominator /= 2;
  if (denominator != 1 || numerator > 255) return 2;
  return numerator == 1 ? 0 : 1;
}

struct rounded_value {
  double growth = 0;
  std::size_t depth = 0;
};

/// Computes what `run` computes, for growth and depth.
constexpr void follow(const program_view& program, const rounded_value* in, rounded_value* out, rounded_value* value) {
  for (std::size_t i = 0; i < program.inputs; ++i) value[i] = in[i];
  for (std::size_t k = 0; k < program.code.size(); ++k) {
    const instruction& step = program.code[k];
    rounded_value sum = {step.alpha.magnitude().as<double>() * value[step.a].growth,
                         value[step.a].depth + roundings_of(step.alpha)};
    if (!step.beta.is_zero()) {
      sum.growth += step.beta.magnitude().as<double>() * value[step.b].growth;
      const std::size_t other = value[step.b].depth + roundings_of(step.beta);
      sum.depth = (other > sum.depth ? other : sum.depth) + 1;
    }
    value[program.inputs + k] = sum;
  }
  for (std::size_t o = 0; o < program.output.size(); ++o) out[o] = value[program.output[o]];
}

template <std::size_t Rank, std::size_t LeftValues, std::size_t RightValues, std::size_t OutputValues>
constexpr error_growth growth_of(const program_view& left, const program_view& right, const program_view& output,
                                 std::size_t terms) {
  constexpr std::size_t most_left = LeftValues > RightValues ? LeftValues : RightValues;
  constexpr std::size_t most = most_left > OutputValues ? most_left : OutputValues;
  rounded_value in[most] = {};
  for (rounded_value& input : in) input.growth = 1;
  rounded_value value[most] = {}, out[most] = {}, a[Rank] = {}, b[Rank] = {};
  follow(left, in, a, value);
  follow(right, in, b, value);
  for (std::size_t p = 0; p < Rank; ++p) a[p] = {a[p].growth * b[p].growth, a[p].depth + b[p].depth + 1};
  follow(output, a, out, value);
  error_growth largest;
  for (std::size_t o = 0; o < output.output.size(); ++o) {
    largest.growth = out[o].growth > largest.growth ? out[o].growth : largest.growth;
    largest.depth = out[o].depth > largest.depth ? out[o].depth : largest.depth;
  }
  largest.amplification = largest.growth / static_cast<double>(terms);
  return largest;
}

}  // namespace detail
}  // namespace collage::inline v0::bilinear
