// expect: one_of needs at least one operator kind
// A choice between nothing.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
constexpr auto pattern = c::one_of()(c::any);
