// expect: node 1 (neg): its kind has the id of another, neg of node 0; ids are hashes of names
// A kind of our own with the name of a built-in one.
#include <collage/collage.hpp>

namespace c = collage;
namespace op = collage::ops;

inline constexpr struct negative : c::kind<negative> {
  static constexpr char name[] = "neg";
  static constexpr c::verdict infer(const attributes&, c::inference& io) {
    io.out[0] = io.in[0];
    return {};
  }
} negative{};

struct network {
  static constexpr auto graph = c::define([](auto& g) {
    auto x = g.input("x", {4});
    g.output(g(negative, g(op::neg, x)));
  });
};
