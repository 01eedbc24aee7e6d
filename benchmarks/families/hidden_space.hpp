// A search space whose type is hidden, unless its task has a fault.
#pragma once

#include <collage/detail/sentence.hpp>
#include <collage/tune/any_space.hpp>

#include <optional>
#include <string>

namespace families {

/// Nothing if there is a fault; `why` is that sentence then, and empty otherwise.
template <class Space>
std::optional<collage::tune::any_space> hidden(const Space& space, const collage::detail::sentence& fault,
                                               std::string& why) {
  why.assign(fault.text, fault.size);
  if (!why.empty()) return {};
  return collage::tune::any_space(space);
}

}  // namespace families
