// expect: backend (library): probe returns another type; declare static probe_result probe()
// A probe that cannot say what is missing.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
struct conv_relu : c::pattern<"conv_relu"> {
  static constexpr auto expr = op::relu(op::conv(c::any, c::constant));
};
struct library : c::backend<"library"> {
  using patterns = c::patterns<conv_relu>;
  static c::kernel build(const c::match<conv_relu>&, c::build_context&);
  static bool probe();
};
constexpr std::size_t size = c::backend_set<library>::size;
