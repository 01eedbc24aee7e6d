// expect: m[kind]: the pattern has several operators of this kind
// Which of the two convolutions is meant?
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
struct example : c::pattern<"example"> {
  static constexpr auto expr = op::conv(op::conv(c::any, c::constant).as<"first">(), c::constant);
};

/// Looks at a match, as a backend does.
constexpr auto look(const c::match<example>& m) { return m[op::conv].groups; }
