// expect: jit has room for 256 blocks and sums of blocks of the left operand: nest fewer schemes
// Three levels have 512 blocks and sums.
#include <collage/backends/jit_with.hpp>
#include <collage/bilinear/all.hpp>

namespace bilinear = collage::bilinear;
collage::jit_with<bilinear::nested<bilinear::two_strassen, bilinear::strassen>> backend;
