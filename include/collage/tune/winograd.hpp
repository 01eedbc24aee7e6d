// The search space of one family of kernels: convolutions with windows of 3x3 by F(m,3), m = 2, 4, 6, in blocks of tiles.
//
// A block is transformed, multiplied and transformed back while it lies in a cache. Each of the (m + 2)^2 products of a block has the
// tiles as rows, the input channels in between and the output channels as columns. Its loops have register tiles of `rows` times
// `vectors`. benchmarks/families measures this family.
#pragma once

#include <collage/detail/sentence.hpp>
#include <collage/tune/machine.hpp>
#include <collage/tune/space.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

namespace collage::inline v0::tune {

/// A convolution with stride 1 and a window of 3x3, whose output is as large as its input. Batch 1.
struct winograd_task {
  std::int64_t channels = 1, outputs = 1;  ///< `outputs` are channels
  std::int64_t height = 1, width = 1;
  friend bool operator==(const winograd_task&, const winograd_task&) = default;
};

/// Points and features of a task on a machine.
class winograd_space {
 public:
  static constexpr const char* name = "winograd-tiles";
  static constexpr int version = 1;
  static constexpr std::array<const char*, 5> parameters = {"tile", "vectors", "block", "rows", "unroll"};
  enum parameter : std::size_t { tile, vectors, block, rows, unroll };
  using point = std::array<int, 5>;

  /// In the order of `features`. Logarithms are of base 2. "of L1" is a share of that cache.
  static constexpr std::array<const char*, 37> feature_names = {"tile",
                                                                "log block",
                                                                "rows",
                                                                "vectors",
                                                                "unroll",
                                                                "accumulators",
                                                                "share of registers",
                                                                "multiply-adds per load",
                                                                "useful share of blocks",
                                                                "useful share of bands",
                                                                "last band",
                                                                "useful share of tiles",
                                                                "useful rows",
                                                                "log inputs of a block of L2",
                                                                "log outputs of a block of L2",
                                                                "log block of L2",
                                                                "log block of L3",
                                                                "log left operand of L1",
                                                                "log panel of L1",
                                                                "log register tile of L1",
                                                                "log weights of a product of L2",
                                                                "log weights of L2",
                                                                "log weights of L3",
                                                                "log arithmetic per byte",
                                                                "multiplications of the definition",
                                                                "log channels",
                                                                "log outputs",
                                                                "height",
                                                                "log tiles",
                                                                "blocks",
                                                                "balance of threads",
                                                                "aliasing of inputs",
                                                                "aliasing of outputs",
                                                                "steps left by unrolling",
                                                                "log estimate",
                                                                "share of products",
                                                                "share of transforms"};

  /// The bytes of a transformed block, at most: larger ones would only repeat what the largest show.
  static constexpr std::int64_t most_block_bytes = 8 << 20;

  explicit winograd_space(const winograd_task& task, const machine& on = {}) : task_(task), on_(on) {
    if (!task_fault().empty()) return;
    std::ranges::copy(ladder, blocks_.begin());
    block_count_ = ladder.size();
    for (const int m : tiles) {  // all tiles at once
      const auto all = static_cast<int>(std::min<std::int64_t>(tiles_of(m), 1 << 24));
      const auto used = std::span(blocks_).first(block_count_);
      if (std::ranges::find(used, all) == used.end()) blocks_[block_count_++] = all;
    }
    std::ranges::sort(std::span(blocks_).first(block_count_));
  }

  const winograd_task& task() const { return task_; }

  /// Why the task has no such kernel, in one sentence; empty if it has.
  detail::sentence task_fault() const {
    detail::sentence why;
    if (task_.channels < 1 || task_.outputs < 1 || task_.height < 1 || task_.width < 1)
      why << "a convolution has at least one channel, one output, one row and one column";
    else if (task_.channels % on_.lanes != 0 || task_.outputs % on_.lanes != 0)
      why << "channels and outputs are multiples of " << on_.lanes << " in this family, and here they are "
          << task_.channels << " and " << task_.outputs;
    return why;
  }

