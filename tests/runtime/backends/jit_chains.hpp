// Chains of operators that generated kernels compute after a product or a convolution.
#pragma once

#include "cases.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

namespace collage_test {

/// What the operands of later operators may be.
struct operand_kinds {
  bool large_constants = true, rows = true;
};

/// Any operand of a later operator.
inline value operand(graph_builder& g, data_source& data, const shape& dims, std::size_t column,
                     const std::string& name, const operand_kinds& allowed = {}) {
  shape s = dims;
  std::int64_t kind = data.number(0, 3);  // whole, for each column, for each row, single
  if (kind == 2 && !allowed.rows) kind = 0;
  for (std::size_t d = 0; d < s.size(); ++d)
    if (kind == 3 || (kind == 1 && d != column) || (kind == 2 && d == column)) s[d] = 1;
  const bool is_constant = data.chance(0.5) && (allowed.large_constants || kind != 0);
  return is_constant ? data.constant(g, name, f32(s), {0.5, 1}) : g.input(name.c_str(), f32(s));
}

/// One to `most` operators, whose constants and inputs begin with `name`.
inline value chain(graph_builder& g, data_source& data, value x, std::size_t column, const operand_kinds& allowed = {},
                   std::int64_t most = 5, const std::string& name = "") {
  for (std::int64_t i = 0, steps = data.number(1, most); i < steps; ++i) {
    const auto label = [&](const char* what) { return name + what + std::to_string(i); };
    const shape dims = g.type_of(x).dims;
    const auto other = [&] { return operand(g, data, dims, column, label("other"), allowed); };
    switch (data.number(0, 9)) {
      case 0: x = g(op::relu, x); break;
      case 1: x = g(op::sigmoid, x); break;
      case 2: x = g(op::tanh, x); break;
      case 3: x = g(op::leaky_relu, x, {.alpha = 0.1}); break;
      case 4: x = g(op::mul, x, g(op::sigmoid, x)); break;
      case 5: x = g(op::clip, x, g.scalar(label("low"), -1), g.scalar(label("high"), 6)); break;
      case 6: x = g(op::mul, x, other()); break;
      case 7: x = g(op::sub, x, other()); break;
      case 8: x = g(op::div, x, g.scalar(label("factor"), 3)); break;
      default: x = data.chance(0.5) ? g(op::add, x, other()) : g(op::add, other(), x);
    }
  }
  return x;
}

}  // namespace collage_test
