// The twin of match_unknown_operand.cpp.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
struct example : c::pattern<"example"> {
  static constexpr auto expr = op::add(c::any, c::constant.as<"bias">());
};

/// Looks at a match, as a backend does.
constexpr auto look(const c::match<example>& m) { return m.in<"bias", float>(); }
