// expect: mine has a point that is no fraction of 64-bit numbers; give it smaller ones, and write bilinear::infinity for
// The point at infinity is not a fraction.
#include <collage/bilinear/toom_cook.hpp>

namespace bilinear = collage::bilinear;
struct my_points {
  using problem = bilinear::correlation<2, 3>;
  static constexpr const char* name = "mine";
  static constexpr bilinear::point points[] = {0, 1, {2, 3}, {1, 0}};
};
using mine = bilinear::toom_cook<my_points>;
static_assert(mine::rank == 4);
