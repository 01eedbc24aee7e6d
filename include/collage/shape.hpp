// Shapes: short lists of 64-bit extents, stored in place so that constant expressions can use them.
#pragma once

#include <collage/dtype.hpp>
#include <collage/list_view.hpp>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace collage::inline v0 {

/// An unknown extent. Any negative extent is a symbol. Shape rules pass symbols on or return `unknown`.
inline constexpr std::int64_t unknown = -1;

/// Extents of a tensor, outermost first; also any other short list of integers, such as strides, axes or pads. Rank 0 is a
/// scalar. Code that builds a shape refuses more than `max_rank` entries.
struct shape {
  static constexpr std::size_t max_rank = 8;

  std::uint32_t rank = 0;
  std::int64_t extent[max_rank] = {};

  constexpr shape() = default;
  /// From a braced list: shape{1, 3, 224, 224}. A ninth entry does not compile.
  template <class... Int>
    requires(sizeof...(Int) > 0 && sizeof...(Int) <= max_rank && (std::is_integral_v<Int> && ...))
  constexpr shape(Int... list) : rank(sizeof...(Int)), extent{static_cast<std::int64_t>(list)...} {}
  template <class... Int>
    requires(sizeof...(Int) > max_rank && (std::is_integral_v<Int> && ...))
  constexpr shape(Int...) {
    static_assert(sizeof...(Int) <= max_rank, "a shape has at most 8 extents");
  }
  /// From a contiguous list: a span, a vector. It is a template so that copying a shape does not check this constraint on a
  /// shape.
  template <class List>
    requires requires(const List& list) {
      static_cast<const std::int64_t*>(list.data());
      static_cast<std::size_t>(list.size());
    }
  constexpr explicit shape(const List& list) : rank(static_cast<std::uint32_t>(list.size())) {
    for (std::size_t i = 0; i < rank; ++i) extent[i] = list.data()[i];
  }
  /// `count` times the same value.
  static constexpr shape filled(std::size_t count, std::int64_t value) {
    shape s;
    s.rank = static_cast<std::uint32_t>(count);
    for (std::size_t i = 0; i < count; ++i) s.extent[i] = value;
    return s;
  }

  constexpr std::size_t size() const { return rank; }
  constexpr bool empty() const { return rank == 0; }
  constexpr std::int64_t operator[](std::size_t i) const { return extent[i]; }
  constexpr std::int64_t& operator[](std::size_t i) { return extent[i]; }
  constexpr const std::int64_t* begin() const { return extent; }
  constexpr const std::int64_t* end() const { return extent + rank; }
  constexpr void push_back(std::int64_t value) { extent[rank++] = value; }
  constexpr list_view<const std::int64_t> list() const { return {extent, rank}; }
  /// The first `count` extents.
  constexpr shape first(std::size_t count) const {
    shape s;
    for (std::size_t i = 0; i < count; ++i) s.extent[i] = extent[i];
    s.rank = static_cast<std::uint32_t>(count);
    return s;
  }
  /// The extents from dimension `start` to the last.
  constexpr shape from(std::size_t start) const {
    shape s;
    for (std::size_t i = start; i < rank; ++i) s.extent[i - start] = extent[i];
    s.rank = rank - static_cast<std::uint32_t>(start);
    return s;
  }

  /// Number of elements; 1 for a scalar; `unknown` if any extent is a symbol.
  constexpr std::int64_t elements() const {
    std::int64_t product = 1;
    for (std::uint32_t i = 0; i < rank; ++i) {
      if (extent[i] < 0) return unknown;
      product *= extent[i];
    }
    return product;
  }
  /// Whether every extent is known. It does not multiply the extents: a user may give any, and their product may overflow.
  constexpr bool is_concrete() const {
    for (std::uint32_t i = 0; i < rank; ++i)
      if (extent[i] < 0) return false;
    return true;
  }

  friend constexpr bool operator==(const shape& a, const shape& b) {
    if (a.rank != b.rank) return false;
    for (std::uint32_t i = 0; i < a.rank; ++i)
      if (a.extent[i] != b.extent[i]) return false;
    return true;
  }
};

/// Element type and shape: all that is known about a value before it is computed.
struct tensor_type {
  dtype type = dtype::f32;
  shape dims;

  constexpr std::size_t rank() const { return dims.rank; }
  /// Bytes of a dense tensor of this type. Requires concrete dims.
  constexpr std::size_t bytes() const { return static_cast<std::size_t>(dims.elements()) * size_of(type); }
  friend constexpr bool operator==(const tensor_type&, const tensor_type&) = default;
};

}  // namespace collage::inline v0
