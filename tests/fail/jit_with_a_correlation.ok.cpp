#include <collage/backends/jit_with.hpp>
#include <collage/bilinear/all.hpp>

namespace bilinear = collage::bilinear;
collage::jit_with<bilinear::strassen> backend;
