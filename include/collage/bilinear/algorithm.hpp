// Bilinear algorithms as types: what a kernel, a table or a test needs to know of one.
#pragma once

#include <collage/bilinear/detail/eliminate.hpp>
#include <collage/bilinear/factors.hpp>
#include <collage/bilinear/linear_program.hpp>
#include <collage/bilinear/rounding.hpp>
#include <concepts>
#include <cstddef>

namespace collage::inline v0::bilinear {

/// Operations of an algorithm on each element of a tile.
struct program_counts {
  std::size_t products = 0;
  operation_count left, right, output;

  constexpr std::size_t additions() const { return left.additions + right.additions + output.additions; }
  constexpr std::size_t scalings() const { return left.scalings + right.scalings + output.scalings; }
};

namespace detail {

struct algorithm_tag {};

/// The operations of a matrix if each row is computed by itself.
template <std::size_t Rows, std::size_t Columns>
constexpr operation_count count_rows(const table<Rows, Columns>& matrix) {
  operation_count sum;
  for (std::size_t i = 0; i < Rows; ++i) {
    std::size_t terms = 0;
    for (std::size_t j = 0; j < Columns; ++j) {
      terms += matrix[i][j].is_zero() ? 0 : 1;
      sum.scalings += matrix[i][j].is_trivial() ? 0 : 1;
    }
    sum.additions += terms == 0 ? 0 : terms - 1;
  }
  return sum;
}

template <std::size_t Rows, std::size_t Columns>
constexpr bool are_whole(const table<Rows, Columns>& matrix) {
  for (std::size_t i = 0; i < Rows; ++i)
    for (std::size_t j = 0; j < Columns; ++j)
      if (!matrix[i][j].is_whole()) return false;
  return true;
}

// The programs of an algorithm: those of its definition, or else made from the matrices. They are variable templates because
// g++ evaluates a static member with a deduced type as soon as its class is named.

template <auto Matrix>
constexpr auto eliminated() {
  constexpr auto draft = draft_of(Matrix());
  return cut<draft.size>(draft);
}
template <class Definition>
constexpr auto make_left() {
  if constexpr (requires { Definition::left(); }) return Definition::left();
  else return eliminated<&Definition::u>();
}
template <class Definition>
constexpr auto make_right() {
  if constexpr (requires { Definition::right(); }) return Definition::right();
  else return eliminated<&Definition::v>();
}
template <class Definition>
constexpr auto make_output() {
  if constexpr (requires { Definition::output(); }) return Definition::output();
  else return eliminated<&Definition::w>();
}
template <class Definition>
inline constexpr auto left_program = make_left<Definition>();
template <class Definition>
inline constexpr auto right_program = make_right<Definition>();
template <class Definition>
inline constexpr auto output_program = make_output<Definition>();

}  // namespace detail

/// The members of every algorithm. Each is computed when it is used, and not before.
template <class Definition>
struct algorithm_of : detail::algorithm_tag {
  using definition = Definition;
  using problem = typename Definition::problem;

  /// For people: "strassen".
  static constexpr const char* name = Definition::name;
  /// The number of multiplications.
  static constexpr std::size_t rank = Definition::rank;

  /// The factor matrices. Product p is (u[p] . left) * (v[p] . right), and output o is w[o] . products.
  static constexpr table<rank, problem::left_size> u = Definition::u();
  static constexpr table<rank, problem::right_size> v = Definition::v();
  static constexpr table<problem::output_size, rank> w = Definition::w();
  /// Whether no coefficient is a fraction.
  static constexpr bool is_whole = detail::are_whole(u) && detail::are_whole(v) && detail::are_whole(w);

  /// The same three maps as programs, with common subexpressions computed once.
  static constexpr program_view left = detail::left_program<Definition>.view();
  static constexpr program_view right = detail::right_program<Definition>.view();
  static constexpr program_view output = detail::output_program<Definition>.view();

  /// The operations of these programs.
  static constexpr program_counts counts = {rank, left.count(), right.count(), output.count()};
  /// The operations if each row of the matrices is computed by itself.
  static constexpr program_counts plain_counts = {rank, detail::count_rows(u), detail::count_rows(v),
                                                  detail::count_rows(w)};
  /// How rounding errors of these programs grow.
  static constexpr error_growth error =
      detail::growth_of<rank, left.values(), right.values(), output.values()>(left, right, output, problem::terms);
};

/// A type that describes a bilinear algorithm: a `scheme`, a `toom_cook`, or one made of others.
template <class S> concept algorithm = requires { typename S::problem; } && std::derived_from<S, detail::algorithm_tag>;

/// Whether the programs of an algorithm compute its matrices. They always do; tests compare both.
template <algorithm S>
constexpr bool programs_compute_matrices() {
  return detail::computes<S::left.values()>(S::left, S::u) && detail::computes<S::right.values()>(S::right, S::v) &&
         detail::computes<S::output.values()>(S::output, S::w);
}

}  // namespace collage::inline v0::bilinear
