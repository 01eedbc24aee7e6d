// The backend of generated kernels, for attention. Where this build is without it there is nothing to test.
#ifdef COLLAGE_HAS_JIT
#include "cases.hpp"
#include "support/effort.hpp"
#include "support/placing.hpp"

#include <collage/backends/jit.hpp>
#include <collage/backends/portable.hpp>
#include <collage/place.hpp>
#include <collage/place/candidates.hpp>
#include <collage/run/verify.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace backends_jit_attention_test {

using namespace collage_test;

struct attention_case {
  std::int64_t batch = 1, heads = 1, queries = 1, keys = 1, size = 1, width = 1;
  int dimensions = 4;             ///< 2 has neither batch nor heads, 3 has both in one
  bool has_heads_inside = false;  ///< tensors are [batch, tokens, heads, size], and transposes move the heads
  bool is_result_turned = false;  ///< a transpose moves them back
  bool transposes_keys = true;    ///< by an attribute of the product, else by a transpose
  int scale = 0;                  ///< nothing, a product or a quotient
  /// Nothing, one number for each key, for each query and key, and for each head, too; for each batch and key, and for each query, too.
  int mask = 0;
  bool is_mask_first = false, is_mask_constant = false;
  bool has_turned_values = false;  ///< they lie as [width, keys], and the product transposes them
  collage::dtype type = collage::dtype::f32;

  shape with_batches(std::int64_t rows, std::int64_t columns) const {
    if (dimensions == 2) return {rows, columns};
    if (dimensions == 3) return {batch * heads, rows, columns};
    return {batch, heads, rows, columns};
  }
};

/// An operand [tokens x columns] of each head, or its transpose.
value heads_of(graph_builder& g, const attention_case& c, const char* name, std::int64_t tokens, std::int64_t columns,
               bool is_turned) {
  if (c.has_heads_inside && c.dimensions == 4) {
    const value x = g.input(name, {c.type, {c.batch, tokens, c.heads, columns}});
    return g(op::transpose, x, {.permutation = is_turned ? shape{0, 2, 3, 1} : shape{0, 2, 1, 3}});
  }
  const value x = g.input(name, {c.type, c.with_batches(tokens, columns)});
  if (!is_turned) return x;
  return g(op::transpose, x,
           {.permutation = c.dimensions == 2   ? shape{1, 0}
                           : c.dimensions == 3 ? shape{0, 2, 1}
                                               : shape{0, 1, 3, 2}});
}

shape mask_shape(const attention_case& c) {
  const bool has_batches = c.dimensions == 4;
  switch (c.mask) {
    case 1: return {c.keys};
    case 2: return {c.queries, c.keys};
    case 3: return c.with_batches(c.queries, c.keys);
    case 4: return has_batches ? shape{c.batch, 1, 1, c.keys} : shape{1, c.keys};
    default: return has_batches ? shape{c.batch, 1, c.queries, c.keys} : shape{c.queries, c.keys};
  }
}

value attention(graph_builder& g, data_source& data, const attention_case& c) {
  const value q = heads_of(g, c, "q", c.queries, c.size, false);
  const value k = heads_of(g, c, "k", c.keys, c.size, !c.transposes_keys);
  value x = g(op::matmul, q, k, {.transpose_b = c.transposes_keys});
  if (c.scale == 1) x = g(op::mul, g.scalar("scale", 0.25), x);
  if (c.scale == 2) x = g(op::div, x, g.scalar("scale", 8));
  if (c.mask != 0) {
    const value mask = c.is_mask_constant ? data.constant(g, "mask", {c.type, mask_shape(c)})
                                          : g.input("mask", {c.type, mask_shape(c)});
    x = c.is_mask_first ? g(op::add, mask, x) : g(op::add, x, mask);
  }
  const value v = heads_of(g, c, "v", c.keys, c.width, c.has_turned_values);
  x = g(op::matmul, g(op::softmax, x), v, {.transpose_b = c.has_turned_values});
  if (c.is_result_turned && c.dimensions == 4) x = g(op::transpose, x, {.permutation = {0, 2, 1, 3}});
  return x;
}

