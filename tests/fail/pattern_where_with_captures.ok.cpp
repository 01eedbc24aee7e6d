// The twin of pattern_where_with_captures.cpp.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
constexpr auto with_groups() {
  return op::conv(c::any, c::constant).where([](const op::conv_attributes& a) { return a.groups == 1; });
}
constexpr auto pattern = with_groups();
