// The search spaces of depthwise convolutions: those with a pointwise one after them, and those on bytes.
#pragma once

#include "byte_depthwise.hpp"
#include "depthwise_product.hpp"
#include "tile_parameters.hpp"

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

/// A depthwise convolution and the pointwise one after it.
struct depthwise_task {
  depthwise_shape shape;
  std::int64_t outputs = 1;  ///< channels
  int spare = 0;             ///< registers that an epilogue needs beside the accumulators, at least
};

/// Points of it. `block` is a number of rows of outputs, `partition` a value of `depthwise_partition`.
class depthwise_space {
 public:
  static constexpr const char* name = "depthwise";
  static constexpr int version = depthwise_version;
  static constexpr std::array<const char*, 6> parameters = {"rows",     "vectors", "unroll",
                                                            "prefetch", "block",   "partition"};
  enum parameter : std::size_t { rows, vectors, unroll, prefetch, block, partition };
  using point = std::array<int, 6>;
  static constexpr std::array<const char*, 20> feature_names = {"rows",
                                                                "vectors",
                                                                "unroll",
                                                                "prefetch",
                                                                "block",
                                                                "partition",
                                                                "accumulators",
                                                                "useful blocks",
                                                                "useful rows",
                                                                "useful columns",
                                                                "multiply-adds per load",
                                                                "log block of L1",
                                                                "log block of L2",
                                                                "log panel of L1",
                                                                "log weights of L2",
                                                                "log channels",
                                                                "log outputs",
                                                                "log pixels",
                                                                "balance of threads",
                                                                "log estimate"};

  explicit depthwise_space(const depthwise_task& task, const tune::machine& on = {}) : task_(task), on_(on) {
    if (!fault_of(task.shape).empty() || task.outputs < 1) return;
    blocks_ = even_sizes<96>(std::min<std::int64_t>(task.shape.output_height(), most_depthwise_rows));
  }

  std::span<const int> values(std::size_t of) const {
    if (blocks_.empty()) return {};
    switch (of) {
      case rows:
      case vectors:
      case unroll:
      case prefetch: return register_tile::values(of);
      case block: return blocks_.list();
      default: return std::span<const int>(partitions).first(on_.threads > 1 ? 2 : 1);
    }
  }
  bool holds(const point& p) const {
    const register_tile tile = tile_of(p);
    return p[rows] <= p[block] * task_.shape.output_width() && tile.has_columns(task_.outputs, on_) &&
           tile.leaves(task_.spare, on_) && is_generated(configuration_of(p).product);
  }
  sentence conflict(const point& p) const {
    sentence why;
    const register_tile tile = tile_of(p);
    if (p[rows] > p[block] * task_.shape.output_width())
      why << "bands of " << p[rows] << " pixels are more than a block of " << p[block] << " rows";
    else if (!tile.has_columns(task_.outputs, on_)) tile.say_columns(why, task_.outputs, "outputs");
    else if (!tile.leaves(task_.spare, on_)) tile.say_registers(why, task_.spare);
    else return fault_of(configuration_of(p));
    return why;
  }

  depthwise_configuration configuration_of(const point& p) const {
    return {tile_of(p).configuration_for(on_), p[block], static_cast<depthwise_partition>(p[partition])};
  }
  std::string text(const point& p) const { return to_text(configuration_of(p)); }
  point parse(std::string_view text) const {
    const depthwise_configuration c = parse_depthwise_configuration(text);
    const point p = {
        c.product.rows, c.product.vectors, c.product.unroll, c.product.prefetch, c.rows, static_cast<int>(c.partition)};
    if (configuration_of(p) != c)
      throw error(error_kind::invalid_argument, "it has a broadcast or an instruction set that this space has not",
                  "the configuration '" + std::string(text) + "'");
    return p;
  }

  /// Nanoseconds, roughly.
  double estimate(const point& p) const {
    constexpr double tap = 1.2, spilled = 0.5;  // cycles of 16 channels of a pixel
    const depthwise_shape& s = task_.shape;
    const depthwise_blocks b = blocks_of(configuration_of(p), s);
    const configuration how = configuration_of(p).product;
    const std::int64_t last = s.output_height() % b.rows;
    double products = number(s.output_height() / b.rows) * block_product(how, b.rows);
    if (last > 0) products += block_product(how, last);
    const double beyond = std::clamp(std::log2(4 * number(b.floats) / number(on_.second_level_bytes)) + 1, 0.0, 2.0);
    const double pixels = number(s.output_height() * s.output_width()), lines = number(b.step) / 16;
    const double taps = number(s.window * s.window);
    return number(s.batch) * (products + pixels * lines * (tap * taps + spilled * beyond) * product_cost::cycle) /
           balance(p);
  }
  std::array<float, feature_names.size()> features(const point& p) const {
    const depthwise_shape& s = task_.shape;
    const depthwise_configuration c = configuration_of(p);
    const depthwise_blocks b = blocks_of(c, s);
    const double l1 = number(on_.first_level_bytes), l2 = number(on_.second_level_bytes);
    const double height = number(s.output_height()), pixels = number(b.rows * s.output_width());
    const double channels = number(s.channels), outputs = number(task_.outputs), tile_rows = p[rows];
    const std::array made = {tile_rows,
                             number(p[vectors]),
                             number(p[unroll]),
                             number(p[prefetch]),
                             number(p[block]),
                             number(p[partition]),
                             number(c.product.accumulators()),
                             height / number(b.per_image * b.rows),
                             pixels / (std::ceil(pixels / tile_rows) * tile_rows),
                             outputs / number(parts_of_extent(task_.outputs, on_.lanes) * on_.lanes),
                             number(c.product.accumulators()) / (tile_rows + p[vectors]),
                             std::log2(4 * number(b.floats) / l1),
                             std::log2(4 * number(b.floats) / l2),
                             std::log2(channels * c.product.columns() * 4 / l1),
                             std::log2(channels * outputs * 4 / l2),
                             std::log2(channels),
                             std::log2(outputs),
                             std::log2(number(s.batch) * height * number(s.output_width())),
                             balance(p) / on_.threads,
                             std::log2(estimate(p))};
    return as_features(made);
  }

