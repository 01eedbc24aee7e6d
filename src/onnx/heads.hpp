// Heads of packed operands, and numbers of places: shared by attention and the operators around it.
#pragma once

#include <collage/io/onnx/lowering.hpp>
#include <cstdint>

namespace collage::inline v0::onnx {

/// Whether sums in this type are better made in another one.
constexpr bool is_narrow(dtype type) { return type == dtype::f16 || type == dtype::bf16; }

/// The number of heads of an operand of extents `dims`: [batch, tokens, heads * size], or [batch, heads, tokens, size]. The attribute
/// states it in the first form, and must agree in the second. Throws otherwise.
std::int64_t heads_of(const lowering& n, const shape& dims, const char* attribute);

/// The numbers 0, 1, ... below `count` as int64, in a shape of that many elements.
value numbers_below(lowering& n, std::int64_t count, const shape& dims);

}  // namespace collage::inline v0::onnx
