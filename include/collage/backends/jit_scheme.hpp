// Schemes for matrix products as values, so that one kernel runs any of them, and the list of those that a program adds.
//
// Declarations. The definitions are in src/jit/scheme.cpp (the target collage::jit).
#pragma once

#include <collage/bilinear/algorithm.hpp>
#include <collage/bilinear/factors.hpp>
#include <collage/bilinear/linear_program.hpp>
#include <collage/bilinear/problem.hpp>
#include <collage/detail/hash.hpp>
#include <collage/detail/label.hpp>

#include <cstddef>
#include <cstdint>

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

/// The most blocks and sums of blocks of the left operand.
inline constexpr std::size_t most_left_values = 256;

template <class Problem>
struct product_extents_of {
  static constexpr bool are_known = false;
};
template <std::size_t M, std::size_t K, std::size_t N>
struct product_extents_of<bilinear::matmul<M, K, N>> {
  static constexpr bool are_known = true;
  static constexpr std::size_t rows = M, inner = K, columns = N;
};

template <bilinear::algorithm S>
inline constexpr auto right_coefficients = bilinear::coefficients<int>(S::v);
template <bilinear::algorithm S>
inline constexpr auto output_coefficients = bilinear::coefficients<int>(S::w);

// The conditions under which the backend runs an algorithm. If one does not hold, those after it do, so that one error says why.

template <bilinear::algorithm S>
constexpr bool multiplies_matrices() {
  return product_extents_of<typename S::problem>::are_known;
}
template <bilinear::algorithm S>
constexpr bool has_whole_coefficients() {
  if constexpr (multiplies_matrices<S>()) return S::is_whole;
  else return true;
}
template <bilinear::algorithm S>
constexpr bool only_adds_products() {
  if constexpr (multiplies_matrices<S>() && has_whole_coefficients<S>())
    for (std::size_t o = 0; o < S::problem::output_size; ++o)
      for (std::size_t p = 0; p < S::rank; ++p)
        if (const int c = output_coefficients<S>[o][p]; c < -1 || c > 1) return false;
  return true;
}
template <bilinear::algorithm S>
constexpr bool has_few_blocks() {
  if constexpr (multiplies_matrices<S>()) return S::left.values() <= most_left_values;
  else return true;
}
template <bilinear::algorithm S>
constexpr bool can_run() {
  return multiplies_matrices<S>() && has_whole_coefficients<S>() && only_adds_products<S>() && has_few_blocks<S>();
}

/// A type of collage/bilinear/ as a value.
template <bilinear::algorithm S>
  requires(can_run<S>())
constexpr scheme scheme_of(const char* name) {
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

/// Differs for schemes that compute otherwise, whatever their names are.
template <bilinear::algorithm S>
constexpr std::uint64_t fingerprint_of() {
  using problem = typename S::problem;
  std::uint64_t h = S::rank;
  const auto add = [&h](auto word) { h = combine(h, static_cast<std::uint64_t>(word)); };
  add(problem::left_size), add(problem::right_size), add(problem::output_size);
  for (std::size_t p = 0; p < S::rank; ++p) {
    for (std::size_t i = 0; i < problem::right_size; ++i) add(right_coefficients<S>[p][i]);
    for (std::size_t i = 0; i < problem::output_size; ++i) add(output_coefficients<S>[i][p]);
  }
  for (const bilinear::instruction& step : S::left.code) {
    add(step.a), add(step.alpha.numerator()), add(step.alpha.denominator());
    add(step.b), add(step.beta.numerator()), add(step.beta.denominator());
  }
  for (const std::uint16_t value : S::left.output) add(value);
  return h;
}

/// The name of a program's own scheme in configurations: its own name as one word, and its fingerprint. So two schemes of one name
/// never share a cost, and no plan runs the wrong one.
constexpr label name_of_own(const char* name, std::uint64_t fingerprint) {
  constexpr std::size_t longest = 40;
  label made;
  for (std::size_t i = 0; i < longest && name[i] != '\0'; ++i) {
    const char c = name[i];
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    const char letter[] = {is_plain ? c : '-', '\0'};
    made = made + letter;
  }
  made = made + "-";
  for (int shift = 60; shift >= 0; shift -= 4) {
    const char digit[] = {"0123456789abcdef"[(fingerprint >> static_cast<unsigned>(shift)) & 15U], '\0'};
    made = made + digit;
  }
  return made;
}

template <bilinear::algorithm S>
inline constexpr label own_name = name_of_own(S::name, fingerprint_of<S>());
template <bilinear::algorithm S>
inline constexpr scheme own_scheme = scheme_of<S>(own_name<S>.c_str());

/// Makes a scheme known by its name as long as this exists: to plans, to stores and to workers, which are the same program.
class known_scheme {
 public:
  explicit known_scheme(const scheme& known);
  ~known_scheme();
  known_scheme(const known_scheme&) = delete;
  known_scheme& operator=(const known_scheme&) = delete;

  const scheme& value() const { return scheme_; }
  const known_scheme* next() const { return next_; }

 private:
  const scheme& scheme_;
  mutable const known_scheme* next_ = nullptr;  // another one before it may go, also if this one is constant
};

/// Made before `main` in each program that uses it.
template <bilinear::algorithm S>
inline const known_scheme known_before_main(own_scheme<S>);

}  // namespace collage::inline v0::detail::jit
