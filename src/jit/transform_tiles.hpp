// The transforms for the current target of hwy/foreach_target.h, which includes this file once for each target.
#if defined(COLLAGE_JIT_TRANSFORM_TILES) == defined(HWY_TARGET_TOGGLE)
#ifdef COLLAGE_JIT_TRANSFORM_TILES
#undef COLLAGE_JIT_TRANSFORM_TILES
#else
#define COLLAGE_JIT_TRANSFORM_TILES
#endif

#include "channel_vectors.hpp"
#include "convolution_families.hpp"
#include "epilogue_vectors.hpp"
#include "linear_vectors.hpp"
#include "transforms.hpp"

#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

HWY_BEFORE_NAMESPACE();
namespace collage::inline v0::detail::jit {
namespace {
namespace HWY_NAMESPACE {

/// Where a pointer would point, also if nothing lies there.
HWY_INLINE const float* at_floats(const float* from, std::int64_t offset) {
  return reinterpret_cast<const float*>(reinterpret_cast<std::uintptr_t>(from) +
                                        static_cast<std::uintptr_t>(offset) * sizeof(float));
}

/// The image and the place of one tile.
struct tile_place {
  std::int64_t image, row, column;
  HWY_INLINE tile_place(std::int64_t tile, std::int64_t down, std::int64_t across)
      : image(tile / (down * across)), row(tile / across % down), column(tile % across) {}
};

/// Rows first, then columns, of vectors that lie `row` and `column` floats apart: of inputs (`left_of`) or of weights (`right_of`).
template <template <class> class Side, class A, std::int64_t columns>
HWY_INLINE void transform_patch(const float* from, std::int64_t row, std::int64_t column, float* to,
                                std::int64_t to_step) {
  constexpr std::int64_t row_products = A::rows::rank, column_products = A::columns::rank;
  HWY_ALIGN float between[row_products * columns * lanes];
  for (std::int64_t x = 0; x < columns; ++x)
    run_linear<Side<typename A::rows>>(
        [&](std::size_t y) HWY_ATTR { return tiles::load(from + static_cast<std::int64_t>(y) * row + x * column); },
        [&](std::size_t p, vector v)
            HWY_ATTR { tiles::store(v, between + (static_cast<std::int64_t>(p) * columns + x) * lanes); });
  for (std::int64_t p = 0; p < row_products; ++p)
    run_linear<Side<typename A::columns>>(
        [&](std::size_t x)
            HWY_ATTR { return tiles::load(between + (p * columns + static_cast<std::int64_t>(x)) * lanes); },
        [&](std::size_t q, vector v)
            HWY_ATTR { tiles::store(v, to + (p * column_products + static_cast<std::int64_t>(q)) * to_step); });
}
template <class A>
HWY_INLINE void transform_inputs(const float* from, std::int64_t row, std::int64_t column, float* to,
                                 std::int64_t to_step) {
  transform_patch<left_of, A, A::patch_columns>(from, row, column, to, to_step);
}

/// A slice of pads alone.
template <class A>
void clear_products(float* to, std::int64_t to_step, std::int64_t count) {
  for (std::int64_t p = 0; p < A::products; ++p) {
    if (count == lanes) tiles::store(hn::Zero(tag), to + p * to_step);
    else tiles::store_some(hn::Zero(tag), to + p * to_step, count);
  }
}

/// One slice of one tile of one vector of channels.
template <class A>
HWY_INLINE void input_of_tile(const input_transform& t, std::int64_t tile, std::int64_t slice, std::int64_t channel) {
  const tile_place at(t.block_begin + tile, t.down, t.across);
  const std::int64_t y = at.row * (A::tile_rows / A::enlargement) - t.pad_top;
  const std::int64_t x = at.column * (A::tile_columns / A::enlargement) - t.pad_left;
  const std::int64_t z = t.first_slice + slice;
  const std::int64_t offset = t.steps.at(at.image, channel) + z * t.steps.slice + y * t.steps.row + x * t.steps.pixel;
  const float* const from = at_floats(t.from, offset);
  float* const to = t.to + (tile * t.slices + slice) * t.to_row + channel;
  const rectangle inside = {std::max<std::int64_t>(0, -y), std::max<std::int64_t>(0, -x),
                            std::min<std::int64_t>(A::patch_rows, t.height - y),
                            std::min<std::int64_t>(A::patch_columns, t.width - x)};
  const bool is_inside =
      inside.top == 0 && inside.left == 0 && inside.bottom == A::patch_rows && inside.right == A::patch_columns;
  const std::int64_t left = t.channels - channel, count = t.steps.is_filled || left > lanes ? lanes : left;
  const bool is_partial = t.is_dense && left < lanes;  // what follows it are the next row's channels
  if (z < 0 || z >= t.depth) return clear_products<A>(to, t.to_step, is_partial ? left : lanes);
  if (is_inside && t.steps.channel == 1 && count == lanes && !is_partial)
    return transform_inputs<A>(from, t.steps.row, t.steps.pixel, to, t.to_step);
  HWY_ALIGN float patch[A::patch_rows * A::patch_columns * lanes];
  if (!is_inside || count < lanes)
    for (float& p : patch) p = 0;
  if (!inside.is_empty()) gather_patch(from, t.steps, inside, A::patch_columns, count, patch);
  HWY_ALIGN float made[A::products * lanes];
  transform_inputs<A>(patch, A::patch_columns * lanes, lanes, is_partial ? made : to, is_partial ? lanes : t.to_step);
  for (std::int64_t p = 0; is_partial && p < A::products; ++p)
    tiles::store_some(tiles::load(made + p * lanes), to + p * t.to_step, left);
}

template <class S>
void input_tiles(const input_transform& t, const transform_part& part) {
  using A = image_algorithm<S>;
  const std::int64_t last = std::min(part.last_channel, t.channels);
  if (t.steps.block == 16) {  // channels-last: all channels of a tile are near each other
    for (std::int64_t tile = part.first_tile; tile < part.last_tile; ++tile)
      for (std::int64_t z = part.first_slice; z < part.last_slice; ++z)
        for (std::int64_t c = part.first_channel; c < last; c += lanes) input_of_tile<A>(t, tile, z, c);
    return;
  }
  for (std::int64_t c = part.first_channel; c < last; c += lanes)
    for (std::int64_t z = part.first_slice; z < part.last_slice; ++z)
      for (std::int64_t tile = part.first_tile; tile < part.last_tile; ++tile) input_of_tile<A>(t, tile, z, c);
}

/// The outputs of one tile, for one vector of channels: `result` has them as vectors. Sums of `check` are NaN if one is not finite.
template <class A>
HWY_INLINE vector outputs_of_tile(const float* from, std::int64_t from_step, float* result) {
  constexpr std::int64_t columns = A::tile_columns;
  constexpr std::int64_t column_products = A::columns::rank;
  HWY_ALIGN float between[A::tile_rows * column_products * lanes];
  for (std::int64_t q = 0; q < column_products; ++q)
    run_linear<output_of<typename A::rows>>(
        [&](std::size_t p)
            HWY_ATTR { return tiles::load(from + (static_cast<std::int64_t>(p) * column_products + q) * from_step); },
        [&](std::size_t y, vector v)
            HWY_ATTR { tiles::store(v, between + (static_cast<std::int64_t>(y) * column_products + q) * lanes); });
  vector check = hn::Zero(tag);
  for (std::int64_t y = 0; y < A::tile_rows; ++y)
    run_linear<output_of<typename A::columns>>(
        [&](std::size_t q)
            HWY_ATTR { return tiles::load(between + (y * column_products + static_cast<std::int64_t>(q)) * lanes); },
        [&](std::size_t x, vector v) HWY_ATTR {
          check = hn::MulAdd(v, hn::Zero(tag), check);
          tiles::store(v, result + (y * columns + static_cast<std::int64_t>(x)) * lanes);
        });
  return check;
}

/// The epilogue of one tile, from the gathered operands to all outputs. `skip` is where the tile's first output within the image
/// lies, from which `inside` counts.
template <class A>
void finish_tile(const output_transform& t, const float* result, std::int64_t skip, std::int64_t offset,
                 const rectangle& inside, std::int64_t channel, std::int64_t count) {
  constexpr std::int64_t columns = A::tile_columns, pixels = A::tile_rows * columns;
  const epilogue& e = *t.finish;
  HWY_ALIGN float whole[epilogue::most_operands][pixels * lanes];
  HWY_ALIGN float made[epilogue::most_outputs][pixels * lanes];
  const float* from[epilogue::most_operands];
  float* to[epilogue::most_outputs];
  const bool is_partial = inside.bottom < A::tile_rows || inside.right < columns || count < lanes;
  for (std::size_t i = 0; i < e.operands.size(); ++i) {
    from[i] = whole[i];
    if (e.operands[i] != operand_shape::whole) continue;
    if (is_partial)
      for (float& w : whole[i]) w = 0;
    gather_patch(t.operands[i] + offset, t.steps, inside, columns, count, whole[i] + skip);
  }
  for (std::size_t o = 0; o < e.outputs.size(); ++o) to[o] = made[o];
  epilogue_run run(e, result, from, t.operands, channel, count);
  for (std::int64_t first = 0; first < pixels; first += epilogue_run::most)
    run.run(first, std::min(epilogue_run::most, pixels - first), to);
  for (std::size_t o = 0; o < e.outputs.size(); ++o)
    scatter_patch(made[o] + skip, t.steps, inside.bottom, inside.right, columns, count, t.outputs[o] + offset);
}

template <class A>
HWY_INLINE vector output_of_tile(const output_transform& t, std::int64_t tile, std::int64_t slice,
                                 std::int64_t channel) {
  constexpr std::int64_t columns = A::tile_columns;
  const tile_place at(t.block_begin + tile, t.down, t.across);
  // Where the tile's outputs begin, and which of them is the first one within the image.
  std::int64_t y = at.row * A::tile_rows, x = at.column * columns, top = 0, left = 0;
  if constexpr (A::enlargement > 1) {
    top = y == 0 ? t.skip_top : 0;
    left = x == 0 ? t.skip_left : 0;
    y -= t.skip_top - top;
    x -= t.skip_left - left;
  }
  const std::int64_t skip = (top * columns + left) * lanes;
  const std::int64_t offset =
      t.steps.at(at.image, channel) + (t.first_slice + slice) * t.steps.slice + y * t.steps.row + x * t.steps.pixel;
  const rectangle inside = {0, 0, std::min<std::int64_t>(A::tile_rows - top, t.height - y),
                            std::min<std::int64_t>(columns - left, t.width - x)};
  const std::int64_t count = std::min(lanes, t.channels - channel);
  HWY_ALIGN float result[A::tile_rows * columns * lanes];
  if (count <= 0) {  // channels that fill up the last block
    for (float& r : result) r = 0;
    for (std::size_t o = 0; o < std::max<std::size_t>(1, t.finish->outputs.size()); ++o)
      scatter_patch(result, t.steps, inside.bottom, inside.right, columns, lanes, t.outputs[o] + offset);
    return hn::Zero(tag);
  }
  vector check = outputs_of_tile<A>(t.from + (tile * t.slices + slice) * t.from_row + channel, t.from_step, result);
  if (count < lanes) check = hn::IfThenElseZero(hn::FirstN(tag, static_cast<std::size_t>(count)), check);
  if (t.finish->empty())
    scatter_patch(result + skip, t.steps, inside.bottom, inside.right, columns, count, t.outputs[0] + offset);
  else finish_tile<A>(t, result, skip, offset, inside, channel, count);
  return check;
}

template <class S>
bool output_tiles(const output_transform& t, const transform_part& part) {
  using A = image_algorithm<S>;
  const std::int64_t last = t.steps.is_filled ? part.last_channel : std::min(part.last_channel, t.channels);
  vector check = hn::Zero(tag);
  if (t.steps.block == 16) {
    for (std::int64_t tile = part.first_tile; tile < part.last_tile; ++tile)
      for (std::int64_t z = part.first_slice; z < part.last_slice; ++z)
        for (std::int64_t c = part.first_channel; c < last; c += lanes)
          check = hn::Add(check, output_of_tile<A>(t, tile, z, c));
  } else {
    for (std::int64_t c = part.first_channel; c < last; c += lanes)
      for (std::int64_t z = part.first_slice; z < part.last_slice; ++z)
        for (std::int64_t tile = part.first_tile; tile < part.last_tile; ++tile)
          check = hn::Add(check, output_of_tile<A>(t, tile, z, c));
  }
  HWY_ALIGN float sums[lanes];
  tiles::store(check, sums);
  for (const float s : sums)
    if (s != 0) return false;  // NaN
  return true;
}

/// The taps of one inner step, which lie `width` floats apart, for a vector of output channels.
template <class A>
HWY_NOINLINE void transform_taps(const float* from, std::int64_t width, float* to, std::int64_t to_step) {
  transform_patch<right_of, A, A::window_columns>(from, A::window_columns * width, width, to, to_step);
}

template <class S>
void weight_panel(const weight_transform& t) {
  using A = image_algorithm<S>;
  constexpr std::int64_t taps = A::window_rows * A::window_columns;
  for (std::int64_t k = 0; k < t.steps; ++k) {
    const float* const from = t.from + k * taps * t.width;
    float* const to = t.to + k * t.width;
    std::int64_t at = 0;
    for (; at + lanes <= t.width; at += lanes) transform_taps<A>(from + at, t.width, to + at, t.to_step);
    const std::int64_t rest = t.width - at;
    if (rest == 0) continue;
    HWY_ALIGN float some[taps * lanes];
    HWY_ALIGN float made[A::products * lanes];
    for (std::int64_t i = 0; i < taps; ++i)
      tiles::store(tiles::load_some(from + i * t.width + at, rest), some + i * lanes);
    transform_taps<A>(some, lanes, made, lanes);
    for (std::int64_t p = 0; p < A::products; ++p)
      tiles::store_some(tiles::load(made + p * lanes), to + p * t.to_step + at, rest);
  }
}

template <std::size_t... I>
transform_functions functions_of(int family, std::index_sequence<I...>) {
  static constexpr std::array<transform_functions, sizeof...(I)> all = {
      transform_functions{input_tiles<std::tuple_element_t<I, convolution_algorithms>>,
                          output_tiles<std::tuple_element_t<I, convolution_algorithms>>,
                          weight_panel<std::tuple_element_t<I, convolution_algorithms>>}...};
  return all[static_cast<std::size_t>(family)];
}

inline transform_functions transforms_of_target(int family) {
  return functions_of(family, std::make_index_sequence<convolution_family_count>());
}

}  // namespace HWY_NAMESPACE
}  // namespace
}  // namespace collage::inline v0::detail::jit
HWY_AFTER_NAMESPACE();

#endif
