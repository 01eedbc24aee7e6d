// Shapes: short lists of 64-bit extents, kept in place so that they can be used in constant evaluation.
#pragma once

#include <collage/dtype.hpp>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

namespace collage::inline v0 {

/// An extent that is not known. Any negative extent is a symbol; shape rules pass symbols on or answer `unknown`.
inline constexpr std::int64_t unknown = -1;

/// Extents of a tensor, outermost first; also any other short list of integers (strides, axes, pads).
/// Rank 0 is a scalar. More than `max_rank` entries is refused by whoever builds one.
struct shape {
  static constexpr std::size_t max_rank = 8;

  std::uint32_t rank = 0;
  std::int64_t extent[max_rank] = {};

  constexpr shape() = default;
  /// From a braced list: shape{1, 3, 224, 224}. A ninth entry does not compile.
  template <class... Int>
    requires(sizeof...(Int) > 0 && (std::is_integral_v<Int> && ...))
  constexpr shape(Int... list) : rank(sizeof...(Int)), extent{static_cast<std::int64_t>(list)...} {
    static_assert(sizeof...(Int) <= max_rank, "a shape has at most 8 extents");
  }
  constexpr explicit shape(std::span<const std::int64_t> list) : rank(static_cast<std::uint32_t>(list.size())) {
    for (std::size_t i = 0; i < list.size(); ++i) extent[i] = list[i];
  }
  /// `count` times the same value.
  static constexpr shape filled(std::size_t count, std::int64_t value) {
    shape s;
    for (std::size_t i = 0; i < count; ++i) s.push_back(value);
    return s;
  }

  constexpr std::size_t size() const { return rank; }
  constexpr bool empty() const { return rank == 0; }
  constexpr std::int64_t operator[](std::size_t i) const { return extent[i]; }
  constexpr std::int64_t& operator[](std::size_t i) { return extent[i]; }
  constexpr const std::int64_t* begin() const { return extent; }
  constexpr const std::int64_t* end() const { return extent + rank; }
  constexpr void push_back(std::int64_t value) { extent[rank++] = value; }
  constexpr std::span<const std::int64_t> list() const { return {extent, rank}; }

  /// Number of elements; 1 for a scalar; `unknown` when an extent is a symbol.
  constexpr std::int64_t elements() const {
    std::int64_t product = 1;
    for (std::uint32_t i = 0; i < rank; ++i) {
      if (extent[i] < 0) return unknown;
      product *= extent[i];
    }
    return product;
  }
  /// Whether every extent is known. Multiplies nothing: extents that a user gave may be of any size.
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

/// Element type and shape: what is known of a value before it is computed.
struct tensor_type {
  dtype type = dtype::f32;
  shape dims;

  constexpr std::size_t rank() const { return dims.rank; }
  /// Bytes of a dense tensor of this type. Requires concrete dims.
  constexpr std::size_t bytes() const { return static_cast<std::size_t>(dims.elements()) * size_of(type); }
  friend constexpr bool operator==(const tensor_type&, const tensor_type&) = default;
};

}  // namespace collage::inline v0
