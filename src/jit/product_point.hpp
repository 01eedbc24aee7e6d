// Points of the space of products: an algorithm, and how its kernels are generated.
#pragma once

#include "configuration.hpp"
#include "scheme.hpp"

#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace collage::inline v0::detail::jit {

/// Raised with every change after which an old text would mean another kernel.
inline constexpr int product_version = 1;

struct product_point {
  const scheme* algorithm = nullptr;
  configuration how;

  /// As in "product1 strassen avx512 tile 14x2 unroll 4 prefetch 0". It is canonical.
  std::string text() const;
  struct reading;
  /// Reads a canonical text.
  static reading read(std::string_view text);
};

struct product_point::reading {
  std::optional<product_point> point;
  const char* fault = "";  ///< if there is no point: one sentence that says why
};

/// The largest error to expect of sums of so many products in float32, for random numbers. It is divided by the root mean square
/// of the sums, and from measurements, as `convolution_family::expected_error`.
inline double direct_error(std::int64_t products) { return 4 * std::sqrt(static_cast<double>(products)) * 0x1p-24; }

/// Registers beside the accumulators: the loop needs some, and what follows may need more. `is_long` says that it does.
constexpr int spare_registers(bool is_long) { return is_long ? 6 : 2; }
/// AVX-512 repeats an element of A within the multiply-add, for which AVX2 needs a register.
constexpr broadcast_from broadcast_of(instruction_set set) {
  return set == instruction_set::avx512 ? broadcast_from::memory : broadcast_from::vector_register;
}

/// The points that are worth measuring for products [m x k] [k x n] of one left operand, at most 12. `columns` has n for each
/// of them. `is_long` says whether an epilogue needs many registers. Sums of the left operand are counted once.
std::vector<product_point> promising_points(std::int64_t m, std::span<const std::int64_t> columns, std::int64_t k,
                                            bool is_long, unsigned features = processor_features());
/// The points of one scheme for the same products, at most 2. None if a product lacks some of the scheme's blocks.
std::vector<product_point> points_with(const scheme& s, std::int64_t m, std::span<const std::int64_t> columns,
                                       std::int64_t k, bool is_long, unsigned features = processor_features());
/// For one product.
std::vector<product_point> promising_points(std::int64_t m, std::int64_t n, std::int64_t k, bool is_long,
                                            unsigned features = processor_features());

}  // namespace collage::inline v0::detail::jit
