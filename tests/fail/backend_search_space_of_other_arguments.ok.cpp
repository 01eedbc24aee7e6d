// The twin of backend_search_space_of_other_arguments.cpp.
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
  static void configurations(const c::match<conv_relu>&, c::configuration_list&);
  static std::shared_ptr<const c::tune::any_space> search_space(const c::match<conv_relu>&, const c::configuration&,
                                                                int);
};
constexpr std::size_t size = c::backend_set<library>::size;
