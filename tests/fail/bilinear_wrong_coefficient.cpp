// expect: mine does not compute <2,2,2>: the coefficient of a[0,1] b[1,1] in c[0,0] is 2 and must be 0
// expect: ; products 4 and 6 contribute to it; correct its coefficients u, v or w
// A wrong sign in the fifth product.
#include <collage/bilinear/scheme.hpp>

namespace bilinear = collage::bilinear;
struct my_products {
  using problem = bilinear::matmul<2, 2, 2>;
  static constexpr const char* name = "mine";
  static constexpr bilinear::product<problem> products[] = {
      {{1, 0, 0, 1}, {1, 0, 0, 1}, {1, 0, 0, 1}},   {{0, 0, 1, 1}, {1, 0, 0, 0}, {0, 0, 1, -1}},
      {{1, 0, 0, 0}, {0, 1, 0, -1}, {0, 1, 0, 1}},  {{0, 0, 0, 1}, {-1, 0, 1, 0}, {1, 0, 1, 0}},
      {{1, -1, 0, 0}, {0, 0, 0, 1}, {-1, 1, 0, 0}}, {{-1, 0, 1, 0}, {1, 1, 0, 0}, {0, 0, 0, 1}},
      {{0, 1, 0, -1}, {0, 0, 1, 1}, {1, 0, 0, 0}},
  };
};
using mine = bilinear::scheme<my_products>;
static_assert(mine::rank == 7);
