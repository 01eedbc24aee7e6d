// The twin of kind_commutative_of_one_operand.cpp.
#include <collage/collage.hpp>

namespace c = collage;
struct twice : c::kind<twice> {
  static constexpr char name[] = "twice";
  static constexpr c::arity inputs{2, 2};
  static constexpr bool commutative = true;
  static constexpr c::verdict infer(const attributes&, c::inference& io) {
    io.out[0] = io.in[0];
    return {};
  }
};
constexpr std::uint64_t id = c::kind_of<twice>.id;
