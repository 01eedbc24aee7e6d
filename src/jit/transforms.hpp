// The transforms of convolutions by bilinear algorithms: from images to V, and from M to images, for parts of a block of tiles.
//
// V and M are matrices for each product: a row has the channels of one tile.
#pragma once

#include "convolution_configuration.hpp"
#include "epilogue.hpp"

#include <cstdint>

namespace collage::inline v0::detail::jit {

/// Where the elements of an image lie. All steps are in floats.
struct image_steps {
  std::int64_t image = 0;
  std::int64_t block = 0;    ///< 16 channels further
  std::int64_t channel = 0;  ///< within 16 channels
  std::int64_t row = 0, pixel = 0;
  bool is_filled = false;  ///< whether the channels of the last block are filled up to 16
  std::int64_t slice = 0;  ///< of a depth

  std::int64_t at(std::int64_t n, std::int64_t c) const { return n * image + c / 16 * block + c % 16 * channel; }
};
image_steps steps_of(image_layout layout, std::int64_t channels, std::int64_t height, std::int64_t width,
                     std::int64_t depth = 1);
/// Floats of a whole tensor.
std::int64_t image_floats(image_layout layout, std::int64_t batch, std::int64_t channels, std::int64_t height,
                          std::int64_t width, std::int64_t depth = 1);

/// The tiles, channels and slices of a part. `first_channel` is a multiple of 16.
struct transform_part {
  std::int64_t first_tile = 0, last_tile = 0;  ///< of the block
  std::int64_t first_channel = 0, last_channel = 0;
  std::int64_t first_slice = 0, last_slice = 1;  ///< of the block
};

struct input_transform {
  const float* from = nullptr;
  image_steps steps;
  std::int64_t channels = 0, height = 0, width = 0, pad_top = 0, pad_left = 0;
  std::int64_t down = 0, across = 0;  ///< tiles of an image
  std::int64_t block_begin = 0;       ///< the first tile of the block
  float* to = nullptr;                ///< V
  std::int64_t to_step = 0, to_row = 0;
  std::int64_t depth = 1;        ///< slices of the image
  std::int64_t slices = 1;       ///< rows of a tile, one for each slice
  std::int64_t first_slice = 0;  ///< the block's in the image; slices outside of the image are zeros
  bool is_dense = false;         ///< rows follow each other without a gap; else they end with a whole vector
};

struct output_transform {
  const float* from = nullptr;  ///< M
  std::int64_t from_step = 0, from_row = 0;
  image_steps steps;
  std::int64_t channels = 0, height = 0, width = 0;  ///< of the output
  std::int64_t down = 0, across = 0, block_begin = 0;
  std::int64_t skip_top = 0, skip_left = 0;  ///< outputs of the first tiles before the image's first one
  const epilogue* finish = nullptr;
  const float* const* operands = nullptr;  ///< whole ones lie as outputs do
  float* const* outputs = nullptr;         ///< one without an epilogue
  std::int64_t slices = 1;                 ///< rows of a tile, one for each slice
  std::int64_t first_slice = 0;            ///< the block's in the image
};

/// One panel of weights: those of all inner steps, for up to so many output channels.
struct weight_transform {
  const float* from = nullptr;  ///< [steps][taps of the window][width]
  float* to = nullptr;          ///< [steps][width] for each product
  std::int64_t to_step = 0;     ///< floats between products
  std::int64_t steps = 0, width = 0;
};

struct transform_functions {
  void (*input)(const input_transform& t, const transform_part& part);
  /// The channels of a part may reach to a multiple of 16: those that fill up an image are written as 0. False: some output
  /// was not finite before its epilogue.
  bool (*output)(const output_transform& t, const transform_part& part);
  void (*weights)(const weight_transform& t);
};

/// For the best of SSE4, AVX2 and AVX-512 that this processor has, if any. `family` is an index.
transform_functions transforms_of(int family);

}  // namespace collage::inline v0::detail::jit
