// expect: step.alternative(): the step is no either(...)
// The step has one form.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
struct example : c::pattern<"example"> {
  static constexpr auto expr = c::repeat<1, 3>(op::add(c::previous, c::constant).as<"step">(), c::any);
};

/// Looks at a match, as a backend does.
constexpr auto look(const c::match<example>& m) { return m.iterations<"step">()[0].alternative(); }
