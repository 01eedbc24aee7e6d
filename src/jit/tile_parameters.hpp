// Shared by the search spaces of generated kernels: the values of register tiles, and how long products of such tiles take.
#pragma once

#include "configuration.hpp"

#include <collage/tune/machine.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

namespace collage::inline v0::detail::jit {

constexpr instruction_set set_of(const tune::machine& on) {
  return on.lanes == 16 ? instruction_set::avx512 : instruction_set::avx2;
}

/// The register tile of a point, whatever is computed with it. Parameters of a space stand in this order.
struct register_tile {
  int rows = 1, vectors = 1, unroll = 1, prefetch = 0;

  static constexpr std::size_t parameters = 4;

  /// The values of a parameter, by its place here.
  static constexpr std::span<const int> values(std::size_t of) {
    switch (of) {
      case 0: return heights;
      case 1: return widths;
      case 2: return unrollings;
      default: return distances;
    }
  }

  /// The usual configuration of such tiles for a processor.
  configuration configuration_for(const tune::machine& on) const {
    configuration made = default_configuration(set_of(on));
    made.rows = rows;
    made.vectors = vectors;
    made.unroll = unroll;
    made.prefetch = prefetch;
    return made;
  }

  /// Whether its last vector has one of so many columns.
  constexpr bool has_columns(std::int64_t columns, const tune::machine& on) const {
    return (vectors - 1) * on.lanes < columns;
  }
  /// Whether it leaves registers to what follows.
  constexpr bool leaves(int spare, const tune::machine& on) const { return rows * vectors + spare <= on.registers; }

  void say_columns(sentence& why, std::int64_t columns, const char* of) const {
    why << "one of " << vectors << " vectors has none of the " << columns << " " << of;
  }
  void say_registers(sentence& why, int spare) const {
    why << "a tile of " << rows << "x" << vectors << " vectors leaves fewer than " << spare
        << " registers to what follows the product";
  }

 private:
  static constexpr auto heights = [] {
    std::array<int, most_rows> all = {};
    for (int i = 0; i < most_rows; ++i) all[static_cast<std::size_t>(i)] = i + 1;
    return all;
  }();
  static constexpr std::array widths = {1, 2, 3, 4, 5, 6};
  static constexpr std::array unrollings = {1, 2, 4, 8, 16};
  static constexpr std::array distances = {0, 8, 16, 32};
};

/// Whether `fault_of` of such a tile is empty. No sentence is made, so spaces are enumerated fast.
constexpr bool is_generated(const configuration& c) {
  return (c.set == instruction_set::avx512 || c.broadcast == broadcast_from::vector_register) &&
         c.registers() <= registers_of(c.set) && c.loop_bytes() <= most_loop_bytes;
}

/// The features of a point as models read them.
template <std::size_t N>
constexpr std::array<float, N> as_features(const std::array<double, N>& values) {
  std::array<float, N> made = {};
  for (std::size_t i = 0; i < N; ++i) made[i] = static_cast<float>(values[i]);
  return made;
}

constexpr std::int64_t parts_of_extent(std::int64_t all, std::int64_t size) { return (all + size - 1) / size; }

/// The sizes that divide an extent into parts of nearly one size, ascending: the first `Most` of them.
template <std::size_t Most>
class even_sizes {
 public:
  constexpr even_sizes() = default;
  constexpr explicit even_sizes(std::int64_t extent) {
    for (std::int64_t size = 1; size <= extent && count_ < Most; ++size)
      if (parts_of_extent(extent, parts_of_extent(extent, size)) == size) sizes_[count_++] = static_cast<int>(size);
  }
  constexpr bool empty() const { return count_ == 0; }
  constexpr std::span<const int> list() const { return std::span(sizes_).first(count_); }

 private:
  std::array<int, Most> sizes_ = {};
  std::size_t count_ = 0;
};

/// A product [m x k] [k x n] as `product` and `scheme_product` compute it: panel by panel of B. For each panel they take all bands of
/// rows of A.
struct tiled_product {
  std::int64_t m = 1, n = 1, k = 1;
};

/// The closed form of its time in nanoseconds, roughly. Constants are in cycles, and fit a thousand measured points of four products
/// with AVX2.
class product_cost {
 public:
  product_cost(const configuration& how, const tiled_product& p, const tune::machine& on) : how_(how), p_(p) {
    const std::int64_t rest = p.m % how.rows, bands = parts_of_extent(p.m, how.rows);
    const std::int64_t panels = parts_of_extent(p.n, how.columns());
    const auto last = static_cast<int>(parts_of_extent(p.n - (panels - 1) * how.columns(), how.lanes()));
    multiply_ = static_cast<double>(panels - 1) * panel(how.vectors, rest) + panel(last, rest);
    const auto lines = [](double floats) { return floats / 16; };
    const double m = number(p.m), n = number(p.n), k = number(p.k), each = number(panels);
    const double l1 = number(on.first_level_bytes), l2 = number(on.second_level_bytes);
    // Each band reads its panel again, and each panel all of A.
    const double of_panel = k * how.columns() * 4, of_band = k * how.rows * 4, of_left = m * k * 4;
    const double misses = std::clamp((of_panel + of_band) / l1 - 0.64, 0.0, 1.0);
    loads_ = near_line * (misses * lines(k * n) * number(bands) * (how.prefetch > 0 ? prefetched : 1.0) +
                          (of_left + of_panel > l1 ? lines(m * k) * each : 0.0));
    if (k * n * 4 > l2 / 2) loads_ += far_line * lines(k * n) * (how.prefetch > 0 ? prefetched : 1.0);
    if (of_left > l2 / 2) loads_ += far_line * lines(m * k) * each;
  }

  double multiply() const { return multiply_ * cycle; }
  double loads() const { return loads_ * cycle; }
  double all() const { return multiply() + loads(); }

  static constexpr double cycle = 0.3;        ///< nanoseconds
  static constexpr double near_line = 1.0;    ///< from the second-level cache
  static constexpr double far_line = 0.9;     ///< from the third-level cache or memory
  static constexpr double prefetched = 0.57;  ///< the share of it that prefetching leaves

 private:
  static constexpr double number(std::int64_t x) { return static_cast<double>(x); }

  /// Cycles of all bands of one panel of so many vectors. The last band has `rest` rows.
  double panel(int vectors, std::int64_t rest) const {
    return number(p_.m / how_.rows) * call(how_.rows, vectors) + (rest > 0 ? call(static_cast<int>(rest), vectors) : 0);
  }
  double call(int rows, int vectors) const {
    constexpr double entry = 8, stored = 2.5;
    return number(p_.k) * step(rows, vectors) + entry + stored * rows * vectors;
  }
  /// Cycles of one step over k: bound by units that multiply, that load, by decoding, or by the latency of sums.
  double step(int rows, int vectors) const {
    constexpr double latency = 4.3, width = 3.1, round = 0.2;
    const bool in_memory = how_.broadcast == broadcast_from::memory;  // decoded with the multiply-add
    const double tile = rows * vectors, prefetches = how_.prefetch > 0 ? vectors * how_.lanes() / 16.0 : 0.0;
    const double loads = vectors + (in_memory ? tile : rows) + prefetches, ports = in_memory ? 2 : 1.5;
    const double decoded = tile + vectors + (in_memory ? 0 : rows) + prefetches + 3.0 / how_.unroll;
    return std::max({tile / 2, loads / ports, latency, decoded / width}) + round / how_.unroll;
  }

  configuration how_;
  tiled_product p_;
  double multiply_ = 0, loads_ = 0;
};

}  // namespace collage::inline v0::detail::jit
