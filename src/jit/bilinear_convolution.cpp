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

product_extents extents_of(const convolution_shape& s, std::int64_t tiles) { return {tiles, s.outputs, s.channels}; }

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

constexpr int most_products = std::ranges::max(convolution_families, {}, &convolution_family::products).products;

}  // namespace

bilinear_convolution::bilinear_convolution(const convolution_configuration& how, const convolution_shape& shape,
                                           const epilogue& finish, std::shared_ptr<code_arena> arena, unsigned features)
    : how_(checked(how, shape, finish)),
      shape_(shape),
      blocks_(blocks_of(how, shape)),
      finish_(finish),
      from_(steps_of(shape.from, shape.channels, shape.height, shape.width)),
      to_(steps_of(shape.to, shape.outputs, shape.output_height(), shape.output_width())),
      transforms_(transforms_of(how.family)),
      full_(how.product, extents_of(shape, blocks_.block), set_only, {}, arena, features),
      rest_(how.product, extents_of(shape, blocks_.tiles % blocks_.block), set_only, {}, arena, features),
      packed_(packed_floats(how.product, shape.channels, shape.outputs)) {}

void bilinear_convolution::bind() {
  full_.bind();
  rest_.bind();
}

void bilinear_convolution::pack(const float* weights, float* to) const {
  const int products = how_.algorithm().products;
  const weight_function transform =
      weight_function_of(how_.family, std::make_index_sequence<convolution_family_count>());
  const std::int64_t taps = shape_.window_height * shape_.window_width;
  std::fill_n(to, packed_ * products, 0.0F);
  for (std::int64_t c = 0; c < shape_.channels; ++c)
    for (std::int64_t o = 0; o < shape_.outputs; ++o) {
      double transformed[most_products];
      transform(weights + (o * shape_.channels + c) * taps, transformed);
      float* const place = to + packed_place(how_.product, shape_.channels, shape_.outputs, c, o);
      for (int p = 0; p < products; ++p) place[p * packed_] = static_cast<float>(transformed[p]);
    }
}

bilinear_convolution::block_memory bilinear_convolution::memory_of(float* scratch, int thread) const {
  float* const begin = scratch + thread * blocks_.floats;
  return {begin, begin + how_.algorithm().products * blocks_.input_step};
}

std::int64_t bilinear_convolution::tiles_of(std::int64_t block) const {
  return std::min(blocks_.block, blocks_.tiles - block * blocks_.block);
}

input_transform bilinear_convolution::input_of(const convolution_call& call, std::int64_t block,
                                               const block_memory& memory) const {
  return {.from = call.from,
          .steps = from_,
          .channels = shape_.channels,
          .height = shape_.height,
          .width = shape_.width,
          .pad_top = shape_.pad_top,
          .pad_left = shape_.pad_left,
          .down = blocks_.down,
          .across = blocks_.across,
          .block_begin = block * blocks_.block,
          .to = memory.input,
          .to_step = blocks_.input_step,
          .to_row = blocks_.input_row};
}

output_transform bilinear_convolution::output_of(const convolution_call& call, std::int64_t block,
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
          .block_begin = block * blocks_.block,
          .finish = &finish_,
          .operands = call.operands.data(),
          .outputs = call.to.data()};
}

void bilinear_convolution::multiply(const convolution_call& call, std::int64_t block, const block_memory& memory,
                                    std::int64_t index, std::int64_t first_panel, std::int64_t last_panel) const {
  const product& chosen = product_of(block);
  float* const to[] = {memory.output + index * blocks_.output_step};
  chosen.run({.a = memory.input + index * blocks_.input_step,
              .a_step = blocks_.input_row,
              .packed = call.weights + index * packed_,
              .to = to,
              .to_step = blocks_.output_row},
             {first_panel, last_panel, 0, chosen.bands()});
}

bool bilinear_convolution::run_block(const convolution_call& call, std::int64_t block,
                                     const block_memory& memory) const {
  const std::int64_t tiles = tiles_of(block);
  transforms_.input(input_of(call, block, memory), {0, tiles, 0, blocks_.input_row});
  for (int p = 0; p < how_.algorithm().products; ++p) multiply(call, block, memory, p, 0, full_.panels());
  return transforms_.output(output_of(call, block, memory), {0, tiles, 0, blocks_.output_row});
}

bool bilinear_convolution::run_phases(const convolution_call& call, std::int64_t block,
                                      const block_memory& memory) const {
  // Parts of a transform: 16 channels of some tiles.
  constexpr std::int64_t grain = 16;
  const std::int64_t tiles = tiles_of(block), parts = (tiles + grain - 1) / grain;
  const auto part_of = [&](std::int64_t i) {
    const std::int64_t channel = i / parts * 16, tile = i % parts * grain;
    return transform_part{tile, std::min(tile + grain, tiles), channel, channel + 16};
  };
  const input_transform input = input_of(call, block, memory);
  host::parallel(call.threads, blocks_.input_row / 16 * parts,
                 [&](std::int64_t i, int) { transforms_.input(input, part_of(i)); });
  const std::int64_t panels = full_.panels();
  host::parallel(call.threads, how_.algorithm().products * panels,
                 [&](std::int64_t i, int) { multiply(call, block, memory, i / panels, i % panels, i % panels + 1); });
  const output_transform output = output_of(call, block, memory);
  std::atomic<bool> is_finite = true;
  host::parallel(call.threads, blocks_.output_row / 16 * parts, [&](std::int64_t i, int) {
    if (!transforms_.output(output, part_of(i))) is_finite.store(false, std::memory_order_relaxed);
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
    if (!run_block(call, b, memory_of(call.scratch, thread))) is_finite.store(false, std::memory_order_relaxed);
  });
  return is_finite;
}

}  // namespace collage::inline v0::detail::jit
