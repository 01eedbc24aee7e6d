// Generated code for one tile of a depthwise convolution of bytes.
//
// The bytes of four neighbouring pixels are interleaved in registers. So one instruction multiplies four taps of a channel, and adds
// them to its sum. Interleaving works within 16 bytes, in halves: first for channels 8 to 15 of each 16, then for the others.
// Each half has two quarters, of four channels of each 16. Packing back to bytes undoes the order.
#pragma once

#include "byte_depthwise.hpp"
#include "byte_quads.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace collage::inline v0::detail::jit {

/// All tiles of a kernel share this.
struct byte_tile_form {
  int window_rows = 3, window_columns = 3, stride_rows = 1, stride_columns = 1, dilation_rows = 1;
  std::int64_t pixel_bytes = 0;     ///< between neighbouring pixels of a row that a tile reads
  std::int64_t to_pixel_bytes = 0;  ///< between neighbouring outputs of a tile's row
  std::int64_t to_row_bytes = 0;
  dtype source = dtype::u8, result = dtype::u8;
  bool adds_zero = false;                    ///< the result has a zero point other than 0
  bool has_least = false, has_most = false;  ///< it is limited to less than all numbers of its type
  bool may_overflow = true;                  ///< a result before rounding may be above 2^30

  constexpr byte_quads quads() const { return {window_columns, stride_columns}; }
  constexpr int input_rows(int rows) const { return (rows - 1) * stride_rows + (window_rows - 1) * dilation_rows + 1; }
  constexpr int input_columns(int columns) const { return (columns - 1) * stride_columns + window_columns; }
};

struct byte_tile {
  int rows = 1, columns = 1;  ///< of outputs
  int first = 0, last = 0;    ///< columns of the input that are in the image, from the tile's first; others are pads
  int bytes = 64;             ///< of a vector, each for one channel: 64, 32 or 16
  int channels = 64;          ///< of them that count
  friend constexpr auto operator<=>(const byte_tile&, const byte_tile&) = default;
};

/// Registers of a tile: sums of a half, groups of a row, and four others.
constexpr int byte_tile_registers(const byte_tile_form& form, int rows, int columns) {
  const byte_quads q = form.quads();
  int groups = 0;
  for (int begin = 0; begin < form.input_columns(columns); begin += q.align) {
    bool is_used = false;
    for (int t = 0; t < columns; ++t)
      for (int g = 0; g < q.groups(q.shift(t)); ++g) is_used = is_used || q.begin(t) + 4 * g == begin;
    groups += is_used ? 1 : 0;
  }
  return 2 * rows * columns + 2 * groups + 4;
}

/// Bytes of the weights and of the other numbers of one vector of channels.
constexpr std::int64_t byte_weights_size(const byte_tile_form& form, int bytes) {
  return std::int64_t{4} * form.window_rows * form.quads().count() * bytes;
}
constexpr std::int64_t byte_terms_size(int bytes) { return std::int64_t{12} * bytes; }

/// The channel, within a vector, that a lane of 32 bits of a quarter is for. Quarters 0 and 1 are of the first half.
constexpr int byte_channel(int quarter, int lane) { return lane / 4 * 16 + quarter * 4 + lane % 4; }

/// Packs the weights of channels [first, first + channels) for vectors of `bytes`. All weights are [channels][taps].
void pack_byte_weights(const byte_tile_form& form, const std::int8_t* weights, std::int64_t first, int channels,
                       int bytes, std::byte* to);
/// Packs the start of a sum, the factor and the offset of each channel.
void pack_byte_terms(const std::int32_t* starts, const float* factors, const float* offsets, int channels, int bytes,
                     std::byte* to);

/// Numbers of a kernel that all its tiles read.
struct byte_tile_constants {
  std::uint32_t flip = 0x80808080U;  ///< makes bytes with signs into such without
  float highest = 0x1p30F;
  std::uint32_t zero = 0, least_byte = 0, most_byte = 0;  ///< repeated: the zero point in 16 bits, bounds in 8
  float least = 0, most = 0;                              ///< bounds of float32
};

/// Generated code reads and writes this struct, and the memory that it points to.
struct byte_tile_call {
  static constexpr int most_outputs = most_byte_rows * most_byte_columns;

  const std::uint8_t* const* rows = nullptr;  ///< one for each row of the input
  const std::uint8_t* pad = nullptr;          ///< a pixel that has the zero point in each channel
  std::int64_t offset = 0;                    ///< of the first pixel and channel, from each of the rows
  const std::byte* weights = nullptr;
  const std::byte* terms = nullptr;
  std::byte* to = nullptr;
  std::int64_t count = 1;  ///< vectors of channels, or tiles, that are computed one after the other
  /// From one of these to the next.
  std::int64_t offset_step = 0, weights_step = 0, terms_step = 0, to_step = 0;
  byte_tile_constants constants;
  alignas(64) std::uint8_t scratch[64 * most_outputs];
};
using byte_tile_function = void (*)(byte_tile_call* call);

/// Code that runs at any address. Error (failure): Xbyak could not encode it. Error (unsupported): it becomes too large.
std::vector<std::uint8_t> generate_byte_tile(const byte_tile_form& form, const byte_tile& tile);

}  // namespace collage::inline v0::detail::jit
