// expect: mine has 3 points, and F(2,3) takes 4, one for each multiplication; add some, such as infinity
// F(M,R) takes M + R - 1 points.
#include <collage/bilinear/toom_cook.hpp>

namespace bilinear = collage::bilinear;
struct my_points {
  using problem = bilinear::correlation<2, 3>;
  static constexpr const char* name = "mine";
  static constexpr bilinear::point points[] = {0, 1, bilinear::infinity};
};
using mine = bilinear::toom_cook<my_points>;
static_assert(mine::rank == 3);
