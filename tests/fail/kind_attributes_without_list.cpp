// expect: the attributes of an operator kind must list their fields
// Nobody could store, print or read them.
#include <collage/collage.hpp>

namespace c = collage;
struct factor {
  double by = 2;
};
struct twice : c::kind<twice> {
  static constexpr char name[] = "twice";
  using attributes = factor;
  static constexpr c::verdict infer(const attributes&, c::inference& io) {
    io.out[0] = io.in[0];
    return {};
  }
};
constexpr std::uint64_t id = c::kind_of<twice>.id;
