// The operators after a product or convolution, as an epilogue.
#pragma once

#include "epilogue.hpp"

#include <collage/backends/any_match.hpp>
#include <collage/backends/jit_rules.hpp>
#include <collage/run/kernel.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace collage::inline v0::detail::jit {

struct traced_epilogue {
  epilogue steps;
  std::vector<std::uint32_t> operands;  ///< the values that it reads, in its order
  std::vector<std::size_t> outputs;     ///< which outputs of the match it writes, in its order; one if it is empty
};

/// Says which arguments a kernel reads, `product.left` and the operands of the epilogues, and which operands its results may lie
/// over. Each tile reads its part of an operand before it writes there, and nothing reads it again.
void set_access(kernel& made, const any_match& m, const product_match& product, std::span<const traced_epilogue> then);

/// The bias of a convolution comes first, then the operators after this product.
/// Error (unsupported): an epilogue does not compute one of them, or has no room for all of them.
traced_epilogue trace_epilogue(const any_match& m, const product_match& product);

}  // namespace collage::inline v0::detail::jit
