// expect: single<kind>: a pattern names at most 6 operands; write one that ends in many(any)
// own line within: 30
// An operator of seven operands.
#include <collage/collage.hpp>

namespace c = collage;
inline constexpr struct blend : c::kind<blend> {
  static constexpr char name[] = "blend";
  static constexpr c::arity inputs{7, 7};
  static constexpr c::verdict infer(const attributes&, c::inference& io) { return io.out[0] = io.in[0], c::verdict(); }
} blend{};
constexpr auto nodes = c::nodes_of<c::single<blend>>;
