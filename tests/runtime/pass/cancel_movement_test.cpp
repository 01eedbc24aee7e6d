// The pass that removes movements which do nothing or undo each other.
#include <gtest/gtest.h>

#include <algorithm>
#include <collage/collage.hpp>
#include <collage/graph/graph.hpp>
#include <collage/pass/cancel_movement.hpp>
#include <collage/pass/remove_dead.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "testing.hpp"

namespace pass_cancel_movement_test {

using namespace collage_test;

c::graph cancelled(const c::graph& before) {
  const c::graph after = c::remove_dead(c::cancel_movement(before));
  expect_same_results(before, after);
  EXPECT_EQ(c::cancel_movement(after).fingerprint(), after.fingerprint()) << "a fixed point";
  return after;
}

/// A network of one input [1, 2, 3, 4] whose output `build` makes.
template <class Build>
c::graph over_input(const Build& build, const c::shape& dims = {1, 2, 3, 4}) {
  c::graph_builder g;
  g.output("y", build(g, g.input("x", {c::dtype::f32, dims})));
  return g.finish();
}

TEST(cancel_movement, reshape_of_reshape) {
  const c::graph after = cancelled(over_input([](c::graph_builder& g, c::value x) {
    x = g(op::reshape, x, {.dims = {2, -1}});
    x = g(op::reshape, x, {.dims = {4, 6}});
    return g(op::reshape, x, {.dims = {0, 2, 3}});
  }));
  EXPECT_EQ(node_names(after), names{"reshape_2"});
  EXPECT_EQ(after.type_of(after.outputs()[0]).dims, (c::shape{4, 2, 3}));
}

TEST(cancel_movement, what_needs_no_change_keeps_its_record) {
  const c::graph before = over_input([](c::graph_builder& g, c::value x) {
    return g(op::transpose, g(op::reshape, x, {.dims = {0, 6, -1}}), {.permutation = {2, 0, 1}});
  });
  EXPECT_EQ(c::cancel_movement(before).fingerprint(), before.fingerprint());
}

TEST(cancel_movement, there_and_back_is_nothing) {
  const c::graph after = cancelled(over_input([](c::graph_builder& g, c::value x) {
    return g(op::reshape, g(op::reshape, x, {.dims = {24}}), {.dims = {1, 2, 3, 4}});
  }));
  EXPECT_TRUE(after.nodes().empty());
  EXPECT_EQ(after.outputs()[0], after.inputs()[0]) << "the output is the input";
  EXPECT_EQ(after.output_name(0), "y");
}

TEST(cancel_movement, what_is_read_in_between_stays) {
  c::graph_builder g;
  const c::value x = g.input("x", {c::dtype::f32, {2, 3}});
  const c::value flat = g(op::reshape, x, {.dims = {6}}), turned = g(op::transpose, x);
  g.output("flat", g(op::relu, flat));
  g.output("square", g(op::reshape, flat, {.dims = {3, 2}}));
  g.output("turned", turned);
  g.output("back", g(op::transpose, turned));
  const c::graph after = cancelled(g.finish());
  EXPECT_EQ(kinds(after), (names{"reshape", "transpose", "relu", "reshape"}));
  EXPECT_EQ(after.outputs()[3], after.inputs()[0]);
}

TEST(cancel_movement, transpose_of_transpose) {
  const c::graph after = cancelled(over_input([](c::graph_builder& g, c::value x) {
    x = g(op::transpose, x, {.permutation = {3, 1, 2, 0}});
    return g(op::transpose, x, {.permutation = {1, 0, 3, 2}});
  }));
  EXPECT_EQ(kinds(after), names{"transpose"});
  EXPECT_EQ(c::from_words<op::transpose_attributes>(after.view().words_of(0)).permutation, (c::shape{1, 3, 0, 2}));
}

TEST(cancel_movement, three_transposes_that_are_none) {
  EXPECT_TRUE(cancelled(over_input(
                            [](c::graph_builder& g, c::value x) {
                              for (int i = 0; i < 3; ++i) x = g(op::transpose, x, {.permutation = {1, 2, 0}});
                              return x;
                            },
                            {2, 3, 4}))
                  .nodes()
                  .empty());
}

TEST(cancel_movement, moving_dimensions_of_one_element_is_a_reshape) {
  const c::graph after = cancelled(over_input([](c::graph_builder& g, c::value x) {
    x = g(op::transpose, x, {.permutation = {1, 2, 0, 3}});
    x = g(op::reshape, x, {.dims = {6, 4}});
    return g(op::relu, x);
  }));
  EXPECT_EQ(kinds(after), (names{"reshape", "relu"}));
  EXPECT_EQ(node_names(after), (names{"reshape_1", "relu_2"}));
  EXPECT_EQ(kinds(cancelled(over_input(
                [](c::graph_builder& g, c::value x) { return g(op::transpose, x, {.permutation = {0, 1, 2, 3}}); }))),
            names{});
}

TEST(cancel_movement, empty_tensors) {
  const c::graph after = cancelled(over_input(
      [](c::graph_builder& g, c::value x) {
        x = g(op::reshape, x, {.dims = {3, 0, 5}, .allow_zero = true});
        return g(op::reshape, x, {.dims = {0, 7}, .allow_zero = true});
      },
      {2, 0}));
  EXPECT_EQ(kinds(after), names{"reshape"});
  EXPECT_EQ(after.type_of(after.outputs()[0]).dims, (c::shape{0, 7}));
}

TEST(cancel_movement, nodes_that_keep_everything) {
  using build = c::value (*)(c::graph_builder&, c::value);
  const build nothing[] = {
      [](c::graph_builder& g, c::value x) {
        return g(op::slice, x, {.starts = {0, 0}, .steps = {1, 1}, .extents = {2, 3}});
      },
      [](c::graph_builder& g, c::value x) { return g(op::expand, x, {.dims = {1, 3}}); },
      [](c::graph_builder& g, c::value x) { return g(op::tile, x, {.repeats = {1, 1}}); },
      [](c::graph_builder& g, c::value x) { return g(op::pad, x, {.pads_begin = {0, 0}, .pads_end = {0, 0}}); },
      [](c::graph_builder& g, c::value x) { return g(op::cast, x, {.to = c::dtype::f32}); },
      [](c::graph_builder& g, c::value x) { return g(op::concat, {x}, {.axis = 1}); }};
  for (const build b : nothing) EXPECT_TRUE(cancelled(over_input(b, {2, 3})).nodes().empty());
  const build something[] = {
      [](c::graph_builder& g, c::value x) {
        return g(op::slice, x, {.starts = {1, 0}, .steps = {-1, 1}, .extents = {2, 3}});
      },
      [](c::graph_builder& g, c::value x) { return g(op::expand, x, {.dims = {1, 2, 3}}); },
      [](c::graph_builder& g, c::value x) { return g(op::tile, x, {.repeats = {1, 2}}); },
      [](c::graph_builder& g, c::value x) { return g(op::pad, x, {.pads_begin = {0, -1}, .pads_end = {0, 1}}); },
      [](c::graph_builder& g, c::value x) { return g(op::cast, x, {.to = c::dtype::f64}); },
      [](c::graph_builder& g, c::value x) { return g(op::concat, {x, x}, {.axis = 1}); }};
  for (const build b : something) EXPECT_EQ(cancelled(over_input(b, {2, 3})).nodes().size(), 1U);
}

TEST(cancel_movement, transposes_around_elementwise_nodes) {
  c::graph before = over_input([](c::graph_builder& g, c::value x) {
    c::value y = g(op::transpose, x, {.permutation = {0, 2, 3, 1}});
    y = g(op::add, y, g.constant("bias", {c::dtype::f32, {2}}, c::uniform{-1, 1}));
    y = g(op::mul, y, g(op::sigmoid, y));
    const c::value other = g(op::transpose, g(op::exp, x), {.permutation = {0, 2, 3, 1}});
    y = g(op::cast, g(op::mul, y, other), {.to = c::dtype::f32});
    y = g(op::max, g.scalar("low", -0.5), y);
    return g(op::transpose, y, {.permutation = {0, 3, 1, 2}});
  });
  c::fill_constants(before);
  const c::graph after = cancelled(before);
  EXPECT_EQ(node_names(after), (names{"add_1", "sigmoid_2", "mul_3", "exp_4", "mul_6", "max_8"}));
  EXPECT_EQ(after.constant(find(after, "bias_1")).bytes, before.constant(find(before, "bias")).bytes);
  EXPECT_EQ(after.type_of(find(after, "bias_1")).dims, (c::shape{1, 2, 1, 1}));
}

TEST(cancel_movement, transposes_that_elementwise_nodes_need) {
  // The result is read twice; a constant has an order, or is not loaded; one operand is not transposed; softmax has an
  // axis; the permutations differ.
  using build = c::value (*)(c::graph_builder&, c::value);
  const build cases[] = {
      [](c::graph_builder& g, c::value x) {
        const c::value y = g(op::relu, g(op::transpose, x));
        g.output("z", g(op::reduce_sum, y, {.axes = {0}}));
        return g(op::transpose, y);
      },
      [](c::graph_builder& g, c::value x) {
        const c::value w = g.constant("w", {c::dtype::f32, {3, 2}}, bytes_of<float>({1, 2, 3, 4, 5, 6}));
        return g(op::transpose, g(op::add, g(op::transpose, x), w));
      },
      [](c::graph_builder& g, c::value x) {
        const c::value bias = g.constant("bias", {c::dtype::f32, {2}}, c::uniform{-1, 1});
        return g(op::transpose, g(op::add, g(op::transpose, x), bias));
      },
      [](c::graph_builder& g, c::value x) {
        return g(op::transpose, g(op::add, g(op::transpose, x), g(op::softmax, g(op::transpose, x))));
      },
      [](c::graph_builder& g, c::value x) {
        return g(op::transpose, g(op::softmax, g(op::transpose, x), {.axis = 0}));
      }};
  std::vector<c::graph> graphs;
  for (const build b : cases) graphs.push_back(over_input(b, {2, 3}));
  graphs.push_back(over_input(
      [](c::graph_builder& g, c::value x) {
        const c::value y = g(op::relu, g(op::transpose, x, {.permutation = {1, 2, 0}}));
        return g(op::transpose, y, {.permutation = {1, 2, 0}});
      },
      {2, 3, 4}));
  for (const c::graph& before : graphs) EXPECT_EQ(c::cancel_movement(before).fingerprint(), before.fingerprint());
}

TEST(cancel_movement, sub_graphs) {
  c::graph_builder body;
  const c::value inner = body.input("x", {c::dtype::f32, {2, 3}});
  body.output("y", body(op::transpose, body(op::transpose, inner)));
  const auto made = std::make_shared<const c::graph>(body.finish());
  c::graph_builder g;
  const c::value condition = g.constant("condition", {c::dtype::boolean, {}}, bytes_of<std::uint8_t>({1}));
  const std::shared_ptr<const c::graph> bodies[] = {made, made};
  const c::value operands[] = {condition, g.input("x", {c::dtype::f32, {2, 3}})};
  g.output("y", g.add(c::kind_of<decltype(op::branch)>, operands, {}, "branch", bodies));
  const c::graph after = cancelled(g.finish());
  EXPECT_TRUE(after.bodies_of(0)[0]->nodes().empty());
}

/// Movements and elementwise nodes over tensors of 24 elements.
c::graph random_movements(generator& random) {
  c::graph_builder g;
  const c::shape shapes[] = {{24}, {4, 6}, {2, 3, 4}, {1, 2, 12}, {2, 3, 1, 4}, {3, 1, 8, 1}, {1, 24, 1, 1}};
  std::vector<c::value> values = {g.input("x", {c::dtype::f32, {2, 3, 4}})};
  for (int n = 0; n < 15; ++n) {
    const c::value x = values[values.size() - 1 - pick(random, std::min<std::size_t>(3, values.size()))];
    const std::size_t rank = g.type_of(x).rank();
    c::shape permutation;
    for (std::size_t i = 0; i < rank; ++i) permutation.push_back(static_cast<std::int64_t>(i));
    std::shuffle(permutation.extent, permutation.extent + rank, random);
    switch (pick(random, 5)) {
      case 0: values.push_back(g(op::reshape, x, {.dims = shapes[pick(random, 7)]})); break;
      case 1: values.push_back(g(op::relu, x)); break;
      case 2: values.push_back(g(op::add, x, x)); break;
      case 3:
        values.push_back(
            g(op::transpose, g(op::transpose, x, {.permutation = permutation}), {.permutation = permutation}));
        break;
      default: values.push_back(g(op::transpose, x, {.permutation = permutation})); break;
    }
  }
  g.output("y", values.back());
  g.output("z", values[pick(random, values.size())]);
  return g.finish();
}

TEST(cancel_movement, random_movements) {
  const std::uint64_t seed = seed_or(41);
  SCOPED_TRACE("COLLAGE_SEED=" + std::to_string(seed));
  generator random(seed);
  std::size_t gone = 0;
  for (int round = 0; round < 300; ++round) {
    SCOPED_TRACE(round);
    const c::graph before = c::remove_dead(random_movements(random));
    // Regions between transposes appear as others go.
    c::graph after = before;
    for (std::size_t count = 0; count != after.nodes().size();) {
      count = after.nodes().size();
      after = c::remove_dead(c::cancel_movement(after));
      expect_same_results(before, after);
    }
    gone += before.nodes().size() - after.nodes().size();
  }
  EXPECT_GT(gone, 300U);
}

}  // namespace pass_cancel_movement_test
