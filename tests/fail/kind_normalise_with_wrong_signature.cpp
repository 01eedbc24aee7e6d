// expect: normalise of an operator kind must be declared as: static constexpr void normalise(attributes&,
// What it changed would be a copy, so that it would do nothing.
#include <collage/collage.hpp>

namespace c = collage;
struct twice : c::kind<twice> {
  static constexpr char name[] = "twice";
  static constexpr c::verdict infer(const attributes&, c::inference& io) {
    io.out[0] = io.in[0];
    return {};
  }
  static constexpr void normalise(const attributes&) {}
};
constexpr std::uint64_t id = c::kind_of<twice>.id;
