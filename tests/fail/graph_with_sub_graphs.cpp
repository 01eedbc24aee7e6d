// expect: node 0 (loop): it owns subgraphs, which static graphs do not have; build this network with graph_builder
// Control flow, which owns graphs.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
struct network {
  static constexpr auto graph = c::define([](auto& g) {
    auto rounds = g.input("rounds", {c::dtype::i64, {}});
    auto go = g.input("go", {c::dtype::boolean, {}});
    g.output(g(op::loop, rounds, go));
  });
};