  std::span<const int> values(std::size_t of) const {
    switch (of) {
      case tile: return block_count_ == 0 ? std::span<const int>() : std::span<const int>(tiles);
      case vectors: return widths;
      case block: return std::span(blocks_).first(block_count_);
      case rows: return heights;
      default: return unrollings;
    }
  }

  detail::sentence conflict(const point& p) const {
    detail::sentence why;
    const std::int64_t all = tiles_of(p[tile]), channels = task_.channels + task_.outputs;
    if (task_.outputs % (on_.lanes * p[vectors]) != 0)
      why << "panels of " << p[vectors] << " vectors do not divide " << task_.outputs << " outputs";
    else if (p[rows] * p[vectors] + p[vectors] > on_.registers)
      why << "a register tile of " << p[rows] << "x" << p[vectors] << " needs " << p[rows] * p[vectors] + p[vectors]
          << " vector registers, and there are " << on_.registers;
    else if (p[block] > all) why << "a block of " << p[block] << " tiles is more than all " << all << " of this image";
    else if (p[block] < all && std::ranges::find(ladder, p[block]) == ladder.end())
      why << "a block of " << p[block] << " tiles is for another tile";
    else if (p[rows] > p[block]) why << "bands of " << p[rows] << " rows are more than a block of " << p[block];
    else if (4 * patch(p) * p[block] * channels > most_block_bytes)
      why << "a block takes " << 4 * patch(p) * p[block] * channels << " bytes, and at most " << most_block_bytes
          << " are tried";
    return why;
  }

  /// Tiles of m x m outputs that cover the image.
  std::int64_t tiles_of(int m) const { return parts(task_.height, m) * parts(task_.width, m); }

  /// The parts of an estimate, in nanoseconds on the processor of the table: roughly, and in the right order.
  struct cost {
    double products = 0, weights = 0, transforms = 0;
    double all() const { return products + weights + transforms; }
  };
  cost costs(const point& p) const {
    // Fitted by least squares to one of eight shapes, "rn2" of the table: nanoseconds for each of what they multiply.
    constexpr double multiply_add = 0.03, panel_load = 0.12, weight_line = 0.11, moved = 9.5, spilled = 0.87,
                     aliased = 1.3;
    constexpr double latency = 8;  // independent multiply-adds that keep the processor busy
    const auto channels = static_cast<double>(task_.channels), outputs = static_cast<double>(task_.outputs);
    const double all = static_cast<double>(tiles_of(p[tile])), taps = static_cast<double>(patch(p)), lanes = on_.lanes;
    const double accumulators = p[rows] * p[vectors];
    cost c;
    c.products =
        taps * channels * outputs / lanes *
        (multiply_add * all * std::max(1.0, latency / accumulators) + panel_load * static_cast<double>(bands_of(p)));
    c.weights = weight_line * static_cast<double>(blocks_of(p)) * taps * channels * outputs * 4 / 64;
    const double level = static_cast<double>(block_bytes(p)) / static_cast<double>(on_.second_level_bytes);
    const double beyond = std::clamp(std::log2(level) + 1, 0.0, 2.0);  // 0: half of the second level
    c.transforms = taps * all / lanes *
                   ((channels + outputs) * (moved + spilled * beyond) +
                    outputs * (aliasing(p[block] * task_.outputs) >= 12 ? aliased : 0.0));
    return c;
  }
  /// The closed form.
  double estimate(const point& p) const { return costs(p).all(); }

