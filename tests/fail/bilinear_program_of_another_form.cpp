// expect: mine: its function left has another form; declare it as static constexpr void left(const auto& in, auto& out)
// A program with too many parameters.
#include <collage/bilinear/scheme.hpp>

namespace bilinear = collage::bilinear;
struct my_products {
  using problem = bilinear::matmul<1, 2, 1>;
  static constexpr const char* name = "mine";
  static constexpr bilinear::product<problem> products[] = {{{1, 0}, {1, 0}, {1}}, {{0, 1}, {0, 1}, {1}}};
  static constexpr void left(const auto& a, auto& factor, int) {
    factor[0] = a[0];
    factor[1] = a[1];
  }
};
using mine = bilinear::scheme<my_products>;
static_assert(mine::rank == 2);
