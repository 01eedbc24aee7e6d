// expect: backend (library), pattern (conv_relu): accepts cannot be evaluated at compile time
// What the machine decides belongs to probe and build.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
struct conv_relu : c::pattern<"conv_relu"> {
  static constexpr auto expr = op::relu(op::conv(c::any, c::constant));
};
inline bool suits_bilinear_memory = true;
struct library : c::backend<"library"> {
  using patterns = c::patterns<conv_relu>;
  static c::kernel build(const c::match<conv_relu>&, c::build_context&);
  static bool accepts(const c::match<conv_relu>&) { return suits_bilinear_memory; }
};
constexpr std::size_t size = c::backend_set<library>::size;
