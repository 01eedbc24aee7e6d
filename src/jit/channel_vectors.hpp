// Patches of images as vectors of channels, in all layouts, for the current target of hwy/foreach_target.h: included once for each.
#if defined(COLLAGE_JIT_CHANNEL_VECTORS) == defined(HWY_TARGET_TOGGLE)
#ifdef COLLAGE_JIT_CHANNEL_VECTORS
#undef COLLAGE_JIT_CHANNEL_VECTORS
#else
#define COLLAGE_JIT_CHANNEL_VECTORS
#endif

#include "transforms.hpp"

#include <hwy/highway.h>
#include <collage/backends/impl/stacked_tiles.hpp>

#include <algorithm>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace collage::inline v0::detail::jit {
namespace {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
namespace tiles = host::HWY_NAMESPACE;
using tiles::lanes;
using tiles::tag;
using tiles::vector;

#if HWY_TARGET != HWY_SCALAR

/// Four vectors as rows of 4 x 4 matrices, one in each block of 128 bits: all are transposed.
struct four_vectors {
  vector a, b, c, d;
};
template <class V>
HWY_INLINE four_vectors transposed(V a, V b, V c, V d) {
  const V low = hn::InterleaveLower(tag, a, c), low2 = hn::InterleaveLower(tag, b, d);
  const V high = hn::InterleaveUpper(tag, a, c), high2 = hn::InterleaveUpper(tag, b, d);
  return {hn::InterleaveLower(tag, low, low2), hn::InterleaveUpper(tag, low, low2),
          hn::InterleaveLower(tag, high, high2), hn::InterleaveUpper(tag, high, high2)};
}

/// Blocks of 128 bits that lie `step` floats apart.
template <class D>
HWY_INLINE hn::Vec<D> load_quads(D d, const float* from, std::int64_t step) {
  if constexpr (hn::MaxLanes(D()) == 4) {
    return hn::LoadU(d, from);
  } else {
    const hn::Half<D> half;
    constexpr std::int64_t blocks = static_cast<std::int64_t>(hn::MaxLanes(D())) / 8;
    return hn::Combine(d, load_quads(half, from + blocks * step, step), load_quads(half, from, step));
  }
}
template <class D>
HWY_INLINE void store_quads(D d, hn::Vec<D> x, float* to, std::int64_t step) {
  if constexpr (hn::MaxLanes(D()) == 4) {
    hn::StoreU(x, d, to);
  } else {
    const hn::Half<D> half;
    constexpr std::int64_t blocks = static_cast<std::int64_t>(hn::MaxLanes(D())) / 8;
    store_quads(half, hn::LowerHalf(half, x), to, step);
    store_quads(half, hn::UpperHalf(half, x), to + blocks * step, step);
  }
}

#endif

/// A rectangle within a patch.
struct rectangle {
  std::int64_t top = 0, left = 0, bottom = 0, right = 0;
  bool is_empty() const { return top >= bottom || left >= right; }
};

/// Part of a row of a plain image: pixels [left, right) of `count` channels into vectors. `from` and `to` are those of pixel 0.
HWY_INLINE void gather_row(const float* from, std::int64_t channel, std::int64_t left, std::int64_t right,
                           std::int64_t count, float* to) {
  if (lanes < 4 || count < lanes || right - left < 4) {
    for (std::int64_t c = 0; c < count; ++c)
      for (std::int64_t x = left; x < right; ++x) to[x * lanes + c] = from[c * channel + x];
    return;
  }
#if HWY_TARGET != HWY_SCALAR
  for (std::int64_t at = left; at < right; at += 4) {
    const std::int64_t x = std::min(at, right - 4);  // the last four may overlap others
    const float* const p = from + x;
    const four_vectors t =
        transposed(load_quads(tag, p, 4 * channel), load_quads(tag, p + channel, 4 * channel),
                   load_quads(tag, p + 2 * channel, 4 * channel), load_quads(tag, p + 3 * channel, 4 * channel));
    tiles::store(t.a, to + x * lanes);
    tiles::store(t.b, to + (x + 1) * lanes);
    tiles::store(t.c, to + (x + 2) * lanes);
    tiles::store(t.d, to + (x + 3) * lanes);
  }
#endif
}
/// The reverse.
HWY_INLINE void scatter_row(const float* from, std::int64_t channel, std::int64_t right, std::int64_t count,
                            float* to) {
  if (lanes < 4 || count < lanes || right < 4) {
    for (std::int64_t c = 0; c < count; ++c)
      for (std::int64_t x = 0; x < right; ++x) to[c * channel + x] = from[x * lanes + c];
    return;
  }
#if HWY_TARGET != HWY_SCALAR
  for (std::int64_t at = 0; at < right; at += 4) {
    const std::int64_t x = std::min(at, right - 4);
    const four_vectors t = transposed(tiles::load(from + x * lanes), tiles::load(from + (x + 1) * lanes),
                                      tiles::load(from + (x + 2) * lanes), tiles::load(from + (x + 3) * lanes));
    store_quads(tag, t.a, to + x, 4 * channel);
    store_quads(tag, t.b, to + channel + x, 4 * channel);
    store_quads(tag, t.c, to + 2 * channel + x, 4 * channel);
    store_quads(tag, t.d, to + 3 * channel + x, 4 * channel);
  }
#endif
}

/// Copies the rectangle of a patch of `columns` columns into vectors. `from` is where the patch's first pixel lies, or would lie.
HWY_INLINE void gather_patch(const float* from, const image_steps& steps, const rectangle& inside, std::int64_t columns,
                             std::int64_t count, float* to) {
  for (std::int64_t y = inside.top; y < inside.bottom; ++y) {
    float* const row = to + y * columns * lanes;
    if (steps.channel != 1) {
      gather_row(from + y * steps.row, steps.channel, inside.left, inside.right, count, row);
      continue;
    }
    for (std::int64_t x = inside.left; x < inside.right; ++x) {
      const float* const pixel = from + y * steps.row + x * steps.pixel;
      tiles::store(count == lanes ? tiles::load(pixel) : tiles::load_some(pixel, count), row + x * lanes);
    }
  }
}

/// Writes the first `rows` x `right` vectors of a patch. Channels that fill up a block become 0.
HWY_INLINE void scatter_patch(const float* from, const image_steps& steps, std::int64_t rows, std::int64_t right,
                              std::int64_t columns, std::int64_t count, float* to) {
  for (std::int64_t y = 0; y < rows; ++y) {
    const float* const row = from + y * columns * lanes;
    if (steps.channel != 1) {
      scatter_row(row, steps.channel, right, count, to + y * steps.row);
      continue;
    }
    for (std::int64_t x = 0; x < right; ++x) {
      float* const pixel = to + y * steps.row + x * steps.pixel;
      const vector v = tiles::load(row + x * lanes);
      if (count == lanes) tiles::store(v, pixel);
      else if (steps.is_filled)
        tiles::store(hn::IfThenElseZero(hn::FirstN(tag, static_cast<std::size_t>(count)), v), pixel);
      else tiles::store_some(v, pixel, count);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace
}  // namespace collage::inline v0::detail::jit
HWY_AFTER_NAMESPACE();

#endif
