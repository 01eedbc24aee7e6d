// The twin of pattern_wrong_arity.cpp.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
constexpr auto pattern = op::relu(c::any);
