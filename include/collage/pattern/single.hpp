// The pattern of one operator with any operands.
#pragma once

#include <collage/pattern/pattern.hpp>
#include <cstddef>
#include <type_traits>

namespace collage::inline v0 {

namespace detail {

/// Operands that must be there, then optional ones, or as many as there are.
template <class K>
constexpr auto single_expression() {
  constexpr std::size_t optional = K::inputs.most - K::inputs.least;
  constexpr bool is_open = optional > 2;
  constexpr std::size_t once = K::inputs.least - (K::inputs.most == any_number && K::inputs.least > 0 ? 1 : 0);
  constexpr std::size_t count = once + (is_open ? 1 : optional);
  constexpr bool fits = count <= pattern_node::max_children;
  static_assert(fits, "single<kind>: a pattern names at most 6 operands; write one that ends in many(any)");
  if constexpr (!fits) {
    return any_operator;
  } else {
    expression<count + 1> e{};
    pattern_node& root = e.node[count];
    root.role = pattern_role::apply;
    root.kind = allowed_kinds<K>;
    root.kinds = 1;
    root.kind_bits = pattern_node::bit_of(kind_of<K>);
    root.children = count;
    root.least_operands = once;
    root.is_open = is_open;
    for (std::size_t i = 0; i < count; ++i) {
      e.node[i].first = static_cast<std::uint16_t>(i);
      root.child[i] = static_cast<std::uint16_t>(i);
      if (i >= once) e.node[i].count = is_open ? pattern_count::many : pattern_count::maybe;
    }
    return e;
  }
}

}  // namespace detail

/// One operator, its operands any values, optional ones present or not: `patterns<single<ops::relu>,
/// single<ops::conv>>`. Named as the operator.
template <auto Kind>
struct single {
  using kind = std::remove_cv_t<decltype(Kind)>;
  static constexpr const char* name = kind::name;
  static constexpr auto expr = detail::single_expression<kind>();
};

}  // namespace collage::inline v0
