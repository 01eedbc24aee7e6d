// Operators that read or write at the places that an operand names: gathers and scatters.
#pragma once

#include <algorithm>
#include <collage/backends/impl/reference_loops.hpp>
#include <collage/error.hpp>
#include <collage/op/gather.hpp>
#include <collage/run/elements.hpp>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace collage::inline v0::detail {

/// Turns a negative index, which counts from the end, into one from the start. Throws if the index is outside.
inline std::int64_t resolve_index(std::int64_t index, std::int64_t extent, const char* kind) {
  if (index < -extent || index >= extent)
    throw error(
        error_kind::invalid_argument,
        "an index is " + std::to_string(index) + ", but the dimension has " + std::to_string(extent) + " elements",
        kind);
  return index < 0 ? index + extent : index;
}

/// The steps through a tensor for a walk over the indices of gather_elements or scatter_elements. The step of the axis
/// is 0, because each index itself gives the position along the axis.
inline shape steps_beside(const shape& dims, std::int64_t axis) {
  shape steps = dense_steps(dims);
  steps[static_cast<std::size_t>(axis)] = 0;
  return steps;
}

/// The offset of the slice that a row of indices names in gather_nd or scatter_nd. The first index is for dimension
/// `first`.
inline std::int64_t slice_offset(const shape& dims, const shape& steps, std::size_t first,
                                 std::span<const std::int64_t> indices, const char* kind) {
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < indices.size(); ++i)
    offset += resolve_index(indices[i], dims[first + i], kind) * steps[first + i];
  return offset;
}

/// Calls `body` with the function that combines an update with the element already there.
template <class Element, class Body>
void with_combination(ops::scatter_reduction how, dtype type, const Body& body) {
  using enum ops::scatter_reduction;
  if (how == none) return body([](Element, Element update) { return update; });
  if constexpr (std::is_same_v<Element, double>) {
    switch (how) {
      case sum: return body([](double x, double update) { return x + update; });
      case product: return body([](double x, double update) { return x * update; });
      case largest: return body([](double x, double update) { return update > x || update != update ? update : x; });
      default: return body([](double x, double update) { return update < x || update != update ? update : x; });
    }
  } else {
    with_integer_type(type, [&](auto zero) {
      using arithmetic = integer_arithmetic<decltype(zero)>;
      switch (how) {
        case sum: return body(arithmetic::add);
        case product: return body(arithmetic::multiply);
        case largest: return body(arithmetic::maximum);
        default: return body(arithmetic::minimum);
      }
    });
  }
}

}  // namespace collage::inline v0::detail

namespace collage::inline v0 {

void ops::gather::reference(const attributes& a, const reference_call& call) {
  const shape& x = call.in[0].type.dims;
  const auto axis = static_cast<std::size_t>(a.axis);
  const std::int64_t inner = detail::product(x, axis + 1, x.size());
  const auto indices = static_cast<std::int64_t>(call.in[1].integer.size());
  detail::with_elements(call.in[0], [&](auto zero) {
    using element = decltype(zero);
    const element* const in = detail::elements_of<element>(call.in[0]).data();
    element* const out = detail::elements_of<element>(call.out[0]).data();
    const std::int64_t least = detail::elements_per_part / std::max<std::int64_t>(inner, 1);
    detail::parallel_for(detail::product(x, 0, axis) * indices, least, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) {
        const std::int64_t index = call.in[1].integer[static_cast<std::size_t>(i % indices)];
        const std::int64_t row = i / indices * x[axis] + detail::resolve_index(index, x[axis], name);
        std::copy_n(in + row * inner, inner, out + i * inner);
      }
    });
  });
}

void ops::gather_elements::reference(const attributes& a, const reference_call& call) {
  const shape& x = call.in[0].type.dims;
  const auto axis = static_cast<std::size_t>(a.axis);
  const std::int64_t step = detail::dense_steps(x)[axis];
  const detail::walk places(call.in[1].type.dims, {detail::steps_beside(x, a.axis)});
  detail::with_elements(call.in[0], [&](auto zero) {
    using element = decltype(zero);
    const element* const in = detail::elements_of<element>(call.in[0]).data();
    element* const out = detail::elements_of<element>(call.out[0]).data();
    detail::parallel_for(places.size(), detail::elements_per_part, [&](std::int64_t first, std::int64_t last) {
      detail::walk own = places;
      own.visit(first, last, [&](std::int64_t at, std::int64_t count, const std::int64_t* offsets) {
        for (std::int64_t i = 0; i < count; ++i) {
          const std::int64_t index = call.in[1].integer[static_cast<std::size_t>(at + i)];
          out[at + i] = in[offsets[0] + i * own.step(0) + detail::resolve_index(index, x[axis], name) * step];
        }
      });
    });
  });
}

