// expect: jit_with takes schemes for matrix products; of the algorithms for convolutions, jit has only its own
// Algorithms for convolutions are a list of the backend.
#include <collage/backends/jit_with.hpp>
#include <collage/bilinear/all.hpp>

namespace bilinear = collage::bilinear;
collage::jit_with<bilinear::f_2_3> backend;
