// The twin of match_alternative_of_no_either.cpp.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
struct example : c::pattern<"example"> {
  static constexpr auto expr = c::either(op::relu(c::any).as<"relu">(), op::exp(c::any)).as<"which">();
};

/// Looks at a match, as a backend does.
constexpr auto look(const c::match<example>& m) { return m.alternative<"which">(); }
