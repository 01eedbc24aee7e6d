// expect: joined algorithms must have the same inner dimension
// Two rows of length 2 above a row of length 3.
#include <collage/bilinear/matmul_schemes.hpp>

namespace bilinear = collage::bilinear;
using joined = bilinear::join_rows<bilinear::strassen, bilinear::classical<1, 3, 2>>;
static_assert(joined::rank == 13);
