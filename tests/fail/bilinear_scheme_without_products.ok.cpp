#include <collage/bilinear/scheme.hpp>

namespace bilinear = collage::bilinear;
struct my_products {
  using problem = bilinear::matmul<1, 1, 1>;
  static constexpr const char* name = "mine";
  static constexpr bilinear::product<problem> products[] = {{{1}, {1}, {1}}};
};
using mine = bilinear::scheme<my_products>;
static_assert(mine::rank == 1);
