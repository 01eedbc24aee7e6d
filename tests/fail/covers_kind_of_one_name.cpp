// expect: the graph has another operator kind called (relu) than pattern (relu) of backend (library), and kinds are identified by name; rename one of them
// The user's own relu, and the library's in the network.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;

namespace mine {
inline constexpr struct relu : c::kind<relu> {
  static constexpr char name[] = "relu";
  static constexpr c::verdict infer(const attributes&, c::inference& io) {
    io.out[0] = io.in[0];
    return {};
  }
} relu{};
}  // namespace mine
struct library : c::backend<"library"> {
  using patterns = c::patterns<c::single<mine::relu>>;
  template <class P>
  static c::kernel build(const c::match<P>&, c::build_context&);
};
struct network {
  static constexpr auto graph = c::define([](auto& g) { g.output(g(op::relu, g.input("x", {2, 3}))); });
};
static_assert(c::holes_of<c::backend_set<library>, network>.empty());
