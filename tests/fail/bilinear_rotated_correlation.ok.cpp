#include <collage/bilinear/all.hpp>

namespace bilinear = collage::bilinear;
using turned = bilinear::dual<bilinear::f_2_3>;
static_assert(turned::rank == 4);
