// The network that both sides know: the program that makes the plan, and the application that runs it.
#pragma once

#include <collage/graph/graph.hpp>
#include <collage/ops.hpp>

/// scores = relu(x * w + b)
inline collage::graph small_network() {
  namespace op = collage::ops;
  collage::graph_builder g;
  const collage::value x = g.input("x", {collage::dtype::f32, {4, 8}});
  const collage::value w = g.input("w", {collage::dtype::f32, {8, 3}});
  const collage::value b = g.input("b", {collage::dtype::f32, {3}});
  g.output("scores", g(op::relu, g(op::add, g(op::matmul, x, w), b)));
  return g.finish();
}
