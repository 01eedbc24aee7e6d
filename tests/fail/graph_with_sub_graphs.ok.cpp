// The twin of graph_with_sub_graphs.cpp.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;
struct network {
  static constexpr auto graph = c::define([](auto& g) {
    auto rounds = g.input("rounds", {c::dtype::i64, {}});
    auto go = g.input("go", {c::dtype::boolean, {}});
    g.output(g(op::cast, go, {.to = c::dtype::i64}));
    g.output(rounds);
  });
};
