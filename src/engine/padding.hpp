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

  /// How often the dimension occurs in memory.
  std::size_t rows() const { return static_cast<std::size_t>(dims.first(dimension).elements()); }
  /// The bytes of one index in a row.
  std::size_t step(std::size_t element) const {
    return static_cast<std::size_t>(dims.from(dimension + 1).elements()) * element;
  }
  /// Where the part begins in a row.
  std::size_t at(std::size_t row, std::size_t element) const {
    return step(element) * (row * static_cast<std::size_t>(dims[dimension]) + static_cast<std::size_t>(from));
  }
};

/// Copies `count` indices of a dimension between two dense tensors that differ in this dimension only.
inline void copy_slab(const std::byte* from, const slab& source, std::byte* to, const slab& target, std::int64_t count,
                      std::size_t element) {
  const std::size_t bytes = source.step(element) * static_cast<std::size_t>(count);
  for (std::size_t i = 0; i < source.rows() && bytes != 0; ++i)
    std::memcpy(to + target.at(i, element), from + source.at(i, element), bytes);
}

/// Zeros in `count` indices of a dimension of a dense tensor.
inline void clear_slab(std::byte* of, const slab& from, std::int64_t count, std::size_t element) {
  const std::size_t bytes = from.step(element) * static_cast<std::size_t>(count);
  for (std::size_t i = 0; i < from.rows() && bytes != 0; ++i) std::memset(of + from.at(i, element), 0, bytes);
}

inline shape with_extent(shape dims, std::size_t dimension, std::int64_t extent) {
  dims[dimension] = extent;
  return dims;
}

}  // namespace collage::inline v0::detail
