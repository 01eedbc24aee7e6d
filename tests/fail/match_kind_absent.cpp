// expect: m[kind]: the pattern has no operator of this kind
// There is no conv in it.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
struct example : c::pattern<"example"> {
  static constexpr auto expr = op::relu(op::neg(c::any));
};

/// Looks at a match, as a backend does.
constexpr auto look(const c::match<example>& m) { return m[op::conv].groups; }
