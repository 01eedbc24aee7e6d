// The twin of pattern_optional_operand_first.cpp.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
struct example : c::pattern<"example"> {
  static constexpr auto expr = op::concat(c::constant, c::maybe(c::any));
};

struct library : c::backend<"library"> {
  using patterns = c::patterns<example>;
  static c::kernel build(const c::match<example>&, c::build_context&);
};
using backends = c::backend_set<library>;
constexpr std::size_t size = backends::size;
