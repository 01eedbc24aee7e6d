// Refusals: candidates that placing leaves out, and why.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace collage::inline v0 {

/// A backend's refusal of a match, of a measured kernel, or of groups that its fusion rule lists.
struct place_refusal {
  std::string backend;
  std::string pattern;
  std::string where;  ///< a node's name, the label of a structure for a measured kernel, or "all of it"
  std::string reason;

  bool operator==(const place_refusal&) const = default;
};

/// One refusal for all places where backend, pattern and reason are the same.
struct merged_refusal : place_refusal {  ///< `where` is the first of them
  std::size_t places = 1;
};

inline std::vector<merged_refusal> merged(const std::vector<place_refusal>& list) {
  std::vector<merged_refusal> merged;
  for (const place_refusal& r : list) {
    const auto same = std::ranges::find_if(merged, [&](const merged_refusal& m) {
      return m.backend == r.backend && m.pattern == r.pattern && m.reason == r.reason;
    });
    if (same == merged.end()) merged.push_back({r});
    else ++same->places;
  }
  return merged;
}

}  // namespace collage::inline v0
