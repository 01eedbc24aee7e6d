// The bilinear algorithms that convolutions are compiled for, and what a configuration needs to know of each.
//
// All transforms are generated from these types. Another algorithm needs a place in `convolution_algorithms`, and nothing else.
#pragma once

#include <collage/bilinear/combine.hpp>
#include <collage/bilinear/correlations.hpp>
#include <collage/bilinear/enlarged.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <tuple>
#include <utility>

namespace collage::inline v0::detail::jit {

template <class P, class Q>
struct image_sizes;
template <std::size_t M, std::size_t R, std::size_t M2, std::size_t R2>
struct image_sizes<bilinear::correlation<M, R>, bilinear::correlation<M2, R2>> {
  static constexpr int tile_rows = M, tile_columns = M2;
  static constexpr int window_rows = R, window_columns = R2;
  static constexpr int patch_rows = M + R - 1, patch_columns = M2 + R2 - 1;
  static constexpr int enlargement = 1;
};
template <std::size_t M, std::size_t R, std::size_t M2, std::size_t R2>
struct image_sizes<bilinear::enlarged_correlation<M, R>, bilinear::enlarged_correlation<M2, R2>> {
  static constexpr int tile_rows = 2 * M, tile_columns = 2 * M2;
  static constexpr int window_rows = R, window_columns = R2;
  static constexpr int patch_rows = M + R / 2, patch_columns = M2 + R2 / 2;
  static constexpr int enlargement = 2;
};

/// F x F': one algorithm F(M,R) for the rows of an image and one for its columns.
template <class S>
struct image_algorithm;
template <class Rows, class Columns>
struct image_algorithm<bilinear::nested<Rows, Columns>>
    : image_sizes<typename Rows::problem, typename Columns::problem> {
  using rows = Rows;
  using columns = Columns;
  static constexpr int products = static_cast<int>(Rows::rank * Columns::rank);
  static constexpr const char* name = std::same_as<Rows, Columns> ? Rows::name : bilinear::nested<Rows, Columns>::name;
};

using convolution_algorithms =
    std::tuple<bilinear::in_two_dimensions<bilinear::f_2_3>, bilinear::in_two_dimensions<bilinear::f_4_3>,
               bilinear::in_two_dimensions<bilinear::f_4_3_accurate>, bilinear::in_two_dimensions<bilinear::f_6_3>,
               bilinear::in_two_dimensions<bilinear::f_2_5>, bilinear::in_two_dimensions<bilinear::f_4_5>,
               bilinear::in_two_dimensions<bilinear::up2_f_2_2>, bilinear::in_two_dimensions<bilinear::up2_f_3_2>,
               bilinear::in_two_dimensions<bilinear::up2_f_4_2>, bilinear::in_two_dimensions<bilinear::up2_f_2_3>,
               bilinear::in_two_dimensions<bilinear::up2_f_4_3>,
               bilinear::in_two_dimensions<bilinear::up2_f_4_3_accurate>>;
inline constexpr std::size_t convolution_family_count = std::tuple_size_v<convolution_algorithms>;

struct convolution_family {
  const char* name;                 ///< "F(4,3) accurate"; "F(4,3) x F(2,3)" where rows and columns differ
  int tile_rows, tile_columns;      ///< outputs of one tile
  int window_rows, window_columns;  ///< taps
  int patch_rows, patch_columns;    ///< inputs of one tile
  int products;                     ///< multiplications for one tile and a pair of channels
  int enlargement;                  ///< the image is enlarged first: each element is repeated in both dimensions
  bilinear::error_growth error;

  /// Multiplications of the definition for each of this algorithm.
  constexpr double gain() const {
    return static_cast<double>(tile_rows * tile_columns * window_rows * window_columns) / products;
  }
  /// The largest error of an output, divided by the largest magnitudes of an input and of a weight: for every input.
  constexpr double error_bound(std::size_t channels) const { return error.bound(0x1p-24, channels); }
  /// The largest error to expect of random inputs, divided by the root mean square of the outputs. Both
  /// terms are from measurements: roundings in the transforms, and in sums over channels.
  double expected_error(std::size_t channels) const {
    return (5 * error.amplification + 4 * __builtin_sqrt(static_cast<double>(channels))) * 0x1p-24;
  }
};

template <class S>
constexpr convolution_family family_of() {
  using a = image_algorithm<S>;
  return {a::name,       a::tile_rows,     a::tile_columns, a::window_rows, a::window_columns,
          a::patch_rows, a::patch_columns, a::products,     a::enlargement, S::error};
}

/// In the order of `convolution_algorithms`; a family is its index here.
inline constexpr auto convolution_families = []<std::size_t... I>(std::index_sequence<I...>) {
  return std::array<convolution_family, sizeof...(I)>{family_of<std::tuple_element_t<I, convolution_algorithms>>()...};
}(std::make_index_sequence<convolution_family_count>());

}  // namespace collage::inline v0::detail::jit
