// Exact fractions, in constant evaluation and at run time.
#pragma once

#include <collage/detail/decimal.hpp>
#include <collage/detail/label.hpp>
#include <collage/error.hpp>
#include <concepts>
#include <cstdint>

namespace collage::inline v0::bilinear {

/// A fraction of two 64-bit numbers, in lowest terms. A result that does not fit is *undefined*. So is everything that is
/// computed from it, and it equals nothing, itself included. So an overflow is never silent.
class rational {
 public:
  constexpr rational() = default;
  constexpr rational(std::int64_t whole) : rational(made(whole, 1)) {}
  constexpr rational(std::int64_t numerator, std::int64_t denominator)
      : rational(lowest_terms(numerator, denominator)) {}

  constexpr std::int64_t numerator() const { return numerator_; }
  constexpr std::int64_t denominator() const { return more_ + 1; }  ///< positive; 0 if the value is undefined
  /// False after an overflow or a division by zero.
  constexpr bool is_defined() const { return more_ != -1; }
  constexpr bool is_whole() const { return more_ == 0; }
  constexpr bool is_zero() const { return numerator_ == 0 && more_ == 0; }
  /// Whether a multiplication by it costs nothing: 0, 1 and -1.
  constexpr bool is_trivial() const { return more_ == 0 && numerator_ >= -1 && numerator_ <= 1; }

  constexpr rational operator-() const { return made(-numerator_, denominator()); }
  friend constexpr rational operator+(const rational& a, const rational& b) {
    if (a.more_ == 0 && b.more_ == 0) {
      std::int64_t sum = 0;
      return __builtin_add_overflow(a.numerator_, b.numerator_, &sum) ? undefined() : rational(sum);
    }
    if (!a.is_defined() || !b.is_defined()) return undefined();
    const std::int64_t shared = common_divisor(a.denominator(), b.denominator());
    std::int64_t left = 0, right = 0, sum = 0, denominator = 0;
    if (__builtin_mul_overflow(a.numerator_, b.denominator() / shared, &left) ||
        __builtin_mul_overflow(b.numerator_, a.denominator() / shared, &right) ||
        __builtin_add_overflow(left, right, &sum) ||
        __builtin_mul_overflow(a.denominator(), b.denominator() / shared, &denominator))
      return undefined();
    return rational(sum, denominator);
  }
  friend constexpr rational operator-(const rational& a, const rational& b) { return a + -b; }
  friend constexpr rational operator*(const rational& a, const rational& b) {
    std::int64_t numerator = 0, denominator = 1;
    if (a.more_ == 0 && b.more_ == 0)
      return __builtin_mul_overflow(a.numerator_, b.numerator_, &numerator) ? undefined() : rational(numerator);
    if (!a.is_defined() || !b.is_defined()) return undefined();
    if (a.numerator_ == 0 || b.numerator_ == 0) return {};
    // Both are in lowest terms, so the product is in lowest terms once these two divisors are gone.
    const std::int64_t left = common_divisor(a.numerator_, b.denominator());
    const std::int64_t right = common_divisor(b.numerator_, a.denominator());
    if (__builtin_mul_overflow(a.numerator_ / left, b.numerator_ / right, &numerator) ||
        __builtin_mul_overflow(a.denominator() / right, b.denominator() / left, &denominator))
      return undefined();
    return made(numerator, denominator);
  }
  friend constexpr rational operator/(const rational& a, const rational& b) {
    if (!b.is_defined() || b.numerator_ == 0) return undefined();
    return a * (b.numerator_ < 0 ? made(-b.denominator(), -b.numerator_) : made(b.denominator(), b.numerator_));
  }
  constexpr rational& operator+=(const rational& other) { return *this = *this + other; }
  constexpr rational& operator*=(const rational& other) { return *this = *this * other; }
  friend constexpr bool operator==(const rational& a, const rational& b) {
    return a.more_ != -1 && a.numerator_ == b.numerator_ && a.more_ == b.more_;
  }
  constexpr rational magnitude() const { return numerator_ < 0 ? -*this : *this; }

  /// The value in another arithmetic, rounded once or twice if that is floating point.
  /// Errors: `invalid_argument` if T holds whole numbers only and this is none.
  template <class T>
  constexpr T as() const {
    if constexpr (std::same_as<T, rational>) {
      return *this;
    } else if constexpr (std::integral<T>) {
      if (!is_whole())
        throw error(error_kind::invalid_argument, "a coefficient that is no whole number is read as one", text(),
                    "read it as rational or as a floating-point number");
      return static_cast<T>(numerator_);
    } else {
      return static_cast<T>(static_cast<double>(numerator_) / static_cast<double>(denominator()));
    }
  }
  /// "-2/3"
  constexpr label text() const {
    if (!is_defined()) return "undefined";
    const label whole = label("") + numerator_;
    return is_whole() ? whole : whole + "/" + denominator();
  }

 private:
  /// The lowest 64-bit number has no opposite, so it counts as an overflow.
  static constexpr rational made(std::int64_t numerator, std::int64_t denominator) {
    rational value;
    if (numerator == INT64_MIN || denominator <= 0) return undefined();
    value.numerator_ = numerator;
    value.more_ = denominator - 1;
    return value;
  }
  static constexpr rational undefined() {
    rational value;
    value.more_ = -1;
    return value;
  }
  static constexpr rational lowest_terms(std::int64_t numerator, std::int64_t denominator) {
    if (numerator == INT64_MIN || denominator == INT64_MIN || denominator == 0) return undefined();
    const std::int64_t divisor = common_divisor(numerator, denominator) * (denominator < 0 ? -1 : 1);
    return made(numerator / divisor, denominator / divisor);
  }
  static constexpr std::int64_t common_divisor(std::int64_t a, std::int64_t b) {
    while (b != 0) {
      const std::int64_t rest = a % b;
      a = b;
      b = rest;
    }
    return a < 0 ? -a : a;
  }

  // Zeros are the number 0, so that arrays need no initializers. In constants, g++ 12 loses those of their elements.
  std::int64_t numerator_ = 0;
  std::int64_t more_ = 0;  // the denominator is one more
};

}  // namespace collage::inline v0::bilinear
