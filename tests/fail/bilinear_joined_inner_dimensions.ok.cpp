#include <collage/bilinear/matmul_schemes.hpp>

namespace bilinear = collage::bilinear;
using joined = bilinear::join_rows<bilinear::strassen, bilinear::classical<1, 2, 2>>;
static_assert(joined::rank == 11);
