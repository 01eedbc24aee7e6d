// expect: an elementwise kind needs a body with a parameter for each operand and then each attribute
// The factor would have nowhere to go.
#include <collage/collage.hpp>

namespace c = collage;
struct factor {
  double by = 2;
  template <class Self, class Visitor>
  static constexpr void visit(Self& self, Visitor&& visitor) {
    visitor("by", self.by);
  }
};
struct twice : c::elementwise_kind<twice, 1> {
  static constexpr char name[] = "twice";
  using attributes = factor;
  static constexpr auto body(auto x) { return 2.0 * x; }
};
constexpr std::uint64_t id = c::kind_of<twice>.id;
