// The search space of products: the register tiles of their kernels.
#pragma once

#include "configuration.hpp"
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

/// A product [m x k] [k x n].
struct product_task {
  std::int64_t m = 1, n = 1, k = 1;
  int spare = 0;  ///< registers that an epilogue needs beside the accumulators, at least
  /// The instruction set decides how elements of A are repeated, as in texts of `product_point`.
  bool has_one_broadcast = false;
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
    if (task_.m < 1 || task_.n < 1 || task_.k < 1) return {};
    if (of < register_tile::parameters) return register_tile::values(of);
    const std::span<const int> all = sources;
    return !task_.has_one_broadcast ? all : set_of(on_) == instruction_set::avx512 ? all.first(1) : all.last(1);
  }
  bool holds(const point& p) const {
    const register_tile tile = tile_of(p);
    return p[rows] <= task_.m && tile.has_columns(task_.n, on_) && tile.leaves(task_.spare, on_) &&
           is_generated(configuration_of(p));
  }
  sentence conflict(const point& p) const {
    sentence why;
    const register_tile tile = tile_of(p);
    if (p[rows] > task_.m) why << "bands of " << p[rows] << " rows are more than all " << task_.m;
    else if (!tile.has_columns(task_.n, on_)) tile.say_columns(why, task_.n, "columns");
    else if (!tile.leaves(task_.spare, on_)) tile.say_registers(why, task_.spare);
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

  /// Nanoseconds, roughly.
  double estimate(const point& p) const {
    return product_cost(configuration_of(p), {task_.m, task_.n, task_.k}, on_).all();
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
    return as_features(values);
  }

 private:
  static register_tile tile_of(const point& p) { return {p[rows], p[vectors], p[unroll], p[prefetch]}; }

  static constexpr std::array sources = {static_cast<int>(broadcast_from::memory),
                                         static_cast<int>(broadcast_from::vector_register)};
  static constexpr double number(std::int64_t n) { return static_cast<double>(n); }
  double bands(const point& p) const { return number((task_.m + p[rows] - 1) / p[rows]); }
  /// Columns with those that fill the last vector.
  double padded(const point&) const { return number((task_.n + on_.lanes - 1) / on_.lanes * on_.lanes); }

  product_task task_;
  tune::machine on_;
};

}  // namespace collage::inline v0::detail::jit
