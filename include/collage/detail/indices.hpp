// The numbers 0 to N - 1 as a pack. std::index_sequence stands in <utility>, which costs as much as all operators.
#pragma once

#include <cstddef>

namespace collage::inline v0::detail {

template <std::size_t... I>
struct indices {};

/// Built one by one: for the operands of an operator, the backends of a set, not for the nodes of a graph.
template <std::size_t N, std::size_t... I>
struct count_up : count_up<N - 1, N - 1, I...> {};
template <std::size_t... I>
struct count_up<0, I...> {
  using type = indices<I...>;
};
template <std::size_t N>
using make_indices = typename count_up<N>::type;

}  // namespace collage::inline v0::detail
