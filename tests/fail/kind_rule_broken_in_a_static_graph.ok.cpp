// The twin of kind_rule_broken_in_a_static_graph.cpp.
#include <collage/collage.hpp>

namespace c = collage;
inline constexpr struct halved : c::kind<halved> {
  static constexpr char name[] = "halved";
  static constexpr c::verdict infer(const attributes&, c::inference& io) {
    io.out[0] = io.in[0];
    if (io.in[0].rank() == 0 || io.in[0].dims[0] % 2 != 0) return {false, "its first extent must be even", 0};
    io.out[0].dims[0] /= 2;
    return {};
  }
} halved{};
struct network {
  static constexpr auto graph = c::define([](auto& g) { g.output("y", g(halved, g.input("x", {8, 4}))); });
};
constexpr auto nodes = network::graph.view().node_count();
