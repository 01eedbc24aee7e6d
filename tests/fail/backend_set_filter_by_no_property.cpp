// expect: filter takes a property, a struct with a value for each backend of the set
// A property answers with a constant.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
struct conv_relu : c::pattern<"conv_relu"> {
  static constexpr auto expr = op::relu(op::conv(c::any, c::constant));
};
struct library : c::backend<"library"> {
  using patterns = c::patterns<conv_relu>;
  static c::kernel build(const c::match<conv_relu>&, c::build_context&);
};
struct other : c::backend<"other"> {
  using patterns = c::patterns<conv_relu>;
  static c::kernel build(const c::match<conv_relu>&, c::build_context&);
};
using backends = c::backend_set<library, other>;
struct is_quick {
  template <class B>
  static bool holds();
};
using quick = backends::filter<is_quick>;
