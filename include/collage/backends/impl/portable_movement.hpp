// The backend `portable`: which movers and finders have loops of their own, and their kernels.
#pragma once

#include <collage/backends/any_match.hpp>
#include <collage/backends/impl/portable_copies.hpp>
#include <collage/backends/impl/portable_gather.hpp>
#include <collage/backends/impl/portable_order.hpp>
#include <collage/error.hpp>
#include <collage/op/gather.hpp>
#include <collage/op/movement.hpp>
#include <collage/op/order.hpp>
#include <collage/op/slice.hpp>
#include <collage/run/kernel.hpp>
#include <cstdint>
#include <string>

namespace collage::inline v0::detail::host {
namespace {

/// Whether there are loops for a node, whose shapes are known. Movers take every element type; what compares or
/// adds elements, float32 and int64; scatters, updates that take the place of what was there.
inline bool portable_moves(const any_match& m, std::uint32_t node) {
  const auto is_any = [&](const auto&... kinds) { return (m.is(node, kinds) || ...); };
  if (is_any(ops::transpose, ops::concat, ops::slice, ops::expand, ops::tile, ops::pad, ops::trilu, ops::gather,
             ops::gather_elements, ops::gather_nd, ops::reverse_sequence))
    return true;
  if (m.is(node, ops::scatter_elements))
    return m.attributes(node, ops::scatter_elements).reduction == ops::scatter_reduction::none;
  if (m.is(node, ops::scatter_nd)) return m.attributes(node, ops::scatter_nd).reduction == ops::scatter_reduction::none;
  const dtype type = m.type_of(m.inputs_of(node)[0]).type;
  return is_any(ops::top_k, ops::arg_max, ops::arg_min, ops::cumulative_sum) &&
         (type == dtype::f32 || type == dtype::i64);
}

/// Those whose second operand holds indices or lengths.
template <class Element, class Index>
kernel build_indexed(const any_match& m, std::uint32_t node, int threads) {
  if (m.is(node, ops::gather) || m.is(node, ops::gather_nd)) return make_gather<Element, Index>(m, node, threads);
  if (m.is(node, ops::scatter_nd)) return make_scatter<Element, Index>(m, node, threads);
  if (m.is(node, ops::reverse_sequence)) return make_reverse<Element, Index>(m, node, threads);
  return make_elements<Element, Index>(m, node, threads);
}

/// The kernel of a match of one node that `portable_moves` holds of.
inline kernel build_portable_movement(const any_match& m, build_context& context) {
  const std::uint32_t node = m.nodes().back();
  const int threads = context.threads();
  const dtype type = m.type_of(m.inputs_of(node)[0]).type;
  const bool whole = type == dtype::i64;
  if (m.is(node, ops::top_k))
    return whole ? make_top_k<std::int64_t>(m, node, threads) : make_top_k<float>(m, node, threads);
  if (m.is(node, ops::cumulative_sum))
    return whole ? make_running_sum<std::int64_t>(m, node, threads) : make_running_sum<float>(m, node, threads);
  if (m.is(node, ops::arg_max) || m.is(node, ops::arg_min))
    return whole ? make_extreme<std::int64_t>(m, node, threads) : make_extreme<float>(m, node, threads);
  return with_moved_type(type, [&](auto zero) -> kernel {
    using element = decltype(zero);
    if (m.is(node, ops::concat)) return make_concat<element>(m, node, threads);
    if (m.is(node, ops::pad)) return portable_pad<element>(m, node, threads).make();
    if (m.is(node, ops::trilu)) return make_trilu<element>(m, node, threads);
    if (m.is(node, ops::transpose) || m.is(node, ops::slice) || m.is(node, ops::expand) || m.is(node, ops::tile))
      return make_copy<element>(m, node, threads);
    if (m.type_of(m.inputs_of(node)[1]).type == dtype::i32)
      return build_indexed<element, std::int32_t>(m, node, threads);
    return build_indexed<element, std::int64_t>(m, node, threads);
  });
}

}  // namespace
}  // namespace collage::inline v0::detail::host
