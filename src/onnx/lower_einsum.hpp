// Einsum: its equation, and the products it becomes.
#pragma once

#include <collage/io/onnx/lowering.hpp>

namespace collage::inline v0::onnx {

/// Einsum of any number of operands. Each becomes a tensor without repeated or summed labels; then they are joined one
/// after the other, by a matrix product where labels are summed, else by multiplying.
void lower_einsum(lowering& n);

}  // namespace collage::inline v0::onnx
