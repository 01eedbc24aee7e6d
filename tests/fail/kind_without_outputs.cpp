// expect: an operator kind must have an output
// Nothing could read it.
#include <collage/collage.hpp>

namespace c = collage;
struct twice : c::kind<twice> {
  static constexpr char name[] = "twice";
  static constexpr std::uint32_t outputs = 0;
  static constexpr c::verdict infer(const attributes&, c::inference& io) {
    io.out[0] = io.in[0];
    return {};
  }
};
constexpr std::uint64_t id = c::kind_of<twice>.id;
