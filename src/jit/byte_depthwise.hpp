// Depthwise convolutions of 8-bit images with channels last. Sums are exact, in 32 bits, and are scaled and rounded while they are
// in registers. Generated code needs AVX-512 with VNNI. Elsewhere a portable replica has the same results, bit by bit.
//
// A configuration is a text, as in "bytes1 avx512-vnni tile 3x4 order channels". It is canonical.
#pragma once

#include "code_arena.hpp"
#include "extent_check.hpp"

#include <collage/detail/sentence.hpp>
#include <collage/dtype.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace collage::inline v0::detail::jit {

/// Raised with every change after which an old text or packed weights would mean something else.
inline constexpr int byte_depthwise_version = 1;

/// Any window of at most 512 taps. Pads may be larger than the window.
struct byte_depthwise_shape {
  std::int64_t batch = 1, channels = 1, height = 1, width = 1;  ///< of the input
  std::int64_t window_rows = 3, window_columns = 3;
  std::int64_t stride_rows = 1, stride_columns = 1;
  std::int64_t dilation_rows = 1, dilation_columns = 1;
  std::int64_t pad_top = 0, pad_left = 0, pad_bottom = 0, pad_right = 0;

  constexpr std::int64_t taps() const { return window_rows * window_columns; }
  constexpr std::int64_t output_height() const {
    return (height + pad_top + pad_bottom - (window_rows - 1) * dilation_rows - 1) / stride_rows + 1;
  }
  constexpr std::int64_t output_width() const {
    return (width + pad_left + pad_right - (window_columns - 1) * dilation_columns - 1) / stride_columns + 1;
  }
  friend constexpr bool operator==(const byte_depthwise_shape&, const byte_depthwise_shape&) = default;
};

/// Sums of more products might not be whole numbers in float32, in which the replica computes them.
inline constexpr std::int64_t most_byte_taps = 512;

/// Why there is no kernel for a shape, in one sentence; empty if there is.
constexpr sentence fault_of(const byte_depthwise_shape& s) {
  sentence why;
  if (is_outside(why, "the batch", s.batch, 1) || is_outside(why, "the number of channels", s.channels, 1) ||
      is_outside(why, "the height", s.height, 1) || is_outside(why, "the width", s.width, 1) ||
      is_outside(why, "the window's height", s.window_rows, 1) ||
      is_outside(why, "the window's width", s.window_columns, 1) ||
      is_outside(why, "the stride over rows", s.stride_rows, 1) ||
      is_outside(why, "the stride over columns", s.stride_columns, 1) ||
      is_outside(why, "the dilation of rows", s.dilation_rows, 1) ||
      is_outside(why, "the dilation of columns", s.dilation_columns, 1) ||
      is_outside(why, "the pad above", s.pad_top, 0) || is_outside(why, "the pad at the left", s.pad_left, 0) ||
      is_outside(why, "the pad below", s.pad_bottom, 0) || is_outside(why, "the pad at the right", s.pad_right, 0))
    return why;
  if (s.taps() > most_byte_taps) why << "the window has " << s.taps() << " elements, and may have " << most_byte_taps;
  else if (s.height + s.pad_top + s.pad_bottom <= (s.window_rows - 1) * s.dilation_rows ||
           s.width + s.pad_left + s.pad_right <= (s.window_columns - 1) * s.dilation_columns)
    why << "the window is larger than the image with its pads";
  return why;
}

/// The sum of (source - source_zero) * weight of a channel becomes a result. For bytes it is
///   saturate(round(clamp(fma(sum, factor[c], offset[c]), least, most)) + zero),
/// rounded to nearest, ties to even. For float32 it is clamp(fma(...)).
struct byte_depthwise_terms {
  dtype source = dtype::u8;           ///< or i8
  int source_zero = 0;                ///< a number of the source's type; pads have it
  dtype result = dtype::u8;           ///< i8, u8 or f32
  int zero = 0;                       ///< a number of the result's type; not used for f32
  std::vector<float> factor, offset;  ///< of each channel, finite
  /// Not NaN, and least <= most.
  float least = -std::numeric_limits<float>::infinity(), most = std::numeric_limits<float>::infinity();
};

