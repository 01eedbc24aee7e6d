// The twin of shape_of_nine_extents.cpp.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
constexpr c::shape dims = {1, 2, 3, 4, 5, 6, 7, 8};
