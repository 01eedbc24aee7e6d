// expect: backend (library), pattern (relu): accepts cannot be evaluated at compile time
// One function for one of two patterns, the second, and the first takes no match of it.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
inline bool suits_bilinear_memory = true;
struct library : c::backend<"library"> {
  using patterns = c::patterns<c::single<op::tanh>, c::single<op::relu>>;
  template <class P>
  static c::kernel build(const c::match<P>&, c::build_context&);
  static bool accepts(const c::match<c::single<op::relu>>&) { return suits_bilinear_memory; }
};
constexpr std::size_t size = c::backend_set<library>::size;
