// All that the code of a kernel for one tile depends on. Code is generated from it, and the replica interprets it.
#pragma once

#include "configuration.hpp"
#include "epilogue.hpp"
#include "tile_call.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace collage::inline v0::detail::jit {

/// How a product goes to a destination. Schemes such as Strassen's have several of them.
enum class store_mode : std::uint8_t {
  set,           ///< C = AB
  set_negative,  ///< C = -AB
  add,           ///< C += AB
  subtract       ///< C -= AB
};

constexpr bool reads_destination(store_mode m) { return m == store_mode::add || m == store_mode::subtract; }

/// The table that a kernel reads constants from: bits of float32, by index.
namespace constant_at {
inline constexpr int sign = 0, magnitude = 1, one = 2;
inline constexpr int least = 3, most = 4, inverse_logarithm = 5, shift = 6, logarithm_rest = 7, minus_logarithm = 8;
inline constexpr int bias = 9;         ///< the integer 127
inline constexpr int polynomial = 10;  ///< 8
inline constexpr int hyperbolic = 18;  ///< the end, then 5 terms above and 5 below
inline constexpr int error = 29;       ///< the end, then 6 terms above and 6 below
inline constexpr int mask = 42;        ///< 8 words: which lanes of the last vector count
inline constexpr int numbers = 50;     ///< the epilogue's
}  // namespace constant_at

struct tile_plan {
  configuration how;
  int rows = 0;     ///< at most how.rows
  int columns = 0;  ///< at most how.columns()
  std::vector<store_mode> destinations;
  /// With outputs, it takes the first destination as its product and writes them instead of it. The product is then
  /// what `destinations[0]` would have made of the destination.
  epilogue finish;
  std::vector<std::uint32_t> constants;

  /// Vectors of a row of the tile, and of a packed row of B.
  int vectors() const { return (columns + how.lanes() - 1) / how.lanes(); }
  /// Lanes of the last vector that count; 0: all.
  int tail() const { return columns % how.lanes(); }

  /// Equal plans have equal code.
  friend bool operator==(const tile_plan&, const tile_plan&) = default;
};

/// Error (unsupported, invalid_argument): the configuration cannot be generated, or something is out of bounds.
tile_plan make_plan(const configuration& how, int rows, int columns, std::span<const store_mode> destinations,
                    const epilogue& finish = {});

}  // namespace collage::inline v0::detail::jit
