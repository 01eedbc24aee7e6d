// Graphs that try backends: ordinary shapes, awkward ones, and random ones. For backend_checker.
#pragma once

#include "support/backend_check.hpp"
#include "support/effort.hpp"

#include <collage/graph/graph.hpp>
#include <collage/ops.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace collage_test {

namespace op = collage::ops;
using collage::graph_builder;
using collage::shape;
using collage::value;

inline collage::tensor_type f32(const shape& dims) { return {collage::dtype::f32, dims}; }
inline collage::tensor_type i64(const shape& dims) { return {collage::dtype::i64, dims}; }

/// A convolution and its operands.
struct conv_case {
  shape x, w;
  op::conv_attributes attributes{};
  bool bias = false;
  bool constant_weights = true;
};

inline value add_conv(graph_builder& g, data_source& data, const conv_case& c) {
  const value x = g.input("x", f32(c.x));
  const auto operand = [&](const std::string& name, const shape& dims) {
    return c.constant_weights ? data.constant(g, name, f32(dims)) : g.input(name.c_str(), f32(dims));
  };
  const value w = operand("w", c.w);
  if (!c.bias) return g(op::conv, x, w, c.attributes);
  return g(op::conv, x, w, operand("bias", {c.w[0]}), c.attributes);
}

/// Convolutions of rank 1 to 3 with everything that can be odd about them.
inline std::vector<conv_case> conv_cases() {
  return {
      {{1, 16, 14, 14}, {32, 16, 1, 1}},                                                 // a plain product
      {{2, 5, 7, 7}, {3, 5, 1, 1}, {}, true},                                            // odd counts
      {{1, 8, 9, 9}, {12, 8, 1, 1}, {.strides = {2, 2}}, true},                          // picks every other element
      {{1, 3, 17, 19}, {8, 3, 3, 3}, {.pads_begin = {1, 1}, .pads_end = {1, 1}}, true},  // a first layer
      {{1, 3, 31, 33}, {16, 3, 7, 7}, {.strides = {2, 2}, .pads_begin = {3, 3}, .pads_end = {3, 3}}},
      {{2, 4, 8, 8}, {6, 4, 3, 3}, {.pads_begin = {0, 2}, .pads_end = {1, 0}}},  // uneven pads
      {{1, 4, 12, 12}, {6, 4, 3, 3}, {.dilations = {2, 3}, .pads_begin = {2, 3}, .pads_end = {2, 3}}, true},
      {{1, 4, 15, 15}, {6, 4, 2, 2}, {.strides = {3, 4}}},  // stride above the window
      {{1, 4, 5, 5}, {6, 4, 5, 5}},                         // one place
      {{1, 4, 5, 5}, {6, 4, 3, 3}, {.strides = {7, 7}, .pads_begin = {4, 4}, .pads_end = {4, 4}}},
      {{1, 2, 3, 3}, {2, 2, 3, 3}, {.pads_begin = {5, 5}, .pads_end = {5, 5}}},  // places with pads alone
      {{1, 32, 10, 10}, {32, 8, 3, 3}, {.groups = 4, .pads_begin = {1, 1}, .pads_end = {1, 1}}, true},
      {{1, 12, 9, 20}, {24, 2, 3, 3}, {.groups = 6, .strides = {2, 2}, .pads_begin = {1, 1}, .pads_end = {1, 1}}},
      {{1, 20, 9, 9}, {30, 4, 1, 1}, {.groups = 5}, true},
      {{2, 24, 13, 13}, {24, 1, 3, 3}, {.groups = 24, .pads_begin = {1, 1}, .pads_end = {1, 1}}, true},  // depthwise
      {{1, 16, 15, 40}, {16, 1, 5, 5}, {.groups = 16, .strides = {2, 2}, .pads_begin = {2, 2}, .pads_end = {2, 2}}},
      {{1, 6, 11, 11},
       {12, 1, 3, 3},
       {.groups = 6, .dilations = {2, 2}, .pads_begin = {2, 2}, .pads_end = {2, 2}},
       true},
      {{1, 5, 40}, {7, 5, 3}, {.pads_begin = {1}, .pads_end = {1}}, true},  // rank 1
      {{1, 9, 8}, {4, 9, 2}, {.strides = {3}, .pads_begin = {2}}, true},    // no window touches the last columns
      {{1, 16, 3, 13}, {8, 16, 1, 3}, {.strides = {1, 5}, .pads_begin = {0, 4}}, true},
      {{1, 17, 5, 9}, {17, 17, 5, 1}, {.strides = {1, 2}, .pads_end = {4, 0}}},  // large pads on one side of the rows
      {{2, 32, 1, 7, 6}, {48, 32, 1, 4, 2}, {.strides = {1, 1, 2}, .pads_end = {0, 1, 0}}},  // a window of depth 1
      {{2, 6, 33}, {6, 1, 5}, {.groups = 6, .strides = {2}, .pads_begin = {2}, .pads_end = {1}}},
      {{1, 4, 3, 9, 9}, {8, 4, 3, 3, 3}, {.pads_begin = {1, 1, 1}, .pads_end = {1, 1, 1}}, true},  // rank 3
      {{1, 4, 4, 8, 8}, {8, 4, 3, 3, 3}, {.strides = {2, 2, 2}, .pads_begin = {1, 1, 1}, .pads_end = {1, 1, 1}}},
      {{1, 8, 3, 6, 6}, {4, 8, 1, 1, 1}},
      {{1, 8, 4, 7, 7}, {8, 1, 3, 3, 3}, {.groups = 8, .pads_begin = {1, 1, 1}, .pads_end = {1, 1, 1}}, true},
      {{1, 8, 4, 7, 7}, {6, 8, 1, 1, 1}, {.strides = {2, 2, 2}}},
      {{1, 64, 7, 6}, {16, 64, 1, 1}},              // three tiles of 14 places
      {{1, 300, 7, 7}, {40, 300, 1, 1}, {}, true},  // deep, few places
      {{1, 70, 14, 14}, {36, 70, 3, 3}, {.pads_begin = {1, 1}, .pads_end = {1, 1}}, true},
      {{1, 64, 40, 56}, {20, 64, 3, 3}, {.pads_begin = {1, 1}, .pads_end = {1, 1}}},  // several tiles
      {{1, 8, 100, 100}, {16, 8, 1, 1}, {}, true},
      {{0, 4, 8, 8}, {6, 4, 3, 3}},                                                             // no images
      {{1, 0, 4, 4}, {6, 0, 3, 3}, {}, true},                                                   // no channels
      {{1, 4, 4, 4}, {0, 4, 1, 1}},                                                             // no filters
      {{1, 8, 12, 12}, {8, 8, 3, 3}, {.pads_begin = {1, 1}, .pads_end = {1, 1}}, true, false},  // computed weights
      {{1, 8, 12, 12}, {8, 8, 1, 1}, {}, true, false},
      {{1, 8, 12, 12}, {8, 1, 3, 3}, {.groups = 8, .pads_begin = {1, 1}, .pads_end = {1, 1}}, true, false},
  };
}

