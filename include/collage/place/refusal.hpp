// What placing leaves out, and why.
#pragma once

#include <string>

namespace collage::inline v0 {

/// A backend that declared a pattern for an operator but refuses this place.
struct place_refusal {
  std::string backend;
  std::string pattern;
  std::string where;  ///< a node's name
  std::string reason;
};

}  // namespace collage::inline v0
