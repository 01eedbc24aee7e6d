// expect: a field of attributes must be bool, an integer, double, an enumeration, shape, real_list or short_text
// A float is not among the types of fields.
#include <collage/collage.hpp>

namespace c = collage;
struct factor {
  float by = 2;
  template <class Self, class Visitor>
  static constexpr void visit(Self& self, Visitor&& visitor) {
    visitor("by", self.by);
  }
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
