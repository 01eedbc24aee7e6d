// expect: backend (library): a pattern is called (by rule), which is a reserved name in plans; rename it
// The name under which plans keep what a rule found.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
struct conv_relu : c::pattern<"by rule"> {
  static constexpr auto expr = op::relu(op::conv(c::any, c::constant));
};
struct library : c::backend<"library"> {
  using patterns = c::patterns<conv_relu>;
  static c::kernel build(const c::match<conv_relu>&, c::build_context&);
};
constexpr std::size_t size = c::backend_set<library>::size;
