// expect: step[kind]: the step has no operator of this kind
// The start has it, and no step.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
struct example : c::pattern<"example"> {
  static constexpr auto expr = c::repeat<1, 3>(op::add(c::previous, c::constant).as<"step">(), op::elu(c::any));
};

/// Looks at a match, as a backend does.
constexpr auto look(const c::match<example>& m) { return m.iterations<"step">()[0][op::elu].alpha; }
