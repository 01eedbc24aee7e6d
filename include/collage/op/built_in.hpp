// The list of every kind in collage/op/. It is not part of ops.hpp: naming the description of every kind costs a
// quarter of a second of compile time. Only code that goes through all kinds needs the list.
#pragma once

#include <collage/ops.hpp>

namespace collage::inline v0 {

namespace detail {

template <class... K>
struct kind_list {
  static constexpr const kind_info* list[] = {&kind_of<K>...};
};

using built_in_kind_list = kind_list<
    struct ops::relu, struct ops::leaky_relu, struct ops::elu, struct ops::hard_sigmoid, struct ops::sigmoid,
    struct ops::tanh, struct ops::erf, struct ops::exp, struct ops::log, struct ops::sqrt, struct ops::reciprocal,
    struct ops::neg, struct ops::abs, struct ops::floor, struct ops::ceil, struct ops::sin, struct ops::cos,
    struct ops::softplus, struct ops::add, struct ops::sub, struct ops::mul, struct ops::div, struct ops::max,
    struct ops::min, struct ops::pow, struct ops::clip, struct ops::tan, struct ops::asin, struct ops::acos,
    struct ops::atan, struct ops::sinh, struct ops::cosh, struct ops::asinh, struct ops::acosh, struct ops::atanh,
    struct ops::round, struct ops::sign, struct ops::prelu, struct ops::celu, struct ops::selu,
    struct ops::thresholded_relu, struct ops::shrink, struct ops::hard_swish, struct ops::gelu_tanh, struct ops::mish,
    struct ops::softsign, struct ops::remainder, struct ops::modulo, struct ops::less, struct ops::less_equal,
    struct ops::greater, struct ops::greater_equal, struct ops::equal, struct ops::is_nan, struct ops::is_infinite,
    struct ops::logical_not, struct ops::logical_and, struct ops::logical_or, struct ops::logical_xor,
    struct ops::where, struct ops::bitwise_not, struct ops::bitwise_and, struct ops::bitwise_or,
    struct ops::bitwise_xor, struct ops::shift_left, struct ops::shift_right, struct ops::cast, struct ops::conv,
    struct ops::max_pool, struct ops::average_pool, struct ops::matmul, struct ops::reduce_mean, struct ops::reduce_sum,
    struct ops::reduce_max, struct ops::reduce_min, struct ops::softmax, struct ops::layer_norm, struct ops::reshape,
    struct ops::transpose, struct ops::concat, struct ops::resize, struct ops::grid_sample, struct ops::roi_align,
    struct ops::col2im, struct ops::deform_conv, struct ops::quantize_linear, struct ops::dequantize_linear,
    struct ops::determinant, struct ops::slice, struct ops::expand, struct ops::tile, struct ops::pad,
    struct ops::gather, struct ops::gather_elements, struct ops::gather_nd, struct ops::scatter_elements,
    struct ops::scatter_nd, struct ops::trilu, struct ops::reverse_sequence, struct ops::cumulative_sum,
    struct ops::top_k, struct ops::arg_max, struct ops::arg_min, struct ops::branch, struct ops::loop,
    struct ops::conv_transpose, struct ops::max_pool_with_indices, struct ops::lp_pool, struct ops::lrn,
    struct ops::log_softmax, struct ops::reduce_prod, struct ops::reduce_log_sum_exp, struct ops::rnn, struct ops::gru,
    struct ops::lstm>;

}  // namespace detail

/// Every kind in collage/op/, for code that goes through all kinds. A user's own kinds need not be in it.
inline constexpr list_view<const kind_info* const> built_in_kinds = detail::built_in_kind_list::list;

}  // namespace collage::inline v0
