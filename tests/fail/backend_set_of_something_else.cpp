// expect: a backend_set holds conv_relu, which is not a backend; derive it from collage::backend<name>
// A pattern is no backend.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
struct conv_relu : c::pattern<"conv_relu"> {
  static constexpr auto expr = op::relu(op::conv(c::any, c::constant));
};
constexpr std::size_t size = c::backend_set<conv_relu>::size;
