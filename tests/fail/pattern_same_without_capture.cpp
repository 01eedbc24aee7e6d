// expect: must name what the pattern captures with as<
// Nothing is captured as "x".
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
struct example : c::pattern<"example"> {
  static constexpr auto expr = op::mul(c::any, op::sigmoid(c::same<"x">()));
};

struct library : c::backend<"library"> {
  using patterns = c::patterns<example>;
  static c::kernel build(const c::match<example>&, c::build_context&);
};
using backends = c::backend_set<library>;
constexpr std::size_t size = backends::size;
