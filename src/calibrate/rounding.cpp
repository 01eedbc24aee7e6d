// Roundings to 16-bit floating-point types and to 8-bit numbers.
#include <collage/calibrate/rounding.hpp>
#include <collage/detail/hash.hpp>
#include <collage/error.hpp>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace collage::inline v0 {
namespace {

/// Drops the last `bits` bits of the mantissa: nearest, ties to even. A carry goes into the exponent, up to infinity.
float drop_bits(float x, unsigned bits) {
  const auto word = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t tie = ((std::uint32_t{1} << (bits - 1)) - 1) + ((word >> bits) & 1U);
  return std::bit_cast<float>((word + tie) & ~((std::uint32_t{1} << bits) - 1));
}

float as_bf16(float x) { return std::isfinite(x) ? drop_bits(x, 16) : x; }

float as_f16(float x) {
  constexpr float least_normal = 0x1p-14F, largest = 65504.0F;
  if (!std::isfinite(x)) return x;
  if (std::abs(x) < least_normal) return std::nearbyint(x * 0x1p24F) * 0x1p-24F;  // multiples of the least number
  const float rounded = drop_bits(x, 13);
  return std::abs(rounded) > largest ? std::copysign(std::numeric_limits<float>::infinity(), x) : rounded;
}

template <float (*As)(float)>
void apply_to_each(std::span<float> elements, const shape&) {
  for (float& x : elements) x = As(x);
}

/// The shortest text that is read back as this number, or a word as hexadecimal digits.
template <class... Base>
std::string text_of(auto number, Base... base) {
  char digits[32];
  const std::to_chars_result end = std::to_chars(digits, digits + sizeof digits, number, base...);
  return {digits, end.ptr};
}

std::string name_of_rounding(const quantisation& how) {
  const std::string element = name_of(how.element);
  if (how.scales.size() == 1)
    return element + " " + text_of(how.scales[0]) + " * (n - " + std::to_string(how.zero_points[0]) + ")";
  std::uint64_t digest = 0;
  for (std::size_t i = 0; i < how.scales.size(); ++i) {
    digest = detail::combine(digest, std::bit_cast<std::uint32_t>(how.scales[i]));
    digest = detail::combine(digest, static_cast<std::uint64_t>(how.zero_points[i]));
  }
  return element + " with " + std::to_string(how.scales.size()) + " scales by dimension " + std::to_string(how.axis) +
         " (" + text_of(digest, 16) + ")";
}

}  // namespace

rounding rounding_to(dtype element) {
  if (element == dtype::bf16) return {name_of(element), apply_to_each<as_bf16>};
  if (element == dtype::f16) return {name_of(element), apply_to_each<as_f16>};
  throw error(error_kind::invalid_argument, "is no 16-bit floating-point type",
              std::string("rounding to ") + name_of(element), "give scales for 8-bit numbers");
}

rounding rounding_to(const quantisation& how) {
  return {name_of_rounding(how), [how](std::span<float> elements, const shape& dims) {
            std::vector<std::size_t> missing;  // NaN has no number
            for (std::size_t i = 0; i < elements.size(); ++i)
              if (std::isnan(elements[i])) missing.push_back(i);
            for (const std::size_t i : missing) elements[i] = 0;
            round_to(how, elements, dims);
            for (const std::size_t i : missing) elements[i] = std::numeric_limits<float>::quiet_NaN();
          }};
}

}  // namespace collage::inline v0
