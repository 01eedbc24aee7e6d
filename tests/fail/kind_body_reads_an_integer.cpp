// expect: its body may read only attributes that are double
// The bits of an integer would be taken for a double.
#include <collage/collage.hpp>

namespace c = collage;
struct factor {
  std::int64_t by = 2;
  template <class Self, class Visitor>
  static constexpr void visit(Self& self, Visitor&& visitor) {
    visitor("by", self.by);
  }
};
struct twice : c::elementwise_kind<twice, 1> {
  static constexpr char name[] = "twice";
  using attributes = factor;
  static constexpr auto body(auto x, auto by) { return by * x; }
};
constexpr std::uint64_t id = c::kind_of<twice>.id;
