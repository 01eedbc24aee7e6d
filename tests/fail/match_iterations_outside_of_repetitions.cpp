// expect: m.iterations<name>(): the name is captured outside of repetitions, or in an optional step
// The start is no step.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
struct example : c::pattern<"example"> {
  static constexpr auto expr =
      c::repeat<1, 3>(op::add(c::previous, c::constant.as<"w">()), op::relu(c::any.as<"x">()).as<"y">());
};

/// Looks at a match, as a backend does.
constexpr auto look(const c::match<example>& m) { return m.iterations<"y">().size(); }
