#include "convolution_space.hpp"

#include <bit>
#include <cmath>

namespace collage::inline v0::detail::jit {
namespace {

constexpr double number_of(std::int64_t n) { return static_cast<double>(n); }

/// How many low bits of a step in bytes are 0, as in tune/winograd.hpp.
int aliasing_of(std::int64_t floats) { return std::min(std::countr_zero(static_cast<std::uint64_t>(4 * floats)), 14); }

constexpr std::array block_ladder = {1,  2,  4,  7,   8,   14,  16,  28,  32,  42,  56,
                                     64, 84, 98, 112, 128, 168, 196, 256, 392, 512, 784};

}  // namespace

void convolution_space::add_block(std::int64_t tiles) {
  const int block_tiles = static_cast<int>(std::min<std::int64_t>(tiles, most_block_tiles));
  const auto used = std::span(blocks_).first(block_count_);
  if (block_count_ < blocks_.size() && std::ranges::find(used, block_tiles) == used.end())
    blocks_[block_count_++] = block_tiles;
}

convolution_space::convolution_space(const convolution_shape& shape, const tune::machine& on) : shape_(shape), on_(on) {
  if (!task_fault().empty()) return;
  for (const int size : block_ladder) add_block(size);
  for (int i = 0; i < static_cast<int>(convolution_family_count); ++i) {
    const convolution_configuration least = configuration_of({i, 1, 1, 1, 0, 1, 0});
    if (!fault_of(least, shape_).empty()) continue;
    families_[family_count_++] = i;
    tiles_[static_cast<std::size_t>(i)] = jit::blocks_of(least, shape_).tiles;
    add_block(tiles_of(i));
  }
  for (const int threads : {1, on_.threads})
    for (const convolution_configuration& c :
         propose_configurations(shape_, {set_of(on_), threads, on_.second_level_bytes}))
      if (c.weights == weight_transform_time::once) add_block(c.block);
  std::ranges::sort(std::span(blocks_).first(block_count_));
}

double convolution_space::balance(const point& p) const {
  const convolution_configuration c = configuration_of(p);
  const convolution_blocks b = jit::blocks_of(c, shape_);
  const std::int64_t threads = on_.threads;
  // Phases share 16 channels of about 16 tiles, and panels of all products.
  const std::int64_t parts =
      c.partition == work_partition::tiles
          ? b.blocks()
          : std::min(parts_of_extent(b.block, 16) * (b.input_row / 16),
                     c.algorithm().products * parts_of_extent(shape_.outputs, c.product.columns()));
  return number_of(parts) / number_of(parts_of_extent(parts, threads));
}

convolution_space::cost convolution_space::costs(const point& p) const {
  // Cycles, fitted to a thousand measured points of five shapes with AVX2. Lines are 16 floats.
  constexpr double moved = 0.3, written = 39, spilled = 2.1, plain_image = 5.6, entry = 88, streamed = 0.7,
                   beyond_third = 26;
  const convolution_configuration c = configuration_of(p);
  const convolution_family& f = c.algorithm();
  const convolution_blocks b = jit::blocks_of(c, shape_);
  const double products = f.products, tiles = number_of(b.tiles), inputs = number_of(b.input_row);
  const double outputs = number_of(b.output_row), block_bytes = 4 * number_of(b.floats);
  const double weights = number_of(weight_bytes(c, shape_)), l2 = number_of(on_.second_level_bytes);
  const double beyond = std::clamp(std::log2(block_bytes / l2) + 0.8, 0.0, 3.0);  // 0: about half of the second level
  cost made;
  for (const std::int64_t of_block : {b.block, b.tiles % b.block}) {
    if (of_block == 0) continue;
    const double times = of_block == b.block ? number_of(b.tiles / b.block) : 1;
    const product_cost one(c.product, {of_block, shape_.outputs, shape_.channels}, on_);
    const double calls =
        number_of(parts_of_extent(of_block, c.product.rows) * parts_of_extent(shape_.outputs, c.product.columns()));
    made.products += times * products * (one.all() + entry * calls * product_cost::cycle);
  }
  // All weights are read once for each block.
  const double third = std::clamp(std::log2(weights / number_of(on_.third_level_bytes)) + 2, 0.0, 1.0);
  const double line = weights + block_bytes < l2 ? product_cost::near_line : streamed + beyond_third * third;
  made.weights = number_of(b.blocks()) * weights / 64 * line * (c.product.prefetch > 0 ? product_cost::prefetched : 1) *
                 product_cost::cycle;
  const double moves = products * tiles / 16, area = f.tile_rows * f.tile_columns * tiles / 16;
  made.transforms = moves * (inputs + outputs) * (moved + spilled * beyond) + written * area * outputs;
  if (shape_.from == image_layout::plain) made.transforms += plain_image * moves * inputs;
  if (shape_.to == image_layout::plain) made.transforms += plain_image * area * outputs;
  made.transforms *= product_cost::cycle;
  return made;
}

std::array<float, convolution_space::feature_names.size()> convolution_space::features(const point& p) const {
  const auto log = [](double of) { return std::log2(of); };
  const convolution_configuration c = configuration_of(p);
  const convolution_family& f = c.algorithm();
  const convolution_blocks b = jit::blocks_of(c, shape_);
  const double l1 = number_of(on_.first_level_bytes), l2 = number_of(on_.second_level_bytes);
  const double l3 = number_of(on_.third_level_bytes), size = number_of(b.block), tiles = number_of(b.tiles);
  const double channels = number_of(shape_.channels), outputs = number_of(shape_.outputs);
  const double products = f.products, tile = f.tile_rows * f.tile_columns, panel = c.product.columns();
  const double tile_rows = p[rows], accumulators = c.product.accumulators(), bytes = 4 * number_of(b.floats);
  const double weights = number_of(weight_bytes(c, shape_)), blocks = number_of(b.blocks());
  const double area = number_of(shape_.batch * shape_.output_height() * shape_.output_width());
  const std::int64_t bands =
      b.tiles / b.block * parts_of_extent(b.block, p[rows]) + parts_of_extent(b.tiles % b.block, p[rows]);
  const cost parts = costs(p);
  const std::array values = {number_of(p[family]),
                             tile,
                             tile_rows,
                             number_of(p[vectors]),
                             number_of(p[unroll]),
                             number_of(p[prefetch]),
                             log(size),
                             number_of(p[partition]),
                             accumulators,
                             number_of(c.product.registers()) / on_.registers,
                             accumulators / (tile_rows + p[vectors]),
                             tiles / (blocks * size),
                             tiles / (number_of(bands) * tile_rows),
                             outputs / number_of(parts_of_extent(shape_.outputs, on_.lanes) * on_.lanes),
                             area / (tiles * tile),
                             log(products * number_of(b.input_step) * 4 / l2),
                             log(products * number_of(b.output_step) * 4 / l2),
                             log(bytes / l2),
                             log(bytes / l3),
                             log(size * number_of(b.input_row) * 4 / l1),
                             log(channels * panel * 4 / l1),
                             log((channels * (panel + tile_rows) + tile_rows * panel) * 4 / l1),
                             log(channels * outputs * 4 / l2),
                             log(weights / l2),
                             log(weights / l3),
                             log(2 * products * size * channels * outputs / (bytes + weights)),
                             f.gain() * area / (tiles * tile),
                             log(f.error.amplification),
                             log(channels),
                             log(outputs),
                             log(tiles),
                             blocks,
                             balance(p) / on_.threads,
                             number_of(on_.threads),
                             number_of(aliasing_of(b.input_step)),
                             number_of(aliasing_of(b.output_step)),
                             number_of(shape_.channels % p[unroll]),
                             number_of(c.product.loop_bytes()) / l1,
                             number_of(static_cast<int>(shape_.from)),
                             number_of(static_cast<int>(shape_.to)),
                             number_of(shape_.enlargement),
                             log(estimate(p)),
                             parts.products / parts.all(),
                             parts.transforms / parts.all()};
  return as_features(values);
}

}  // namespace collage::inline v0::detail::jit
