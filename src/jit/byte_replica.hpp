// Depthwise convolutions of bytes without generated code: the same results on any processor.
#pragma once

#include "byte_depthwise.hpp"

#include <cstdint>

namespace collage::inline v0::detail::jit {

/// A row of outputs of one image.
struct byte_replica_row {
  const byte_depthwise_shape& shape;
  const byte_depthwise_terms& terms;
  const std::uint8_t* from = nullptr;  ///< the image
  const float* weights = nullptr;      ///< [taps][channels], whole numbers
  void* to = nullptr;                  ///< the row
  std::int64_t y = 0;
};
using byte_replica_function = void (*)(const byte_replica_row& row);

/// For images of u8 or i8, and the best kind of processor that this one is.
byte_replica_function byte_replica(dtype source);

}  // namespace collage::inline v0::detail::jit