enum class byte_depthwise_order : std::uint8_t {
  channels,  ///< all channels of a tile's columns follow each other
  columns    ///< all columns of some channels follow each other
};

/// How code is generated, or that it is not: a configuration without rows is for the replica.
struct byte_depthwise_configuration {
  int rows = 3, columns = 4;  ///< of outputs in one tile
  byte_depthwise_order order = byte_depthwise_order::channels;

  constexpr bool is_replica() const { return rows == 0; }
  friend constexpr bool operator==(const byte_depthwise_configuration&, const byte_depthwise_configuration&) = default;
};

inline constexpr int most_byte_rows = 4, most_byte_columns = 8;

/// Why there is no such configuration, in one sentence; empty if there is.
constexpr sentence fault_of(const byte_depthwise_configuration& c) {
  sentence why;
  if (c == byte_depthwise_configuration{.rows = 0, .columns = 0}) return why;
  if (c.rows < 1 || c.rows > most_byte_rows || c.columns < 1 || c.columns > most_byte_columns)
    why << "the tile is " << c.rows << "x" << c.columns << ", and must be from 1x1 to " << most_byte_rows << "x"
        << most_byte_columns;
  return why;
}

/// The canonical text.
std::string to_text(const byte_depthwise_configuration& c);
/// Reads a canonical text. Error (invalid_argument): it is not one, or `fault_of` has a reason.
byte_depthwise_configuration parse_byte_depthwise_configuration(std::string_view text);

/// Why this processor cannot run generated code, in one sentence; empty if it can.
std::string refusal_of_bytes();
/// Whether code can be generated for a shape in a configuration: the window is small enough for the registers.
bool can_generate(const byte_depthwise_configuration& c, const byte_depthwise_shape& s);
/// The configurations that are worth measuring, the best guess first: at most 6, or the replica's where code cannot be generated or
/// cannot run.
std::vector<byte_depthwise_configuration> promising_configurations(const byte_depthwise_shape& s,
                                                                   bool can_run = refusal_of_bytes().empty());

/// The memory of one run. Images are [batch][height][width][channels], and nothing beside them is read or written.
struct byte_depthwise_call {
  const void* from = nullptr;          ///< bytes
  const std::byte* weights = nullptr;  ///< made by `pack`
  void* to = nullptr;                  ///< bytes or float32
};

/// Immutable; several threads may call it. The constructor makes the code.
class byte_depthwise {
 public:
  /// Error (invalid_argument): `fault_of` has a reason, or the terms have other numbers than they should. Error (unsupported): a
  /// factor or an offset is not finite, or the configuration is not for this shape. `weights` are [channels][taps].
  byte_depthwise(const byte_depthwise_configuration& how, const byte_depthwise_shape& shape,
                 const byte_depthwise_terms& terms, const std::int8_t* weights, int threads);
  ~byte_depthwise();
  byte_depthwise(byte_depthwise&&) = delete;

  /// Why the replica runs, in one sentence; empty if generated code runs.
  const std::string& refusal() const { return refusal_; }

  /// Bytes of packed weights, and how they lie, for keys. Neither depends on the terms.
  static std::size_t packed_size(const byte_depthwise_configuration& how, const byte_depthwise_shape& shape);
  static std::string packing(const byte_depthwise_configuration& how, const byte_depthwise_shape& shape);
  static void pack(const byte_depthwise_configuration& how, const byte_depthwise_shape& shape,
                   const std::int8_t* weights, std::byte* to);

  void run(const byte_depthwise_call& call) const;

 private:
  struct generated;

  byte_depthwise_configuration how_;
  byte_depthwise_shape shape_;
  byte_depthwise_terms terms_;
  int threads_;
  std::string refusal_;
  std::unique_ptr<const generated> generated_;
};

}  // namespace collage::inline v0::detail::jit
