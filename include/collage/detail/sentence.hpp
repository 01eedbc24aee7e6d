// Sentences composed in constant evaluation, and how the compiler is made to print them.
//
// A check is an ordinary constexpr function that returns a sentence, empty if all is well. At the public interface the
// sentence becomes a type, `accepted` or `refused<"the sentence">`, and a concept tests that type. Both g++ and clang
// print the argument of an unsatisfied concept in full. They do so with no other form of error.
//
//   struct check_of_lenet { static constexpr sentence why() { ... } };
//   static_assert(holds<conclusion<check_of_lenet>>);
#pragma once

#include <collage/detail/decimal.hpp>
#include <collage/detail/fixed_string.hpp>
#include <collage/shape.hpp>
#include <concepts>
#include <cstddef>
#include <cstdint>

namespace collage::inline v0 {

namespace detail {

/// Text of at most 1023 characters, stored in place. Longer text is cut.
struct sentence {
  static constexpr std::size_t capacity = 1023;

  char text[capacity + 1] = {};
  std::size_t size = 0;

  constexpr bool empty() const { return size == 0; }
  constexpr sentence& operator<<(const char* more) {
    while (*more != '\0' && size < capacity) text[size++] = *more++;
    return *this;
  }
  template <std::integral Int>
  constexpr sentence& operator<<(Int number) {
    return *this << decimal(number).c_str();
  }
  /// As in "[1, 3, 224, 224]"; a symbol is "?".
  constexpr sentence& operator<<(const shape& dims) {
    *this << "[";
    for (std::size_t i = 0; i < dims.size(); ++i) {
      if (i != 0) *this << ", ";
      if (dims[i] < 0) *this << "?";
      else *this << dims[i];
    }
    return *this << "]";
  }
  friend constexpr bool operator==(const sentence& a, const char* b) {
    std::size_t i = 0;
    while (i < a.size && a.text[i] == b[i]) ++i;
    return i == a.size && b[i] == '\0';
  }
};

/// The result of a check, as a type.
struct accepted {
  static constexpr bool is_accepted = true;
};
template <fixed_string Sentence>
struct refused {
  static constexpr bool is_accepted = false;
};

/// The type for a sentence: `accepted` if it is empty, else `refused`.
template <const sentence& Why>
consteval auto conclude_sentence() {
  if constexpr (Why.empty()) {
    return accepted{};
  } else {
    constexpr auto exact = exact_text<Why.size>(Why.text);
    return refused<exact>{};
  }
}

template <class Check>
inline constexpr sentence sentence_of = Check::why();

/// `Check::why()` as a type.
template <class Check>
using conclusion = decltype(conclude_sentence<sentence_of<Check>>());

/// Satisfied by `accepted`. For `refused` the compiler prints the sentence.
template <class Conclusion> concept holds = Conclusion::is_accepted;

}  // namespace detail
}  // namespace collage::inline v0
