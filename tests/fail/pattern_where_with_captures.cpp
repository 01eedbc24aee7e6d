// expect: where(...) takes a lambda without captures, of one parameter that is not auto
// The number of groups is captured.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
constexpr auto with_groups(int groups) {
  return op::conv(c::any, c::constant).where([=](const op::conv_attributes& a) { return a.groups == groups; });
}
constexpr auto pattern = with_groups(1);
