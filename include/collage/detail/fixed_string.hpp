// Strings as template arguments.
#pragma once

#include <cstddef>

namespace collage::inline v0 {

/// A string as a template argument: the name of a pattern, a backend, a capture; the sentence in an error.
template <std::size_t N>
struct fixed_string {
  char text[N] = {};
  constexpr fixed_string() = default;
  consteval fixed_string(const char (&from)[N]) {
    for (std::size_t i = 0; i < N; ++i) text[i] = from[i];
  }
};

namespace detail {

/// The first characters of a text, as a template argument.
template <std::size_t Size>
consteval fixed_string<Size + 1> exact_text(const char* text) {
  fixed_string<Size + 1> copy;
  for (std::size_t i = 0; i < Size; ++i) copy.text[i] = text[i];
  copy.text[Size] = '\0';  // written, not left: clang prints what ends in an array's filler as a list of numbers
  return copy;
}

}  // namespace detail
}  // namespace collage::inline v0
