// Linear maps as straight-line programs: additions and scalings in an order in which they can be computed.
#pragma once

#include <collage/bilinear/rational.hpp>
#include <collage/list_view.hpp>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace collage::inline v0::bilinear {

/// Computes `alpha * value[a] + beta * value[b]`. `beta` is 0 where value a alone is scaled; `b` then is `a`.
struct instruction {
  std::uint16_t a = 0;
  std::uint16_t b = 0;
  rational alpha;
  rational beta;
};

/// Operations of a linear map on each element of a tile. Multiplications by 1 and -1 are free: they are part of an addition
/// or of a copy.
struct operation_count {
  std::size_t additions = 0;
  std::size_t scalings = 0;

  constexpr std::size_t total() const { return additions + scalings; }
  friend constexpr bool operator==(const operation_count&, const operation_count&) = default;
};

/// A straight-line program. Values 0 to inputs - 1 are its inputs, and instruction k computes value inputs + k.
struct program_view {
  std::size_t inputs = 0;
  list_view<const instruction> code;
  list_view<const std::uint16_t> output;  ///< the values that are the outputs

  /// How many values there are.
  constexpr std::size_t values() const { return inputs + code.size(); }
  constexpr operation_count count() const {
    operation_count sum;
    for (const instruction& step : code) {
      sum.additions += step.beta.is_zero() ? 0 : 1;
      sum.scalings += (step.alpha.is_trivial() ? 0 : 1U) + (step.beta.is_trivial() ? 0 : 1U);
    }
    return sum;
  }
};

namespace detail {

/// The instructions of a program in place.
template <std::size_t Inputs, std::size_t Outputs, std::size_t Size>
struct linear_program {
  static_assert(Inputs + Size < 65536, "a linear program numbers its values with 16 bits");

  constexpr linear_program() : code(), output() {}

  instruction code[Size == 0 ? 1 : Size];
  std::uint16_t output[Outputs];

  constexpr program_view view() const { return {Inputs, {code, Size}, {output, Outputs}}; }
};

/// The type that scales a value: its member `scalar` for a tile, else its own.
template <class T>
struct scalar_type {
  using type = T;
};
template <class T>
  requires requires { typename T::scalar; }
struct scalar_type<T> {
  using type = typename T::scalar;
};

template <class T>
constexpr T scaled(const rational& factor, const T& value) {
  if (factor == rational(1)) return value;
  if (factor == rational(-1)) return static_cast<T>(-value);
  return static_cast<T>(factor.as<typename scalar_type<T>::type>() * value);
}

template <class Values>
constexpr auto value_of(const instruction& step, const Values& value) {
  using T = std::remove_cvref_t<decltype(value[0])>;
  const T first = scaled(step.alpha, value[step.a]);
  if (step.beta.is_zero()) return first;
  if (step.beta == rational(1)) return static_cast<T>(first + value[step.b]);
  if (step.beta == rational(-1)) return static_cast<T>(first - value[step.b]);
  return static_cast<T>(first + scaled(step.beta, value[step.b]));
}

}  // namespace detail

/// Computes the outputs of a program from its inputs. `values` has room for all values. All three are anything with an index.
/// Elements are numbers, or tiles: types with +, - and a member type `scalar` that multiplies them.
template <class In, class Out, class Values>
constexpr void run(const program_view& program, const In& in, Out&& out, Values&& values) {
  for (std::size_t i = 0; i < program.inputs; ++i) values[i] = in[i];
  for (std::size_t k = 0; k < program.code.size(); ++k)
    values[program.inputs + k] = detail::value_of(program.code[k], values);
  for (std::size_t o = 0; o < program.output.size(); ++o) out[o] = values[program.output[o]];
}

}  // namespace collage::inline v0::bilinear
