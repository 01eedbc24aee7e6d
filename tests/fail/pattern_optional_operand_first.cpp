// expect: maybe(...) and many(...) must be the last operands of their operator
// Without its first operand, which one would the second be?
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
struct example : c::pattern<"example"> {
  static constexpr auto expr = op::concat(c::maybe(c::any), c::constant);
};

struct library : c::backend<"library"> {
  using patterns = c::patterns<example>;
  static c::kernel build(const c::match<example>&, c::build_context&);
};
using backends = c::backend_set<library>;
constexpr std::size_t size = backends::size;
