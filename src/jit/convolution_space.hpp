// The search space of convolutions by bilinear algorithms: the algorithm, its blocks of tiles, and the register tiles of its products.
#pragma once

#include "convolution_configuration.hpp"
#include "tile_parameters.hpp"

#include <collage/tune/machine.hpp>
#include <collage/tune/space.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace collage::inline v0::detail::jit {

/// Points of convolutions without a depth. `family` is an index into `convolution_families`, `partition` a value of
/// `work_partition`. Operators after a convolution need no registers of its products: the output transform computes them.
class convolution_space {
 public:
  static constexpr const char* name = "winograd";
  static constexpr int version = convolution_version;
  static constexpr std::array<const char*, 7> parameters = {"family",   "rows",  "vectors",  "unroll",
                                                            "prefetch", "block", "partition"};
  enum parameter : std::size_t { family, rows, vectors, unroll, prefetch, block, partition };
  using point = std::array<int, 7>;

  /// In the order of `features`. Logarithms are of base 2. "of L1" is a share of that cache.
  static constexpr std::array<const char*, 44> feature_names = {"family",
                                                                "outputs of a tile",
                                                                "rows",
                                                                "vectors",
                                                                "unroll",
                                                                "prefetch",
                                                                "log block",
                                                                "partition",
                                                                "accumulators",
                                                                "share of registers",
                                                                "multiply-adds per load",
                                                                "useful share of blocks",
                                                                "useful rows",
                                                                "useful columns",
                                                                "useful share of tiles",
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
                                                                "log amplification of errors",
                                                                "log channels",
                                                                "log outputs",
                                                                "log tiles",
                                                                "blocks",
                                                                "balance of threads",
                                                                "threads",
                                                                "aliasing of inputs",
                                                                "aliasing of outputs",
                                                                "steps left by unrolling",
                                                                "code of the loop of L1",
                                                                "layout of the input",
                                                                "layout of the output",
                                                                "enlargement",
                                                                "log estimate",
                                                                "share of products",
                                                                "share of transforms"};

  explicit convolution_space(const convolution_shape& shape, const tune::machine& on = {});

  /// Why the task has no such kernel, in one sentence; empty if it may have some.
  sentence task_fault() const {
    sentence why = fault_of(shape_);
    if (why.empty() && shape_.depth > 1) why << "convolutions with a depth are not in this space";
    return why;
  }
  std::span<const int> values(std::size_t of) const {
    switch (of) {
      case family: return std::span(families_).first(family_count_);
      case rows:
      case vectors:
      case unroll:
      case prefetch: return register_tile::values(of - rows);
      case block: return std::span(blocks_).first(block_count_);
      default: return std::span<const int>(partitions).first(on_.threads > 1 ? 2 : 1);
    }
  }
  bool holds(const point& p) const {
    return p[rows] <= p[block] && p[block] <= tiles_of(p[family]) && tile_of(p).has_columns(shape_.outputs, on_) &&
           is_generated(configuration_of(p).product);
  }
  sentence conflict(const point& p) const {
    sentence why;
    const std::int64_t all = tiles_of(p[family]);
    if (p[block] > all) why << "a block of " << p[block] << " tiles is more than all " << all << " of this image";
    else if (p[rows] > p[block]) why << "bands of " << p[rows] << " rows are more than a block of " << p[block];
    else if (!tile_of(p).has_columns(shape_.outputs, on_)) tile_of(p).say_columns(why, shape_.outputs, "outputs");
    else return fault_of(configuration_of(p));
    return why;
  }

  convolution_configuration configuration_of(const point& p) const {
    return {p[family], tile_of(p).configuration_for(on_), p[block], 1, static_cast<work_partition>(p[partition])};
  }
  std::string text(const point& p) const { return to_text(configuration_of(p)); }
  point parse(std::string_view text) const {
    const convolution_configuration c = parse_convolution_configuration(text);
    const point p = {c.family,
                     c.product.rows,
                     c.product.vectors,
                     c.product.unroll,
                     c.product.prefetch,
                     c.block,
                     static_cast<int>(c.partition)};
    if (configuration_of(p) != c)
      throw error(error_kind::invalid_argument,
                  "it has slices, weights on the fly, a broadcast or an instruction set that this space has not",
                  "the configuration '" + std::string(text) + "'");
    return p;
  }

  /// The parts of an estimate, in nanoseconds of all threads together.
  struct cost {
    double products = 0, weights = 0, transforms = 0;
    double all() const { return products + weights + transforms; }
  };
  cost costs(const point& p) const;
  /// Nanoseconds, roughly.
  double estimate(const point& p) const { return costs(p).all() / balance(p); }
  std::array<float, feature_names.size()> features(const point& p) const;

 private:
  static register_tile tile_of(const point& p) { return {p[rows], p[vectors], p[unroll], p[prefetch]}; }

  static constexpr std::array partitions = {static_cast<int>(work_partition::tiles),
                                            static_cast<int>(work_partition::phases)};

  std::int64_t tiles_of(int of) const { return tiles_[static_cast<std::size_t>(of)]; }
  void add_block(std::int64_t tiles);
  /// How many threads work, on average.
  double balance(const point& p) const;

  convolution_shape shape_;
  tune::machine on_;
  std::array<int, convolution_family_count> families_ = {};
  std::size_t family_count_ = 0;
  std::array<std::int64_t, convolution_family_count> tiles_ = {};
  std::array<int, 96> blocks_ = {};
  std::size_t block_count_ = 0;
};

}  // namespace collage::inline v0::detail::jit
