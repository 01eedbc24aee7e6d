// expect: count of an operator kind must be declared as: static constexpr work count(const attributes&,
// A plain number does not say what it counts.
#include <collage/collage.hpp>

namespace c = collage;
struct twice : c::kind<twice> {
  static constexpr char name[] = "twice";
  static constexpr c::verdict infer(const attributes&, c::inference& io) {
    io.out[0] = io.in[0];
    return {};
  }
  static constexpr double count(const attributes&, const c::inference&) { return 1; }
};
constexpr std::uint64_t id = c::kind_of<twice>.id;
