#include "bilinear_convolution.hpp"

#include <collage/backends/impl/team.hpp>
#include <collage/error.hpp>

#include <algorithm>
#include <atomic>
#include <string>
#include <utility>

namespace collage::inline v0::detail::jit {
namespace {

constexpr std::array set_only = {store_mode::set};

/// `c`, if it computes the shape.
const convolution_configuration& checked(const convolution_configuration& c, const convolution_shape& s,
                                         const epilogue& finish) {
  if (const sentence why = fault_of(c, s); !why.empty())
    throw error(error_kind::invalid_argument, std::string(why.text, why.size), "jit");
  for (const operand_shape o : finish.operands)
    if (o == operand_shape::per_row)
      throw error(error_kind::unsupported,
                  "an operand of a convolution's epilogue has one number for each row of a product", "jit",
                  "use one number for each channel or element");
  return c;
}

product_extents extents_of(const convolution_shape& s, std::int64_t rows) {
  return {rows, s.outputs, s.channels * taps_of(s).count()};
}

/// The transformed weights of one pair of channels, in double precision: G g G'.
template <class S>
void transform_weights(const float* weights, double* to) {
  using A = image_algorithm<S>;
  constexpr auto rows = bilinear::coefficients<double>(A::rows::v);
  constexpr auto columns = bilinear::coefficients<double>(A::columns::v);
  for (std::size_t p = 0; p < A::rows::rank; ++p) {
    double between[A::window_columns];
    for (std::size_t x = 0; x < A::window_columns; ++x) {
      between[x] = 0;
      for (std::size_t y = 0; y < A::window_rows; ++y)
        between[x] += rows[p][y] * static_cast<double>(weights[y * A::window_columns + x]);
    }
    for (std::size_t q = 0; q < A::columns::rank; ++q) {
      double sum = 0;
      for (std::size_t x = 0; x < A::window_columns; ++x) sum += between[x] * columns[q][x];
      to[p * A::columns::rank + q] = sum;
    }
  }
}

using weight_function = void (*)(const float*, double*);
template <std::size_t... I>
weight_function weight_function_of(int family, std::index_sequence<I...>) {
  constexpr weight_function all[] = {transform_weights<std::tuple_element_t<I, convolution_algorithms>>...};
  return all[family];
}

/// Parts of a transform that threads take: 16 channels of about 16 tiles or slices of tiles.
struct transform_parts {
  std::int64_t tiles, slices, channels;

