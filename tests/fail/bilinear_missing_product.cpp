// expect: mine does not compute <2,2,2>: the coefficient of a[0,1] b[1,0] in c[0,0] is 0 and must be 1; no product contributes to it
// The last product is missing.
#include <collage/bilinear/scheme.hpp>

namespace bilinear = collage::bilinear;
struct my_products {
  using problem = bilinear::matmul<2, 2, 2>;
  static constexpr const char* name = "mine";
  static constexpr bilinear::product<problem> products[] = {
      {{1, 0, 0, 1}, {1, 0, 0, 1}, {1, 0, 0, 1}},  {{0, 0, 1, 1}, {1, 0, 0, 0}, {0, 0, 1, -1}},
      {{1, 0, 0, 0}, {0, 1, 0, -1}, {0, 1, 0, 1}}, {{0, 0, 0, 1}, {-1, 0, 1, 0}, {1, 0, 1, 0}},
      {{1, 1, 0, 0}, {0, 0, 0, 1}, {-1, 1, 0, 0}}, {{-1, 0, 1, 0}, {1, 1, 0, 0}, {0, 0, 0, 1}},
  };
};
using mine = bilinear::scheme<my_products>;
static_assert(mine::rank == 7);
