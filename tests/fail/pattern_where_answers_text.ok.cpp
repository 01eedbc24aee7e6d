// The rule as part of a verdict.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
constexpr auto pattern =
    op::relu(c::any.where([](const c::tensor_type& t) { return c::verdict(t.rank() == 4, "rank must be 4"); }));
