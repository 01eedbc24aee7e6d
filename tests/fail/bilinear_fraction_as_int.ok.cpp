#include <collage/bilinear/all.hpp>

namespace bilinear = collage::bilinear;
constexpr auto coefficients = bilinear::coefficients<int>(bilinear::f_2_3::u);
