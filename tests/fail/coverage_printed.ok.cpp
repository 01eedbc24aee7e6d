// The twin of coverage_printed.cpp.
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
struct other : c::backend<"other"> {
  using patterns = c::patterns<c::single<op::relu>>;
  static c::kernel build(const c::match<c::single<op::relu>>&, c::build_context&);
};
static_assert(c::coverage_of<c::backend_set<library, other>>.rows() == 2);
