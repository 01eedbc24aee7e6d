// expect: rotated and transposed take an algorithm for matrix products
// Its operands have no roles to exchange.
#include <collage/bilinear/all.hpp>

namespace bilinear = collage::bilinear;
using turned = bilinear::rotated<bilinear::f_2_3>;
static_assert(turned::rank == 4);
