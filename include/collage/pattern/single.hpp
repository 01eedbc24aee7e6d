// The pattern of one operator with any operands.
#pragma once

#include <collage/pattern/pattern.hpp>
#include <cstddef>
#include <type_traits>
#include <utility>

namespace collage::inline v0 {

namespace detail {

template <std::size_t>
inline constexpr const expression<1>& any_operand = any;

template <class K>
constexpr auto single_expression() {
  return []<std::size_t... Once>(std::index_sequence<Once...>) {
    if constexpr (K::inputs.most == any_number) return make_pattern(K{}, any_operand<Once>..., many(any));
    else if constexpr (K::inputs.most == K::inputs.least + 1)
      return make_pattern(K{}, any_operand<Once>..., maybe(any));
    else if constexpr (K::inputs.most == K::inputs.least + 2)
      return make_pattern(K{}, any_operand<Once>..., maybe(any), maybe(any));
    else if constexpr (K::inputs.most > K::inputs.least) return make_pattern(K{}, any_operand<Once>..., many(any));
    else return make_pattern(K{}, any_operand<Once>...);
  }(std::make_index_sequence<K::inputs.least - (K::inputs.most == any_number ? 1 : 0)>{});
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
