#include <collage/backends/jit_with.hpp>
#include <collage/bilinear/all.hpp>

namespace bilinear = collage::bilinear;

struct my_products {
  using problem = bilinear::matmul<1, 1, 1>;
  static constexpr const char* name = "mine";
  static constexpr bilinear::product<problem> products[] = {{{1}, {2}, {1}}, {{1}, {1}, {-1}}};
};
collage::jit_with<bilinear::scheme<my_products>> backend;
