// Operators along an axis, for float32 and int64: top_k, arg_max, arg_min and cumulative_sum.
#pragma once

#include <algorithm>
#include <collage/backends/any_match.hpp>
#include <collage/backends/impl/team.hpp>
#include <collage/op/order.hpp>
#include <collage/run/kernel.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

namespace collage::inline v0::detail::host {
namespace {

/// A tensor seen as lines along one axis; `inner` lines lie side by side.
struct ordered_lines {
  std::int64_t outer = 1, extent = 1, inner = 1;
  ordered_lines(const shape& dims, std::int64_t axis) : extent(dims[static_cast<std::size_t>(axis)]) {
    for (std::size_t i = 0; i < dims.size(); ++i)
      if (static_cast<std::int64_t>(i) != axis) (static_cast<std::int64_t>(i) < axis ? outer : inner) *= dims[i];
  }
};

/// Whether an element is NaN; integers never are.
template <class T>
bool is_unordered(T x) {
  return x != x;
}

/// The index of the extreme element of each line. Lines side by side are scanned together, in memory order.
template <class T, bool Largest>
struct portable_extreme {
  std::size_t argument = 0;
  int threads = 1;
  bool last = false;
  ordered_lines lines;

  void operator()(const kernel_call& call) const {
    const auto* const in = static_cast<const T*>(call.in[argument]);
    auto* const out = static_cast<std::int64_t*>(call.out[0]);
    constexpr std::int64_t width = 256;
    const std::int64_t stripes = (lines.inner + width - 1) / width;
    const double cost = 4.0 * static_cast<double>(std::min(width, lines.inner) * lines.extent);
    parallel_parts(threads, lines.outer * stripes, 1, cost, [&](std::int64_t first, std::int64_t end) {
      for (std::int64_t i = first; i < end; ++i) {
        const std::int64_t column = i % stripes * width;
        stripe(in + i / stripes * lines.extent * lines.inner + column, std::min(width, lines.inner - column),
               out + i / stripes * lines.inner + column);
      }
    });
  }

 private:
  void stripe(const T* in, std::int64_t columns, std::int64_t* out) const {
    std::fill_n(out, columns, std::int64_t{0});
    for (std::int64_t i = 1; i < lines.extent; ++i)
      for (std::int64_t c = 0; c < columns; ++c) {
        const T held = in[out[c] * lines.inner + c];
        const T x = in[i * lines.inner + c];
        const bool equal = x == held || (is_unordered(x) && is_unordered(held));
        const bool before = (Largest ? x > held : x < held) || (is_unordered(x) && !is_unordered(held));
        if (before || (equal && last)) out[c] = i;
      }
  }
};

template <class T>
kernel make_extreme(const any_match& m, std::uint32_t node, int threads) {
  const bool largest = m.is(node, ops::arg_max);
  const ops::arg_attributes a = largest ? m.attributes(node, ops::arg_max) : m.attributes(node, ops::arg_min);
  const std::uint32_t x = m.inputs_of(node)[0];
  const ordered_lines lines(m.type_of(x).dims, a.axis);
  const std::string name = std::string(m.kind_of(node).name) + " loops";
  if (largest) return kernel(name, portable_extreme<T, true>{m.index_of(x), threads, a.select_last, lines});
  return kernel(name, portable_extreme<T, false>{m.index_of(x), threads, a.select_last, lines});
}

/// The first k elements of each line in sorted order. Each thread sorts indices in its own part of the workspace.
/// Either output may be null.
template <class T>
struct portable_top_k {
  std::size_t argument = 0;
  int threads = 1;
  std::int64_t k = 1;
  bool largest = true;
  ordered_lines lines;