attention_case random_case(data_source& data) {
  const auto extent = [&](std::int64_t most) {
    constexpr std::int64_t awkward[] = {1, 2, 7, 16, 17, 33};
    return data.chance(0.4) ? awkward[data.number(0, 5)] : data.number(1, most);
  };
  attention_case c;
  c.batch = data.number(1, 3);
  c.heads = data.number(1, 4);
  c.queries = extent(50), c.keys = extent(80), c.size = extent(64), c.width = extent(64);
  c.dimensions = static_cast<int>(data.chance(0.6) ? 4 : data.number(2, 3));
  c.has_heads_inside = data.chance(0.6);
  c.is_result_turned = data.chance(0.6);
  c.transposes_keys = data.chance(0.5);
  c.scale = static_cast<int>(data.number(0, 2));
  c.mask = static_cast<int>(data.number(0, 5));
  c.is_mask_first = data.chance(0.5);
  c.is_mask_constant = data.chance(0.3);
  c.has_turned_values = data.chance(0.3);
  return c;
}

void check_attention(int count, const check_options& options) {
  backend_checker<collage::jit> check;
  for (int i = 0; i < count; ++i)
    check([](graph_builder& g, data_source& data) { return attention(g, data, random_case(data)); }, options);
  EXPECT_GE(check.checked("attention"), static_cast<std::size_t>(count));  // and what is before a last transpose
  EXPECT_EQ(check.allocations_while_running(), 0U);
}
check_options partly_covered() {
  check_options options;
  options.must_cover = false;
  return options;
}
TEST(jit_attention_backend, random_networks) { check_attention(cases(40), partly_covered()); }
TEST(jit_attention_backend_long, random_networks) { check_attention(400, partly_covered()); }

TEST(jit_attention_backend, nan_and_infinity_pass) {
  check_options options = partly_covered();
  options.range.specials = 0.01;
  check_attention(cases(15), options);
}

TEST(jit_attention_backend, places_and_runs_whole_blocks) {
  using set = collage::backend_set<collage::jit, collage::portable>;
  graph_builder g;
  data_source data;
  g.output("y", attention(g, data,
                          {.batch = 1,
                           .heads = 4,
                           .queries = 30,
                           .keys = 30,
                           .size = 16,
                           .width = 16,
                           .has_heads_inside = true,
                           .is_result_turned = true,
                           .transposes_keys = false,
                           .scale = 2,
                           .mask = 1}));
  const collage::graph network = g.finish();
  collage::place_options options = quick_options();
  options.costs = collage::placing_costs::none;  // by the order of the set: the backend takes what it can
  const collage::plan made = collage::place<set>(network, options);
  ASSERT_EQ(made.chosen.groups.size(), 1U);
  EXPECT_EQ(made.chosen.groups[0].pattern(), "attention");
  EXPECT_TRUE(made.chosen.groups[0].kernel.starts_with("attention, ")) << made.chosen.groups[0].kernel;
  for (const collage::plan& p : {made, collage::plan(collage::place<set>(network, quick_options()))})
    for (const collage::verified_placement& each : collage::verify<set>(network, p).placements)
      EXPECT_TRUE(each.passed()) << each.name << each.why();
}

/// The reasons why matches of the pattern are refused.
std::string verdict_of(const std::function<value(graph_builder&)>& build) {
  graph_builder g;
  g.output("y", build(g));
  const collage::graph network = g.finish();
  const collage::pattern_entry& pattern = pattern_called<collage::jit>("attention");
  for (auto node = static_cast<std::uint32_t>(network.nodes().size()); node-- > 0;) {
    collage::match_record record;
    if (!collage::match_at(network.view(), pattern.nodes, node, record)) continue;
    const collage::verdict v = pattern.accepts(network.view(), record);
    return v ? "" : v.rule;
  }
  return "no match";
}

