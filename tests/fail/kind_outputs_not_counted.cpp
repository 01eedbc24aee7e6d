// expect: an operator kind whose outputs are any_number, and no other, must say how many they are
// How many outputs has a node of it?
#include <collage/collage.hpp>

namespace c = collage;
struct twice : c::kind<twice> {
  static constexpr char name[] = "twice";
  static constexpr std::uint32_t outputs = c::any_number;
  static constexpr c::verdict infer(const attributes&, c::inference& io) {
    io.out[0] = io.in[0];
    return {};
  }
};
constexpr std::uint64_t id = c::kind_of<twice>.id;