  std::size_t workspace() const {
    return static_cast<std::size_t>(std::max(threads, 1)) * static_cast<std::size_t>(lines.extent) *
           sizeof(std::int64_t);
  }
  void operator()(const kernel_call& call) const {
    const auto* const in = static_cast<const T*>(call.in[argument]);
    auto* const values = static_cast<T*>(call.out[0]);
    auto* const places = static_cast<std::int64_t*>(call.out[1]);
    const std::int64_t count = lines.outer * lines.inner;
    if (k == 0 || count == 0) return;
    const bool small = static_cast<double>(count) * static_cast<double>(lines.extent) < 16384;
    const std::int64_t parts = small ? 1 : std::min<std::int64_t>(count, 4 * std::max(threads, 1));
    parallel(threads, parts, [&](std::int64_t part, int thread) {
      std::int64_t* const order = static_cast<std::int64_t*>(call.workspace) + thread * lines.extent;
      for (std::int64_t i = count * part / parts; i < count * (part + 1) / parts; ++i) {
        const T* const line = in + i / lines.inner * lines.extent * lines.inner + i % lines.inner;
        sort(line, order);
        const std::int64_t to = i / lines.inner * k * lines.inner + i % lines.inner;
        for (std::int64_t j = 0; j < k; ++j) {
          if (values != nullptr) values[to + j * lines.inner] = line[order[j] * lines.inner];
          if (places != nullptr) places[to + j * lines.inner] = order[j];
        }
      }
    });
  }

 private:
  static bool less(T x, T y) { return x < y || (!is_unordered(x) && is_unordered(y)); }
  void sort(const T* line, std::int64_t* order) const {
    for (std::int64_t i = 0; i < lines.extent; ++i) order[i] = i;
    std::partial_sort(order, order + k, order + lines.extent, [&](std::int64_t i, std::int64_t j) {
      const T x = line[i * lines.inner];
      const T y = line[j * lines.inner];
      if (largest ? less(y, x) : less(x, y)) return true;
      return !(largest ? less(x, y) : less(y, x)) && i < j;
    });
  }
};

template <class T>
kernel make_top_k(const any_match& m, std::uint32_t node, int threads) {
  const ops::top_k_attributes a = m.attributes(node, ops::top_k);
  const std::uint32_t x = m.inputs_of(node)[0];
  portable_top_k<T> k{m.index_of(x), threads, a.k, a.largest, ordered_lines(m.type_of(x).dims, a.axis)};
  const std::size_t workspace = k.workspace();
  return kernel("top_k loops", std::move(k), workspace);
}

/// Running sums; float32 is summed in double precision. Lines side by side are summed together, in memory order.
template <class T>
struct portable_running_sum {
  std::size_t argument = 0;
  int threads = 1;
  bool exclusive = false, reverse = false;
  ordered_lines lines;

  void operator()(const kernel_call& call) const {
    const auto* const in = static_cast<const T*>(call.in[argument]);
    auto* const out = static_cast<T*>(call.out[0]);
    const std::int64_t stripes = (lines.inner + width - 1) / width;
    const double cost = 4.0 * static_cast<double>(std::min(width, lines.inner) * lines.extent);
    parallel_parts(threads, lines.outer * stripes, 1, cost, [&](std::int64_t first, std::int64_t end) {
      for (std::int64_t i = first; i < end; ++i) {
        const std::int64_t column = i % stripes * width;
        const std::int64_t at = i / stripes * lines.extent * lines.inner + column;
        stripe(in + at, std::min(width, lines.inner - column), out + at);
      }
    });
  }

 private:
  static constexpr std::int64_t width = 64;
  using sum = std::conditional_t<std::is_floating_point_v<T>, double, std::uint64_t>;  // integers wrap around

  void stripe(const T* in, std::int64_t columns, T* out) const {
    sum sums[width] = {};
    for (std::int64_t i = 0; i < lines.extent; ++i) {
      const std::int64_t row = (reverse ? lines.extent - 1 - i : i) * lines.inner;
      for (std::int64_t c = 0; c < columns; ++c) {
        const sum next = sums[c] + static_cast<sum>(in[row + c]);
        out[row + c] = static_cast<T>(exclusive ? sums[c] : next);
        sums[c] = next;
      }
    }
  }
};

template <class T>
kernel make_running_sum(const any_match& m, std::uint32_t node, int threads) {
  const ops::cumulative_sum_attributes a = m.attributes(node, ops::cumulative_sum);
  const std::uint32_t x = m.inputs_of(node)[0];
  const ordered_lines lines(m.type_of(x).dims, a.axis);
  return kernel("cumulative_sum loops", portable_running_sum<T>{m.index_of(x), threads, a.exclusive, a.reverse, lines});
}

}  // namespace
}  // namespace collage::inline v0::detail::host
