// Evaluates bilinear algorithms on small operands: the reference for kernels, in any arithmetic.
#pragma once

#include <collage/bilinear/algorithm.hpp>
#include <collage/bilinear/linear_program.hpp>
#include <collage/detail/label.hpp>
#include <collage/error.hpp>
#include <cstddef>
#include <type_traits>

namespace collage::inline v0::bilinear {

namespace detail {

template <class S, class List>
constexpr void check_size(const List& list, std::size_t wanted, const char* what) {
  if constexpr (requires { list.size(); }) {
    if (list.size() == wanted) return;
    throw error(error_kind::invalid_argument,
                label(what) + " has " + static_cast<std::size_t>(list.size()) + " elements", S::name,
                label("give it ") + wanted + ", as " + S::problem::text().c_str() + " needs");
  } else if constexpr (std::is_array_v<List>) {
    check_size<S>(list_view<const std::remove_extent_t<List>>(list), wanted, what);
  }
}

struct multiply {
  template <class T>
  constexpr T operator()(const T& a, const T& b) const {
    return static_cast<T>(a * b);
  }
};

}  // namespace detail

/// Computes all outputs of an algorithm's problem. Operands and outputs are anything with an index, row-major as the problem
/// says: arrays, spans, pointers. The element type of `output` is the arithmetic. It is a number, or a tile: a type with
/// +, - and a member type `scalar` that multiplies it. `times` multiplies two tiles.
/// Errors: `invalid_argument` if a list has another size than the problem, or if an integer type meets a fraction.
template <algorithm S, class Left, class Right, class Output, class Times = detail::multiply>
constexpr void apply(const Left& left, const Right& right, Output&& output, Times times = {}) {
  using problem = typename S::problem;
  using element = std::remove_cvref_t<decltype(output[0])>;
  detail::check_size<S>(left, problem::left_size, "the left operand");
  detail::check_size<S>(right, problem::right_size, "the right operand");
  detail::check_size<S>(output, problem::output_size, "the output");

  constexpr std::size_t most = S::left.values() > S::right.values() ? S::left.values() : S::right.values();
  element a[S::rank] = {}, b[S::rank] = {};
  element values[most > S::output.values() ? most : S::output.values()] = {};
  run(S::left, left, a, values);
  run(S::right, right, b, values);
  for (std::size_t p = 0; p < S::rank; ++p) a[p] = times(a[p], b[p]);
  run(S::output, a, output, values);
}

}  // namespace collage::inline v0::bilinear
