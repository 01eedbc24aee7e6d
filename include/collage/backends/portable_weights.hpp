// Products by matrices of constants that alone are quantised, with 4 or 8 bits: the pattern, and which matches `portable` accepts.
#pragma once

#include <collage/backends/any_match.hpp>
#include <collage/ops.hpp>
#include <collage/pass/detail/weight_matrix.hpp>
#include <collage/pattern/combine.hpp>
#include <collage/pattern/pattern.hpp>
#include <collage/run/weights.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace collage::inline v0 {

namespace portable_patterns {

/// The weights stay integers in memory. A row may be added to the result.
struct product_by_integers : pattern<"product_by_integers"> {
  static constexpr auto expr = optional(ops::add(previous, constant),
                                        ops::matmul(any, ops::dequantize_linear(constant, constant, maybe(constant))));
};

}  // namespace portable_patterns

namespace detail::host {

constexpr bool is_product_by_integers(const any_match& m) {
  return std::string_view(m.pattern()) == portable_patterns::product_by_integers::name;
}
/// The product of a match.
constexpr std::uint32_t product_in(const any_match& m) {
  for (const std::uint32_t n : m.nodes())
    if (m.is(n, ops::matmul)) return n;
  return m.nodes().back();
}
/// The row that a match adds to its product; nothing if it adds none.
constexpr std::optional<std::uint32_t> added_row(const any_match& m) {
  const std::uint32_t root = m.nodes().back();
  if (!m.is(root, ops::add)) return {};
  const auto in = m.inputs_of(root);
  return m.graph().is_constant(in[0]) ? in[0] : in[1];
}

constexpr verdict accepts_product_by_integers(const any_match& m) {
  const std::uint32_t product = product_in(m);
  const std::optional<weight_matrix> weights = weight_matrix_of(m.graph(), product);
  if (!weights)
    return {false,
            "the weights must be a matrix of 4 or 8 bits, with scales in float32 for columns or for blocks of rows"};
  if (weights->block < weights->rows && weights->block < 16) return {false, "blocks must have at least 16 rows"};
  if (rows_of_left(m.graph(), product) == 0)
    return {false, "the rows of the left operand must follow each other in memory"};
  if (const std::optional<std::uint32_t> row = added_row(m)) {
    const shape &y = m.type_of(m.output()).dims, &b = m.type_of(*row).dims;
    const bool fits = b.elements() == weights->columns && b.rank > 0 && b[b.rank - 1] == weights->columns &&
                      y == m.type_of(m.output_of(product)).dims;
    if (!fits) return {false, "what is added must be one number for each column"};
  }
  return {};
}

}  // namespace detail::host

}  // namespace collage::inline v0
