// The twin of one_of_no_kinds.cpp.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
constexpr auto pattern = c::one_of(op::relu)(c::any);
