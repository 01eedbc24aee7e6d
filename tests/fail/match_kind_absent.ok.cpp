// The twin of match_kind_absent.cpp.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
struct example : c::pattern<"example"> {
  static constexpr auto expr = op::relu(op::conv(c::any, c::constant));
};

/// Looks at a match, as a backend does.
constexpr auto look(const c::match<example>& m) { return m[op::conv].groups; }