inline conv_case random_conv(data_source& data) {
  conv_case c;
  const auto rank = static_cast<std::size_t>(data.number(1, 3));
  const std::int64_t groups = data.chance(0.5) ? 1 : data.number(2, 5);
  const bool depthwise = groups > 1 && data.chance(0.4);
  const std::int64_t in = depthwise ? 1 : data.number(1, 9);
  c.x = {data.number(1, 2), groups * in};
  c.w = {groups * data.number(1, depthwise ? 2 : 9), in};
  c.attributes.groups = groups;
  for (std::size_t d = 0; d < rank; ++d) {
    const std::int64_t window = data.number(1, 4);
    const std::int64_t dilation = data.chance(0.3) ? data.number(2, 3) : 1;
    const std::int64_t reach = dilation * (window - 1) + 1;
    c.w.push_back(window);
    c.attributes.dilations.push_back(dilation);
    c.attributes.strides.push_back(data.chance(0.5) ? 1 : data.number(1, 5));
    c.attributes.pads_begin.push_back(data.chance(0.5) ? 0 : data.number(0, reach));
    c.attributes.pads_end.push_back(data.chance(0.5) ? 0 : data.number(0, reach));
    const std::int64_t pads = c.attributes.pads_begin.end()[-1] + c.attributes.pads_end.end()[-1];
    c.x.push_back(std::max(data.number(1, rank == 3 ? 9 : 24), reach - pads));
  }
  c.bias = data.chance(0.5);
  c.constant_weights = data.chance(0.7);
  return c;
}

struct matmul_case {
  shape a, b;
  op::matmul_attributes attributes{};
  bool constant_b = true;
};

inline value add_matmul(graph_builder& g, data_source& data, const matmul_case& c) {
  const value a = g.input("a", f32(c.a));
  const value b = c.constant_b ? data.constant(g, "b", f32(c.b)) : g.input("b", f32(c.b));
  return g(op::matmul, a, b, c.attributes);
}

