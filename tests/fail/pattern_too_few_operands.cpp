// expect: an optional one is written maybe(...), the rest many(any)
// The bias of conv is optional, its weights are not.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
constexpr auto pattern = op::conv(c::any);
