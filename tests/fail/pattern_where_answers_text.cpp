// expect: where(...): the predicate answers bool or verdict, and nothing that merely converts to one
// The rule is returned instead of a verdict: as a bool it would always hold.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
constexpr auto pattern = op::relu(c::any.where([](const c::tensor_type&) { return "rank must be 4"; }));
