// The twin of backend_set_with_kinds_of_one_name.cpp.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
namespace first {
inline constexpr struct snake : c::kind<snake> {
  static constexpr char name[] = "snake";
  static constexpr c::verdict infer(const c::no_attributes&, c::inference& io) {
    io.out[0] = io.in[0];
    return {};
  }
} snake{};
}  // namespace first
namespace second {
inline constexpr struct snake : c::kind<snake> {
  static constexpr char name[] = "other_snake";
  static constexpr c::verdict infer(const c::no_attributes&, c::inference& io) {
    io.out[0] = io.in[0];
    return {};
  }
} snake{};
}  // namespace second
struct library : c::backend<"library"> {
  using patterns = c::patterns<c::single<first::snake>>;
  static c::kernel build(const c::match<c::single<first::snake>>&, c::build_context&);
};
struct snake_relu : c::pattern<"snake_relu"> {
  static constexpr auto expr = op::relu(second::snake(c::any));
};
struct other : c::backend<"other"> {
  using patterns = c::patterns<snake_relu>;
  static c::kernel build(const c::match<snake_relu>&, c::build_context&);
};
constexpr std::size_t size = c::backend_set<library, other>::size;
