// expect: backend (library), pattern (everything): accepts cannot be evaluated at compile time
// A pattern of whichever operator has no kind whose rules could be asked.
#include <collage/collage.hpp>

namespace c = collage;
struct everything : c::pattern<"everything"> {
  static constexpr auto expr = c::any_operator;
};
inline bool suits_bilinear_memory = true;
struct library : c::backend<"library"> {
  using patterns = c::patterns<everything>;
  static c::kernel build(const c::match<everything>&, c::build_context&);
  static bool accepts(const c::match<everything>&) { return suits_bilinear_memory; }
};
constexpr std::size_t size = c::backend_set<library>::size;
