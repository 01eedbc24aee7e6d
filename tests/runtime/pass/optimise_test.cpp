// All passes together.
#include <gtest/gtest.h>

#include <collage/collage.hpp>
#include <collage/graph/graph.hpp>
#include <collage/pass/optimise.hpp>
#include <collage/zoo/all.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "testing.hpp"

namespace pass_optimise_test {

using namespace collage_test;

/// A normalised convolution as an exporter may leave it: the factors are computed, the layout is turned and turned
/// back, two branches are the same.
c::graph careless_network() {
  c::graph_builder g;
  const auto constant = [&g](const char* name, const c::shape& dims, c::uniform range) {
    return g.constant(name, {c::dtype::f32, dims}, range);
  };
  const c::value x = g.input("x", {c::dtype::f32, {1, 4, 6, 6}});
  const c::value w = constant("w", {8, 4, 3, 3}, {-1, 1});
  const c::value deviation = g(op::sqrt, g(op::add, constant("variance", {8}, {0.5F, 2}), g.scalar("epsilon", 1e-5)));
  const c::value scale = g(op::reshape, g(op::div, constant("gamma", {8}, {0.5F, 2}), deviation), {.dims = {8, 1, 1}});
  const c::value shift = constant("beta", {8, 1, 1}, {-1, 1});
  const auto branch = [&] {
    c::value y = g(op::conv, x, w);
    y = g(op::transpose, g(op::mul, y, scale), {.permutation = {0, 2, 3, 1}});
    y = g(op::transpose, y, {.permutation = {0, 3, 1, 2}});
    return g(op::relu, g(op::add, y, shift));
  };
  const c::value first = branch(), second = branch();
  g(op::exp, first);
  g.output("y", g(op::add, first, second));
  c::graph made = g.finish();
  c::fill_constants(made);
  return made;
}

TEST(optimise, each_pass_does_its_part) {
  const c::graph before = careless_network();
  c::optimise_report report;
  const c::graph after = c::optimise(before, &report);
  expect_same_results(before, after, 2e-5);
  names kinds;
  for (const c::node_record& n : after.nodes()) kinds.emplace_back(n.kind->name);
  EXPECT_EQ(kinds, (names{"conv", "relu", "add"}));
  EXPECT_EQ(
      to_string(report),
      "18 nodes became 3: remove_dead 1, fold_constants 4, cancel_movement 4, fold_scales 4, remove_duplicates 2");
  EXPECT_EQ(report.rounds, 2U);
  EXPECT_EQ(c::optimise(after, &report).fingerprint(), after.fingerprint());
  EXPECT_EQ(to_string(report), "3 nodes became 3");
}

TEST(optimise, passes_that_make_work_for_each_other) {
  // The convolution is read once, and can be scaled, only when the two factors behind it are one.
  c::graph_builder g;
  const c::value x = g.input("x", {c::dtype::f32, {1, 2, 5}});
  const c::value y = g(op::conv, x, g.constant("w", {c::dtype::f32, {3, 2, 3}}, c::uniform{-1, 1}));
  const c::value a = g(op::mul, y, g.scalar("half", 0.5)), b = g(op::mul, y, g.scalar("half again", 0.5));
  g.output("y", g(op::sub, g(op::exp, a), b));
  c::graph before = g.finish();
  c::fill_constants(before);
  c::optimise_report report;
  const c::graph after = c::optimise(before, &report);
  expect_same_results(before, after, 1e-6);
  EXPECT_EQ(node_names(after), (names{"mul_1", "exp_3", "sub_4"}));
  EXPECT_EQ(report.rounds, 3U);
}

TEST(optimise, graphs_without_nodes) {
  c::graph_builder g;
  g.input("unread", {c::dtype::f32, {2}});
  g.output("y", g.input("x", {c::dtype::f32, {2}}));
  const c::graph before = g.finish();
  EXPECT_EQ(c::optimise(before).fingerprint(), before.fingerprint());
}

TEST(optimise, random_graphs) {
  const std::uint64_t seed = seed_or(51);
  SCOPED_TRACE("COLLAGE_SEED=" + std::to_string(seed));
  generator random(seed);
  for (int round = 0; round < 100; ++round) {
    c::graph before = random_graph(random, {.inputs = 2, .constants = 4, .nodes = 25});
    c::fill_constants(before);
    const c::graph after = c::optimise(before);
    expect_same_results(before, after, 1e-3);
    EXPECT_EQ(c::optimise(after).fingerprint(), after.fingerprint());
  }
}

TEST(optimise, the_zoo_has_nothing_to_lose) {
  for (const char* name : {"resnext50-paper", "bert-paper"}) {
    c::graph_builder g;
    c::zoo::build(name, g);
    const c::graph before = g.finish();
    EXPECT_EQ(c::optimise(before).fingerprint(), before.fingerprint()) << name;
  }
}

}  // namespace pass_optimise_test
