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
#include <string>
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
    return {
        false,
        "the weights must be a matrix of 4 or 8 bits, with scales in float32 for columns or for blocks of at least 16 rows"};
  const std::int32_t before = m.at(m.inputs_of(product)[0]).producer;
  if (before >= 0 && m.is(static_cast<std::uint32_t>(before), ops::dequantize_linear))
    return {false, "the left operand is dequantised, too: kernels on integers multiply both"};
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

/// The integers lie in panels of so many columns, and those of 4 bits two to a byte.
inline constexpr std::int64_t panel_columns = 64;
constexpr std::int64_t panels_of(const weight_matrix& m) { return (m.columns + panel_columns - 1) / panel_columns; }
constexpr std::int64_t row_bytes_of(const weight_matrix& m) {
  return m.type == dtype::i4 || m.type == dtype::u4 ? panel_columns / 2 : panel_columns;
}
inline std::string form_of_panels(const weight_matrix& m) {
  return "panels of " + std::string(name_of(m.type)) + (m.is_transposed ? " rows, " : " columns, ") +
         std::to_string(m.rows) + "x" + std::to_string(m.columns) + " in blocks of " + std::to_string(m.block);
}
/// The constants that a kernel keeps: the panels with their scales and, at most, as many zero points.
inline kept_constants weights_of_product(const any_match& m) {
  const std::optional<weight_matrix> weights = weight_matrix_of(m.graph(), product_in(m));
  if (!weights) return {};
  const std::int64_t panel = row_bytes_of(*weights) * weights->rows + 8 * panel_columns * weights->blocks();
  return {{weights->integers, form_of_panels(*weights), static_cast<std::size_t>(panel * panels_of(*weights))}};
}

}  // namespace detail::host

}  // namespace collage::inline v0
