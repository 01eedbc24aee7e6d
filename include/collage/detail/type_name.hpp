// A type's name as the compiler spells it, for errors.
#pragma once

#include <collage/detail/sentence.hpp>
#include <cstddef>

namespace collage::inline v0::detail {

/// "my_pattern", cut out of the compiler's name for this function.
template <class T>
constexpr sentence type_name() {
  const char* text = __PRETTY_FUNCTION__;  // "... [with T = my_pattern; ...]" or "... [T = my_pattern]"
  sentence name;
  std::size_t at = 0;
  while (text[at] != '\0' && !(text[at] == 'T' && text[at + 1] == ' ' && text[at + 2] == '=')) ++at;
  if (text[at] == '\0') return name << "a type";
  at += 4;
  for (int depth = 0; text[at] != '\0' && name.size < sentence::capacity; ++at) {
    if (depth == 0 && (text[at] == ';' || text[at] == ']')) break;
    if (text[at] == '<' || text[at] == '(' || text[at] == '[') ++depth;
    if (text[at] == '>' || text[at] == ')' || text[at] == ']') --depth;
    name.text[name.size++] = text[at];
  }
  return name;
}

}  // namespace collage::inline v0::detail
