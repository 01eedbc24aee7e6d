// expect: backend (library): accepts takes a match of none of its patterns, or is private; declare static constexpr verdict accepts(const match<P>&)
// An opinion that nobody would ever ask for.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
struct conv_relu : c::pattern<"conv_relu"> {
  static constexpr auto expr = op::relu(op::conv(c::any, c::constant));
};
struct library : c::backend<"library"> {
  using patterns = c::patterns<conv_relu>;
  static c::kernel build(const c::match<conv_relu>&, c::build_context&);
  static constexpr bool accepts(const c::match<c::single<op::conv>>& m) { return m[op::conv].groups == 1; }
};
constexpr std::size_t size = c::backend_set<library>::size;
