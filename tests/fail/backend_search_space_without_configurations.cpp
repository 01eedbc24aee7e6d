// expect: backend (library), pattern (conv_relu): configurations is missing or private; declare static void configurations(const match<P>&, configuration_list&)
// Its points are configurations.
#include <collage/collage.hpp>
#include <memory>

namespace c = collage;
namespace op = collage::ops;
struct conv_relu : c::pattern<"conv_relu"> {
  static constexpr auto expr = op::relu(op::conv(c::any, c::constant));
};
struct library : c::backend<"library"> {
  using patterns = c::patterns<conv_relu>;
  static c::kernel build(const c::match<conv_relu>&, c::build_context&);
  static std::shared_ptr<const c::tune::any_space> search_space(const c::match<conv_relu>&, const c::configuration&,
                                                                int);
};
constexpr std::size_t size = c::backend_set<library>::size;
