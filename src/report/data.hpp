// The facts about groups that the page's script shows on demand, as JSON.
#pragma once

#include <string>
#include "facts.hpp"

namespace collage::inline v0::report {

/// JSON for a `<script type="application/json">`: ASCII, without a character that means something in HTML. Texts are in a list, and
/// all else refers to them by number.
std::string data_of(const facts& all);

}  // namespace collage::inline v0::report
