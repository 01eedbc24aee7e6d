// expect: backend (library), pattern (conv_relu): build is not static; declare static kernel build
// Backends are types; nobody makes objects of them.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
struct conv_relu : c::pattern<"conv_relu"> {
  static constexpr auto expr = op::relu(op::conv(c::any, c::constant));
};
struct library : c::backend<"library"> {
  using patterns = c::patterns<conv_relu>;
  c::kernel build(const c::match<conv_relu>&, c::build_context&) const;
};
constexpr std::size_t size = c::backend_set<library>::size;
