// Copies elements that do not lie as a tile does: into registers, and from registers to outputs.
#pragma once

#include <algorithm>
#include <array>
#include <collage/backends/impl/stacked_program.hpp>
#include <collage/shape.hpp>
#include <cstddef>
#include <cstdint>

namespace collage::inline v0::detail::host {
namespace {

inline float as_float(float x) { return x; }
inline float as_float(std::uint8_t x) { return x != 0 ? 1.0F : 0.0F; }
inline void assign(float& to, float x) { to = x; }
inline void assign(std::uint8_t& to, float x) { to = x != 0 ? 1 : 0; }

/// Calls visit(offset, count) for runs of a row of a leaf, which lie in the steps of the leaf's last dimension.
/// Together the runs are `count` elements from element `first` on.
template <class Visit>
void for_runs(const tile_leaf& leaf, std::int64_t first, std::int64_t count, const Visit& visit) {
  const std::size_t rank = leaf.inner_dims.size();
  if (rank == 0) {
    if (count > 0) visit(0, 1);
    return;
  }
  std::array<std::int64_t, shape::max_rank> at{};
  std::int64_t offset = 0;
  for (std::size_t i = rank; i-- > 0;) {
    at[i] = first % leaf.inner_dims[i];
    first /= leaf.inner_dims[i];
    offset += at[i] * leaf.inner_steps[i];
  }
  const std::int64_t step = leaf.inner_steps[rank - 1], extent = leaf.inner_dims[rank - 1];
  while (count > 0) {
    const std::int64_t run = std::min(count, extent - at[rank - 1]);
    visit(offset, run);
    count -= run;
    offset -= at[rank - 1] * step;
    at[rank - 1] = 0;
    for (std::size_t i = rank - 1; i-- > 0;) {
      offset += leaf.inner_steps[i];
      if (++at[i] < leaf.inner_dims[i]) break;
      offset -= at[i] * leaf.inner_steps[i];
      at[i] = 0;
    }
  }
}

template <class T>
void load_run(const T* from, std::int64_t step, std::int64_t count, float* to) {
  if (step == 0) std::fill_n(to, count, as_float(*from));
  else if (step == 1) std::transform(from, from + count, to, [](T x) { return as_float(x); });
  else
    for (std::int64_t i = 0; i < count; ++i) to[i] = as_float(from[i * step]);
}

/// Copies `count` elements of a row of a leaf, from element `first` on; `row` points to the row's beginning.
template <class T>
void load_row(const tile_leaf& leaf, const T* row, std::int64_t first, std::int64_t count, float* to) {
  const std::size_t rank = leaf.inner_dims.size();
  const std::int64_t step = rank == 0 ? 0 : leaf.inner_steps[rank - 1];
  if (rank == 2 && step == 1 && leaf.inner_steps[0] == 0 && leaf.inner_dims[1] < count) {
    // The elements repeat (as a bias for each of a few channels): copies the part that is loaded already.
    const std::int64_t extent = leaf.inner_dims[1], at = first % extent;
    load_run(row + at, 1, extent - at, to);
    load_run(row, 1, at, to + (extent - at));
    for (std::int64_t there = extent; there < count; there *= 2)
      std::copy_n(to, std::min(there, count - there), to + there);
    return;
  }
  for_runs(leaf, first, count, [&](std::int64_t offset, std::int64_t run) {
    load_run(row + offset, step, run, to);
    to += run;
  });
}

template <class T>
void store_row(const tile_leaf& leaf, T* row, std::int64_t first, std::int64_t count, const float* from) {
  const std::size_t rank = leaf.inner_dims.size();
  const std::int64_t step = rank == 0 ? 0 : leaf.inner_steps[rank - 1];
  for_runs(leaf, first, count, [&](std::int64_t offset, std::int64_t run) {
    for (std::int64_t i = 0; i < run; ++i) assign(row[offset + i * step], from[i]);
    from += run;
  });
}

// The same where rows lie in lanes: one element of all `rows` rows, then the next element.

template <class T>
void load_lanes(const tile_leaf& leaf, const T* row, std::int64_t rows, std::int64_t first, std::int64_t count,
                float* to) {
  const std::size_t rank = leaf.inner_dims.size();
  const std::int64_t step = rank == 0 ? 0 : leaf.inner_steps[rank - 1];
  for_runs(leaf, first, count, [&](std::int64_t offset, std::int64_t run) {
    for (std::int64_t i = 0; i < run; ++i, to += rows) load_run(row + offset + i * step, leaf.row_step(), rows, to);
  });
}
template <class T>
void store_lanes(const tile_leaf& leaf, T* row, std::int64_t rows, std::int64_t first, std::int64_t count,
                 const float* from, std::int64_t from_step) {
  const std::size_t rank = leaf.inner_dims.size();
  const std::int64_t step = rank == 0 ? 0 : leaf.inner_steps[rank - 1];
  for_runs(leaf, first, count, [&](std::int64_t offset, std::int64_t run) {
    for (std::int64_t i = 0; i < run; ++i, from += from_step)
      for (std::int64_t r = 0; r < rows; ++r) assign(row[offset + i * step + r * leaf.row_step()], from[r]);
  });
}

/// Loads the elements of [first, first + count) of a row that one part of the row covers. `row` points to the row's
/// beginning in the part's leaf.
template <class T>
void load_part(const shape& dims, const tile_part& part, const T* row, std::int64_t first, std::int64_t count,
               float* to) {
  const std::size_t last = dims.size() - 1;
  std::array<std::int64_t, shape::max_rank> at{};
  for (std::size_t i = dims.size(); i-- > 0;) {
    at[i] = first % dims[i];
    first /= dims[i];
  }
  const std::int64_t step = part.from.inner_steps[last];
  while (count > 0) {
    const std::int64_t run = std::min(count, dims[last] - at[last]);
    bool is_inside = true;
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < last; ++i) {
      is_inside = is_inside && at[i] >= part.begin[i] && at[i] < part.end[i];
      offset += at[i] * part.from.inner_steps[i];
    }
    const std::int64_t begin = std::max(at[last], part.begin[last]), end = std::min(at[last] + run, part.end[last]);
    if (is_inside && begin < end) {
      float* const there = to + (begin - at[last]);
      if (part.is_number) std::fill_n(there, end - begin, part.number);
      else load_run(row + offset + begin * step, step, end - begin, there);
    }
    to += run;
    count -= run;
    at[last] = 0;
    for (std::size_t i = last; i-- > 0;) {
      if (++at[i] < dims[i]) break;
      at[i] = 0;
    }
  }
}

}  // namespace
}  // namespace collage::inline v0::detail::host
