// Loops for gathers and scatters: operators that read or write at indices that an operand gives.
//
// An index outside its dimension counts as the nearest index inside, since kernels cannot throw. Gathering from an
// empty dimension gives 0.
#pragma once

#include <algorithm>
#include <collage/backends/any_match.hpp>
#include <collage/backends/impl/portable_strided.hpp>
#include <collage/backends/impl/team.hpp>
#include <collage/op/gather.hpp>
#include <collage/op/order.hpp>
#include <collage/run/kernel.hpp>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace collage::inline v0::detail::host {
namespace {

/// Maps an index in [-extent, extent) to [0, extent), and clamps any other index.
template <class Index>
std::int64_t place_of(Index index, std::int64_t extent) {
  const std::int64_t from_end = index < 0 ? static_cast<std::int64_t>(index) + extent : index;
  return std::clamp<std::int64_t>(from_end, 0, extent - 1);
}

inline std::int64_t product_of(const shape& dims, std::size_t first, std::size_t last) {
  std::int64_t product = 1;
  for (std::size_t i = first; i < last; ++i) product *= dims[i];
  return product;
}

/// gather and gather_nd: copies a run of the data for each row of indices.
template <class Element, class Index>
struct portable_gather {
  std::size_t data = 0, indices = 1;
  int threads = 1;
  std::int64_t run = 1;                      ///< elements copied for each row of indices
  std::int64_t rows = 1;                     ///< rows of indices in each batch
  std::int64_t batches = 1, batch_step = 0;  ///< batches of the data, and the step between them
  bool shared_indices = false;               ///< every batch has the same indices
  shape extents{}, steps{};                  ///< of the data's dimensions that the indices select

  void operator()(const kernel_call& call) const {
    const auto* const from = static_cast<const Element*>(call.in[data]);
    const auto* const list = static_cast<const Index*>(call.in[indices]);
    auto* const to = static_cast<Element*>(call.out[0]);
    const auto depth = static_cast<std::int64_t>(extents.size());
    if (run == 0) return;
    for (const std::int64_t extent : extents)
      if (extent == 0) return void(std::fill_n(to, batches * rows * run, Element{}));
    parallel_parts(threads, batches * rows, 1, static_cast<double>(run + 16),
                   [&](std::int64_t first, std::int64_t last) {
                     for (std::int64_t i = first; i < last; ++i) {
                       const Index* const row = list + (shared_indices ? i % rows : i) * depth;
                       std::int64_t at = i / rows * batch_step;
                       for (std::size_t d = 0; d < extents.size(); ++d) at += place_of(row[d], extents[d]) * steps[d];
                       copy_elements(from + at, run, to + i * run);
                     }
                   });
  }
};

template <class Element, class Index>
kernel make_gather(const any_match& m, std::uint32_t node, int threads) {
  const std::span<const std::uint32_t> inputs = m.inputs_of(node);
  const shape& x = m.type_of(inputs[0]).dims;
  const shape& list = m.type_of(inputs[1]).dims;
  const shape dense = steps_of_dense(x);
  portable_gather<Element, Index> k{
      .data = m.index_of(inputs[0]), .indices = m.index_of(inputs[1]), .threads = threads};
  std::size_t first = 0, depth = 1;
  if (m.is(node, ops::gather)) {
    first = static_cast<std::size_t>(m.attributes(node, ops::gather).axis);
    k.rows = product_of(list, 0, list.size());
    k.shared_indices = true;
  } else {
    first = static_cast<std::size_t>(m.attributes(node, ops::gather_nd).batch_dims);
    depth = static_cast<std::size_t>(list[list.size() - 1]);
    k.rows = product_of(list, first, list.size() - 1);
  }
  k.batches = product_of(x, 0, first);
  k.batch_step = product_of(x, first, x.size());
  for (std::size_t i = first; i < first + depth; ++i) {
    k.extents.push_back(x[i]);
    k.steps.push_back(dense[i]);
  }
  k.run = product_of(x, first + depth, x.size());
  return kernel(std::string(m.kind_of(node).name) + " loops", std::move(k));
}

/// gather_elements and scatter_elements: walks the indices, each of which selects an element along one axis of the
/// data. Positions that differ before the axis never write the same element, so they run in parallel.
template <class Element, class Index>
struct portable_elements {
  std::size_t data = 0, indices = 1, updates = 2;
  int threads = 1;
  bool writes = false;                         ///< whether this scatters
  std::int64_t extent = 1, step = 1;           ///< of the data along the axis
  std::vector<copied_dimension> outer, inner;  ///< indices before the axis, and from it on; steps are the data's
  std::int64_t outer_count = 1, inner_count = 1;
  strided_copy<Element> whole;  ///< copies all data to the output of a scatter

