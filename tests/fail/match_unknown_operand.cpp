// expect: m.get<name>(): the pattern captures nothing under this name
// What a kernel reads is looked up by the compiler, too.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
struct example : c::pattern<"example"> {
  static constexpr auto expr = op::add(c::any, c::constant.as<"bias">());
};

/// Looks at a match, as a backend does.
constexpr auto look(const c::match<example>& m) { return m.in<"bais", float>(); }
