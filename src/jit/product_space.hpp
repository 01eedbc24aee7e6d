// The search spaces of generated kernels: register tiles of products, and convolutions by bilinear algorithms. Their texts are those
// of configurations, which plans and stores hold.
//
// Estimates have the form of `tune::winograd_space`, whose constants are from a table of similar kernels. No table of these kernels has
// judged them yet.
#pragma once

#include "configuration.hpp"
#include "convolution_configuration.hpp"

#include <collage/tune/machine.hpp>
#include <collage/tune/space.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace collage::inline v0::detail::jit {

/// A product [m x k] [k x n].
struct product_task {
  std::int64_t m = 1, n = 1, k = 1;
};

constexpr instruction_set set_of(const tune::machine& on) {
  return on.lanes == 16 ? instruction_set::avx512 : instruction_set::avx2;
}

/// The values of register tiles, whatever is computed with them.
struct tile_parameters {
  static constexpr auto heights = [] {
    std::array<int, most_rows> all = {};
    for (int i = 0; i < most_rows; ++i) all[static_cast<std::size_t>(i)] = i + 1;
    return all;
  }();
  static constexpr std::array widths = {1, 2, 3, 4, 5, 6};
  static constexpr std::array unrollings = {1, 2, 4, 8, 16};
  static constexpr std::array distances = {0, 8, 16, 32};
};

/// Points of products. `broadcast` is a value of `broadcast_from`.
class product_space {
 public:
  static constexpr const char* name = "jit";
  static constexpr int version = generator_version;
  static constexpr std::array<const char*, 5> parameters = {"rows", "vectors", "unroll", "prefetch", "broadcast"};
  enum parameter : std::size_t { rows, vectors, unroll, prefetch, broadcast };
  using point = std::array<int, 5>;
  static constexpr std::array<const char*, 21> feature_names = {"rows",
                                                                "vectors",
                                                                "unroll",
                                                                "prefetch",
                                                                "broadcast",
                                                                "accumulators",
                                                                "share of registers",
                                                                "multiply-adds per load",
                                                                "useful rows",
                                                                "useful columns",
                                                                "log panel of L1",
                                                                "log register tile of L1",
                                                                "log B of L2",
                                                                "log A of L2",
                                                                "log arithmetic per byte",
                                                                "code of the loop of L1",
                                                                "log m",
                                                                "log n",
                                                                "log k",
                                                                "steps left by unrolling",
                                                                "log estimate"};

  explicit product_space(const product_task& task, const tune::machine& on = {}) : task_(task), on_(on) {}

  /// Why the task has no such kernel, in one sentence; empty if it has.
  sentence task_fault() const {
    sentence why;
    if (task_.m < 1 || task_.n < 1 || task_.k < 1) why << "a product has at least one row, one column and one step";
    return why;
  }
  std::span<const int> values(std::size_t of) const {
    if (!task_fault().empty()) return {};
    switch (of) {
      case rows: return tile_parameters::heights;
      case vectors: return tile_parameters::widths;
      case unroll: return tile_parameters::unrollings;
      case prefetch: return tile_parameters::distances;
      default: return sources;
    }
  }
  sentence conflict(const point& p) const {
    sentence why;
    if (p[rows] > task_.m) why << "bands of " << p[rows] << " rows are more than all " << task_.m;
    else if ((p[vectors] - 1) * on_.lanes >= task_.n)
      why << "one of " << p[vectors] << " vectors has none of the " << task_.n << " columns";
    else return fault_of(configuration_of(p));
    return why;
  }

  configuration configuration_of(const point& p) const {
    return {set_of(on_), p[rows], p[vectors], p[unroll], p[prefetch], static_cast<broadcast_from>(p[broadcast])};
  }
  std::string text(const point& p) const { return to_text(configuration_of(p)); }
  point parse(std::string_view text) const {
    const configuration c = parse_configuration(text);
    if (c.set != set_of(on_))
      throw error(error_kind::invalid_argument, "it is for another instruction set",
                  "the configuration '" + std::string(text) + "'");
    return {c.rows, c.vectors, c.unroll, c.prefetch, static_cast<int>(c.broadcast)};
  }

  /// Nanoseconds, roughly: see above.
  double estimate(const point& p) const {
    constexpr double multiply_add = 0.03, panel_load = 0.12, latency = 8;
    const double accumulators = p[rows] * p[vectors];
    return number(task_.k) * padded(p) / on_.lanes *
           (multiply_add * number(task_.m) * std::max(1.0, latency / accumulators) + panel_load * bands(p));
  }
  std::array<float, feature_names.size()> features(const point& p) const {
    const double m = number(task_.m), n = number(task_.n), k = number(task_.k), l1 = number(on_.first_level_bytes);
    const double l2 = number(on_.second_level_bytes), tile_rows = p[rows], panel = p[vectors] * on_.lanes;
    const configuration c = configuration_of(p);
    const std::array values = {tile_rows,
                               number(p[vectors]),
                               number(p[unroll]),
                               number(p[prefetch]),
                               number(p[broadcast]),
                               number(c.accumulators()),
                               number(c.registers()) / on_.registers,
                               number(c.accumulators()) / (tile_rows + p[vectors]),
                               m / (bands(p) * tile_rows),
                               n / padded(p),
                               std::log2(k * panel * 4 / l1),
                               std::log2((k * (panel + tile_rows) + tile_rows * panel) * 4 / l1),
                               std::log2(k * n * 4 / l2),
                               std::log2(m * k * 4 / l2),
                               std::log2(2 * m * n * k / (4 * (m * k + k * n + m * n))),
                               number(c.loop_bytes()) / l1,
                               std::log2(m),
                               std::log2(n),
                               std::log2(k),
                               number(task_.k % p[unroll]),
                               std::log2(estimate(p))};
    static_assert(values.size() == feature_names.size());
    std::array<float, feature_names.size()> made;
    for (std::size_t i = 0; i < values.size(); ++i) made[i] = static_cast<float>(values[i]);
    return made;
  }

