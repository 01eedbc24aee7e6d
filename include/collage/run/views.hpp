// Views: operators for which nothing runs where the memory of one value is made a part of another's.
#pragma once

#include <collage/graph/graph.hpp>
#include <collage/op/kind.hpp>
#include <collage/op/movement.hpp>
#include <collage/op/slice.hpp>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace collage::inline v0 {

/// A value that lies in the memory of another, so many bytes behind where that begins.
struct value_view {
  std::uint32_t value = 0;
  std::uint32_t of = 0;
  std::size_t offset = 0;
};

namespace detail {

/// What parts of values begin at multiples of, since kernels are measured with memory that is aligned so.
inline constexpr std::int64_t view_alignment = 64;

inline bool is_slice_of_one_piece(const graph& network, std::uint32_t node) {
  const auto a = from_words<ops::slice_attributes>(network.view().words_of(node));
  const shape& from = network.type_of(network.view().inputs_of(node)[0]).dims;
  // The elements lie one behind the other where behind the first extent that is cut nothing is, and before it all are 1.
  std::size_t first = 0;
  while (first < a.extents.size() && a.extents[first] == 1) ++first;
  for (std::size_t d = 0; d < a.extents.size(); ++d) {
    if (a.extents[d] != 1 && a.steps[d] != 1) return false;
    if (d > first && a.extents[d] != from[d]) return false;
  }
  return a.extents.elements() != 0;
}

inline std::vector<value_view> slice_view(const graph& network, std::uint32_t node) {
  const graph_view view = network.view();
  const std::uint32_t x = view.inputs_of(node)[0], y = view.output_of(node);
  if (!is_slice_of_one_piece(network, node)) return {};
  const auto a = from_words<ops::slice_attributes>(view.words_of(node));
  std::int64_t element = 0;
  for (std::size_t d = 0; d < a.starts.size(); ++d) element = element * network.type_of(x).dims[d] + a.starts[d];
  const auto offset = element * static_cast<std::int64_t>(size_of(network.type_of(x).type));
  if (offset % view_alignment != 0) return {};
  return {{y, x, static_cast<std::size_t>(offset)}};
}

/// Of an operand it must be clear from the graph that a kernel can write it into the result: some node computes it, and not as
/// a view of what lies elsewhere; it is no output; and no concat before this one may have it.
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

inline std::vector<value_view> concat_views(const graph& network, std::uint32_t node) {
  const graph_view view = network.view();
  const std::uint32_t y = view.output_of(node);
  const auto axis = static_cast<std::size_t>(from_words<ops::concat_attributes>(view.words_of(node)).axis);
  if (network.type_of(y).dims.first(axis).elements() != 1) return {};
  std::vector<value_view> list;
  std::size_t offset = 0;
  for (const std::uint32_t v : view.inputs_of(node)) {
    if (offset % view_alignment != 0 || network.type_of(v).bytes() == 0 || !may_be_written_into(network, v, node))
      return {};
    list.push_back({v, y, offset});
    offset += network.type_of(v).bytes();
  }
  return list;
}

}  // namespace detail

/// What lies where if nothing runs for a node: the result of a reshape is its operand; that of a slice a part of it, where
/// it is one piece; the operands of a concat are parts of its result, where each is one piece that a kernel can write there.
/// All are plain. None where a kernel has to run. Depends on the graph alone, which has concrete extents.
inline std::vector<value_view> views_of(const graph& network, std::uint32_t node) {
  const graph_view view = network.view();
  const std::uint64_t kind = view.kind_id_of(node);
  if (kind == kind_id<struct ops::reshape>) return {{view.output_of(node), view.inputs_of(node)[0], 0}};
  if (kind == kind_id<struct ops::slice>) return detail::slice_view(network, node);
  if (kind == kind_id<struct ops::concat>) return detail::concat_views(network, node);
  return {};
}

}  // namespace collage::inline v0
