// The search space of attention: register tiles, and queries that a thread computes at a time.
#pragma once

#include "attention.hpp"
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

struct attention_task {
  attention_shape shape;
  int spare = 0;  ///< registers that the factor and the mask need beside the accumulators, at least
};

/// Points of it. `block` is a number of queries.
class attention_space {
 public:
  static constexpr const char* name = "attention";
  static constexpr int version = attention_version;
  static constexpr std::array<const char*, 5> parameters = {"rows", "vectors", "unroll", "prefetch", "block"};
  enum parameter : std::size_t { rows, vectors, unroll, prefetch, block };
  using point = std::array<int, 5>;
  static constexpr std::array<const char*, 20> feature_names = {"rows",
                                                                "vectors",
                                                                "unroll",
                                                                "prefetch",
                                                                "block",
                                                                "accumulators",
                                                                "multiply-adds per load",
                                                                "useful blocks",
                                                                "useful rows",
                                                                "useful keys",
                                                                "useful columns of values",
                                                                "log scores of a block of L2",
                                                                "log keys of L2",
                                                                "log panel of values of L1",
                                                                "log size",
                                                                "log width",
                                                                "log keys",
                                                                "log queries",
                                                                "balance of threads",
                                                                "log estimate"};

  explicit attention_space(const attention_task& task, const tune::machine& on = {}) : task_(task), on_(on) {
    if (fault_of(task.shape).empty())
      blocks_ = even_sizes<512>(std::min<std::int64_t>(task.shape.queries, most_attention_rows));
  }

  std::span<const int> values(std::size_t of) const {
    if (blocks_.empty()) return {};
    return of == block ? blocks_.list() : register_tile::values(of);
  }
  bool holds(const point& p) const {
    const register_tile tile = tile_of(p);
    return p[rows] <= p[block] && tile.has_columns(widest(), on_) && tile.leaves(task_.spare, on_) &&
           is_generated(configuration_of(p).product);
  }
  sentence conflict(const point& p) const {
    sentence why;
    const register_tile tile = tile_of(p);
    if (p[rows] > p[block]) why << "tiles of " << p[rows] << " queries are more than the " << p[block] << " of a block";
    else if (!tile.has_columns(widest(), on_)) tile.say_columns(why, widest(), "keys or elements of a value");
    else if (!tile.leaves(task_.spare, on_)) tile.say_registers(why, task_.spare);
    else return fault_of(configuration_of(p));
    return why;
  }

  attention_configuration configuration_of(const point& p) const {
    return {tile_of(p).configuration_for(on_), p[block]};
  }
  std::string text(const point& p) const { return to_text(configuration_of(p)); }
  point parse(std::string_view text) const {
    const attention_configuration c = parse_attention_configuration(text);
    const point p = {c.product.rows, c.product.vectors, c.product.unroll, c.product.prefetch, c.rows};
    if (configuration_of(p) != c)
      throw error(error_kind::invalid_argument, "it has a broadcast or an instruction set that this space has not",
                  "the configuration '" + std::string(text) + "'");
    return p;
  }

  /// Nanoseconds, roughly: of both products, of exponentials, and of packing.
  double estimate(const point& p) const {
    constexpr double exponential = 20, packed = 8;  // cycles of a line of 16 floats
    const attention_shape& s = task_.shape;
    const configuration how = configuration_of(p).product;
    const double blocks = number(parts_of_extent(s.queries, p[block]));
    const double one = product_cost(how, {p[block], s.keys, s.size}, on_).all() +
                       product_cost(how, {p[block], s.width, s.keys}, on_).all();
    const double lines = number(s.queries) * number(s.keys) / 16;
    const double packing = number(s.keys) * number(s.size + s.width) / 16 * packed;
    return number(s.matrices()) * (blocks * one + (lines * exponential + packing) * product_cost::cycle) / balance(p);
  }
  std::array<float, feature_names.size()> features(const point& p) const {
    const attention_shape& s = task_.shape;
    const attention_configuration c = configuration_of(p);
    const double l1 = number(on_.first_level_bytes), l2 = number(on_.second_level_bytes);
    const double queries = number(s.queries), keys = number(s.keys), tile_rows = p[rows], in_block = p[block];
    const auto useful = [&](std::int64_t columns) {
      return number(columns) / number(parts_of_extent(columns, c.product.columns()) * c.product.columns());
    };
    const std::array made = {tile_rows,
                             number(p[vectors]),
                             number(p[unroll]),
                             number(p[prefetch]),
                             in_block,
                             number(c.product.accumulators()),
                             number(c.product.accumulators()) / (tile_rows + p[vectors]),
                             queries / (std::ceil(queries / in_block) * in_block),
                             in_block / (std::ceil(in_block / tile_rows) * tile_rows),
                             useful(s.keys),
                             useful(s.width),
                             std::log2(in_block * keys * 4 / l2),
                             std::log2(keys * number(s.size + s.width) * 4 / l2),
                             std::log2(keys * c.product.columns() * 4 / l1),
                             std::log2(number(s.size)),
                             std::log2(number(s.width)),
                             std::log2(keys),
                             std::log2(queries),
                             balance(p) / on_.threads,
                             std::log2(estimate(p))};
    return as_features(made);
  }

 private:
  static register_tile tile_of(const point& p) { return {p[rows], p[vectors], p[unroll], p[prefetch]}; }
  static constexpr double number(std::int64_t n) { return static_cast<double>(n); }

  std::int64_t widest() const { return std::max(task_.shape.keys, task_.shape.width); }
  /// How many threads work, on average.
  double balance(const point& p) const {
    const attention_shape& s = task_.shape;
    const bool by_matrices = on_.threads == 1 || s.matrices() >= std::int64_t{4} * on_.threads;
    const std::int64_t parts = by_matrices ? s.matrices() : s.matrices() * parts_of_extent(s.queries, p[block]);
    return number(parts) / number(parts_of_extent(parts, on_.threads));
  }

  attention_task task_;
  tune::machine on_;
  even_sizes<512> blocks_;
};

}  // namespace collage::inline v0::detail::jit
