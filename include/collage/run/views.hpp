// Views: operators that need no kernel if the memory of one value is a part of another's.
#pragma once

#include <algorithm>
#include <collage/graph/graph.hpp>
#include <collage/op/kind.hpp>
#include <collage/op/movement.hpp>
#include <collage/op/order.hpp>
#include <collage/op/pool.hpp>
#include <collage/op/slice.hpp>
#include <collage/run/form.hpp>
#include <collage/run/layouts.hpp>
#include <collage/run/value_scales.hpp>
#include <collage/shape.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace collage::inline v0 {

/// A value that lies in the memory of another value, `offset` bytes from its beginning.
struct value_view {
  std::uint32_t value = 0;
  std::uint32_t of = 0;
  std::size_t offset = 0;
};

namespace detail {

/// Whether the first output of an operator only has numbers of its first operand. So both have the same range, and one scale.
inline bool moves_or_picks(const graph_view& view, std::uint32_t node) {
  const std::uint64_t id = view.kind_id_of(node);
  return id == kind_id<struct ops::reshape> || id == kind_id<struct ops::transpose> ||
         id == kind_id<struct ops::slice> || id == kind_id<struct ops::expand> || id == kind_id<struct ops::tile> ||
         id == kind_id<struct ops::max_pool>;
}

/// The alignment of views in bytes, because kernels are measured with memory of this alignment.
inline constexpr std::int64_t view_alignment = 64;

/// A slice in the dimensions of a layout, where blocked channels are counted by the block.
struct laid_out_slice {
  shape from, starts, steps, extents;
  std::int64_t unit = 1;  ///< contiguous elements that count as one
};

/// Nothing if the slice does not take whole, successive blocks of channels.
inline std::optional<laid_out_slice> slice_in(const graph& network, std::uint32_t node, const form& stored) {
  const auto a = from_words<ops::slice_attributes>(network.view().words_of(node));
  const tensor_type& x = network.type_of(network.view().inputs_of(node)[0]);
  laid_out_slice s{x.dims, a.starts, a.steps, a.extents};
  if (stored.order == plain) return s;
  if (x.dims.rank < 2) return {};
  const channel_blocks all = channel_blocks_of(x, stored.order);
  const std::int64_t start = a.starts[1], extent = a.extents[1];
  const bool is_whole = start % all.block == 0 && (extent % all.block == 0 || start + extent == all.channels);
  if (!is_whole || (extent != 1 && a.steps[1] != 1)) return {};
  s.from.extent[1] = all.blocks;
  s.starts.extent[1] = start / all.block;
  s.extents.extent[1] = (extent + all.block - 1) / all.block;
  s.unit = all.block;
  return s;
}

inline bool is_one_piece(const laid_out_slice& s) {
  // The elements are contiguous if no extent is cut after the first that is not 1.
  std::size_t first = 0;
  while (first < s.extents.size() && s.extents[first] == 1) ++first;
  for (std::size_t d = 0; d < s.extents.size(); ++d) {
    if (s.extents[d] != 1 && s.steps[d] != 1) return false;
    if (d > first && s.extents[d] != s.from[d]) return false;
  }
  return s.extents.elements() != 0;
}

inline std::vector<value_view> slice_view(const graph& network, std::uint32_t node, const form& stored) {
  const std::uint32_t x = network.view().inputs_of(node)[0], y = network.view().output_of(node);
  const std::optional<laid_out_slice> s = slice_in(network, node, stored);
  if (!s || !is_one_piece(*s)) return {};
  std::int64_t element = 0;
  for (std::size_t d = 0; d < s->starts.size(); ++d) element = element * s->from[d] + s->starts[d];
  const auto offset = element * s->unit * static_cast<std::int64_t>(size_of(element_in(network.type_of(x), stored)));
  if (offset % view_alignment != 0) return {};
  return {{y, x, static_cast<std::size_t>(offset)}};
}

/// Whether the graph shows that a kernel can write an operand into a concat's result. A node must compute the operand, but not
/// as a view. It must not be an output. This concat must read it once, and no earlier concat may read it.
inline bool may_be_written_into(const graph& network, std::uint32_t operand, std::uint32_t node) {
  const graph_view view = network.view();
  const value_record& v = network.at(operand);
  if (v.producer < 0 || v.is_output) return false;
  const std::uint64_t from = view.kind_id_of(static_cast<std::uint32_t>(v.producer));
  if (from == kind_id<struct ops::reshape> || from == kind_id<struct ops::slice>) return false;
  std::size_t times = 0;
  for (const use& reader : view.uses_of(operand)) {
    if (view.kind_id_of(reader.node) != kind_id<struct ops::concat>) continue;
    if (reader.node < node) return false;
    times += reader.node == node ? 1U : 0U;
  }
  return times == 1;
}

/// Whether the elements of each operand of a concat are contiguous in its result, in the layout of `stored`.
inline bool are_pieces(const graph& network, std::uint32_t node, const form& stored) {
  const graph_view view = network.view();
  const tensor_type& y = network.type_of(view.output_of(node));
  const auto axis = static_cast<std::size_t>(from_words<ops::concat_attributes>(view.words_of(node)).axis);
  if (stored.order == plain) return y.dims.first(axis).elements() == 1;
  if (y.dims.rank < 2) return false;
  if (axis == 0) return true;
  const channel_blocks all = channel_blocks_of(y, stored.order);
  if (all.images != 1) return false;
  if (axis > 1) return all.blocks == 1 && y.dims.from(2).first(axis - 2).elements() == 1;
  const auto is_whole = [&](std::uint32_t operand) {  // no operand may follow the padding of a last block
    const channel_blocks its = channel_blocks_of(network.type_of(operand), stored.order);
    return its.block == all.block && (its.channels % its.block == 0 || operand == view.inputs_of(node).back());
  };
  return std::ranges::all_of(view.inputs_of(node), is_whole);
}

inline std::vector<value_view> concat_views(const graph& network, std::uint32_t node, const form& stored) {
  const graph_view view = network.view();
  if (!are_pieces(network, node, stored)) return {};
  std::vector<value_view> list;
  std::size_t offset = 0;
  for (const std::uint32_t v : view.inputs_of(node)) {
    if (offset % view_alignment != 0 || network.type_of(v).bytes() == 0 || !may_be_written_into(network, v, node))
      return {};
    list.push_back({v, view.output_of(node), offset});
    offset += bytes_in(network.type_of(v), stored);
  }
  return list;
}

}  // namespace detail

