// The search space of direct convolutions: register tiles, and rows of outputs that a thread computes at a time.
#pragma once

#include "direct_convolution.hpp"
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

struct direct_task {
  direct_shape shape;
  int spare = 0;  ///< registers that an epilogue needs beside the accumulators, at least
};

/// Points of it. `block` is a number of rows of outputs.
class direct_space {
 public:
  static constexpr const char* name = "direct";
  static constexpr int version = direct_version;
  static constexpr std::array<const char*, 5> parameters = {"rows", "vectors", "unroll", "prefetch", "block"};
  enum parameter : std::size_t { rows, vectors, unroll, prefetch, block };
  using point = std::array<int, 5>;
  static constexpr std::array<const char*, 22> feature_names = {"rows",
                                                                "vectors",
                                                                "unroll",
                                                                "prefetch",
                                                                "block",
                                                                "accumulators",
                                                                "multiply-adds per load",
                                                                "useful blocks",
                                                                "useful rows",
                                                                "useful columns",
                                                                "log inputs of a block of L2",
                                                                "log sums of a block of L2",
                                                                "log panel of L1",
                                                                "log weights of a product of L2",
                                                                "log weights of L2",
                                                                "products",
                                                                "log inner extent",
                                                                "log outputs",
                                                                "log pixels",
                                                                "has pads",
                                                                "balance of threads",
                                                                "log estimate"};

  explicit direct_space(const direct_task& task, const tune::machine& on = {}) : task_(task), on_(on) {
    if (fault_of(task.shape).empty())
      blocks_ = even_sizes<96>(std::min<std::int64_t>(task.shape.height.outputs(), most_direct_rows));
  }

  std::span<const int> values(std::size_t of) const {
    if (blocks_.empty()) return {};
    return of == block ? blocks_.list() : register_tile::values(of);
  }
  bool holds(const point& p) const {
    const register_tile tile = tile_of(p);
    return p[rows] <= task_.shape.width.outputs() && tile.has_columns(task_.shape.outputs, on_) &&
           tile.leaves(task_.spare, on_) && is_generated(configuration_of(p).product);
  }
  sentence conflict(const point& p) const {
    sentence why;
    const register_tile tile = tile_of(p);
    if (p[rows] > task_.shape.width.outputs())
      why << "bands of " << p[rows] << " pixels are more than the " << task_.shape.width.outputs() << " of a row";
    else if (!tile.has_columns(task_.shape.outputs, on_)) tile.say_columns(why, task_.shape.outputs, "outputs");
    else if (!tile.leaves(task_.spare, on_)) tile.say_registers(why, task_.spare);
    else return fault_of(configuration_of(p));
    return why;
  }

  direct_configuration configuration_of(const point& p) const { return {tile_of(p).configuration_for(on_), p[block]}; }
  std::string text(const point& p) const { return to_text(configuration_of(p)); }
  point parse(std::string_view text) const {
    const direct_configuration c = parse_direct_configuration(text);
    const point p = {c.product.rows, c.product.vectors, c.product.unroll, c.product.prefetch, c.rows};
    if (configuration_of(p) != c)
      throw error(error_kind::invalid_argument, "it has a broadcast or an instruction set that this space has not",
                  "the configuration '" + std::string(text) + "'");
    return p;
  }

  /// Nanoseconds, roughly: of the products, and of copying rows with pads.
  double estimate(const point& p) const {
    constexpr double copied = 1, summed = 2;  // cycles of a line of 16 floats
    const direct_shape& s = task_.shape;
    const product_cost one(configuration_of(p).product, {s.width.outputs(), s.outputs, s.inner()}, on_);
    const double lines = number(s.width.outputs() * s.outputs) / 16, products = number(s.products());
    const double row = products * one.all() + (products - 1) * summed * lines * product_cost::cycle;
    const double copies =
        s.has_pads() ? number(rows_of_inputs(p) * s.depth.window * s.width.padded() * s.channels) / 16 * copied : 0;
    const double block_rows = number(s.height.outputs());
    const double blocks = block_rows / p[block];
    return number(s.batch * s.depth.outputs()) * (block_rows * row + blocks * copies * product_cost::cycle) /
           balance(p);
  }
  std::array<float, feature_names.size()> features(const point& p) const {
    const direct_shape& s = task_.shape;
    const direct_configuration c = configuration_of(p);
    const double l1 = number(on_.first_level_bytes), l2 = number(on_.second_level_bytes);
    const double across = number(s.width.outputs()), down = number(s.height.outputs()), tile_rows = p[rows];
    const double inner = number(s.inner()), outputs = number(s.outputs);
    const std::array made = {tile_rows,
                             number(p[vectors]),
                             number(p[unroll]),
                             number(p[prefetch]),
                             number(p[block]),
                             number(c.product.accumulators()),
                             number(c.product.accumulators()) / (tile_rows + p[vectors]),
                             down / (std::ceil(down / p[block]) * p[block]),
                             across / (std::ceil(across / tile_rows) * tile_rows),
                             outputs / number(parts_of_extent(s.outputs, on_.lanes) * on_.lanes),
                             std::log2(number(rows_of_inputs(p) * s.width.padded() * s.channels) * 4 / l2),
                             std::log2(p[block] * across * outputs * 4 / l2),
                             std::log2(inner * c.product.columns() * 4 / l1),
                             std::log2(inner * outputs * 4 / l2),
                             std::log2(number(s.products()) * inner * outputs * 4 / l2),
                             number(s.products()),
                             std::log2(inner),
                             std::log2(outputs),
                             std::log2(number(s.batch * s.depth.outputs()) * down * across),
                             s.has_pads() ? 1.0 : 0.0,
                             balance(p) / on_.threads,
                             std::log2(estimate(p))};
    return as_features(made);
  }

 private:
  static register_tile tile_of(const point& p) { return {p[rows], p[vectors], p[unroll], p[prefetch]}; }
  static constexpr double number(std::int64_t n) { return static_cast<double>(n); }

  std::int64_t rows_of_inputs(const point& p) const {
    return (p[block] - 1) * task_.shape.height.stride + task_.shape.height.reach();
  }
  /// How many threads work, on average. Few blocks are divided by channels, too.
  double balance(const point& p) const {
    const direct_shape& s = task_.shape;
    const std::int64_t blocks = s.batch * s.depth.outputs() * parts_of_extent(s.height.outputs(), p[block]);
    const std::int64_t panels = parts_of_extent(s.outputs, configuration_of(p).product.columns());
    const std::int64_t parts =
        blocks >= 2 * on_.threads ? blocks : blocks * std::min<std::int64_t>(panels, 2 * on_.threads);
    return number(parts) / number(parts_of_extent(parts, on_.threads));
  }

  direct_task task_;
  tune::machine on_;
  even_sizes<96> blocks_;
};

}  // namespace collage::inline v0::detail::jit
