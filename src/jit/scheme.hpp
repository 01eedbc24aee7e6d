// Bilinear algorithms for matrix products as values, so that one kernel runs any of them.
#pragma once

#include <collage/bilinear/algorithm.hpp>
#include <collage/bilinear/factors.hpp>
#include <collage/bilinear/linear_program.hpp>
#include <collage/bilinear/problem.hpp>

#include <cstddef>
#include <span>
#include <string_view>

namespace collage::inline v0::detail::jit {

/// A scheme <rows, inner, columns; rank>. Block (i, l) of the left operand is element i * inner + l of its program's inputs,
/// and so on.
struct scheme {
  const char* name = "";  ///< one word
  std::size_t rows = 1, inner = 1, columns = 1, rank = 1;
  bilinear::program_view left;  ///< its outputs are the left factors of all products
  const int* v = nullptr;       ///< [rank][inner * columns]: the right factors
  const int* w = nullptr;       ///< [rows * columns][rank]: the outputs
  bilinear::error_growth error = {};

  /// Coefficient of a right block in the right factor of a product.
  constexpr int right(std::size_t product, std::size_t block) const { return v[product * inner * columns + block]; }
  /// Coefficient of a product in a block of the result.
  constexpr int output(std::size_t block, std::size_t product) const { return w[block * rank + product]; }
  constexpr bool is_classical() const { return rank == 1; }
};

template <class Problem>
struct product_extents_of;
template <std::size_t M, std::size_t K, std::size_t N>
struct product_extents_of<bilinear::matmul<M, K, N>> {
  static constexpr std::size_t rows = M, inner = K, columns = N;
};

template <bilinear::algorithm S>
inline constexpr auto right_coefficients = bilinear::coefficients<int>(S::v);
template <bilinear::algorithm S>
inline constexpr auto output_coefficients = bilinear::coefficients<int>(S::w);

/// A type of collage/bilinear/ whose coefficients are whole, as a value.
template <bilinear::algorithm S>
constexpr scheme scheme_of(const char* name) {
  static_assert(S::is_whole, "blocks are added and subtracted, and not scaled by fractions");
  for (std::size_t o = 0; o < S::problem::output_size; ++o)
    for (std::size_t p = 0; p < S::rank; ++p)
      if (const int c = output_coefficients<S>[o][p]; c < -1 || c > 1)
        throw "kernels add products to a block or subtract them, and do not scale them";
  using extents = product_extents_of<typename S::problem>;
  return {name,
          extents::rows,
          extents::inner,
          extents::columns,
          S::rank,
          S::left,
          &right_coefficients<S>.at[0][0],
          &output_coefficients<S>.at[0][0],
          S::error};
}

/// All schemes, the classical one first.
std::span<const scheme> schemes();
/// The scheme with a name; null if there is none.
const scheme* find_scheme(std::string_view name);

}  // namespace collage::inline v0::detail::jit
