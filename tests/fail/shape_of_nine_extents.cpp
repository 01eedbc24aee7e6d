// expect: a shape has at most 8 extents
// There is no room for a ninth.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
constexpr c::shape dims = {1, 2, 3, 4, 5, 6, 7, 8, 9};
