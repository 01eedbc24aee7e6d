// Layouts: in which order the elements of a tensor lie in memory.
#pragma once

#include <collage/detail/hash.hpp>
#include <cstddef>
#include <cstdint>

namespace collage::inline v0 {

/// A layout is a small value: a name for people and a 64-bit id for comparison, never a type. It says in which order elements
/// lie, such as "channels-last". A `form` (run/form.hpp) adds the element type and the memory space. Opaque layouts carry the
/// text by which their backend describes them; the id is the hash of that text.
struct layout {
  static constexpr std::size_t max_name = 55;

  std::uint64_t id = 0;
  char name[max_name + 1] = {};

  constexpr layout() : layout("plain") {}
  constexpr explicit layout(const char* text) {
    std::size_t length = 0;
    while (text[length] != '\0') ++length;
    id = detail::hash(text, length);
    for (std::size_t i = 0; i < length && i < max_name; ++i) name[i] = text[i];
  }
  friend constexpr bool operator==(const layout& a, const layout& b) { return a.id == b.id; }
};

/// Dense, last dimension fastest, no padding.
inline constexpr layout plain{};

// Layouts that any backend may use, of tensors whose dimension 1 are channels. collage/run/layouts.hpp says what memory they
// take and makes them from plain ones.

/// Dense, channels fastest: "nhwc".
inline constexpr layout channels_last{"channels-last"};
/// Channels in blocks, which are fastest: "nChw8c", "nChw16c". The last block is filled up with zeros.
inline constexpr layout blocked_8{"blocked-8"}, blocked_16{"blocked-16"};

}  // namespace collage::inline v0
