// expect: backend (library), pattern (conv_relu): it has both choices and configurations; declare only one of them
// Numbers or texts.
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
  static void configurations(const c::match<conv_relu>&, c::configuration_list&);
};
constexpr std::size_t size = c::backend_set<library>::size;
