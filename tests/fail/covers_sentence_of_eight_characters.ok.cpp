#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
struct library : c::backend<"library"> {
  using patterns = c::patterns<c::single<op::relu>, c::single<op::max_pool>>;
  template <class P>
  static c::kernel build(const c::match<P>&, c::build_context&);
};
struct network {
  static constexpr auto graph = c::define(
      [](auto& g) { g.output(g(op::relu, g(op::max_pool, g.input("x", {1, 2, 8, 8}), {.window = {2, 2}}))); });
};
static_assert(c::covers<c::backend_set<library>, network>);
