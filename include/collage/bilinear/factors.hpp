// The factor matrices U, V and W of a bilinear algorithm.
#pragma once

#include <collage/bilinear/rational.hpp>
#include <cstddef>

namespace collage::inline v0::bilinear {

/// A matrix of coefficients, at first 0.
template <std::size_t Rows, std::size_t Columns, class T = rational>
struct table {
  static constexpr std::size_t rows = Rows, columns = Columns;

  // Each element by itself: in constants, g++ 12 loses what is written to arrays of classes that `= {}` has initialized.
  constexpr table() {
    for (auto& row : at)
      for (T& element : row) element = T();
  }

  T at[Rows][Columns];

  constexpr const T* operator[](std::size_t row) const { return at[row]; }
  constexpr T* operator[](std::size_t row) { return at[row]; }
};

/// The same coefficients in another arithmetic: `coefficients<float>(strassen::u)`.
/// Errors: `invalid_argument`, a compile error in constant evaluation, if T is an integer type and a coefficient is a fraction.
template <class T, std::size_t Rows, std::size_t Columns>
constexpr table<Rows, Columns, T> coefficients(const table<Rows, Columns>& exact) {
  table<Rows, Columns, T> converted;
  for (std::size_t i = 0; i < Rows; ++i)
    for (std::size_t j = 0; j < Columns; ++j) converted[i][j] = exact[i][j].template as<T>();
  return converted;
}

/// One multiplication of an algorithm as its author writes it. Its factors are the sum of u times the left elements, and the
/// sum of v times the right elements. The product is added to the outputs, w times. Coefficients are `int`, or `rational` where
/// there are fractions.
template <class Problem, class Coefficient = int>
struct product {
  Coefficient u[Problem::left_size] = {};
  Coefficient v[Problem::right_size] = {};
  Coefficient w[Problem::output_size] = {};
};

/// All coefficients of an algorithm. Rows p of u and v are the operands of product p, and row o of w makes output o.
template <class Problem, std::size_t Rank>
struct factors {
  table<Rank, Problem::left_size> u;
  table<Rank, Problem::right_size> v;
  table<Problem::output_size, Rank> w;
};

}  // namespace collage::inline v0::bilinear
