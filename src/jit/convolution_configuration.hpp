// Convolutions by bilinear algorithms: their shapes, their configurations as values and texts, and the memory they need.
//
// A text is canonical, as in "winograd1 F(4,3) accurate avx512 tile 14x2 unroll 4 prefetch 0 broadcast memory block 56 threads
// tiles". Blocks of several slices of a depth are written as "block 14 slices 3". Weights that are transformed in each run add the words
// "weights on-the-fly". A configuration changes how fast a convolution is; its family changes errors, too.
#pragma once

#include "configuration.hpp"
#include "convolution_families.hpp"
#include "extent_check.hpp"

#include <algorithm>
#include <collage/detail/sentence.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace collage::inline v0::detail::jit {

/// Raised with every change after which an old text would mean another kernel.
inline constexpr int convolution_version = 1;

/// In which order an image lies in memory: the layouts `plain`, `channels_last` and `blocked_16` of collage/layout.hpp.
enum class image_layout : std::uint8_t { plain, channels_last, blocked_16 };

/// A convolution with stride 1, dilation 1 and one group, in two or three dimensions, perhaps of an image that is enlarged first.
/// Pads may be larger than the window.
struct convolution_shape {
  std::int64_t batch = 1, channels = 1, outputs = 1;  ///< `outputs` are channels
  std::int64_t height = 1, width = 1;                 ///< of the input
  std::int64_t window_height = 3, window_width = 3;
  std::int64_t pad_top = 0, pad_left = 0, pad_bottom = 0, pad_right = 0;
  std::int64_t depth = 1, window_depth = 1, pad_front = 0, pad_back = 0;  ///< in three dimensions: slices
  image_layout from = image_layout::plain, to = image_layout::plain;
  /// In both dimensions, each element of the input stands for so many. Windows and pads are those of the enlarged image.
  std::int64_t enlargement = 1;

  constexpr std::int64_t output_height() const {
    return height * enlargement + pad_top + pad_bottom - window_height + 1;
  }
  constexpr std::int64_t output_width() const { return width * enlargement + pad_left + pad_right - window_width + 1; }
  constexpr std::int64_t output_depth() const { return depth + pad_front + pad_back - window_depth + 1; }
  friend constexpr bool operator==(const convolution_shape&, const convolution_shape&) = default;
};

/// The slices of the window that any output needs. All others meet pads alone, whatever the output.
struct depth_taps {
  std::int64_t first = 0, last = 1;
  constexpr std::int64_t count() const { return last - first; }
};
constexpr depth_taps taps_of(const convolution_shape& s) {
  const std::int64_t first = s.window_depth - s.depth - s.pad_back, last = s.depth + s.pad_front;
  return {first < 0 ? 0 : first, last < s.window_depth ? last : s.window_depth};
}

/// How threads share the work. Results are the same bit by bit.
enum class work_partition : std::uint8_t {
  tiles,  ///< each thread transforms, multiplies and transforms back blocks of tiles, in scratch memory of its own
  phases  ///< all threads work on one block: on its inputs, then its products, then its outputs
};

/// When weights are transformed.
enum class weight_transform_time : std::uint8_t {
  once,       ///< at loading; the transformed weights are kept, which are several times as large
  on_the_fly  ///< in each run, a panel of output channels at a time, in scratch memory; the weights are kept as they are
};

struct convolution_configuration {
  int family = 0;  ///< an index into `convolution_families`
  configuration product = {};
  int block = 56;  ///< tiles that are transformed before they are multiplied
  int slices = 1;  ///< of the output's depth in one block; each of its tiles is in all of them
  work_partition partition = work_partition::tiles;
  weight_transform_time weights = weight_transform_time::once;

  constexpr const convolution_family& algorithm() const {
    return convolution_families[static_cast<std::size_t>(family)];
  }
  friend constexpr bool operator==(const convolution_configuration&, const convolution_configuration&) = default;
};

inline constexpr int most_block_tiles = 65536;

