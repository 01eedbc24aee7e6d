// Proves that factor matrices compute a problem, or says which equation fails.
#pragma once

#include <collage/bilinear/factors.hpp>
#include <collage/detail/sentence.hpp>
#include <cstddef>

namespace collage::inline v0::bilinear::detail {

using collage::detail::sentence;

/// The left sides of the Brent equations. For each output o, left element i and right element j, it is the sum of
/// w[o][p] u[p][i] v[p][j] over all products p. It must be the coefficient of the problem. For Toom-Cook algorithms this is the identity that makes them right.
template <class Problem>
struct brent_sums {
  constexpr brent_sums() {  // each by itself, as in `table`
    for (auto& plane : at)
      for (auto& row : plane)
        for (rational& sum : row) sum = rational();
  }

  rational at[Problem::output_size][Problem::left_size][Problem::right_size];
};

template <class Problem, std::size_t Rank>
constexpr brent_sums<Problem> brent_sums_of(const factors<Problem, Rank>& f) {
  brent_sums<Problem> sums;
  for (std::size_t p = 0; p < Rank; ++p)
    for (std::size_t i = 0; i < Problem::left_size; ++i) {
      if (f.u[p][i].is_zero()) continue;
      for (std::size_t j = 0; j < Problem::right_size; ++j) {
        if (f.v[p][j].is_zero()) continue;
        const rational pair = f.u[p][i] * f.v[p][j];
        for (std::size_t o = 0; o < Problem::output_size; ++o)
          if (!f.w[o][p].is_zero()) sums.at[o][i][j] += f.w[o][p] * pair;
      }
    }
  return sums;
}

/// "; products 0 and 4 contribute to it"
template <class Problem, std::size_t Rank>
constexpr void say_contributors(sentence& why, const factors<Problem, Rank>& f, std::size_t output, std::size_t left,
                                std::size_t right) {
  std::size_t contributors = 0, said = 0;
  const auto contributes = [&](std::size_t p) {
    return !f.w[output][p].is_zero() && !f.u[p][left].is_zero() && !f.v[p][right].is_zero();
  };
  for (std::size_t p = 0; p < Rank; ++p) contributors += contributes(p) ? 1 : 0;
  if (contributors == 0) {
    why << "; no product contributes to it";
    return;
  }
  why << (contributors == 1 ? "; product " : "; products ");
  for (std::size_t p = 0; p < Rank; ++p) {
    if (!contributes(p)) continue;
    if (said != 0) why << (said + 1 == contributors ? " and " : ", ");
    why << p;
    ++said;
  }
  why << (contributors == 1 ? " contributes to it" : " contribute to it");
}

/// The first equation that fails; empty if all hold. `remedy` says what the author of the algorithm can change.
template <class Problem, std::size_t Rank>
constexpr sentence fault_of_factors(const char* name, const factors<Problem, Rank>& f, const char* remedy) {
  sentence why;
  const brent_sums<Problem> sums = brent_sums_of(f);
  for (std::size_t o = 0; o < Problem::output_size; ++o)
    for (std::size_t i = 0; i < Problem::left_size; ++i)
      for (std::size_t j = 0; j < Problem::right_size; ++j) {
        const int wanted = Problem::coefficient(o, i, j);
        const rational& found = sums.at[o][i][j];
        if (found == rational(wanted)) continue;
        why << name << " does not compute " << Problem::text().c_str() << ": the coefficient of "
            << Problem::left_name(i).c_str() << " " << Problem::right_name(j).c_str() << " in "
            << Problem::output_name(o).c_str();
        if (found.is_defined()) {
          why << " is " << found.text().c_str() << " and must be " << wanted;
          say_contributors(why, f, o, i, j);
        } else {
          why << " does not fit into a fraction of 64-bit numbers";
        }
        why << "; " << remedy;
        return why;
      }
  return why;
}

/// A product whose factor is zero is superfluous, and no kernel should compute it.
template <class Problem, std::size_t Rank>
constexpr sentence fault_of_products(const char* name, const factors<Problem, Rank>& f) {
  sentence why;
  for (std::size_t p = 0; p < Rank; ++p) {
    bool has_u = false, has_v = false, has_w = false;
    for (std::size_t i = 0; i < Problem::left_size; ++i) has_u = has_u || !f.u[p][i].is_zero();
    for (std::size_t j = 0; j < Problem::right_size; ++j) has_v = has_v || !f.v[p][j].is_zero();
    for (std::size_t o = 0; o < Problem::output_size; ++o) has_w = has_w || !f.w[o][p].is_zero();
    if (has_u && has_v && has_w) continue;
    why << name << " has a superfluous product: all coefficients "
        << (!has_u   ? "u"
            : !has_v ? "v"
                     : "w")
        << " of product " << p << " are 0; remove it";
    return why;
  }
  return why;
}

}  // namespace collage::inline v0::bilinear::detail
