// Builds a small graph and evaluates it with the reference: the sources that were taken in do their work.
#include <collage/backends/reference.hpp>
#include <collage/collage.hpp>
#include <collage/run/engine.hpp>
#if WITH_EIGEN
#include <collage/backends/eigen.hpp>
#endif

#include <cstdio>
#include <exception>

namespace c = collage;
namespace op = collage::ops;

int main() try {
  c::graph_builder g;
  const c::value x = g.input("x", {c::dtype::f32, {3}});
  g.output("y", g(op::relu, g(op::neg, x)));
  const c::graph network = g.finish();

  const c::tensor input({c::dtype::f32, {3}});
  input.as<float>()[0] = -2;
  input.as<float>()[1] = 1;
  const c::const_tensor_view inputs[] = {input};
  const auto answer = c::evaluate(network, inputs);
  if (answer.at(0).real.at(0) != 2 || answer.at(0).real.at(1) != 0) {
    std::fprintf(stderr, "the reference computes -min(x, 0) wrongly\n");
    return 1;
  }
#if WITH_EIGEN
  if (!c::eigen::probe().available) return 1;
#endif
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
