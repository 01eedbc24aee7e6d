// Where in a pattern a name is captured, and where an operator kind stands: looked up at compile time.
#pragma once

#include <collage/pattern/detail/check.hpp>
#include <collage/pattern/node.hpp>
#include <cstddef>
#include <cstdint>

namespace collage::inline v0::detail {

/// The nodes that capture a name: one, or one for each alternative of an either; and the repetitions around them.
struct capture_place {
  /// More that repeat do not fit into 64 nodes: each has the one inside of it twice or more, and a node of its own.
  static constexpr std::size_t max_depth = 5;

  std::size_t first = 0, last = 0;  ///< the lowest node and the highest, within first iterations
  std::size_t count = 0;            ///< how many there are
  std::size_t depth = 0;            ///< how many repetitions are around them
  /// These, the outermost first, and how they lie in the array.
  std::size_t repeat[max_depth] = {}, stride[max_depth] = {}, most[max_depth] = {};

  /// How far the nodes for these iterations lie behind those of the first; `nothing` if there are not that many.
  constexpr std::size_t offset(const std::size_t* iteration, std::size_t given) const {
    std::size_t sum = 0;
    for (std::size_t d = 0; d < given; ++d) {
      if (iteration[d] >= most[d]) return match_record::nothing;
      sum += iteration[d] * stride[d];
    }
    return sum;
  }
};

/// The repetitions around a node, which stands in first iterations.
template <class Pattern>
constexpr capture_place find_repetitions(const Pattern& pattern, std::size_t at) {
  capture_place place;
  for (std::size_t r = pattern.size; r-- > 0;) {
    if (pattern[r].most < 2 || !is_repeated(pattern, at, r) || place.depth == capture_place::max_depth) continue;
    place.repeat[place.depth] = r;
    place.stride[place.depth] = pattern[r].stride;
    place.most[place.depth++] = pattern[r].most;
  }
  return place;
}

template <class Pattern>
constexpr capture_place find_capture(const Pattern& pattern, std::uint64_t name) {
  std::size_t first = 0, last = 0, count = 0;
  for (std::size_t i = 0; i < pattern.size; ++i) {
    if (pattern[i].capture != name || pattern[i].role == pattern_role::same) continue;
    if (in_first_iteration(pattern, i) != i) continue;
    if (count++ == 0) first = i;
    last = i;
  }
  if (count == 0) return {};
  capture_place place = find_repetitions(pattern, first);
  place.first = first, place.last = last, place.count = count;
  return place;
}

/// The nodes that match an operator kind.
struct kind_place {
  std::size_t first = 0;
  std::size_t count = 0;
  bool is_ambiguous = false;  ///< two of them may be in one match
};

/// Among the nodes from `begin` on and before `end`.
template <class Pattern>
constexpr kind_place find_kind(const Pattern& pattern, std::uint64_t id, std::size_t begin, std::size_t end) {
  kind_place place;
  for (std::size_t i = begin; i < end; ++i) {
    if (!has_kind(pattern[i], id)) continue;
    if (place.count++ == 0) place.first = i;
    for (std::size_t j = begin; j < i; ++j)
      place.is_ambiguous = place.is_ambiguous || (has_kind(pattern[j], id) && !are_alternatives(pattern, i, j));
  }
  return place;
}
template <class Pattern>
constexpr kind_place find_kind(const Pattern& pattern, std::uint64_t id) {
  return find_kind(pattern, id, 0, pattern.size);
}

/// The alternative of an either that a match has taken; `nothing` where the either itself is not bound. An alternative's own
/// nodes are bound in no other. `previous` is bound in any case: it was taken where none of the others is.
template <class Pattern>
constexpr std::size_t taken_alternative(const Pattern& pattern, const match_record& record, std::size_t either) {
  if (record.bound[either] == match_record::nothing) return match_record::nothing;
  const auto& p = pattern[either];
  std::size_t previous = match_record::nothing;
  for (std::size_t c = p.children; c-- > 0;) {
    if (p.child[c] < p.first) previous = c;
    else if (record.bound[p.child[c]] != match_record::nothing) return c;
  }
  return previous;
}

}  // namespace collage::inline v0::detail
