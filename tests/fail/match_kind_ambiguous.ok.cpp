// The twin of match_kind_ambiguous.cpp.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
struct example : c::pattern<"example"> {
  static constexpr auto expr = op::conv(op::conv(c::any, c::constant).as<"first">(), c::constant);
};

/// Looks at a match, as a backend does.
constexpr auto look(const c::match<example>& m) { return m.attributes<struct op::conv>(m.get<"first">()).groups; }
