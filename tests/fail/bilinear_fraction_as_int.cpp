// expect: a coefficient that is no whole number is read as one
// The filter transform of F(2,3) has halves.
#include <collage/bilinear/all.hpp>

namespace bilinear = collage::bilinear;
constexpr auto coefficients = bilinear::coefficients<int>(bilinear::f_2_3::v);
