// Padding and parts of tensors, for runs at larger shapes than the inputs have.
#pragma once

#include <cmath>
#include <collage/error.hpp>
#include <collage/run/elements.hpp>
#include <collage/shape.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace collage::inline v0::detail {

/// The bytes of one element with this value. Error: the type of an input does not have the value.
inline std::vector<std::byte> padding_element(dtype type, double value, const std::string& input) {
  std::vector<std::byte> bytes(size_of(type));
  if (is_floating(type)) {
    store_elements(type, std::span<const double>(&value, 1), bytes.data());
    return bytes;
  }
  const auto refuse = [&] {
    throw error(error_kind::invalid_argument, "the padding " + std::to_string(value) + " is no " + name_of(type),
                "input " + input);
  };
  if (!(std::abs(value) < 0x1p62) || std::floor(value) != value) refuse();
  const auto whole = static_cast<std::int64_t>(value);
  store_elements(type, std::span<const std::int64_t>(&whole, 1), bytes.data());
  std::int64_t back = 0;
  load_elements(type, bytes.data(), std::span<std::int64_t>(&back, 1));
  if (back != whole) refuse();
  return bytes;
}

/// Fills memory with copies of an element.
inline void fill_with(std::span<const std::byte> element, std::byte* to, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += element.size()) std::memcpy(to + at, element.data(), element.size());
}

/// The part of a dense tensor from one index of a dimension on.
struct slab {
  const shape& dims;  ///< outlives this
  std::size_t dimension;
  std::int64_t from;
};

/// Copies `count` indices of a dimension between two dense tensors that differ in this dimension only.
inline void copy_slab(const std::byte* from, const slab& source, std::byte* to, const slab& target, std::int64_t count,
                      std::size_t element) {
  std::size_t inner = element, outer = 1;
  for (std::size_t d = 0; d < source.dims.size(); ++d) {
    const auto extent = static_cast<std::size_t>(source.dims[d]);
    if (d < source.dimension) outer *= extent;
    if (d > source.dimension) inner *= extent;
  }
  const std::size_t bytes = inner * static_cast<std::size_t>(count);
  if (bytes == 0) return;
  const auto row = [&](const slab& of, std::size_t i) {
    return inner * (i * static_cast<std::size_t>(of.dims[of.dimension]) + static_cast<std::size_t>(of.from));
  };
  for (std::size_t i = 0; i < outer; ++i) std::memcpy(to + row(target, i), from + row(source, i), bytes);
}

inline shape with_extent(shape dims, std::size_t dimension, std::int64_t extent) {
  dims[dimension] = extent;
  return dims;
}

/// Zeros in `count` indices of a dimension of a dense tensor.
inline void clear_slab(std::byte* of, const slab& from, std::int64_t count, std::size_t element) {
  std::size_t inner = element, outer = 1;
  for (std::size_t d = 0; d < from.dims.size(); ++d) {
    if (d < from.dimension) outer *= static_cast<std::size_t>(from.dims[d]);
    if (d > from.dimension) inner *= static_cast<std::size_t>(from.dims[d]);
  }
  const std::size_t row = inner * static_cast<std::size_t>(from.dims[from.dimension]);
  const std::size_t bytes = inner * static_cast<std::size_t>(count);
  for (std::size_t i = 0; i < outer && bytes != 0; ++i)
    std::memset(of + i * row + inner * static_cast<std::size_t>(from.from), 0, bytes);
}

}  // namespace collage::inline v0::detail
