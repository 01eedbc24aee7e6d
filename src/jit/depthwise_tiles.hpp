// Depthwise convolutions for the current target of hwy/foreach_target.h, which includes this file once for each target.
#if defined(COLLAGE_JIT_DEPTHWISE_TILES) == defined(HWY_TARGET_TOGGLE)
#ifdef COLLAGE_JIT_DEPTHWISE_TILES
#undef COLLAGE_JIT_DEPTHWISE_TILES
#else
#define COLLAGE_JIT_DEPTHWISE_TILES
#endif

#include "depthwise.hpp"

#include <hwy/highway.h>
#include <collage/backends/impl/stacked_tiles.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

HWY_BEFORE_NAMESPACE();
namespace collage::inline v0::detail::jit {
namespace {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
namespace tiles = host::HWY_NAMESPACE;
using tiles::lanes;
using tiles::tag;
using tiles::vector;

/// Outputs of a row that are computed together. With two rows of them, the sums and a row of inputs fit the registers.
inline constexpr std::int64_t tile_columns = lanes >= 16 ? 7 : 3;

/// A tile of Rows x Columns outputs with a window of K x K and stride S.
template <int K, int S, int Rows, int Columns>
struct depthwise_tile {
  static constexpr int input_rows = (Rows - 1) * S + K, input_columns = (Columns - 1) * S + K;

  const depthwise_call& call;
  const float* at[input_rows][input_columns];  ///< the pixels that it reads; those in pads are zeros
  float* to;                                   ///< its first output

  HWY_INLINE depthwise_tile(const depthwise_call& c, float* first, std::int64_t y, std::int64_t x)
      : call(c), to(first) {
    const depthwise_shape& s = c.shape;
    const float* const zeros = c.weights + K * K * s.weight_step();
    for (int i = 0; i < input_rows; ++i)
      for (int j = 0; j < input_columns; ++j) {
        const std::int64_t row = y * S - s.pad_top + i, column = x * S - s.pad_left + j;
        const bool is_inside = row >= 0 && row < s.height && column >= 0 && column < s.width;
        at[i][j] = is_inside ? c.from + (row * s.width + column) * s.channels : zeros;
      }
  }

  /// One vector of channels. `load` and `store` also do with fewer.
  template <class Load, class Store>
  HWY_INLINE void run(std::int64_t channel, const Load& load, const Store& store) const {
    const std::int64_t step = call.shape.weight_step();
    vector sum[Rows][Columns];
    const vector first = call.bias == nullptr ? hn::Zero(tag) : load(call.bias + channel);
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 16
      for (int t = 0; t < Columns; ++t) sum[r][t] = first;
#pragma GCC unroll 16
    for (int i = 0; i < input_rows; ++i) {
      vector in[input_columns];
#pragma GCC unroll 32
      for (int j = 0; j < input_columns; ++j) in[j] = load(at[i][j] + channel);
#pragma GCC unroll 16
      for (int r = 0; r < Rows; ++r) {
        const int tap = i - r * S;
        if (tap < 0 || tap >= K) continue;
#pragma GCC unroll 16
        for (int k = 0; k < K; ++k) {
          const vector weight = tiles::load(call.weights + (tap * K + k) * step + channel);
#pragma GCC unroll 16
          for (int t = 0; t < Columns; ++t) sum[r][t] = hn::MulAdd(in[t * S + k], weight, sum[r][t]);
        }
      }
    }
    const vector least = tiles::number(call.least), most = tiles::number(call.most);
    const std::int64_t row_step = call.shape.output_width() * call.to_step;
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 16
      for (int t = 0; t < Columns; ++t) {
        vector y = sum[r][t];
        y = hn::IfThenElse(hn::Lt(y, least), least, y);  // NaN is not less
        y = hn::IfThenElse(hn::Gt(y, most), most, y);
        store(y, to + r * row_step + t * call.to_step + channel);
      }
  }

  HWY_INLINE void run_channels(const depthwise_part& part) const {
    for (std::int64_t c = part.first_channel; c < part.last_channel; c += lanes)  // the last vector may overlap others
      run(
          std::min(c, part.last_channel - lanes), [](const float* from) HWY_ATTR { return tiles::load(from); },
          [](vector v, float* result) HWY_ATTR { tiles::store(v, result); });
  }
};

/// Images of fewer channels than a vector has.
template <int K, int S>
void rows_of_few_channels(const depthwise_call& c, const depthwise_part& part) {
  const std::int64_t count = part.last_channel - part.first_channel, width = c.shape.output_width();
  for (std::int64_t y = part.first_row; y < part.last_row; ++y)
    for (std::int64_t x = 0; x < width; ++x) {
      const depthwise_tile<K, S, 1, 1> tile(c, c.to + ((y - part.first_row) * width + x) * c.to_step, y, x);
      tile.run(
          part.first_channel, [&](const float* from) HWY_ATTR { return tiles::load_some(from, count); },
          [&](vector v, float* result) HWY_ATTR { tiles::store_some(v, result, count); });
    }
}

template <int K, int S, int Rows, int Columns>
void row_of_tiles(const depthwise_call& c, const depthwise_part& part, std::int64_t y) {
  const std::int64_t width = c.shape.output_width();
  for (std::int64_t begin = 0; begin < width; begin += Columns) {
    const std::int64_t x = std::min<std::int64_t>(begin, width - Columns);  // the last tile may overlap the one before
    const depthwise_tile<K, S, Rows, Columns> tile(c, c.to + ((y - part.first_row) * width + x) * c.to_step, y, x);
    tile.run_channels(part);
  }
}

template <int K, int S>
void depthwise_of(const depthwise_call& c, const depthwise_part& part) {
  if (part.last_channel - part.first_channel < lanes) return rows_of_few_channels<K, S>(c, part);
  std::int64_t y = part.first_row;
  if (c.shape.output_width() < tile_columns) {
    for (; y < part.last_row; ++y) row_of_tiles<K, S, 1, 1>(c, part, y);
    return;
  }
  for (; y + 2 <= part.last_row; y += 2) row_of_tiles<K, S, 2, tile_columns>(c, part, y);
  if (y < part.last_row) row_of_tiles<K, S, 1, tile_columns>(c, part, y);
}

inline depthwise_function depthwise_of_target(std::int64_t window, std::int64_t stride) {
  switch (window) {
    case 3: return stride == 1 ? depthwise_of<3, 1> : depthwise_of<3, 2>;
    case 5: return stride == 1 ? depthwise_of<5, 1> : depthwise_of<5, 2>;
    default: return stride == 1 ? depthwise_of<7, 1> : depthwise_of<7, 2>;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace
}  // namespace collage::inline v0::detail::jit
HWY_AFTER_NAMESPACE();

#endif