 private:
  static register_tile tile_of(const point& p) { return {p[rows], p[vectors], p[unroll], p[prefetch]}; }

  static constexpr std::array partitions = {static_cast<int>(depthwise_partition::blocks),
                                            static_cast<int>(depthwise_partition::shared)};
  static constexpr double number(std::int64_t n) { return static_cast<double>(n); }

  double block_product(const configuration& how, std::int64_t height) const {
    return product_cost(how, {height * task_.shape.output_width(), task_.outputs, task_.shape.channels}, on_).all();
  }
  /// How many threads work, on average.
  double balance(const point& p) const {
    const depthwise_configuration c = configuration_of(p);
    const std::int64_t parts = c.partition == depthwise_partition::blocks
                                   ? task_.shape.batch * blocks_of(c, task_.shape).per_image
                                   : parts_of_extent(task_.outputs, c.product.columns());
    return number(parts) / number(parts_of_extent(parts, on_.threads));
  }

  depthwise_task task_;
  tune::machine on_;
  even_sizes<96> blocks_;
};

/// Points of depthwise convolutions on bytes. `order` is a value of `byte_depthwise_order`.
class byte_depthwise_space {
 public:
  static constexpr const char* name = "bytes";
  static constexpr int version = byte_depthwise_version;
  static constexpr std::array<const char*, 3> parameters = {"rows", "columns", "order"};
  enum parameter : std::size_t { rows, columns, order };
  using point = std::array<int, 3>;
  static constexpr std::array<const char*, 11> feature_names = {
      "rows",      "columns",    "order", "outputs of a tile", "useful rows", "useful columns", "log channels",
      "log width", "log height", "taps",  "log estimate"};

  explicit byte_depthwise_space(const byte_depthwise_shape& shape) : shape_(shape) {}

  std::span<const int> values(std::size_t of) const {
    switch (of) {
      case rows: return heights;
      case columns: return widths;
      default: return orders;
    }
  }
  sentence conflict(const point& p) const {
    sentence why;
    if (!can_generate(configuration_of(p), shape_))
      why << "the window is too large for a tile of " << p[rows] << "x" << p[columns];
    else if (p[rows] > shape_.output_height() || p[columns] > shape_.output_width())
      why << "a tile of " << p[rows] << "x" << p[columns] << " is larger than the result";
    return why;
  }

  static byte_depthwise_configuration configuration_of(const point& p) {
    return {p[rows], p[columns], static_cast<byte_depthwise_order>(p[order])};
  }
  std::string text(const point& p) const { return to_text(configuration_of(p)); }
  point parse(std::string_view text) const {
    const byte_depthwise_configuration c = parse_byte_depthwise_configuration(text);
    return {c.rows, c.columns, static_cast<int>(c.order)};
  }

  /// Multiplications of four bytes each, loads and stores of 64 channels, in units of their own.
  double estimate(const point& p) const {
    constexpr double entry = 12, loaded = 1, stored = 3;
    const double outputs = p[rows] * p[columns],
                 taps = number(shape_.window_rows * parts_of_extent(shape_.window_columns, 4));
    const double read = number(((p[rows] - 1) * shape_.stride_rows + shape_.window_rows) *
                               ((p[columns] - 1) * shape_.stride_columns + shape_.window_columns));
    return number(shape_.batch * parts_of_extent(shape_.channels, 64)) * tiles(p) *
           (entry + 4 * outputs * taps + loaded * read + taps + stored * outputs);
  }
  std::array<float, feature_names.size()> features(const point& p) const {
    const double height = number(shape_.output_height()), width = number(shape_.output_width());
    const std::array made = {number(p[rows]),
                             number(p[columns]),
                             number(p[order]),
                             number(p[rows] * p[columns]),
                             height / number(parts_of_extent(shape_.output_height(), p[rows]) * p[rows]),
                             width / number(parts_of_extent(shape_.output_width(), p[columns]) * p[columns]),
                             std::log2(number(shape_.channels)),
                             std::log2(width),
                             std::log2(height),
                             number(shape_.taps()),
                             std::log2(estimate(p))};
    return as_features(made);
  }

 private:
  static constexpr std::array heights = {1, 2, 3, 4};
  static constexpr std::array widths = {1, 2, 3, 4, 5, 6, 7, 8};
  static constexpr std::array orders = {static_cast<int>(byte_depthwise_order::channels),
                                        static_cast<int>(byte_depthwise_order::columns)};
  static_assert(heights.back() == most_byte_rows && widths.back() == most_byte_columns);
  static constexpr double number(std::int64_t n) { return static_cast<double>(n); }

  double tiles(const point& p) const {
    return number(parts_of_extent(shape_.output_height(), p[rows]) *
                  parts_of_extent(shape_.output_width(), p[columns]));
  }

  byte_depthwise_shape shape_;
};

}  // namespace collage::inline v0::detail::jit
