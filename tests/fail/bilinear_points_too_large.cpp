// expect: mine does not compute F(2,3): the coefficient of d[1] g[0] in y[0] does not fit into a fraction of 64-bit numbers
// expect: use points with smaller numerators and denominators
// Powers of these fractions overflow.
#include <collage/bilinear/toom_cook.hpp>

namespace bilinear = collage::bilinear;
struct my_points {
  using problem = bilinear::correlation<2, 3>;
  static constexpr const char* name = "mine";
  static constexpr bilinear::point points[] = {0, {1000003, 1000033}, {2000003, 3000017}, bilinear::infinity};
};
using mine = bilinear::toom_cook<my_points>;
static_assert(mine::rank == 4);