/// Whether two values are stored alike in this form. Integers of 8 bits that stand for other numbers must have one scale.
inline bool has_one_scale(const value_scales* scales, const form& stored, std::uint32_t a, std::uint32_t b) {
  if (!stored.element || !is_8_bit_integer(*stored.element)) return true;
  const std::optional<integer_scale> one = scales != nullptr ? scales->of(a, *stored.element) : std::nullopt;
  return one && one == scales->of(b, *stored.element);
}

/// Storage views for a node that needs no kernel; none if a kernel has to run. All its values have the layout of `stored`,
/// which is one of shared_layouts.
///
/// - The result of a reshape is its operand, in the plain layout.
/// - The result of a slice is a part of its operand, if the part is contiguous.
/// - The operands of a concat are parts of its result, if each is contiguous there and a kernel can write it there.
///
/// In blocked layouts, parts of the channels are whole blocks of a single image. The views depend only on the graph, whose
/// extents must be known.
inline std::vector<value_view> views_of(const graph& network, std::uint32_t node, const form& stored = {}) {
  const graph_view view = network.view();
  const std::uint64_t kind = view.kind_id_of(node);
  if (kind == kind_id<struct ops::reshape> && stored.order == plain)
    return {{view.output_of(node), view.inputs_of(node)[0], 0}};
  if (kind == kind_id<struct ops::slice>) return detail::slice_view(network, node, stored);
  if (kind == kind_id<struct ops::concat>) return detail::concat_views(network, node, stored);
  return {};
}

}  // namespace collage::inline v0
