// expect: mine has the point 2/3 twice; give it points that all differ
// The same fraction, written in two ways.
#include <collage/bilinear/toom_cook.hpp>

namespace bilinear = collage::bilinear;
struct my_points {
  using problem = bilinear::correlation<2, 3>;
  static constexpr const char* name = "mine";
  static constexpr bilinear::point points[] = {{2, 3}, 1, {4, 6}, bilinear::infinity};
};
using mine = bilinear::toom_cook<my_points>;
static_assert(mine::rank == 4);
