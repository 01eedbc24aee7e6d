// Products by matrices of constants that alone are quantised: what passes and backends ask about them.
#pragma once

#include <algorithm>
#include <collage/dtype.hpp>
#include <collage/graph/view.hpp>
#include <collage/op/matmul.hpp>
#include <collage/op/quantise.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace collage::inline v0::detail {

/// The right operand of a product in float32: a constant matrix of integers of 4 or 8 bits, which a dequantize_linear makes float32.
/// Its columns have scales of their own or share one. Rows may lie in blocks of at least 16 with scales of their own.
struct weight_matrix {
  std::uint32_t integers = 0, scales = 0;    ///< values of the graph
  std::optional<std::uint32_t> zero_points;  ///< like the scales; none: 0
  dtype type = dtype::i8;                    ///< of the integers
  std::int64_t rows = 0, columns = 0;        ///< K and N of the product
  std::int64_t block = 0;                    ///< so many rows share a scale; all of them: `rows`
  bool is_transposed = false;                ///< it lies as [columns, rows]
  bool has_one_scale = false;

  constexpr std::int64_t blocks() const { return (rows + block - 1) / block; }
  /// The place of a number among the integers.
  constexpr std::int64_t at(std::int64_t row, std::int64_t column) const {
    return is_transposed ? column * rows + row : row * columns + column;
  }
  /// The place of a scale, or zero point, among all.
  constexpr std::int64_t scale_at(std::int64_t which_block, std::int64_t column) const {
    return has_one_scale   ? 0
           : block == rows ? column
           : is_transposed ? column * blocks() + which_block
                           : which_block * columns + column;
  }
};

constexpr bool is_weight_type(dtype type) {
  return type == dtype::i8 || type == dtype::u8 || type == dtype::i4 || type == dtype::u4;
}

/// The matrix of a product; nothing if its right operand is something else, or its scales lie otherwise.
constexpr std::optional<weight_matrix> weight_matrix_of(const graph_view& network, std::uint32_t product) {
  if (network.kind_id_of(product) != kind_id<struct ops::matmul>) return {};
  const std::uint32_t right = network.inputs_of(product)[1];
  if (network.values[right].producer < 0 || network.values[right].type.type != dtype::f32) return {};
  const auto node = static_cast<std::uint32_t>(network.values[right].producer);
  if (network.kind_id_of(node) != kind_id<struct ops::dequantize_linear>) return {};
  const auto in = network.inputs_of(node);
  for (const std::uint32_t v : in)
    if (!network.is_constant(v)) return {};
  const tensor_type &integers = network.values[in[0]].type, &scales = network.values[in[1]].type;
  if (!is_weight_type(integers.type) || integers.dims.rank != 2 || integers.dims.elements() <= 0) return {};
  const auto how = from_words<ops::quantize_attributes>(network.words_of(node));
  weight_matrix m;
  m.integers = in[0], m.scales = in[1], m.type = integers.type;
  if (in.size() == 3) m.zero_points = in[2];
  m.is_transposed = from_words<ops::matmul_attributes>(network.words_of(product)).transpose_b;
  m.rows = integers.dims[m.is_transposed ? 1 : 0], m.columns = integers.dims[m.is_transposed ? 0 : 1];
  m.block = m.rows;
  m.has_one_scale = scales.dims.elements() == 1;
  const std::int64_t axis_of_rows = m.is_transposed ? 1 : 0;
  if (m.has_one_scale || (how.block == 0 && how.axis != axis_of_rows)) return m;
  constexpr std::int64_t least_block = 16;  // shorter ones would have about as many scales as numbers
  if (how.block < std::min(least_block, m.rows) || how.axis != axis_of_rows) return {};
  m.block = std::min(how.block, m.rows);
  return m;
}

/// The rows of a product's left operand, if they lie one after the other; 0 if they do not, or are not known.
constexpr std::int64_t rows_of_left(const graph_view& network, std::uint32_t product) {
  const tensor_type& left = network.values[network.inputs_of(product)[0]].type;
  const bool is_transposed = from_words<ops::matmul_attributes>(network.words_of(product)).transpose_a;
  if (left.type != dtype::f32 || left.dims.rank == 0 || !left.dims.is_concrete()) return 0;
  if (is_transposed && left.dims.rank > 1) return 0;
  std::int64_t rows = 1;
  for (std::size_t i = 0; i + 1 < left.dims.rank; ++i) rows *= left.dims[i];
  return rows;
}

}  // namespace collage::inline v0::detail
