// Padding of tensors, for runs at larger shapes than the inputs have.
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

}  // namespace collage::inline v0::detail
