// expect: mine does not compute <1,1,1>: the coefficient of a[0,0] b[0,0] in c[0,0] does not fit into a fraction of 64-bit
// The product of two coefficients overflows.
#include <collage/bilinear/scheme.hpp>

namespace bilinear = collage::bilinear;
struct my_products {
  using problem = bilinear::matmul<1, 1, 1>;
  static constexpr const char* name = "mine";
  static constexpr bilinear::product<problem, bilinear::rational> products[] = {{{4000000000}, {4000000000}, {1}}};
};
using mine = bilinear::scheme<my_products>;
static_assert(mine::rank == 1);
