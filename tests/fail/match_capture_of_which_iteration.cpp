// expect: m.get<name>(): the name is captured in a repetition; give its iteration, m.get<name>(i)
// There is one for each iteration.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
struct example : c::pattern<"example"> {
  static constexpr auto expr =
      c::repeat<1, 3>(op::relu(op::conv(c::previous, c::constant.as<"w">())), c::any.as<"x">());
};

/// Looks at a match, as a backend does.
constexpr auto look(const c::match<example>& m) { return m.get<"w">().value; }
