// expect: conv: library alone; other -
// expect: relu: library alone; other 1 fused
// The compiler prints the table of a set when it is asked to.
#include <collage/collage.hpp>
#include <collage/set/coverage.hpp>

namespace c = collage;
namespace op = collage::ops;
struct library : c::backend<"library"> {
  using patterns = c::patterns<c::single<op::conv>, c::single<op::relu>>;
  static constexpr c::verdict accepts(const c::match<c::single<op::conv>>& m) {
    return {m[op::conv].groups == 1, "groups must be 1"};
  }
  template <class P>
  static c::kernel build(const c::match<P>&, c::build_context&);
};
struct relu_relu : c::pattern<"relu_relu"> {
  static constexpr auto expr = op::relu(op::relu(c::any));
};
struct other : c::backend<"other"> {
  using patterns = c::patterns<relu_relu>;
  static c::kernel build(const c::match<relu_relu>&, c::build_context&);
};
static_assert(c::print_coverage<c::backend_set<library, other>>);
