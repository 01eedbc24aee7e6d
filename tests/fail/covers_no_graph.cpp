// expect: static_graph
// The graph is named by its tag type.
#include <collage/collage.hpp>
#include <collage/set/covers.hpp>

namespace c = collage;
namespace op = collage::ops;
struct library : c::backend<"library"> {
  using patterns = c::patterns<c::single<op::conv>, c::single<op::relu>>;
  static constexpr c::verdict accepts(const c::match<c::single<op::conv>>& m) {
    return {m[op::conv].groups == 1, "groups must be 1"};
  }
  template <class P>
  static c::kernel build(const c::match<P>&, c::build_context&);
};
struct lenet {
  static constexpr auto graph = c::define([](auto& g) {
    const auto w = g.constant("w", {8, 8, 3, 3});
    auto x = g.input("x", {1, 8, 16, 16});
    x = g(op::relu, g(op::conv, x, w, {.groups = 1}));
    x = g(op::relu, g(op::conv, x, w, {.groups = 1}));
    g.output("y", x);
  });
};
static_assert(c::covers<c::backend_set<library>, decltype(lenet::graph)>);
