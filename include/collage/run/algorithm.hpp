// Algorithms: kernels whose arithmetic is not that of the operator's definition, and which of them a plan may have.
#pragma once

#include <array>
#include <collage/pattern/match_record.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace collage::inline v0 {

/// Which kernels may compute by other algorithms than the operator's definition. Such an algorithm needs fewer multiplications
/// and rounds otherwise.
enum class algorithms : std::uint8_t {
  direct,    ///< none
  accurate,  ///< those that err at most `most_accurate_ratio` times as much as the definition in float32
  all        ///< those that agree with the reference, as every kernel must
};

struct algorithms_name {
  algorithms which;
  const char* name;
};
inline constexpr std::array algorithms_names{algorithms_name{algorithms::direct, "direct"},
                                             algorithms_name{algorithms::accurate, "accurate"},
                                             algorithms_name{algorithms::all, "any"}};

constexpr const char* name_of(algorithms which) { return algorithms_names[static_cast<std::size_t>(which)].name; }
constexpr std::optional<algorithms> algorithms_named(std::string_view name) {
  for (const algorithms_name& known : algorithms_names)
    if (name == known.name) return known.which;
  return {};
}

/// How a kernel computes. A backend says it by
/// `static kernel_algorithm algorithm(const match<P>&, const configuration&)`; without it, all its kernels are direct.
struct kernel_algorithm {
  /// "F(4,3)"; empty: the definition, with sums in any order. It lives as long as the program.
  const char* name = "";
  /// The largest error of an element for every input, before what follows the product. It is divided by the largest magnitudes
  /// of an input and of a weight.
  double error_bound = 0;
  /// The largest error to expect of the definition in float32, for random inputs, divided by the root mean square of the result. It
  /// is used where no direct kernel is measured.
  double direct_error = 0;
  /// The input that is multiplied by weights, and the dimension over which the products are added up.
  std::uint32_t input = match_record::nothing;
  std::size_t channels = 1;

  constexpr bool is_direct() const { return *name == '\0'; }
};

/// How much an accurate algorithm may err, in errors of the definition.
inline constexpr double most_accurate_ratio = 2;

}  // namespace collage::inline v0
