// Precision: in which element types a plan may store and multiply float32 values, and how far its outputs may err for it.
#pragma once

#include <array>
#include <bit>
#include <collage/detail/hash.hpp>
#include <collage/dtype.hpp>
#include <collage/run/value_scales.hpp>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace collage::inline v0 {

/// In which element types kernels may store and multiply values that the network has in float32. Sums are in float32 in each case.
enum class precisions : std::uint8_t {
  f32,   ///< in float32 alone
  bf16,  ///< also in bfloat16, which has the range of float32 and 8 bits of precision
  int8,  ///< also as integers of 8 bits, each with the scale of its value
  all    ///< in each type that some kernel has
};

struct precisions_name {
  precisions which;
  const char* name;
};
inline constexpr std::array precisions_names{
    precisions_name{precisions::f32, "fp32"}, precisions_name{precisions::bf16, "bf16"},
    precisions_name{precisions::int8, "int8"}, precisions_name{precisions::all, "any"}};

constexpr const char* name_of(precisions which) { return precisions_names[static_cast<std::size_t>(which)].name; }
constexpr std::optional<precisions> precisions_named(std::string_view name) {
  for (const precisions_name& known : precisions_names)
    if (name == known.name) return known.which;
  return {};
}

/// Whether a value of a network's type loses digits if its elements are stored in another type.
constexpr bool is_rounded(dtype network, dtype stored) {
  return is_floating(network) && stored != network && size_of(stored) <= size_of(network);
}
/// Whether values may be stored in an element type that rounds them.
constexpr bool allows(precisions which, dtype stored) {
  return which == precisions::all || (which == precisions::bf16 && stored == dtype::bf16) ||
         (which == precisions::int8 && is_8_bit_integer(stored));
}

/// A value or constant of a network, and an element type in which it is stored or multiplied, and which rounds it.
struct rounded_value {
  std::uint32_t value = 0;
  dtype element = dtype::bf16;
  friend auto operator<=>(const rounded_value&, const rounded_value&) = default;
};

/// The errors that rounding causes at the outputs of a network. There is one for each value or constant and each element type. It is
/// the normalised mean square error (NMSE) if this value alone is rounded. That is the sum of the squared differences of an output,
/// divided by the sum of its squares. Such errors nearly add up.
class rounding_errors {
 public:
  /// Sets the error of storing a value in an element type. Not negative; infinite where it must not be rounded.
  void set(std::uint32_t value, dtype element, double nmse) { nmse_[{value, element}] = nmse; }
  /// Infinite if it is not known.
  double of(std::uint32_t value, dtype element) const {
    const auto known = nmse_.find({value, element});
    return known == nmse_.end() ? std::numeric_limits<double>::infinity() : known->second;
  }
  /// A hash of all errors.
  std::uint64_t hash() const {
    std::uint64_t sum = 0x13198A2E03707344;
    for (const auto& [of, nmse] : nmse_) {
      sum = detail::combine(sum, std::uint64_t{of.first} << 8U | static_cast<std::uint64_t>(of.second));
      sum = detail::combine(sum, std::bit_cast<std::uint64_t>(nmse));
    }
    return sum;
  }

 private:
  std::map<std::pair<std::uint32_t, dtype>, double> nmse_;
};

/// How precise a plan must be.
struct precision_options {
  precisions elements = precisions::f32;
  /// The most that an output may err because values are rounded. It is the root mean square of the differences from float32, divided
  /// by that of the output.
  double most_error = 0.01;
  /// The errors of single values, from samples of the network's inputs. Null: no value may be rounded.
  std::shared_ptr<const rounding_errors> errors = {};
  /// The scales of values that may be stored as integers of 8 bits, from their ranges. Null: none may be.
  std::shared_ptr<const value_scales> scales = {};

  /// Whether any value may be rounded.
  bool may_round() const { return elements != precisions::f32 && errors != nullptr && most_error > 0; }
};

/// How plans spell it: "fp32", "bf16, error at most 1 %".
inline std::string precision_text(const precision_options& how) {
  if (how.elements == precisions::f32) return name_of(precisions::f32);
  char percent[32];
  std::snprintf(percent, sizeof percent, "%g", 100 * how.most_error);
  return std::string(name_of(how.elements)) + ", error at most " + percent + " %";
}

}  // namespace collage::inline v0
