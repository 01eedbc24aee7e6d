// expect: a pattern has at most 48 nodes
// Ten operators over 39 values.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;

struct example : c::pattern<"example"> {
  static constexpr auto expr = [] {
    constexpr auto row = op::concat(c::any, c::any, c::any, c::any, c::any);
    constexpr auto rows = op::concat(row, row, row, row);
    return op::concat(rows, row, row, row, op::concat(c::any, c::any, c::any, c::any));
  }();
};

struct library : c::backend<"library"> {
  using patterns = c::patterns<example>;
  static c::kernel build(const c::match<example>&, c::build_context&);
};
using backends = c::backend_set<library>;
constexpr std::size_t size = backends::size;
