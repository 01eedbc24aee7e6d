// The twin of backend_choices_beside_configurations.cpp.
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
};
constexpr std::size_t size = c::backend_set<library>::size;
