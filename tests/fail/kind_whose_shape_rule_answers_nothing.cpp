// expect: an operator kind needs a shape rule
// A rule must say whether it holds.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
struct twice : c::kind<twice> {
  static constexpr char name[] = "twice";
  static constexpr void infer(const attributes&, c::inference& io) { io.out[0] = io.in[0]; }
};
constexpr std::uint64_t id = c::kind_of<twice>.id;