 private:
  static constexpr std::array sources = {static_cast<int>(broadcast_from::memory),
                                         static_cast<int>(broadcast_from::vector_register)};
  static constexpr double number(std::int64_t n) { return static_cast<double>(n); }
  double bands(const point& p) const { return number((task_.m + p[rows] - 1) / p[rows]); }
  /// Columns with those that fill the last vector.
  double padded(const point&) const { return number((task_.n + on_.lanes - 1) / on_.lanes * on_.lanes); }

  product_task task_;
  tune::machine on_;
};

/// Points of convolutions without a depth. `family` is an index into `convolution_families`, `partition` a value of
/// `work_partition`.
class convolution_space {
 public:
  static constexpr const char* name = "winograd";
  static constexpr int version = convolution_version;
  static constexpr std::array<const char*, 7> parameters = {"family",   "rows",  "vectors",  "unroll",
                                                            "prefetch", "block", "partition"};
  enum parameter : std::size_t { family, rows, vectors, unroll, prefetch, block, partition };
  using point = std::array<int, 7>;

  explicit convolution_space(const convolution_shape& shape, const tune::machine& on = {}) : shape_(shape), on_(on) {
    if (!task_fault().empty()) return;
    std::ranges::copy(ladder, blocks_.begin());
    block_count_ = ladder.size();
    for (int i = 0; i < static_cast<int>(convolution_family_count); ++i) {
      if (!fault_of(configuration_of({i, 1, 1, 1, 0, 1, 0}), shape_).empty()) continue;
      families_[family_count_++] = i;
      const auto all = static_cast<int>(std::min<std::int64_t>(tiles_of(i), most_block_tiles));
      const auto used = std::span(blocks_).first(block_count_);
      if (std::ranges::find(used, all) == used.end()) blocks_[block_count_++] = all;
    }
    std::ranges::sort(std::span(blocks_).first(block_count_));
  }

  /// Why the task has no such kernel, in one sentence; empty if it may have some.
  sentence task_fault() const {
    sentence why = fault_of(shape_);
    if (why.empty() && shape_.depth > 1) why << "convolutions with a depth are not in this space";
    return why;
  }
  std::span<const int> values(std::size_t of) const {
    switch (of) {
      case family: return std::span(families_).first(family_count_);
      case rows: return tile_parameters::heights;
      case vectors: return tile_parameters::widths;
      case unroll: return tile_parameters::unrollings;
      case prefetch: return tile_parameters::distances;
      case block: return std::span(blocks_).first(block_count_);
      default: return std::span<const int>(partitions).first(on_.threads > 1 ? 2 : 1);
    }
  }
  sentence conflict(const point& p) const {
    sentence why;
    const std::int64_t all = tiles_of(p[family]);
    if (p[block] > all) why << "a block of " << p[block] << " tiles is more than all " << all << " of this image";
    else if (p[block] < all && std::ranges::find(ladder, p[block]) == ladder.end())
      why << "a block of " << p[block] << " tiles is for another algorithm";
    else if (p[rows] > p[block]) why << "bands of " << p[rows] << " rows are more than a block of " << p[block];
    else if ((p[vectors] - 1) * on_.lanes >= shape_.outputs)
      why << "one of " << p[vectors] << " vectors has none of the " << shape_.outputs << " outputs";
    else return fault_of(configuration_of(p));
    return why;
  }

  convolution_configuration configuration_of(const point& p) const {
    configuration product = default_configuration(set_of(on_));
    product.rows = p[rows];
    product.vectors = p[vectors];
    product.unroll = p[unroll];
    product.prefetch = p[prefetch];
    return {p[family], product, p[block], 1, static_cast<work_partition>(p[partition])};
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
                  "it has slices, a broadcast or an instruction set that this space has not",
                  "the configuration '" + std::string(text) + "'");
    return p;
  }

 private:
  static constexpr std::array ladder = {1,  2,  4,  7,   8,   14,  16,  28,  32,  42,  56,
                                        64, 84, 98, 112, 128, 168, 196, 256, 392, 512, 784};
  static constexpr std::array partitions = {static_cast<int>(work_partition::tiles),
                                            static_cast<int>(work_partition::phases)};

  std::int64_t tiles_of(int of) const { return blocks_of(configuration_of({of, 1, 1, 1, 0, 1, 0}), shape_).tiles; }

  convolution_shape shape_;
  tune::machine on_;
  std::array<int, convolution_family_count> families_ = {};
  std::size_t family_count_ = 0;
  std::array<int, ladder.size() + convolution_family_count> blocks_ = {};
  std::size_t block_count_ = 0;
};

}  // namespace collage::inline v0::detail::jit
