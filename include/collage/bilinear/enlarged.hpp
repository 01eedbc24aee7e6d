// Correlations of signals of which each element is repeated once, as a resize to twice the size does.
//
// With equal neighbours, weights can be added before they are multiplied. Outputs have two phases, which read the same elements
// d. With an odd number of 2K + 1 taps g:
//
//   odd outputs        y[2a + 1]          = g[0] d[a] + (g[1] + g[2]) d[a + 1] + (g[3] + g[4]) d[a + 2] + ...
//   even outputs       y[2a] - y[2a + 1]  = g[1] (d[a] - d[a + 1]) + g[3] (d[a + 1] - d[a + 2]) + ...
//
// The first line is F(M,K+1), and the second one F(M,K) of differences. Both together take 2M + 2K - 1 products for 2M outputs. Two
// phases by F(M,K+1) would take one more, and F(2M,2K+1) of the enlarged signal as well, with more points and larger errors.
#pragma once

#include <collage/bilinear/algorithm.hpp>
#include <collage/bilinear/correlations.hpp>
#include <collage/bilinear/direct.hpp>
#include <collage/bilinear/factors.hpp>
#include <collage/bilinear/problem.hpp>
#include <collage/detail/label.hpp>
#include <cstddef>

namespace collage::inline v0::bilinear {

namespace detail {

/// Outputs and taps of the algorithm for odd outputs and of the one for differences.
template <class Sums, class Differences>
struct enlarged_sizes;
template <std::size_t M, std::size_t Taps, std::size_t M2, std::size_t Taps2>
struct enlarged_sizes<correlation<M, Taps>, correlation<M2, Taps2>> {
  static_assert(M == M2 && Taps == Taps2 + 1, "enlarged takes algorithms F(M,K+1) and F(M,K)");
  static constexpr std::size_t m = M, k = Taps2;
};

template <class Sums, class Differences>
struct enlarged_definition {
  static_assert(algorithm<Sums> && algorithm<Differences>, "enlarged takes two bilinear algorithms");
  using sizes = enlarged_sizes<typename Sums::problem, typename Differences::problem>;
  using problem = enlarged_correlation<sizes::m, 2 * sizes::k + 1>;
  static constexpr label name_text = label("up2 ") + Sums::name;
  static constexpr const char* name = name_text.c_str();
  static constexpr std::size_t rank = Sums::rank + Differences::rank;

  static constexpr auto u() {
    table<rank, problem::left_size> made;
    for (std::size_t p = 0; p < Sums::rank; ++p)
      for (std::size_t i = 0; i < problem::left_size; ++i) made[p][i] = Sums::u[p][i];
    for (std::size_t p = 0; p < Differences::rank; ++p)
      for (std::size_t i = 0; i + 1 < problem::left_size; ++i) {
        made[Sums::rank + p][i] += Differences::u[p][i];
        made[Sums::rank + p][i + 1] += -Differences::u[p][i];
      }
    return made;
  }
  static constexpr auto v() {
    table<rank, problem::right_size> made;
    for (std::size_t p = 0; p < Sums::rank; ++p)
      for (std::size_t j = 0; j < problem::right_size; ++j) made[p][j] = Sums::v[p][(j + 1) / 2];
    for (std::size_t p = 0; p < Differences::rank; ++p)
      for (std::size_t j = 0; j < sizes::k; ++j) made[Sums::rank + p][2 * j + 1] = Differences::v[p][j];
    return made;
  }
  static constexpr auto w() {
    table<problem::output_size, rank> made;
    for (std::size_t a = 0; a < sizes::m; ++a) {
      for (std::size_t p = 0; p < Sums::rank; ++p) made[2 * a][p] = made[2 * a + 1][p] = Sums::w[a][p];
      for (std::size_t p = 0; p < Differences::rank; ++p) made[2 * a][Sums::rank + p] = Differences::w[a][p];
    }
    return made;
  }
};

}  // namespace detail

/// From F(M,K+1) and F(M,K): 2M outputs of a filter with 2K + 1 taps, of a signal whose elements are repeated once. Nothing is
/// proved again.
template <class Sums, class Differences>
struct enlarged : algorithm_of<detail::enlarged_definition<Sums, Differences>> {};

/// For 3 taps, with 5 products for 4 outputs, 7 for 6 and 9 for 8.
using up2_f_2_2 = enlarged<f_2_2, direct<correlation<2, 1>>>;
using up2_f_3_2 = enlarged<f_3_2, direct<correlation<3, 1>>>;
using up2_f_4_2 = enlarged<f_4_2, direct<correlation<4, 1>>>;

/// For 5 taps, with 7 products for 4 outputs and 11 for 8.
using up2_f_2_3 = enlarged<f_2_3, f_2_2>;
using up2_f_4_3 = enlarged<f_4_3, f_4_2>;
using up2_f_4_3_accurate = enlarged<f_4_3_accurate, f_4_2>;

}  // namespace collage::inline v0::bilinear
