// Einsum: parses the equation and lowers it to products.
#pragma once

#include <collage/io/onnx/lowering.hpp>

namespace collage::inline v0::onnx {

/// Lowers Einsum with any number of operands. First, diagonals replace repeated labels, and labels that only one operand has
/// are summed, unless the result has them. Then the operands are multiplied in order: by a matrix product if labels are summed,
/// else elementwise.
void lower_einsum(lowering& n);

}  // namespace collage::inline v0::onnx