void ops::gather_nd::reference(const attributes& a, const reference_call& call) {
  const shape& x = call.in[0].type.dims;
  const shape& indices = call.in[1].type.dims;
  const auto shared = static_cast<std::size_t>(a.batch_dims);
  const auto depth = static_cast<std::size_t>(indices[indices.size() - 1]);
  const shape steps = detail::dense_steps(x);
  const std::int64_t inner = detail::product(x, shared + depth, x.size());
  const std::int64_t slices = detail::product(indices, 0, indices.size() - 1);
  const std::int64_t per_batch = detail::product(indices, shared, indices.size() - 1);
  const std::int64_t batch = detail::product(x, shared, x.size());
  detail::with_elements(call.in[0], [&](auto zero) {
    using element = decltype(zero);
    const element* const in = detail::elements_of<element>(call.in[0]).data();
    element* const out = detail::elements_of<element>(call.out[0]).data();
    const std::int64_t least = detail::elements_per_part / std::max<std::int64_t>(inner, 1);
    detail::parallel_for(slices, least, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) {
        const auto row = std::span<const std::int64_t>(call.in[1].integer).subspan(static_cast<std::size_t>(i) * depth);
        const std::int64_t offset = detail::slice_offset(x, steps, shared, row.first(depth), name);
        std::copy_n(in + i / per_batch * batch + offset, inner, out + i * inner);
      }
    });
  });
}

void ops::scatter_elements::reference(const attributes& a, const reference_call& call) {
  const shape& x = call.in[0].type.dims;
  const auto axis = static_cast<std::size_t>(a.axis);
  const std::int64_t step = detail::dense_steps(x)[axis];
  detail::walk places(call.in[1].type.dims, {detail::steps_beside(x, a.axis)});
  detail::with_elements(call.in[0], [&](auto zero) {
    using element = decltype(zero);
    const auto in = detail::elements_of<element>(call.in[0]);
    const element* const updates = detail::elements_of<element>(call.in[2]).data();
    element* const out = detail::elements_of<element>(call.out[0]).data();
    std::copy(in.begin(), in.end(), out);
    detail::with_combination<element>(a.reduction, call.in[0].type.type, [&](const auto& combine) {
      places.visit_all([&](std::int64_t at, std::int64_t count, const std::int64_t* offsets) {
        for (std::int64_t i = 0; i < count; ++i) {
          const std::int64_t index = call.in[1].integer[static_cast<std::size_t>(at + i)];
          element& to = out[offsets[0] + i * places.step(0) + detail::resolve_index(index, x[axis], name) * step];
          to = combine(to, updates[at + i]);
        }
      });
    });
  });
}

void ops::scatter_nd::reference(const attributes& a, const reference_call& call) {
  const shape& x = call.in[0].type.dims;
  const shape& indices = call.in[1].type.dims;
  const auto depth = static_cast<std::size_t>(indices[indices.size() - 1]);
  const shape steps = detail::dense_steps(x);
  const std::int64_t inner = detail::product(x, depth, x.size());
  const std::int64_t slices = detail::product(indices, 0, indices.size() - 1);
  detail::with_elements(call.in[0], [&](auto zero) {
    using element = decltype(zero);
    const auto in = detail::elements_of<element>(call.in[0]);
    const element* const updates = detail::elements_of<element>(call.in[2]).data();
    element* const out = detail::elements_of<element>(call.out[0]).data();
    std::copy(in.begin(), in.end(), out);
    detail::with_combination<element>(a.reduction, call.in[0].type.type, [&](const auto& combine) {
      for (std::int64_t i = 0; i < slices; ++i) {
        const auto row = std::span<const std::int64_t>(call.in[1].integer).subspan(static_cast<std::size_t>(i) * depth);
        element* const to = out + detail::slice_offset(x, steps, 0, row.first(depth), name);
        for (std::int64_t j = 0; j < inner; ++j) to[j] = combine(to[j], updates[i * inner + j]);
      }
    });
  });
}

}  // namespace collage::inline v0