  void operator()(const kernel_call& call) const {
    const auto* const from = static_cast<const Element*>(call.in[data]);
    const auto* const list = static_cast<const Index*>(call.in[indices]);
    const Element* const update = writes ? static_cast<const Element*>(call.in[updates]) : nullptr;
    auto* const to = static_cast<Element*>(call.out[0]);
    if (writes) whole(from, to);
    if (outer_count * inner_count == 0) return;
    if (extent == 0) {
      if (!writes) std::fill_n(to, outer_count * inner_count, Element{});
      return;
    }
    parallel_parts(threads, outer_count, 1, 4.0 * static_cast<double>(inner_count),
                   [&](std::int64_t first, std::int64_t last) {
                     copy_walk outside(outer, first);
                     for (std::int64_t i = first; i < last; ++i, outside.next())
                       line(list + i * inner_count, outside.in(), i * inner_count, from, update, to);
                   });
  }

 private:
  void line(const Index* list, std::int64_t base, std::int64_t at, const Element* from, const Element* update,
            Element* to) const {
    copy_walk inside(inner, 0);
    for (std::int64_t i = 0; i < inner_count; ++i, inside.next()) {
      const std::int64_t place = base + inside.in() + place_of(list[i], extent) * step;
      if (writes) to[place] = update[at + i];
      else to[at + i] = from[place];
    }
  }
};

template <class Element, class Index>
kernel make_elements(const any_match& m, std::uint32_t node, int threads) {
  const std::span<const std::uint32_t> inputs = m.inputs_of(node);
  const shape& x = m.type_of(inputs[0]).dims;
  const shape& list = m.type_of(inputs[1]).dims;
  const shape dense = steps_of_dense(x);
  const bool writes = m.is(node, ops::scatter_elements);
  const std::int64_t given =
      writes ? m.attributes(node, ops::scatter_elements).axis : m.attributes(node, ops::gather_elements).axis;
  const auto axis = static_cast<std::size_t>(given);
  const copied_dimension all[] = {{product_of(x, 0, x.size()), 1, 1}};
  portable_elements<Element, Index> k{.data = m.index_of(inputs[0]),
                                      .indices = m.index_of(inputs[1]),
                                      .updates = writes ? m.index_of(inputs[2]) : 0,
                                      .threads = threads,
                                      .writes = writes,
                                      .extent = x[axis],
                                      .step = dense[axis],
                                      .outer = {},
                                      .inner = {},
                                      .whole = strided_copy<Element>(all, threads)};
  for (std::size_t i = 0; i < list.size(); ++i) {
    (i < axis ? k.outer : k.inner).push_back({list[i], i == axis ? 0 : dense[i], 0});
    (i < axis ? k.outer_count : k.inner_count) *= list[i];
  }
  return kernel(std::string(m.kind_of(node).name) + " loops", std::move(k));
}

/// scatter_nd without a reduction. Runs in sequence, since two updates may write the same elements.
template <class Element, class Index>
struct portable_scatter {
  std::size_t data = 0, indices = 1, updates = 2;
  std::int64_t run = 1, rows = 1;
  shape extents{}, steps{};
  strided_copy<Element> whole;

  void operator()(const kernel_call& call) const {
    const auto* const list = static_cast<const Index*>(call.in[indices]);
    const auto* const update = static_cast<const Element*>(call.in[updates]);
    auto* const to = static_cast<Element*>(call.out[0]);
    whole(static_cast<const Element*>(call.in[data]), to);
    if (run == 0) return;
    for (const std::int64_t extent : extents)
      if (extent == 0) return;
    for (std::int64_t i = 0; i < rows; ++i) {
      std::int64_t at = 0;
      for (std::size_t d = 0; d < extents.size(); ++d)
        at += place_of(list[i * static_cast<std::int64_t>(extents.size()) + static_cast<std::int64_t>(d)], extents[d]) *
              steps[d];
      copy_elements(update + i * run, run, to + at);
    }
  }
};

template <class Element, class Index>
kernel make_scatter(const any_match& m, std::uint32_t node, int threads) {
  const std::span<const std::uint32_t> inputs = m.inputs_of(node);
  const shape& x = m.type_of(inputs[0]).dims;
  const shape& list = m.type_of(inputs[1]).dims;
  const auto depth = static_cast<std::size_t>(list[list.size() - 1]);
  const shape dense = steps_of_dense(x);
  const copied_dimension all[] = {{product_of(x, 0, x.size()), 1, 1}};
  portable_scatter<Element, Index> k{.data = m.index_of(inputs[0]),
                                     .indices = m.index_of(inputs[1]),
                                     .updates = m.index_of(inputs[2]),
                                     .run = product_of(x, depth, x.size()),
                                     .rows = product_of(list, 0, list.size() - 1),
                                     .extents = {},
                                     .steps = {},
                                     .whole = strided_copy<Element>(all, threads)};
  for (std::size_t i = 0; i < depth; ++i) {
    k.extents.push_back(x[i]);
    k.steps.push_back(dense[i]);
  }
  return kernel("scatter_nd loops", std::move(k));
}

}  // namespace
}  // namespace collage::inline v0::detail::host
