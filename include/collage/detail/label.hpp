// Names composed in constant evaluation.
#pragma once

#include <collage/detail/decimal.hpp>
#include <concepts>
#include <cstddef>

namespace collage::inline v0 {

/// Text of at most 63 characters, stored in place: `label("stages.") + 0 + ".weight"`. Longer text is cut.
class label {
 public:
  static constexpr std::size_t capacity = 63;

  constexpr label() = default;
  constexpr label(const char* text) { append(text); }

  constexpr const char* c_str() const { return text_; }
  constexpr const char* data() const { return text_; }
  constexpr std::size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }

  friend constexpr label operator+(label left, const char* right) {
    left.append(right);
    return left;
  }
  friend constexpr label operator+(label left, const label& right) { return left + right.c_str(); }
  template <std::integral Int>
  friend constexpr label operator+(label left, Int number) {
    left.append(detail::decimal(number).c_str());
    return left;
  }
  friend constexpr bool operator==(const label& a, const label& b) {
    if (a.size_ != b.size_) return false;
    for (std::size_t i = 0; i < a.size_; ++i)
      if (a.text_[i] != b.text_[i]) return false;
    return true;
  }

 private:
  constexpr void append(const char* more) {
    while (*more != '\0' && size_ < capacity) text_[size_++] = *more++;
    text_[size_] = '\0';
  }

  char text_[capacity + 1] = {};
  std::size_t size_ = 0;
};

}  // namespace collage::inline v0
