// Products by weights of few bits, packed several to a byte: MatMulNBits of ONNX Runtime. They are unpacked while loading, so that
// they are integers with a scale for each block, as in the standard's own files.
#include <collage/io/onnx/lowering.hpp>
#include <collage/op/elementwise.hpp>
#include <collage/op/matmul.hpp>
#include <collage/op/quantise.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "importer.hpp"
#include "rules.hpp"

namespace collage::inline v0::onnx {
namespace {

/// The extents of a packed matrix: rows lie one after the other, and each begins with a byte of its own.
struct packed_matrix {
  std::int64_t rows = 0, columns = 0, row_bytes = 0, bits = 4;

  /// The element type of its numbers once they are unpacked.
  dtype type() const { return bits <= 4 ? dtype::u4 : dtype::u8; }

  /// The number at a place of a row, without its sign: low bits come first.
  std::uint8_t at(const std::byte* bytes, std::int64_t row, std::int64_t column) const {
    const std::int64_t first = column * bits;
    const auto whole = static_cast<unsigned>(bytes[row * row_bytes + first / 8]);
    return static_cast<std::uint8_t>(whole >> (first % 8) & ((1U << bits) - 1U));
  }
};

/// A loaded constant of uint8 as a matrix of numbers.
value unpacked(lowering& n, std::size_t operand, const packed_matrix& m, const char* what) {
  const value v = n.operand(operand);
  if (n.element_type_of(v) != dtype::u8) n.unsupported(std::string(what) + " of another type than uint8");
  if (n.dims_of(v).elements() != m.rows * m.row_bytes)
    n.invalid("its " + std::string(what) + " have " + std::to_string(n.dims_of(v).elements()) +
              " bytes, and its attributes need " + std::to_string(m.rows * m.row_bytes));
  const std::byte* const bytes = n.driver().builder().contents_of(v).bytes.get();
  const tensor_type type{m.type(), {m.rows, m.columns}};
  const std::shared_ptr<std::byte> list = allocate_bytes(type.bytes());
  for (std::int64_t row = 0; row < m.rows; ++row)
    for (std::int64_t column = 0; column < m.columns; ++column)
      list.get()[row * m.columns + column] = std::byte{m.at(bytes, row, column)};
  return n.constant(type, list);
}

/// The zero point of each block: packed like the weights, or the middle of the range.
value zero_points(lowering& n, std::int64_t rows, std::int64_t blocks, std::int64_t bits) {
  const packed_matrix packed{rows, blocks, (blocks * bits + 7) / 8, bits};
  if (n.has(3)) {
    if (!n.is_known(n.operand(3))) n.unsupported("zero points that are computed");
    return unpacked(n, 3, packed, "zero points");
  }
  return n.filled({packed.type(), {rows, blocks}}, static_cast<double>(std::int64_t{1} << (bits - 1)));
}

void lower_matmul_n_bits(lowering& n) {
  const std::int64_t k = n.integer("K", 0), columns = n.integer("N", 0), bits = n.integer("bits", 4);
  const std::int64_t block = n.integer("block_size", 0);
  constexpr std::int64_t most = std::int64_t{1} << 31;
  if (bits != 2 && bits != 4 && bits != 8) n.unsupported("weights of " + std::to_string(bits) + " bits");
  if (k < 1 || columns < 1 || block < 16 || k > most || columns > most || block > most || (block & (block - 1)) != 0)
    n.invalid("its K and N must be positive, and its block_size a power of two from 16 on");
  if (n.has(4)) n.unsupported("an order of groups (g_idx)");
  if (!n.is_known(n.operand(1))) n.unsupported("packed weights that are computed");
  const std::int64_t blocks = (k + block - 1) / block;
  const value w = unpacked(n, 1, {columns, k, blocks * block * bits / 8, bits}, "weights");
  const value scales = n.operand(2);
  if (n.dims_of(scales).elements() != columns * blocks)
    n.invalid("its scales must be one for each block of each column");
  const dtype type = n.element_type_of(n.operand(0));
  const value scale = n.cast(n.reshape(scales, {columns, blocks}), type == dtype::f64 ? type : dtype::f32);
  const value weights =
      n(ops::dequantize_linear, w, scale, zero_points(n, columns, blocks, bits), {.axis = 1, .block = block});
  value y = n(ops::matmul, n.operand(0), n.cast(weights, type), {.transpose_b = true});
  if (n.has(5)) y = n(ops::add, y, n.operand(5));
  n.result(0, y);
}

}  // namespace

std::span<const lowering_rule> packed_weight_rules() {
  static constexpr lowering_rule packed_weight_lowerings[] = {{"com.microsoft", "MatMulNBits", lower_matmul_n_bits}};
  return packed_weight_lowerings;
}

}  // namespace collage::inline v0::onnx
