// expect: an operator kind needs a name: static constexpr char name[] = ...
// own line within: 21
// A pattern is where many kinds are met first.
#include <collage/collage.hpp>

namespace c = collage;
struct twice : c::kind<twice> {
  static constexpr c::verdict infer(const attributes&, c::inference& io) {
    io.out[0] = io.in[0];
    return {};
  }
};
struct doubling : c::pattern<"doubling"> {
  static constexpr auto expr = twice{}(c::any);
};
constexpr std::uint64_t id = doubling::expr.root().kind[0]->id;
