// Facts about matches of products, for the backend and its search spaces.
#pragma once

#include <collage/backends/any_match.hpp>
#include <collage/backends/jit_rules.hpp>
#include <collage/ops.hpp>

#include <cstdint>
#include <vector>

namespace collage::inline v0::detail::jit {

/// The products of a match, in the order of its operators. They have one left operand.
inline std::vector<product_match> products_in(const any_match& m) {
  std::vector<product_match> list;
  for (const std::uint32_t node : m.nodes())
    if (is_anchor(m, node)) list.emplace_back(m, node);
  return list;
}

/// Whether what follows a product needs more registers than a bias and a ReLU do.
inline bool needs_many_registers(const any_match& m, const product_match& shape) {
  for (const std::uint32_t node : m.nodes())
    if (!is_anchor(m, node) && node != shape.depthwise && node != shape.between && !m.is(node, ops::add) &&
        !m.is(node, ops::relu))
      return true;
  return false;
}

}  // namespace collage::inline v0::detail::jit
