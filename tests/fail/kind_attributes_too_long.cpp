// expect: the attributes of an operator kind take more than 72 words
// Nine lists are one too many for the record.
#include <collage/collage.hpp>

namespace c = collage;
struct corners {
  c::shape a{}, b{}, c{}, d{}, e{}, f{}, g{}, h{}, i{};
  template <class Self, class Visitor>
  static constexpr void visit(Self& self, Visitor&& visitor) {
    visitor("a", self.a);
    visitor("b", self.b);
    visitor("c", self.c);
    visitor("d", self.d);
    visitor("e", self.e);
    visitor("f", self.f);
    visitor("g", self.g);
    visitor("h", self.h);
    visitor("i", self.i);
  }
};
struct twice : c::kind<twice> {
  static constexpr char name[] = "twice";
  using attributes = corners;
  static constexpr c::verdict infer(const attributes&, c::inference& io) {
    io.out[0] = io.in[0];
    return {};
  }
};
constexpr std::uint64_t id = c::kind_of<twice>.id;
