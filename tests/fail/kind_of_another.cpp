// expect: an operator kind must derive from kind<itself>: struct my_kind : kind<my_kind>
// In a pattern it would stand for the other kind.
#include <collage/collage.hpp>

namespace c = collage;
struct twice : c::kind<twice> {
  static constexpr char name[] = "twice";
  static constexpr c::verdict infer(const attributes&, c::inference& io) {
    io.out[0] = io.in[0];
    return {};
  }
};
struct thrice : c::kind<twice> {
  static constexpr char name[] = "thrice";
  static constexpr c::verdict infer(const attributes&, c::inference& io) {
    io.out[0] = io.in[0];
    return {};
  }
};
constexpr std::uint64_t id = c::kind_of<thrice>.id;
