// expect: an operator kind must not be final
// Members that are there with a wrong signature could not be told from those that are not.
#include <collage/collage.hpp>

namespace c = collage;
struct twice final : c::kind<twice> {
  static constexpr char name[] = "twice";
  static constexpr c::verdict infer(const attributes&, c::inference& io) {
    io.out[0] = io.in[0];
    return {};
  }
};
constexpr std::uint64_t id = c::kind_of<twice>.id;
