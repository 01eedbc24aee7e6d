// expect: backend (library), pattern (conv_relu): layouts takes other arguments; declare static void layouts(const match<P>&, std::size_t choice, value_forms&)
// Which choice is meant is told to it.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
struct conv_relu : c::pattern<"conv_relu"> {
  static constexpr auto expr = op::relu(op::conv(c::any, c::constant));
};
struct library : c::backend<"library"> {
  using patterns = c::patterns<conv_relu>;
  static c::kernel build(const c::match<conv_relu>&, c::build_context&);
  static std::size_t choices(const c::match<conv_relu>&);
  static void layouts(const c::match<conv_relu>&, c::value_forms&);
};
constexpr std::size_t size = c::backend_set<library>::size;
