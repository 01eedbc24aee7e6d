// expect: m.iterations<name>(): the pattern captures nothing under this name
// A name that is not in the pattern.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
struct example : c::pattern<"example"> {
  static constexpr auto expr =
      c::repeat<1, 3>(op::add(c::previous, c::constant.as<"w">()), op::relu(c::any.as<"x">()).as<"y">());
};

/// Looks at a match, as a backend does.
constexpr auto look(const c::match<example>& m) { return m.iterations<"v">().size(); }