  std::int64_t slices_of_part() const { return std::max<std::int64_t>(1, 16 / tiles); }
  std::int64_t parts_of_tiles() const { return (tiles + 15) / 16; }
  std::int64_t parts() const { return parts_of_tiles() * ((slices + slices_of_part() - 1) / slices_of_part()); }
  std::int64_t count() const { return (channels + 15) / 16 * parts(); }
  transform_part operator[](std::int64_t i) const {
    const std::int64_t channel = i / parts() * 16, rest = i % parts();
    const std::int64_t tile = rest % parts_of_tiles() * 16, slice = rest / parts_of_tiles() * slices_of_part();
    return {tile, std::min(tile + 16, tiles), channel, channel + 16, slice, std::min(slice + slices_of_part(), slices)};
  }
};

constexpr int most_products = std::ranges::max(convolution_families, {}, &convolution_family::products).products;

}  // namespace

bilinear_convolution::bilinear_convolution(const convolution_configuration& how, const convolution_shape& shape,
                                           const epilogue& finish, std::shared_ptr<code_arena> arena, unsigned features)
    : how_(checked(how, shape, finish)),
      shape_(shape),
      taps_(taps_of(shape)),
      blocks_(blocks_of(how, shape)),
      finish_(finish),
      from_(steps_of(shape.from, shape.channels, shape.height, shape.width, shape.depth)),
      to_(steps_of(shape.to, shape.outputs, shape.output_height(), shape.output_width(), shape.output_depth())),
      transforms_(transforms_of(how.family)),
      full_(how.product, extents_of(shape, blocks_.rows()), set_only, {}, arena, features),
      rest_(how.product, extents_of(shape, (blocks_.rows_are_slices ? blocks_.depth : blocks_.tiles) % blocks_.rows()),
            set_only, {}, arena, features),
      packed_(packed_floats(how.product, shape.channels * taps_.count(), shape.outputs)) {}

void bilinear_convolution::bind() {
  full_.bind();
  rest_.bind();
}

/// [panels][inner steps][taps of the window][output channels of the panel].
void bilinear_convolution::pack_taps(const float* weights, float* to) const {
  const std::int64_t area = shape_.window_height * shape_.window_width, inner = shape_.channels * taps_.count();
  for (std::int64_t first = 0; first < shape_.outputs; first += how_.product.columns()) {
    const std::int64_t columns = std::min<std::int64_t>(how_.product.columns(), shape_.outputs - first);
    const std::int64_t width = packed_floats(how_.product, 1, columns);
    for (std::int64_t k = 0; k < inner; ++k) {
      const std::int64_t c = k % shape_.channels, tap = taps_.first + k / shape_.channels;
      for (std::int64_t i = 0; i < area; ++i, to += width) {
        for (std::int64_t o = 0; o < columns; ++o)
          to[o] = weights[(((first + o) * shape_.channels + c) * shape_.window_depth + tap) * area + i];
        std::fill(to + columns, to + width, 0.0F);
      }
    }
  }
}

void bilinear_convolution::pack(const float* weights, float* to, int threads) const {
  if (is_on_the_fly()) return pack_taps(weights, to);
  const int products = how_.algorithm().products;
  const weight_function transform =
      weight_function_of(how_.family, std::make_index_sequence<convolution_family_count>());
  const std::int64_t area = shape_.window_height * shape_.window_width, inner = shape_.channels * taps_.count();
  std::fill_n(to, packed_ * products, 0.0F);
  host::parallel(threads, inner, [&](std::int64_t k, int) {
    const std::int64_t c = k % shape_.channels, tap = taps_.first + k / shape_.channels;
    for (std::int64_t o = 0; o < shape_.outputs; ++o) {
      double transformed[most_products];
      transform(weights + ((o * shape_.channels + c) * shape_.window_depth + tap) * area, transformed);
      float* const place = to + packed_place(how_.product, inner, shape_.outputs, k, o);
      for (int p = 0; p < products; ++p) place[p * packed_] = static_cast<float>(transformed[p]);
    }
  });
}

bilinear_convolution::block_memory bilinear_convolution::memory_of(float* scratch, int thread) const {
  float* const begin = scratch + thread * blocks_.floats;
  return {begin, begin + how_.algorithm().products * blocks_.input_step};
}

bilinear_convolution::block_place bilinear_convolution::place_of(std::int64_t block) const {
  const std::int64_t tile = block / blocks_.slice_blocks() * blocks_.block;
  const std::int64_t slice = block % blocks_.slice_blocks() * blocks_.slices;
  block_place at = {tile,  std::min(blocks_.block, blocks_.tiles - tile),
                    slice, std::min(blocks_.slices, blocks_.depth - slice),
                    0,     0};
  std::int64_t first = slice + taps_.first - shape_.pad_front, last = first + at.slices + taps_.count() - 1;
  if (!blocks_.rows_are_slices) {  // nothing reads pads
    first = std::clamp<std::int64_t>(first, 0, shape_.depth);
    last = std::clamp<std::int64_t>(last, first, shape_.depth);
  }
  at.first_input_slice = first;
  at.input_slices = last - first;
  return at;
}

input_transform bilinear_convolution::input_of(const convolution_call& call, const block_place& at,
                                               const block_memory& memory) const {
  return {.from = call.from,
          .steps = from_,
          .channels = shape_.channels,
          .height = shape_.height,
          .width = shape_.width,
          .pad_top = blocks_.pad_top,
          .pad_left = blocks_.pad_left,
          .down = blocks_.down,
          .across = blocks_.across,
          .block_begin = at.first_tile,
          .to = memory.input,
          .to_step = blocks_.input_step,
          .to_row = blocks_.input_row,
          .depth = shape_.depth,
          .slices = blocks_.input_slices,
          .first_slice = at.first_input_slice,
          .is_dense = taps_.count() > 1};
}

output_transform bilinear_convolution::output_of(const convolution_call& call, const block_place& at,
                                                 const block_memory& memory) const {
  return {.from = memory.output,
          .from_step = blocks_.output_step,
          .from_row = blocks_.output_row,
          .steps = to_,
          .channels = shape_.outputs,
          .height = shape_.output_height(),
          .width = shape_.output_width(),
          .down = blocks_.down,
          .across = blocks_.across,
          .block_begin = at.first_tile,
          .skip_top = blocks_.skip_top,
          .skip_left = blocks_.skip_left,
          .finish = &finish_,
          .operands = call.operands.data(),
          .outputs = call.to.data(),
          .slices = blocks_.slices,
          .first_slice = at.first_slice};
}

void bilinear_convolution::multiply_line(const panel_weights& weights, const block_place& at,
                                         const block_memory& memory, std::int64_t index, std::int64_t line,
                                         std::int64_t first_panel, std::int64_t last_panel) const {
  const product& chosen = product_of(at);
  const bool of_tile = blocks_.rows_are_slices;
  depth_taps taps = {0, taps_.count()};
  std::int64_t row = of_tile ? line * blocks_.input_slices : 0;
  if (!of_tile) {
    // Where the taps of a slice lie in the image: those outside of it are left out.
    const std::int64_t slice = at.first_slice + line + taps_.first - shape_.pad_front;
    taps.first = std::clamp<std::int64_t>(-slice, 0, taps.last);
    taps.last = std::clamp(shape_.depth - slice, taps.first, taps.last);
    if (taps.count() > 0) row = slice + taps.first - at.first_input_slice;
  }
  float* const to[] = {memory.output + index * blocks_.output_step +
                       line * (of_tile ? blocks_.slices : 1) * blocks_.output_row};
  chosen.run({.a = memory.input + index * blocks_.input_step + row * blocks_.input_row,
              .a_step = (of_tile ? 1 : blocks_.input_slices) * blocks_.input_row,
              .packed = weights.packed + index * weights.step,
              .first_panel = weights.first_panel,
              .to = to,
              .to_step = (of_tile ? 1 : blocks_.slices) * blocks_.output_row},
             {first_panel, last_panel, 0, chosen.bands(), taps.first * shape_.channels, taps.last * shape_.channels});
}

void bilinear_convolution::multiply(const panel_weights& weights, const block_place& at, const block_memory& memory,
                                    std::int64_t index, std::int64_t first_panel, std::int64_t last_panel) const {
  const std::int64_t lines = blocks_.rows_are_slices ? at.tiles : at.slices;
  if (lines == 1) return multiply_line(weights, at, memory, index, 0, first_panel, last_panel);
  for (std::int64_t panel = first_panel; panel < last_panel; ++panel)  // it stays in a cache
    for (std::int64_t line = 0; line < lines; ++line) multiply_line(weights, at, memory, index, line, panel, panel + 1);
}

void bilinear_convolution::multiply_panel(const convolution_call& call, const block_place& at,
                                          const block_memory& memory, std::int64_t panel, int thread) const {
  const std::int64_t inner = shape_.channels * taps_.count(), first = panel * how_.product.columns();
  const std::int64_t columns = std::min<std::int64_t>(how_.product.columns(), shape_.outputs - first);
  const std::int64_t width = packed_floats(how_.product, 1, columns);
  const std::int64_t blocks = how_.partition == work_partition::tiles ? std::max(call.threads, 1) : 1;
  float* const made = call.scratch + blocks * blocks_.floats + thread * panel_floats(how_, shape_);
  transforms_.weights({.from = call.weights + first * inner * shape_.window_height * shape_.window_width,
                       .to = made,
                       .to_step = panel_step(inner, width),
                       .steps = inner,
                       .width = width});
  for (int p = 0; p < how_.algorithm().products; ++p)
    multiply({made, panel_step(inner, width), panel}, at, memory, p, panel, panel + 1);
}

bool bilinear_convolution::run_block(const convolution_call& call, std::int64_t block, int thread) const {
  const block_place at = place_of(block);
  const block_memory memory = memory_of(call.scratch, thread);
  transforms_.input(input_of(call, at, memory), {0, at.tiles, 0, blocks_.input_row, 0, at.input_slices});
  if (is_on_the_fly())
    for (std::int64_t panel = 0; panel < full_.panels(); ++panel) multiply_panel(call, at, memory, panel, thread);
  else
    for (int p = 0; p < how_.algorithm().products; ++p)
      multiply({call.weights, packed_}, at, memory, p, 0, full_.panels());
  return transforms_.output(output_of(call, at, memory), {0, at.tiles, 0, blocks_.output_row, 0, at.slices});
}

bool bilinear_convolution::run_phases(const convolution_call& call, std::int64_t block,
                                      const block_memory& memory) const {
  const block_place at = place_of(block);
  const transform_parts in{at.tiles, at.input_slices, blocks_.input_row};
  const input_transform input = input_of(call, at, memory);
  host::parallel(call.threads, in.count(), [&](std::int64_t i, int) { transforms_.input(input, in[i]); });
  const std::int64_t panels = full_.panels();
  if (is_on_the_fly())
    host::parallel(call.threads, panels,
                   [&](std::int64_t i, int thread) { multiply_panel(call, at, memory, i, thread); });
  else
    host::parallel(call.threads, how_.algorithm().products * panels, [&](std::int64_t i, int) {
      multiply({call.weights, packed_}, at, memory, i / panels, i % panels, i % panels + 1);
    });
  const transform_parts out{at.tiles, at.slices, blocks_.output_row};
  const output_transform output = output_of(call, at, memory);
  std::atomic<bool> is_finite = true;
  host::parallel(call.threads, out.count(), [&](std::int64_t i, int) {
    if (!transforms_.output(output, out[i])) is_finite.store(false, std::memory_order_relaxed);
  });
  return is_finite;
}

bool bilinear_convolution::run(const convolution_call& call) const {
  if (how_.partition == work_partition::phases) {
    bool is_finite = true;
    for (std::int64_t b = 0; b < blocks_.blocks(); ++b)
      is_finite = run_phases(call, b, memory_of(call.scratch, 0)) && is_finite;
    return is_finite;
  }
  std::atomic<bool> is_finite = true;
  host::parallel(call.threads, blocks_.blocks(), [&](std::int64_t b, int thread) {
    if (!run_block(call, b, thread)) is_finite.store(false, std::memory_order_relaxed);
  });
  return is_finite;
}

}  // namespace collage::inline v0::detail::jit
