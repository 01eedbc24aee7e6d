// Random graphs for tests: everything is float32[2x3], so that any value fits any operand.
#pragma once

#include <algorithm>
#include <collage/collage.hpp>
#include <collage/graph/graph.hpp>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "random_numbers.hpp"

namespace collage_test {

namespace c = collage;
namespace op = collage::ops;

using generator = std::mt19937_64;

/// A number in [0, count). Unlike the standard distributions the same on every platform.
inline std::size_t pick(generator& random, std::size_t count) { return static_cast<std::size_t>(random() % count); }

struct random_graph_options {
  std::size_t inputs = 2;
  std::size_t constants = 2;
  std::size_t nodes = 12;
  bool single_entry = false;  ///< only the first node reads an input
  bool with_pairs = true;     ///< relu, sigmoid, add, sub, mul; otherwise without sub
};

inline c::graph random_graph(generator& random, const random_graph_options& options) {
  const c::tensor_type type{c::dtype::f32, {2, 3}};
  c::graph_builder g;
  std::vector<c::value> readable;
  for (std::size_t i = 0; i < options.inputs; ++i) readable.push_back(g.input(c::label("x") + i, type));
  std::vector<c::value> constants;
  for (std::size_t i = 0; i < options.constants; ++i)
    constants.push_back(g.constant(c::label("w") + i, type, c::uniform{-1, 1}));

  if (options.single_entry) readable = {g(op::relu, readable[0])};
  std::vector<c::value> computed;
  const auto any_value = [&] {
    if (!constants.empty() && pick(random, 5) == 0) return constants[pick(random, constants.size())];
    // Recent values are likelier, so that chains form.
    const std::size_t window = pick(random, 2) == 0 ? std::min<std::size_t>(3, readable.size()) : readable.size();
    return readable[readable.size() - 1 - pick(random, window)];
  };
  for (std::size_t n = 0; n < options.nodes; ++n) {
    c::value made;
    const c::value first =
        options.single_entry ? readable[readable.size() - 1 - pick(random, readable.size())] : any_value();
    switch (pick(random, 5)) {
      case 0: made = g(op::relu, first); break;
      case 1: made = g(op::sigmoid, first); break;
      case 2: made = g(op::add, first, any_value()); break;
      case 3: made = options.with_pairs ? g(op::sub, first, any_value()) : g(op::relu, first); break;
      default: made = g(op::mul, first, any_value()); break;
    }
    readable.push_back(made);
    computed.push_back(made);
  }
  g.output("last", computed.back());
  if (pick(random, 2) == 0) g.output("other", computed[pick(random, computed.size())]);
  return g.finish();
}

}  // namespace collage_test
