// Whole numbers as text, in constant evaluation.
#pragma once

#include <concepts>
#include <cstddef>

namespace collage::inline v0::detail {

/// "-17". The text is kept in place, and lives as long as this.
class decimal {
 public:
  template <std::integral Int>
  constexpr explicit decimal(Int number) {
    bool negative = false;
    if constexpr (std::signed_integral<Int>) negative = number < 0;
    do {
      const int digit = static_cast<int>(number % 10);
      text_[--at_] = static_cast<char>('0' + (digit < 0 ? -digit : digit));
      number /= 10;
    } while (number != 0);
    if (negative) text_[--at_] = '-';
  }
  constexpr const char* c_str() const { return text_ + at_; }

 private:
  char text_[24] = {};
  std::size_t at_ = sizeof(text_) - 1;
};

}  // namespace collage::inline v0::detail