inline std::vector<matmul_case> matmul_cases() {
  return {
      {{5, 7}, {7, 9}},
      {{128, 64}, {64, 96}},
      {{1, 33, 50}, {50, 130}},
      {{33, 50}, {130, 50}, {.transpose_b = true}},
      {{50, 33}, {50, 130}, {.transpose_a = true}, false},
      {{50, 33}, {130, 50}, {.transpose_a = true, .transpose_b = true}},
      {{1, 100}, {100, 300}},  // one row
      {{1, 100}, {300, 100}, {.transpose_b = true}},
      {{100, 1}, {100, 300}, {.transpose_a = true}},
      {{300, 100}, {100, 1}},  // one column
      {{300, 100}, {1, 100}, {.transpose_b = true}},
      {{100, 300}, {100, 1}, {.transpose_a = true}, false},
      {{300, 1}, {1, 40}},  // depth 1
      {{1, 1}, {1, 1}},
      {{70}, {70, 33}},  // rank 1
      {{33, 70}, {70}},
      {{70}, {70}},
      {{2, 5, 70}, {70}, {}, false},
      {{70}, {3, 70, 8}, {}, false},
      {{70}, {3, 8, 70}, {.transpose_b = true}, false},
      {{2, 12, 16, 8}, {2, 12, 8, 24}, {}, false},  // batches
      {{2, 3, 16, 8}, {2, 3, 24, 8}, {.transpose_b = true}, false},
      {{2, 3, 8, 16}, {2, 3, 24, 8}, {.transpose_a = true, .transpose_b = true}, false},
      {{4, 1, 6, 8}, {5, 8, 7}, {}, false},  // broadcast batches
      {{1, 5, 6, 8}, {4, 1, 8, 7}},
      {{3, 6, 8}, {1, 8, 7}},
      {{3, 8, 6}, {8, 7}, {.transpose_a = true}},
      {{6, 8}, {3, 8, 7}, {}, false},
      {{17, 700}, {700, 50}},  // deeper than a block
      {{3, 700}, {700, 50}, {}, false},
      {{0, 8}, {8, 7}},  // empty extents
      {{6, 0}, {0, 7}},
      {{6, 8}, {8, 0}},
      {{0, 6, 8}, {8, 7}},
  };
}

inline matmul_case random_matmul(data_source& data) {
  matmul_case c;
  const std::int64_t m = data.number(1, 70);
  const std::int64_t n = data.number(1, 70);
  const std::int64_t k = data.number(1, 300);
  c.attributes = {.transpose_a = data.chance(0.3), .transpose_b = data.chance(0.3)};
  const std::int64_t batches = data.number(0, 2);
  for (std::int64_t i = 0; i < batches; ++i) {
    const std::int64_t extent = data.number(1, 3);
    c.a.push_back(data.chance(0.3) ? 1 : extent);
    if (!c.b.empty() || data.chance(0.6)) c.b.push_back(data.chance(0.3) ? 1 : extent);
  }
  c.a.push_back(c.attributes.transpose_a ? k : m);
  c.a.push_back(c.attributes.transpose_a ? m : k);
  c.b.push_back(c.attributes.transpose_b ? n : k);
  c.b.push_back(c.attributes.transpose_b ? k : n);
  c.constant_b = data.chance(0.5);
  return c;
}

/// What follows a convolution or a product in a test.
inline value as_it_is(graph_builder&, data_source&, value x) { return x; }
inline value clipped(graph_builder& g, data_source&, value x) {
  return g(op::clip, x, g.scalar("low", -0.25), g.scalar("high", 0.5));
}
/// One operator without attributes.
template <class Kind>
auto apply(const Kind& kind) {
  return [kind](graph_builder& g, data_source&, value x) { return g(kind, x); };
}

/// Convolutions and products, ordinary, awkward and `random` random ones, each followed by `then(g, data, x)`; some of them with
/// sanitizers.
template <class Checker, class Then>
void check_convs(Checker& check, const Then& then, const check_options& options = {}, int random = 0) {
  std::vector<conv_case> cases = conv_cases();
  for (int i = 0; i < random; ++i) cases.push_back(random_conv(check.data()));
  some_cases takes;
  for (conv_case& c : cases) {
    if (!takes()) continue;
    // Whether an infinite weight meets the zeros of the padding or is left out there is nobody's promise.
    if (options.range.specials > 0) c.constant_weights = true;
    check([&](graph_builder& g, data_source& data) { return then(g, data, add_conv(g, data, c)); }, options);
  }
}
template <class Checker, class Then>
void check_matmuls(Checker& check, const Then& then, const check_options& options = {}, int random = 0,
                   some_cases takes = some_cases()) {
  std::vector<matmul_case> cases = matmul_cases();
  for (int i = 0; i < random; ++i) cases.push_back(random_matmul(check.data()));
  for (const matmul_case& c : cases)
    if (takes())
      check([&](graph_builder& g, data_source& data) { return then(g, data, add_matmul(g, data, c)); }, options);
}

/// A product of integers, which no kernel takes.
template <class Checker>
void expect_integers_refused(Checker& check, const check_options& options) {
  graph_builder integers;
  integers.output("out", integers(op::matmul, integers.input("a", i64({3, 4})), integers.input("b", i64({4, 5}))));
  check.check(integers.finish(), options);
  EXPECT_EQ(check.refused("matmul"), 1U);
}

}  // namespace collage_test
