// The twin of graph_with_captures.cpp.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;

template <std::int64_t Channels>
constexpr auto of() {
  auto write = [](auto& g) { g.output(g(op::relu, g.input("x", {1, Channels}))); };
  return c::define(write);
}
static_assert(of<3>().view().nodes.size() == 1);
