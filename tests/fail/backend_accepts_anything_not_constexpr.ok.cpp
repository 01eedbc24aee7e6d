#include <collage/collage.hpp>

namespace c = collage;
struct everything : c::pattern<"everything"> {
  static constexpr auto expr = c::any_operator;
};
struct library : c::backend<"library"> {
  using patterns = c::patterns<everything>;
  static c::kernel build(const c::match<everything>&, c::build_context&);
  static constexpr bool accepts(const c::match<everything>& m) { return m.arguments() < 9; }
};
constexpr std::size_t size = c::backend_set<library>::size;
