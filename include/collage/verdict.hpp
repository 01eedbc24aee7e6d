// Verdicts: why something does not hold, as a value that both compile-time errors and run-time texts are made from.
#pragma once

#include <cstdint>
#include <initializer_list>

namespace collage::inline v0 {

/// Passed, or the rule that is broken and the place where. A failed rule is a sentence part that reads after the name
/// of what was checked: "conv: the weights must have one filter group per ...".
struct verdict {
  const char* rule = nullptr;  ///< the broken rule; nullptr when all is well
  std::int32_t operand = -1;   ///< which operand, or -1
  std::int32_t pattern_node = -1;
  std::int32_t graph_node = -1;
  std::int32_t other_node = -1;  ///< another node that has part in it, as the reader of a value that must not be read

  constexpr verdict() = default;
  /// From a plain yes or no, for callers that have nothing to explain.
  constexpr verdict(bool holds) : rule(holds ? nullptr : "it is refused") {}
  /// `text` says what is wrong where `holds` is false. `which` is the number of the operand that is at fault, counted from 0; -1
  /// where it is none.
  constexpr verdict(bool holds, const char* text, std::int32_t which = -1)
      : rule(holds             ? nullptr
             : text == nullptr ? "it is refused"
                               : text),
        operand(which) {}

  constexpr explicit operator bool() const { return rule == nullptr; }
};

/// The first verdict of a list that failed, or a passed one: `return first_failure({{a.groups == 1, "groups must be
/// 1"}, {m.argument(0).out.rank == 4, "the input must have rank 4"}});`
constexpr verdict first_failure(std::initializer_list<verdict> list) {
  for (const verdict& v : list)
    if (!v) return v;
  return {};
}

}  // namespace collage::inline v0