TEST(jit_attention_matches, are_refused_with_a_reason) {
  const auto with = [](const auto& change) {
    return verdict_of([&](graph_builder& g) {
      attention_case c{.batch = 2, .heads = 3, .queries = 5, .keys = 7, .size = 4, .width = 6};
      change(c);
      data_source data;
      return attention(g, data, c);
    });
  };
  EXPECT_EQ(with([](attention_case&) {}), "");
  EXPECT_EQ(with([](attention_case& c) { c.type = collage::dtype::f64; }), "it computes float32 only");
  EXPECT_EQ(with([](attention_case& c) { c.keys = 0; }), "attention's extents must be from 1 to 2147483647");
  const auto of = [](const shape& q, const shape& k, const shape& v, const shape& mask, std::int64_t axis) {
    return verdict_of([&](graph_builder& g) {
      value x = g(op::matmul, g.input("q", f32(q)), g.input("k", f32(k)));
      if (!mask.empty()) x = g(op::add, x, g.input("mask", f32(mask)));
      return g(op::matmul, g(op::softmax, x, {.axis = axis}), g.input("v", f32(v)));
    });
  };
  EXPECT_EQ(of({2, 5, 4}, {2, 4, 7}, {2, 7, 6}, {}, -1), "");
  EXPECT_EQ(of({2, 5, 4}, {2, 4, 7}, {2, 7, 6}, {}, 1), "attention's softmax must be over the keys");
  EXPECT_EQ(of({2, 5, 4}, {1, 4, 7}, {2, 7, 6}, {}, -1),
            "attention's queries, keys and values must have the same batches and heads");
  EXPECT_EQ(of({2, 5, 4}, {4, 7}, {2, 7, 6}, {}, -1),
            "attention's queries, keys and values must have the same rank, from 2 to 4");
  EXPECT_EQ(of({2, 5, 4}, {2, 4, 7}, {2, 7, 6}, {5, 1}, -1),
            "what is added to attention's scores must have one number for each key");
  EXPECT_EQ(verdict_of([](graph_builder& g) {
              const value x = g(op::matmul, g.input("q", f32({2, 5, 4})), g.input("k", f32({2, 4, 5})));
              return g(op::matmul, g(op::softmax, x), g.input("v", f32({2, 5, 6})), {.transpose_a = true});
            }),
            "attention's softmax must be multiplied as it is, and not its transpose");
  EXPECT_EQ(verdict_of([](graph_builder& g) {
              const value x = g(op::matmul, g.input("q", f32({5, 4})), g.input("k", f32({4, 7})));
              const value scaled = g(op::div, x, g.scalar("scale", 1e-40));
              return g(op::matmul, g(op::softmax, scaled), g.input("v", f32({7, 6})));
            }),
            "the factor of attention's scores must be one number, at most 1e38");
}

TEST(jit_attention_backend, one_value_may_be_everything) {
  backend_checker<collage::jit> check;
  check(
      [](graph_builder& g, data_source&) {
        const value x = g.input("x", f32({3, 12, 20}));
        return g(op::matmul, g(op::softmax, g(op::matmul, x, x, {.transpose_b = true})), x);
      },
      partly_covered());
  // The scale is the mask, too.
  check(
      [](graph_builder& g, data_source&) {
        const std::shared_ptr<std::byte> two = collage::allocate_bytes(sizeof(float));
        *reinterpret_cast<float*>(two.get()) = 2;
        const value c = g.constant("c", f32({1}), two);
        const value x = g(op::matmul, g.input("q", f32({5, 4})), g.input("k", f32({4, 1})));
        return g(op::matmul, g(op::softmax, g(op::add, g(op::mul, x, c), c)), g.input("v", f32({1, 6})));
      },
      partly_covered());
  EXPECT_EQ(check.checked("attention"), 2U);
}

}  // namespace backends_jit_attention_test
#endif