/// Why there is no such convolution, in one sentence; empty if there is.
constexpr sentence fault_of(const convolution_configuration& c) {
  sentence why;
  if (c.family < 0 || c.family >= static_cast<int>(convolution_family_count))
    why << "the family is " << c.family << ", and must be from 0 to " << convolution_family_count - 1;
  else if (c.block < 1 || c.block > most_block_tiles)
    why << "the number of tiles of a block is " << c.block << ", and must be from 1 to " << most_block_tiles;
  else if (c.slices < 1 || c.slices > most_block_tiles)
    why << "the number of slices of a block is " << c.slices << ", and must be from 1 to " << most_block_tiles;
  else return fault_of(c.product);
  return why;
}

/// Why a shape is no convolution, in one sentence; empty if it is one.
constexpr sentence fault_of(const convolution_shape& s) {
  sentence why;
  if (is_outside(why, "the batch", s.batch, 1) || is_outside(why, "the number of input channels", s.channels, 1) ||
      is_outside(why, "the number of output channels", s.outputs, 1) || is_outside(why, "the height", s.height, 1) ||
      is_outside(why, "the width", s.width, 1) || is_outside(why, "the window's height", s.window_height, 1) ||
      is_outside(why, "the window's width", s.window_width, 1) || is_outside(why, "the pad above", s.pad_top, 0) ||
      is_outside(why, "the pad at the left", s.pad_left, 0) || is_outside(why, "the pad below", s.pad_bottom, 0) ||
      is_outside(why, "the pad at the right", s.pad_right, 0) || is_outside(why, "the enlargement", s.enlargement, 1) ||
      is_outside(why, "the output's height", s.output_height(), 1) ||
      is_outside(why, "the output's width", s.output_width(), 1) || is_outside(why, "the depth", s.depth, 1) ||
      is_outside(why, "the window's depth", s.window_depth, 1) || is_outside(why, "the pad in front", s.pad_front, 0) ||
      is_outside(why, "the pad at the back", s.pad_back, 0) ||
      is_outside(why, "the output's depth", s.output_depth(), 1))
    return why;
  return why;
}

/// Why a configuration does not compute a shape, in one sentence; empty if it does.
constexpr sentence fault_of(const convolution_configuration& c, const convolution_shape& s) {
  if (sentence why = fault_of(c); !why.empty()) return why;
  if (sentence why = fault_of(s); !why.empty()) return why;
  sentence why;
  const convolution_family& f = c.algorithm();
  if (f.window_rows != s.window_height || f.window_columns != s.window_width)
    why << f.name << " computes windows of " << f.window_rows << "x" << f.window_columns << ", and not of "
        << s.window_height << "x" << s.window_width;
  else if (f.enlargement != s.enlargement)
    why << f.name << " enlarges images by " << f.enlargement << ", and not by " << s.enlargement;
  return why;
}

/// The sizes of a convolution's blocks of tiles. All steps are in floats.
///
/// Transformed inputs of a tile lie slice by slice. So the taps of an output's depth are one row of a product, which overlaps the
/// rows of the next outputs. Nothing is transformed or stored once for each tap.
struct convolution_blocks {
  std::int64_t down = 0, across = 0;         ///< tiles of one image
  std::int64_t pad_top = 0, pad_left = 0;    ///< elements of the input, before it is enlarged
  std::int64_t skip_top = 0, skip_left = 0;  ///< outputs of the first tiles that lie before the image's first one
  std::int64_t tiles = 0;                    ///< of all images
  std::int64_t block = 0;                    ///< tiles of one block
  std::int64_t depth = 1, slices = 1;        ///< slices of an output, and of one block
  std::int64_t input_slices = 1;             ///< that one block reads of each tile
  bool rows_are_slices = false;              ///< a product is of all slices of one tile, not of all tiles of one slice
  std::int64_t input_row = 0, output_row = 0;  ///< transformed channels of one tile, in whole vectors of 16 for one tap
  std::int64_t input_step = 0, output_step = 0;  ///< between products; not a power of two, which caches dislike
  std::int64_t floats = 0;                       ///< of one block

  constexpr std::int64_t rows() const { return rows_are_slices ? slices : block; }
  constexpr std::int64_t slice_blocks() const { return (depth + slices - 1) / slices; }
  constexpr std::int64_t blocks() const { return (tiles + block - 1) / block * slice_blocks(); }
};

