// Operators about the order of elements along an axis.
#pragma once

#include <algorithm>
#include <collage/backends/impl/reference_loops.hpp>
#include <collage/error.hpp>
#include <collage/op/order.hpp>
#include <collage/run/elements.hpp>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

namespace collage::inline v0::detail {

/// A tensor as lines along one axis: line l begins at start(l), its elements lie `inner` apart.
struct axis_lines {
  std::int64_t outer = 1, extent = 1, inner = 1;
  axis_lines(const shape& dims, std::int64_t axis)
      : outer(product(dims, 0, static_cast<std::size_t>(axis))),
        extent(dims[static_cast<std::size_t>(axis)]),
        inner(product(dims, static_cast<std::size_t>(axis) + 1, dims.size())) {}
  std::int64_t count() const { return outer * inner; }
  std::int64_t start(std::int64_t line) const { return line / inner * extent * inner + line % inner; }
  /// Calls body(line) for all lines, in parallel.
  template <class Body>
  void for_each(const Body& body) const {
    parallel_for(count(), elements_per_part / std::max<std::int64_t>(extent, 1),
                 [&](std::int64_t first, std::int64_t last) {
                   for (std::int64_t line = first; line < last; ++line) body(line);
                 });
  }
};

/// Calls body(Element{}, less) with an order of the type's elements in which NaN is the largest.
template <class Body>
void with_order(const reference_tensor& t, const Body& body) {
  if (is_floating(t.type.type)) return body(double{}, [](double x, double y) { return x < y || (x == x && y != y); });
  with_integer_type(t.type.type, [&](auto zero) { body(std::int64_t{}, integer_arithmetic<decltype(zero)>::less); });
}

/// Where the element of each line is that no other is before.
inline void find_extreme(const ops::arg_attributes& a, const reference_call& call, bool largest) {
  const axis_lines lines(call.in[0].type.dims, a.axis);
  with_order(call.in[0], [&](auto zero, const auto& less) {
    using element = decltype(zero);
    const element* const in = elements_of<element>(call.in[0]).data();
    lines.for_each([&](std::int64_t line) {
      const element* const from = in + lines.start(line);
      std::int64_t best = 0;
      for (std::int64_t i = 1; i < lines.extent; ++i) {
        const element held = from[best * lines.inner];
        const element x = from[i * lines.inner];
        // NaN is the extreme one of either kind.
        const bool before = largest || held != held || x != x ? less(held, x) : less(x, held);
        const bool equal = x == held || (x != x && held != held);
        if (before || (equal && a.select_last)) best = i;
      }
      call.out[0].integer[static_cast<std::size_t>(line)] = best;
    });
  });
}

}  // namespace collage::inline v0::detail

namespace collage::inline v0 {

void ops::trilu::reference(const attributes& a, const reference_call& call) {
  const shape& x = call.in[0].type.dims;
  const std::int64_t rows = x[x.size() - 2];
  const std::int64_t columns = x[x.size() - 1];
  detail::with_elements(call.in[0], [&](auto zero) {
    using element = decltype(zero);
    const element* const in = detail::elements_of<element>(call.in[0]).data();
    element* const out = detail::elements_of<element>(call.out[0]).data();
    const std::int64_t count = detail::product(x, 0, x.size() - 1);
    detail::parallel_for(count, detail::elements_per_part, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t row = first; row < last; ++row)
        for (std::int64_t column = 0; column < columns; ++column) {
          const std::int64_t diagonal = column - row % rows;
          const bool inside = a.upper ? diagonal >= a.k : diagonal <= a.k;
          out[row * columns + column] = inside ? in[row * columns + column] : element{};
        }
    });
  });
}

void ops::reverse_sequence::reference(const attributes& a, const reference_call& call) {
  const shape& x = call.in[0].type.dims;
  const detail::axis_lines times(x, a.time_axis);
  const detail::axis_lines batches(x, a.batch_axis);
  for (const std::int64_t length : call.in[1].integer)
    if (length < 0 || length > times.extent)
      throw error(error_kind::invalid_argument,
                  "a length is " + std::to_string(length) + ", but its time axis has " + std::to_string(times.extent) +
                      " elements",
                  name);
  if (x.elements() == 0) return;
  detail::with_elements(call.in[0], [&](auto zero) {
    using element = decltype(zero);
    const element* const in = detail::elements_of<element>(call.in[0]).data();
    element* const out = detail::elements_of<element>(call.out[0]).data();
    times.for_each([&](std::int64_t line) {
      const std::int64_t start = times.start(line);
      const std::int64_t batch = start / batches.inner % batches.extent;
      const std::int64_t length = call.in[1].integer[static_cast<std::size_t>(batch)];
      for (std::int64_t i = 0; i < times.extent; ++i)
        out[start + i * times.inner] = in[start + (i < length ? length - 1 - i : i) * times.inner];
    });
  });
}

void ops::cumulative_sum::reference(const attributes& a, const reference_call& call) {
  const detail::axis_lines lines(call.in[0].type.dims, a.axis);
  const auto run = [&](auto zero, const auto& add) {
    using element = decltype(zero);
    const element* const in = detail::elements_of<element>(call.in[0]).data();
    element* const out = detail::elements_of<element>(call.out[0]).data();
    lines.for_each([&](std::int64_t line) {
      element sum{};
      for (std::int64_t i = 0; i < lines.extent; ++i) {
        const std::int64_t at = lines.start(line) + (a.reverse ? lines.extent - 1 - i : i) * lines.inner;
        const element next = add(sum, in[at]);
        out[at] = a.exclusive ? sum : next;
        sum = next;
      }
    });
  };
  if (is_floating(call.in[0].type.type)) return run(double{}, [](double x, double y) { return x + y; });
  detail::with_integer_type(call.in[0].type.type,
                            [&](auto zero) { run(std::int64_t{}, detail::integer_arithmetic<decltype(zero)>::add); });
}

void ops::top_k::reference(const attributes& a, const reference_call& call) {
  const detail::axis_lines lines(call.in[0].type.dims, a.axis);
  detail::with_order(call.in[0], [&](auto zero, const auto& less) {
    using element = decltype(zero);
    const element* const in = detail::elements_of<element>(call.in[0]).data();
    element* const values = detail::elements_of<element>(call.out[0]).data();
    std::int64_t* const indices = call.out[1].integer.data();
    lines.for_each([&](std::int64_t line) {
      const element* const from = in + lines.start(line);
      std::vector<std::int64_t> order(static_cast<std::size_t>(lines.extent));
      std::iota(order.begin(), order.end(), std::int64_t{0});
      std::partial_sort(order.begin(), order.begin() + a.k, order.end(), [&](std::int64_t i, std::int64_t j) {
        const element x = from[i * lines.inner];
        const element y = from[j * lines.inner];
        if (a.largest ? less(y, x) : less(x, y)) return true;
        return !(a.largest ? less(x, y) : less(y, x)) && i < j;
      });
      const std::int64_t to = line / lines.inner * a.k * lines.inner + line % lines.inner;
      for (std::int64_t i = 0; i < a.k; ++i) {
        const std::int64_t index = order[static_cast<std::size_t>(i)];
        values[to + i * lines.inner] = from[index * lines.inner];
        indices[to + i * lines.inner] = index;
      }
    });
  });
}

void ops::arg_max::reference(const attributes& a, const reference_call& call) { detail::find_extreme(a, call, true); }
void ops::arg_min::reference(const attributes& a, const reference_call& call) { detail::find_extreme(a, call, false); }

}  // namespace collage::inline v0
