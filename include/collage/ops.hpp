// Every operator kind.
#pragma once

#include <collage/op/conv.hpp>
#include <collage/op/elementwise.hpp>
#include <collage/op/matmul.hpp>
#include <collage/op/movement.hpp>
#include <collage/op/norm.hpp>
#include <collage/op/pool.hpp>
#include <collage/op/reduce.hpp>
#include <collage/op/resize.hpp>

namespace collage::inline v0 {

namespace detail {

template <class... K>
struct kind_list {
  static constexpr const kind_info* list[] = {&kind_of<K>...};
};

using built_in_kind_list =
    kind_list<struct ops::relu, struct ops::leaky_relu, struct ops::elu, struct ops::hard_sigmoid, struct ops::sigmoid,
              struct ops::tanh, struct ops::erf, struct ops::exp, struct ops::log, struct ops::sqrt,
              struct ops::reciprocal, struct ops::neg, struct ops::abs, struct ops::floor, struct ops::ceil,
              struct ops::sin, struct ops::cos, struct ops::softplus, struct ops::add, struct ops::sub, struct ops::mul,
              struct ops::div, struct ops::max, struct ops::min, struct ops::pow, struct ops::clip, struct ops::conv,
              struct ops::max_pool, struct ops::average_pool, struct ops::matmul, struct ops::reduce_mean,
              struct ops::reduce_sum, struct ops::reduce_max, struct ops::reduce_min, struct ops::softmax,
              struct ops::layer_norm, struct ops::reshape, struct ops::transpose, struct ops::concat,
              struct ops::resize>;

}  // namespace detail

/// Every kind in collage/op/, for whatever has to go through them all. Kinds of a user's own need not be in it.
inline constexpr std::span<const kind_info* const> built_in_kinds = detail::built_in_kind_list::list;

}  // namespace collage::inline v0
