// expect: backend (library), pattern (conv_relu): knows returns another type; declare static verdict knows(const match<P>&, const configuration&), or bool
// The reason is part of a verdict.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
struct conv_relu : c::pattern<"conv_relu"> {
  static constexpr auto expr = op::relu(op::conv(c::any, c::constant));
};
struct library : c::backend<"library"> {
  using patterns = c::patterns<conv_relu>;
  static c::kernel build(const c::match<conv_relu>&, c::build_context&);
  static void configurations(const c::match<conv_relu>&, c::configuration_list&);
  static const char* knows(const c::match<conv_relu>&, const c::configuration&);
};
constexpr std::size_t size = c::backend_set<library>::size;