constexpr convolution_blocks blocks_of(const convolution_configuration& c, const convolution_shape& s) {
  const convolution_family& f = c.algorithm();
  convolution_blocks b;
  // Tiles begin at whole elements of the input.
  b.pad_top = (s.pad_top + s.enlargement - 1) / s.enlargement;
  b.pad_left = (s.pad_left + s.enlargement - 1) / s.enlargement;
  b.skip_top = b.pad_top * s.enlargement - s.pad_top;
  b.skip_left = b.pad_left * s.enlargement - s.pad_left;
  b.down = (s.output_height() + b.skip_top + f.tile_rows - 1) / f.tile_rows;
  b.across = (s.output_width() + b.skip_left + f.tile_columns - 1) / f.tile_columns;
  b.tiles = s.batch * b.down * b.across;
  b.block = b.tiles < c.block ? b.tiles : c.block;
  b.depth = s.output_depth();
  b.slices = b.depth < c.slices ? b.depth : c.slices;
  b.rows_are_slices = b.slices > b.block;
  // Products of tiles leave out the taps that meet pads. Products of slices need zeros there.
  const std::int64_t taps = taps_of(s).count(), reach = b.slices + taps - 1;
  b.input_slices = b.rows_are_slices || reach < s.depth ? reach : s.depth;
  // The channels of several taps follow each other without a gap.
  b.input_row = taps == 1 ? (s.channels + 15) / 16 * 16 : s.channels;
  b.output_row = (s.outputs + 15) / 16 * 16;
  b.input_step = (b.block * b.input_slices * b.input_row + 15) / 16 * 16 + 16;
  b.output_step = b.block * b.slices * b.output_row + 16;
  b.floats = f.products * (b.input_step + b.output_step);
  return b;
}

/// Bytes of the weights that are kept.
constexpr std::int64_t weight_bytes(const convolution_configuration& c, const convolution_shape& s) {
  const std::int64_t of_pair =
      c.weights == weight_transform_time::once ? c.algorithm().products : s.window_height * s.window_width;
  return 4 * of_pair * packed_floats(c.product, s.channels * taps_of(s).count(), s.outputs);
}
/// Floats between the products of a panel that is transformed in a run; not a power of two, which caches dislike.
constexpr std::int64_t panel_step(std::int64_t inner, std::int64_t width) {
  return (inner * width + 15) / 16 * 16 + 16;
}
/// Floats of one panel's weights that are transformed in a run.
constexpr std::int64_t panel_floats(const convolution_configuration& c, const convolution_shape& s) {
  if (c.weights == weight_transform_time::once) return 0;
  const std::int64_t columns = std::min<std::int64_t>(c.product.columns(), s.outputs);
  return c.algorithm().products * panel_step(s.channels * taps_of(s).count(), packed_floats(c.product, 1, columns));
}
/// Bytes of scratch memory for a run with at most so many threads.
constexpr std::int64_t scratch_bytes(const convolution_configuration& c, const convolution_shape& s, int threads) {
  const std::int64_t several = std::max(threads, 1), blocks = c.partition == work_partition::tiles ? several : 1;
  return 4 * (blocks_of(c, s).floats * blocks + panel_floats(c, s) * several);
}

/// The canonical text.
std::string to_text(const convolution_configuration& c);

/// Reads a canonical text. Error (invalid_argument): it is not one, or `fault_of` has a reason.
convolution_configuration parse_convolution_configuration(std::string_view text);

/// The machine that `propose_configurations` proposes for.
struct convolution_machine {
  instruction_set set = instruction_set::avx512;
  int threads = 1;
  std::int64_t second_level_bytes = 1 << 20;  ///< of one core
};

inline constexpr std::size_t most_proposals = 12;

/// The configurations that are worth measuring for a shape, at most `most_proposals`, by a closed formula. Families take
/// turns, so that the first few already have one of each. Empty if no family has this window.
std::vector<convolution_configuration> propose_configurations(const convolution_shape& s,
                                                              const convolution_machine& machine);

}  // namespace collage::inline v0::detail::jit
