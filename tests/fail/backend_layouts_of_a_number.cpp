// expect: backend (library), pattern (conv_relu): layouts takes other arguments; declare static void layouts(const match<P>&, const configuration&, value_forms&)
// Configurations that are texts have no number.
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
  static void layouts(const c::match<conv_relu>&, std::size_t choice, c::value_forms&);
};
constexpr std::size_t size = c::backend_set<library>::size;
