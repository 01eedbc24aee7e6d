#include <collage/bilinear/toom_cook.hpp>

namespace bilinear = collage::bilinear;
struct my_points {
  using problem = bilinear::correlation<2, 3>;
  static constexpr const char* name = "mine";
  static constexpr bilinear::point points[] = {0, 1, {2, 3}, bilinear::infinity};
};
using mine = bilinear::toom_cook<my_points>;
static_assert(mine::rank == 4);
