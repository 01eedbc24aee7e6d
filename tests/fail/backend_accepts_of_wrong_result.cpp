// expect: backend (library), pattern (conv_relu): accepts returns another type; declare static constexpr verdict accepts(const match<P>&), or bool
// A text is no verdict: it would always be true.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
struct conv_relu : c::pattern<"conv_relu"> {
  static constexpr auto expr = op::relu(op::conv(c::any, c::constant));
};
struct library : c::backend<"library"> {
  using patterns = c::patterns<conv_relu>;
  static c::kernel build(const c::match<conv_relu>&, c::build_context&);
  static constexpr const char* accepts(const c::match<conv_relu>&) { return "never"; }
};
constexpr std::size_t size = c::backend_set<library>::size;