  /// Blocks of tiles; the last one may be smaller.
  std::int64_t blocks_of(const point& p) const { return parts(tiles_of(p[tile]), p[block]); }
  /// Bands of rows of register tiles, in all blocks.
  std::int64_t bands_of(const point& p) const {
    const std::int64_t all = tiles_of(p[tile]);
    return all / p[block] * parts(p[block], p[rows]) + parts(all % p[block], p[rows]);
  }
  /// Bytes of a block's transformed inputs and outputs.
  std::int64_t block_bytes(const point& p) const { return 4 * patch(p) * p[block] * (task_.channels + task_.outputs); }
  /// How many low bits of a step in bytes are 0. From 12 on, all elements at this step meet in one set of the first level.
  static int aliasing(std::int64_t floats) {
    return std::min(std::countr_zero(static_cast<std::uint64_t>(4 * floats)), 14);
  }

  std::array<float, feature_names.size()> features(const point& p) const {
    const auto log = [](double of) { return std::log2(of); };
    const auto number = [](std::int64_t n) { return static_cast<double>(n); };
    const double l1 = number(on_.first_level_bytes), l2 = number(on_.second_level_bytes),
                 l3 = number(on_.third_level_bytes);
    const double channels = number(task_.channels), outputs = number(task_.outputs), all = number(tiles_of(p[tile]));
    const double taps = number(patch(p)), size = p[block], area = number(task_.height * task_.width);
    const double panel = p[vectors] * on_.lanes, tile_rows = p[rows], accumulators = p[rows] * p[vectors];
    const double weights = taps * channels * outputs * 4, bytes = number(block_bytes(p)), blocks = number(blocks_of(p));
    const cost c = costs(p);
    const std::array values = {number(p[tile]),
                               log(size),
                               tile_rows,
                               number(p[vectors]),
                               number(p[unroll]),
                               accumulators,
                               (accumulators + p[vectors]) / on_.registers,
                               accumulators / (tile_rows + p[vectors]),
                               all / (blocks * size),
                               size / (number(parts(p[block], p[rows])) * tile_rows),
                               number(p[block] % p[rows]),
                               area / (all * p[tile] * p[tile]),
                               all / (number(bands_of(p)) * tile_rows),
                               log(taps * size * channels * 4 / l2),
                               log(taps * size * outputs * 4 / l2),
                               log(bytes / l2),
                               log(bytes / l3),
                               log(size * channels * 4 / l1),
                               log(channels * panel * 4 / l1),
                               log((channels * (panel + tile_rows) + tile_rows * panel) * 4 / l1),
                               log(channels * outputs * 4 / l2),
                               log(weights / l2),
                               log(weights / l3),
                               log(2 * taps * size * channels * outputs / (bytes + weights)),
                               9 * area / (taps * all),
                               log(channels),
                               log(outputs),
                               number(task_.height),
                               log(all),
                               blocks,
                               blocks / (on_.threads * std::ceil(blocks / on_.threads)),
                               number(aliasing(p[block] * task_.channels)),
                               number(aliasing(p[block] * task_.outputs)),
                               number(task_.channels % p[unroll]),
                               log(c.all()),
                               c.products / c.all(),
                               c.transforms / c.all()};
    static_assert(values.size() == feature_names.size());
    std::array<float, feature_names.size()> features;
    for (std::size_t i = 0; i < values.size(); ++i) features[i] = static_cast<float>(values[i]);
    return features;
  }

 private:
  static constexpr std::array tiles = {2, 4, 6};
  static constexpr std::array widths = {1, 2, 3, 4};
  static constexpr std::array unrollings = {1, 2, 4, 8};
  static constexpr std::array heights = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14};
  static constexpr std::array ladder = {1,  2,  3,  4,  6,  8,  10, 12,  14,  16,  20,  24,  28,
                                        32, 40, 48, 56, 64, 80, 96, 128, 160, 196, 256, 400, 784};

  static constexpr std::int64_t parts(std::int64_t all, std::int64_t size) { return (all + size - 1) / size; }
  /// Products for one tile and a pair of channels.
  static constexpr std::int64_t patch(const point& p) { return (p[tile] + 2) * (p[tile] + 2); }

  winograd_task task_;
  machine on_;
  std::array<int, 29> blocks_ = {};
  std::size_t block_count_ = 0;
};

}  // namespace collage::inline v0::tune
