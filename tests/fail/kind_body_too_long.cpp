// expect: the body of an elementwise kind has at most 48 instructions
// The record of a body has room for 48.
#include <collage/collage.hpp>

namespace c = collage;
struct twice : c::elementwise_kind<twice, 1> {
  static constexpr char name[] = "twice";
  static constexpr auto body(auto x) {
    for (int i = 0; i < 48; ++i) x = x + x;
    return x;
  }
};
constexpr std::uint64_t id = c::kind_of<twice>.id;
