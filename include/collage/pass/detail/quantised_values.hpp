// Where a graph computes with numbers of 8 bits: what passes and backends ask about quantize_linear and dequantize_linear.
#pragma once

#include <collage/graph/graph.hpp>
#include <collage/op/conv.hpp>
#include <collage/op/elementwise.hpp>
#include <collage/op/matmul.hpp>
#include <collage/op/quantise.hpp>
#include <collage/pass/detail/weight_matrix.hpp>
#include <collage/pass/rewrite.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

namespace collage::inline v0::detail {

/// The node that computes a value by dequantize_linear from integers of 8 bits; nothing for any other value.
inline std::optional<std::uint32_t> dequantised_by(const graph& network, std::uint32_t value) {
  if (network.at(value).producer < 0) return {};
  const auto node = static_cast<std::uint32_t>(network.at(value).producer);
  if (!is_kind(network, node, ops::dequantize_linear)) return {};
  if (!is_8_bit_integer(network.type_of(network.view().inputs_of(node)[0]).type)) return {};
  return node;
}

/// One scale and zero point, whose values are known.
struct quantisation {
  dtype type = dtype::u8;
  float scale = 1;
  std::int64_t zero_point = 0;
  friend bool operator==(const quantisation&, const quantisation&) = default;
};

/// The scale and zero point of a quantize_linear or dequantize_linear node. Nothing unless the integers have 8 bits, and one
/// positive float32 scale holds for the whole tensor. The scale and the zero point must be loaded constants.
inline std::optional<quantisation> quantisation_of(const graph& network, std::uint32_t node) {
  const std::span<const std::uint32_t> in = network.view().inputs_of(node);
  quantisation q;
  q.type = is_kind(network, node, ops::quantize_linear)
               ? from_words<ops::quantize_attributes>(network.view().words_of(node)).type
               : network.type_of(in[0]).type;
  if (!is_8_bit_integer(q.type) || network.type_of(in[1]).type != dtype::f32) return {};
  for (std::size_t i = 1; i < in.size(); ++i)
    if (network.at(in[i]).role != value_role::constant || network.constant(in[i]).bytes == nullptr ||
        network.type_of(in[i]).dims.elements() != 1)
      return {};
  std::memcpy(&q.scale, network.bytes_of(in[1]).data(), sizeof q.scale);
  if (in.size() == 3) {
    const auto bits = static_cast<std::uint8_t>(network.bytes_of(in[2])[0]);
    q.zero_point = q.type == dtype::i8 ? static_cast<std::int8_t>(bits) : std::int64_t{bits};
  }
  constexpr float least = 1e-30F, most = 1e30F;  // beyond these a quotient of two numbers is no longer exact enough
  if (!(q.scale >= least && q.scale <= most)) return {};
  return q;
}

/// Whether a convolution or product multiplies dequantised values by dequantised constants of 8 bits, which kernels on integers
/// do. `node` is of any kind.
inline bool multiplies_integers(const graph& network, std::uint32_t node) {
  if (!is_kind(network, node, ops::conv) && !is_kind(network, node, ops::matmul)) return false;
  const std::span<const std::uint32_t> in = network.view().inputs_of(node);
  return dequantised_by(network, in[0]) && dequantised_by(network, in[1]);
}

/// Whether a product multiplies few rows of float32 by a large quantised matrix of constants. Such a product takes as long as its
/// weights take to be read, and integers are read in a quarter of the time or less.
inline bool is_bound_by_weights(const graph& network, std::uint32_t node) {
  constexpr std::int64_t few = 8, large = std::int64_t{1} << 19,
                         wide = 64;  // numbers: 2 MiB in float32, about a second-level cache
  const std::optional<weight_matrix> weights = weight_matrix_of(network.view(), node);
  if (!weights || weights->columns < wide || weights->rows * weights->columns < large) return false;
  const std::int64_t rows = rows_of_left(network.view(), node);
  return rows > 0 && rows <= few;
}

/// Whether a dequantize_linear of a constant stays in the graph instead of becoming a floating-point constant. It does as
/// an operand of convolutions and products whose other operand is dequantised, too, and of products that are bound by their weights.
/// There, kernels read the integers themselves. Everywhere else a floating-point constant costs no time in a run, and every kernel
/// can read it.
inline bool stays_quantised(const graph& network, std::uint32_t node, bool leaves_weights) {
  const graph_view view = network.view();
  const std::uint32_t result = view.output_of(node);
  if (!is_kind(network, node, ops::dequantize_linear) || network.at(result).is_output) return false;
  for (const use& reader : view.uses_of(result)) {
    const bool is_integer_product = multiplies_integers(network, reader.node) && reader.operand <= 1;
    const bool is_bound = leaves_weights && reader.operand == 1 && is_bound_by_weights(network, reader.node);
    if (!is_integer_product && !is_bound) return false;
  }
  return !view.uses_of(result).empty();
}

}  // namespace collage::inline v0::detail
