// expect: where(...): the predicate must return exactly bool or verdict
// The rule is returned instead of a verdict: as a bool it would always hold.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
constexpr auto pattern = op::relu(c::any.where([](const c::tensor_type&) { return "rank must be 4"; }));
