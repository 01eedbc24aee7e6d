// expect: backend (library), pattern (conv_relu): build returns another type; declare static kernel build
// A build that tells whether it could.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
struct conv_relu : c::pattern<"conv_relu"> {
  static constexpr auto expr = op::relu(op::conv(c::any, c::constant));
};
struct library : c::backend<"library"> {
  using patterns = c::patterns<conv_relu>;
  static bool build(const c::match<conv_relu>&, c::build_context&);
};
constexpr std::size_t size = c::backend_set<library>::size;
