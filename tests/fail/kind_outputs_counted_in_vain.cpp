// expect: an operator kind whose outputs are any_number, and no other, must say how many they are
// It says 1 in one place and lets itself be asked in another.
#include <collage/collage.hpp>

namespace c = collage;
struct twice : c::kind<twice> {
  static constexpr char name[] = "twice";
  static constexpr c::verdict infer(const attributes&, c::inference& io) {
    io.out[0] = io.in[0];
    return {};
  }
  static constexpr std::size_t count_outputs(const attributes&, c::list_view<const c::body_signature>) { return 2; }
};
constexpr std::uint64_t id = c::kind_of<twice>.id;
