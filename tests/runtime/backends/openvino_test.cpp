// OpenVINO against the reference: every operator that it takes, alone and in regions, over ordinary and awkward shapes.
#ifdef COLLAGE_HAS_OPENVINO
#include "cases.hpp"
#include "support/backend_check.hpp"
#include "support/plan_making.hpp"

#include <collage/backend_set.hpp>
#include <collage/backends/openvino.hpp>
#include <collage/backends/portable.hpp>
#include <collage/graph/graph.hpp>
#include <collage/ops.hpp>
#include <collage/pass/optimise.hpp>
#include <collage/place.hpp>
#include <collage/place/regions.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/buffers.hpp>
#include <collage/run/engine.hpp>
#include <collage/run/plan.hpp>
#include <collage/run/verify.hpp>
#include <collage/zoo/all.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace backends_openvino_test {

namespace c = collage;
using collage_test::listed_group;
using collage_test::view_group;
using namespace collage_test;
using set = c::backend_set<c::openvino, c::portable>;

/// As much as it takes in as few regions as there can be, the rest by `portable`.
c::plan as_regions(const c::graph& network) {
  const c::backend_entry& entry = c::table_of<set>[0];
  std::vector<bool> taken(network.nodes().size());
  for (std::uint32_t n = 0; n < taken.size(); ++n) taken[n] = c::takes_node(entry, network, n);
  c::place_options options;
  options.costs = c::placing_costs::none;
  options.threads = 1;
  c::plan made = c::place<set>(network, options);
  std::vector<bool> covered(taken.size(), false);
  std::vector<c::plan_group> groups;
  for (const auto& nodes : c::largest_regions(network, taken)) {
    for (const std::uint32_t n : nodes) covered[n] = true;
    groups.push_back(listed_group(nodes, c::openvino::name));
  }
  std::erase_if(groups, [](const c::plan_group& g) { return g.nodes.empty(); });
  made.chosen.groups.clear();
  // One region: what is left are views before and behind it.
  for (std::uint32_t n = 0; n < covered.size(); ++n) {
    if (covered[n]) {
      if (!groups.empty() && groups[0].nodes.front() == n) made.chosen.groups.push_back(groups[0]);
      continue;
    }
    made.chosen.groups.push_back(view_group(n));
  }
  return made;
}

class region_checker {
 public:
  data_source& data() { return data_; }
  using build_function = std::function<void(c::graph_builder&, data_source&)>;

  void operator()(const build_function& build) {
    c::graph_builder g;
    build(g, data_);
    c::graph network = g.finish();
    c::fill_constants(network);
    const c::backend_entry& entry = c::table_of<set>[0];
    for (std::uint32_t n = 0; n < network.nodes().size(); ++n)
      ASSERT_TRUE(c::takes_node(entry, network, n)) << network.node(n).kind->name << ", COLLAGE_SEED=" << data_.seed();
    const c::plan p = as_regions(network);
    for (const std::uint64_t seed : {data_.seed(), data_.seed() + 1}) {
      c::verify_options options;
      options.seed = seed;
      options.singles = false;
      const c::verification v = c::verify(network, p, c::table_of<set>, options);
      EXPECT_TRUE(v) << v.why() << ", COLLAGE_SEED=" << data_.seed();
    }
  }

 private:
  data_source data_;
};

bool holds_something(const c::shape& dims) { return dims.elements() > 0; }

TEST(openvino, convolutions) {
  region_checker check;
  std::vector<conv_case> cases = conv_cases();
  for (int i = 0; i < 20; ++i) cases.push_back(random_conv(check.data()));
  for (const conv_case& one : cases) {
    if (!holds_something(one.x) || !holds_something(one.w)) continue;
    check([&](c::graph_builder& g, data_source& data) { g.output("y", g(op::relu, add_conv(g, data, one))); });
  }
}

TEST(openvino, products) {
  region_checker check;
  std::vector<matmul_case> cases = matmul_cases();
  for (int i = 0; i < 20; ++i) cases.push_back(random_matmul(check.data()));
  for (const matmul_case& one : cases) {
    if (!holds_something(one.a) || !holds_something(one.b)) continue;
    check([&](c::graph_builder& g, data_source& data) { g.output("y", add_matmul(g, data, one)); });
  }
}

TEST(openvino, transposed_convolutions) {
  region_checker check;
  for (const std::int64_t groups : {1, 2})
    for (const std::int64_t stride : {1, 2, 3})
      for (const std::int64_t more : {0, 1}) {
        if (more >= stride) continue;
        check([&](c::graph_builder& g, data_source& data) {
          const auto x = g.input("x", f32({1, 4, 5, 7}));
          const auto w = data.constant(g, "w", f32({4, 3, 3, 2}));
          const auto b = data.constant(g, "b", f32({3 * groups}));
          g.output("y", g(op::conv_transpose, x, w, b,
                          {.groups = groups,
                           .strides = {stride, stride},
                           .pads_begin = {1, 0},
                           .pads_end = {0, 1},
                           .output_padding = {more, 0}}));
        });
      }
}

TEST(openvino, pooling) {
  region_checker check;
  for (const bool up : {false, true})
    for (const bool counts : {false, true})
      for (const std::int64_t extent : {7, 8, 11}) {
        if (up && counts && extent % 2 == 0) continue;  // a window reaches beyond the pads: not taken
        const op::pool_attributes a{.window = {3, 3},
                                    .strides = {2, 2},
                                    .pads_begin = {1, 1},
                                    .pads_end = {1, 1},
                                    .round_up = up,
                                    .count_padding = counts};
        check([&](c::graph_builder& g, data_source&) {
          g.output("y", g(op::average_pool, g.input("x", f32({2, 3, extent, extent})), a));
        });
        check([&](c::graph_builder& g, data_source&) {
          g.output("y", g(op::max_pool, g.input("x", f32({2, 3, extent, extent})), a));
        });
      }
}

TEST(openvino, one_operand_elementwise) {
  region_checker check;
  const auto with = [&](const auto& kind, auto... attributes) {
    for (const c::shape& dims : {c::shape{1}, c::shape{33}, c::shape{2, 3, 5, 7}, c::shape{1, 17, 1}})
      check([&](c::graph_builder& g, data_source&) { g.output("y", g(kind, g.input("x", f32(dims)), attributes...)); });
  };
  with(op::relu);
  with(op::sigmoid);
  with(op::tanh);
  with(op::exp);
  with(op::abs);
  with(op::neg);
  with(op::erf);
  with(op::floor);
  with(op::ceil);
  with(op::softplus);
  with(op::softsign);
  with(op::mish);
  with(op::hard_swish);
  with(op::gelu_tanh);
  with(op::hard_sigmoid, op::alpha_beta_attributes{0.3, 0.4});
  with(op::leaky_relu, op::alpha_attributes{0.1});
  with(op::elu, op::alpha_attributes{0.7});
  for (const c::shape& dims : {c::shape{33}, c::shape{2, 3, 5, 7}})  // of positive numbers
    check([&](c::graph_builder& g, data_source&) {
      const auto x = g(op::add, g(op::abs, g.input("x", f32(dims))), g.scalar("one", 1));
      g.output("a", g(op::log, x));
      g.output("b", g(op::sqrt, x));
      g.output("c", g(op::reciprocal, x));
      g.output("d", g(op::pow, x, g.scalar("power", 2.5)));
    });
}

TEST(openvino, two_operands_broadcast) {
  region_checker check;
  const std::pair<c::shape, c::shape> shapes[] = {{{2, 3, 4}, {2, 3, 4}},      {{2, 3, 4}, {4}}, {{2, 3, 4}, {3, 1}},
                                                  {{1, 3, 1}, {2, 1, 4}},      {{5}, {2, 1, 5}}, {{1}, {3, 3}},
                                                  {{2, 8, 5, 5}, {1, 8, 1, 1}}};
  for (const auto& [a, b] : shapes)
    check([&](c::graph_builder& g, data_source&) {
      const auto x = g.input("x", f32(a)), y = g.input("y", f32(b));
      g.output("add", g(op::add, x, y));
      g.output("sub", g(op::sub, x, y));
      g.output("mul", g(op::mul, x, y));
      g.output("max", g(op::max, x, y));
      g.output("min", g(op::min, x, y));
      g.output("div", g(op::div, x, g(op::add, g(op::abs, y), g.scalar("half", 0.5))));
    });
}

TEST(openvino, movers_and_rows) {
  region_checker check;
  check([](c::graph_builder& g, data_source& data) {
    const auto x = g.input("x", f32({2, 6, 5}));
    g.output("transpose", g(op::transpose, x, {.permutation = {2, 0, 1}}));
    g.output("slice", g(op::slice, x, {.starts = {0, 5, 1}, .steps = {1, -2, 3}, .extents = {2, 3, 2}}));
    g.output("concat", g(op::concat, x, g(op::relu, x), {.axis = -2}));
    g.output("tile", g(op::tile, x, {.repeats = {1, 2, 3}}));
    g.output("expand", g(op::expand, g.input("small", f32({6, 1})), {.dims = {2, 6, 5}}));
    g.output("pad", g(op::pad, x, {.pads_begin = {0, 1, 2}, .pads_end = {1, 0, 3}}));
    g.output("reflect", g(op::pad, x, {.pads_begin = {0, 1, 2}, .pads_end = {1, 0, 3}, .mode = op::pad_mode::reflect}));
    g.output("edge", g(op::pad, x, {.pads_begin = {0, 1, 2}, .pads_end = {1, 0, 3}, .mode = op::pad_mode::edge}));
    g.output("softmax", g(op::softmax, x, {.axis = 1}));
    g.output("log_softmax", g(op::log_softmax, x, {.axis = -1}));
    g.output("mean", g(op::reduce_mean, x, {.axes = {-1}, .keep_dims = true}));
    g.output("sum", g(op::reduce_sum, x, {.axes = {0, 2}, .keep_dims = false}));
    g.output("most", g(op::reduce_max, x, {.axes = {1}}));
    g.output("least", g(op::reduce_min, x));
    g.output("product", g(op::reduce_prod, x, {.axes = {2}}));
    const auto scale = data.constant(g, "scale", f32({6, 5})), bias = data.constant(g, "bias", f32({5}));
    g.output("norm", g(op::layer_norm, x, scale, bias, {.axis = 1}));
    g.output("clip", g(op::clip, x, g.scalar("low", -0.2), g.scalar("high", 0.3)));
    g.output("reshape", g(op::relu, g(op::reshape, g(op::tanh, x), {.dims = {4, 15}})));
  });
}

TEST(openvino, resizing) {
  region_checker check;
  for (const op::resize_coordinates where :
       {op::resize_coordinates::half_pixel, op::resize_coordinates::asymmetric, op::resize_coordinates::align_corners})
    for (const c::shape& sizes : {c::shape{1, 3, 10, 14}, c::shape{1, 3, 20, 28}, c::shape{1, 3, 4, 3}}) {
      check([&](c::graph_builder& g, data_source&) {
        g.output("y", g(op::resize, g.input("x", f32({1, 3, 5, 7})),
                        {.sizes = sizes, .mode = op::resize_mode::linear, .coordinates = where}));
      });
      check([&](c::graph_builder& g, data_source&) {
        g.output("y", g(op::resize, g.input("x", f32({1, 3, 5, 7})),
                        {.sizes = sizes,
                         .mode = op::resize_mode::nearest,
                         .coordinates = where,
                         .rounding = op::resize_rounding::down}));
      });
    }
}

TEST(openvino, does_not_take_what_it_cannot_compute) {
  c::graph_builder g;
  const auto x = g.input("x", f32({2, 3}));
  const auto d = g.input("d", {c::dtype::f64, {2, 3}});
  const auto none = g.input("none", f32({0, 3}));
  g.output("a", g(op::relu, d));
  g.output("b", g(op::relu, none));
  g.output("c", g(op::pad, x, {.pads_begin = {-1, 0}, .pads_end = {0, 0}}));
  g.output("d", g(op::pad, x, {.pads_begin = {1, 0}, .pads_end = {0, 0}, .mode = op::pad_mode::wrap}));
  g.output("e", g(op::less, x, x));
  g.output("f", g(op::average_pool, g.input("image", f32({1, 1, 8, 8})),
                  {.window = {3, 3}, .strides = {2, 2}, .round_up = true, .count_padding = true}));
  const c::graph network = g.finish();
  for (std::uint32_t n = 0; n < network.nodes().size(); ++n)
    EXPECT_FALSE(c::takes_node(c::table_of<set>[0], network, n)) << network.node_name(n);
}

/// Which nodes begin a region, and why, by the name of their kind. Places the network on OpenVINO alone without measuring, and
/// checks the results.
std::map<std::string, std::string> beginnings_in(const std::function<void(c::graph_builder&, data_source&)>& build) {
  using only = c::backend_set<c::openvino>;
  c::graph_builder g;
  data_source data;
  build(g, data);
  c::graph network = g.finish();
  c::fill_constants(network);
  std::map<std::string, std::string> beginnings;
  for (std::uint32_t n = 0; n < network.nodes().size(); ++n)
    if (const c::verdict v = c::judge_join(c::table_of<only>[0], network, n); !v)
      beginnings[network.node(n).kind->name] = v.rule;
  const c::plan p = c::place<only>(network, {.threads = 1, .costs = c::placing_costs::none, .check_s = 0});
  if (beginnings.empty()) EXPECT_EQ(p.chosen.groups.size(), 1U);
  const c::verification v = c::verify(network, p, c::table_of<only>, {.singles = false});
  EXPECT_TRUE(v) << v.why();
  return beginnings;
}

TEST(openvino, activations_that_may_decrease_begin_a_region_after_a_pooling) {
  const auto after_pool = [](const std::function<c::value(c::graph_builder&, c::value)>& activation) {
    return beginnings_in([&](c::graph_builder& g, data_source& data) {
      const c::value y = g(op::conv, g.input("x", f32({1, 3, 6, 8})), data.constant(g, "w", f32({4, 3, 3, 3})),
                           {.pads_begin = {1, 1}, .pads_end = {1, 1}});
      g.output("y", activation(g, g(op::max_pool, y, {.window = {2, 2}, .strides = {2, 2}})));
    });
  };
  using kinds = std::map<std::string, std::string>;
  const std::string why = "openvino applies an activation that may decrease before the pooling, not after it";
  EXPECT_EQ(after_pool([](auto& g, c::value x) { return g(op::mul, x, g(op::sigmoid, x)); }),
            (kinds{{"mul", why}, {"sigmoid", why}}));
  EXPECT_EQ(after_pool([](auto& g, c::value x) { return g(op::abs, x); }), (kinds{{"abs", why}}));
  EXPECT_EQ(after_pool([](auto& g, c::value x) { return g(op::gelu_tanh, x); }), (kinds{{"gelu_tanh", why}}));
  EXPECT_EQ(after_pool([](auto& g, c::value x) { return g(op::mish, x); }), (kinds{{"mish", why}}));
  EXPECT_EQ(after_pool([](auto& g, c::value x) { return g(op::hard_swish, x); }), (kinds{{"hard_swish", why}}));
  EXPECT_EQ(after_pool([](auto& g, c::value x) { return g(op::leaky_relu, x, {.alpha = -0.5}); }),
            (kinds{{"leaky_relu", why}}));
  EXPECT_EQ(after_pool([](auto& g, c::value x) { return g(op::neg, x); }), (kinds{{"neg", why}}));
  const kinds nothing;
  EXPECT_EQ(after_pool([](auto& g, c::value x) { return g(op::relu, x); }), nothing);
  EXPECT_EQ(after_pool([](auto& g, c::value x) { return g(op::tanh, x); }), nothing);
  EXPECT_EQ(after_pool([](auto& g, c::value x) { return g(op::leaky_relu, x, {.alpha = 0.5}); }), nothing);
  EXPECT_EQ(after_pool([](auto& g, c::value x) { return g(op::mul, x, g.scalar("minus", -2)); }), nothing);
  EXPECT_EQ(after_pool([](auto&, c::value x) { return x; }), nothing);
}

TEST(openvino, padded_convolutions_of_one_tap_with_strides_begin_a_region) {
  const auto conv = [](const c::shape& window, std::int64_t stride, std::int64_t pad) {
    return beginnings_in([&](c::graph_builder& g, data_source& data) {
      const c::value x = g(op::relu, g.input("x", f32({2, 4, 5, 5})));
      c::shape weights = {3, 4};
      for (const std::int64_t extent : window) weights.push_back(extent);
      g.output("y", g(op::conv, x, data.constant(g, "w", f32(weights)),
                      {.strides = {stride, stride}, .pads_begin = {pad, pad}, .pads_end = {pad, pad}}));
    });
  };
  EXPECT_EQ(conv({1, 1}, 2, 1), (std::map<std::string, std::string>{
                                    {"conv", "openvino forgets the pads of a convolution of one tap with strides"}}));
  EXPECT_TRUE(conv({1, 1}, 2, 0).empty());
  EXPECT_TRUE(conv({1, 1}, 1, 1).empty());
  EXPECT_TRUE(conv({3, 3}, 2, 1).empty());
}

TEST(openvino, reductions_that_broadcast_along_other_dimensions_end_a_region) {
  const auto norm = [](bool keep_dims, const c::shape& axes) {
    return beginnings_in([&](c::graph_builder& g, data_source&) {
      const c::value x = g.input("x", f32({3, 3, 3}));
      const auto mean = [&](c::value of) { return g(op::reduce_mean, of, {.axes = axes, .keep_dims = keep_dims}); };
      const c::value centred = g(op::sub, x, mean(x));
      const c::value spread = g(op::sqrt, g(op::add, mean(g(op::mul, centred, centred)), g.scalar("eps", 1e-5)));
      g.output("y", g(op::div, centred, spread));
    });
  };
  const std::string why = "openvino broadcasts a reduction without kept dimensions as if it had kept them";
  EXPECT_EQ(norm(false, {2}), (std::map<std::string, std::string>{{"sub", why}, {"div", why}}));
  EXPECT_EQ(norm(false, {1}), (std::map<std::string, std::string>{{"sub", why}, {"div", why}}));
  EXPECT_TRUE(norm(false, {0}).empty());
  EXPECT_TRUE(norm(false, {0, 1, 2}).empty());
  EXPECT_TRUE(norm(true, {2}).empty());
}

TEST(openvino, a_region_comes_before_the_views_in_it_without_measuring) {
  c::graph_builder g;
  const c::value x = g.input("x", f32({2, 3}));
  for (const std::int64_t row : {0, 1})
    g.output(row == 0 ? "y" : "z",
             g(op::relu, g(op::slice, x, {.starts = {row, 0}, .steps = {1, 1}, .extents = {1, 3}})));
  const c::graph network = g.finish();
  for (const c::backend_table table :
       {c::backend_table(c::table_of<c::backend_set<c::openvino>>), c::backend_table(c::table_of<set>)}) {
    const c::plan p = c::place(network, table, {.threads = 1, .costs = c::placing_costs::none});
    ASSERT_EQ(p.chosen.groups.size(), 1U);
    EXPECT_EQ(p.chosen.groups[0].nodes.size(), 4U);
    EXPECT_TRUE(c::verify(network, p, table, {.singles = false}));
  }
}

TEST(openvino, the_small_networks_as_one_region) {
  for (const char* name : {"bert-paper", "mobilenet-v2"}) {
    c::graph_builder g;
    ASSERT_TRUE(c::zoo::build(name, g));
    c::graph network = g.finish();
    c::fill_constants(network);
    network = c::optimise(network);
    const c::plan p = as_regions(network);
    std::size_t regions = 0;
    for (const c::plan_group& group : p.chosen.groups) regions += group.backend() == c::openvino::name ? 1U : 0U;
    EXPECT_EQ(regions, 1U) << name;
    c::verify_options options;
    options.singles = false;
    const c::verification v = c::verify(network, p, c::table_of<set>, options);
    EXPECT_TRUE(v) << name << ": " << v.why();
  }
}

TEST(openvino, engines_in_several_threads_do_not_disturb_each_other) {
  c::graph_builder g;
  data_source data;
  g.output("y", g(op::relu, add_conv(g, data, {{1, 8, 20, 20}, {16, 8, 3, 3}})));
  c::graph network = g.finish();
  const c::plan p = as_regions(network);
  const c::dynamic_engine engine(network, p.chosen, c::table_of<set>, 1);
  std::vector<std::thread> threads;
  std::vector<std::vector<float>> results(4);
  for (std::size_t t = 0; t < results.size(); ++t)
    threads.emplace_back([&, t] {
      c::run_buffers memory(network);
      memory.randomise(t);
      c::dynamic_context context = engine.context();
      for (int run = 0; run < 20; ++run) context.run(memory.inputs, memory.outputs);
      const auto* y = static_cast<const float*>(memory.outputs[0].data);
      results[t].assign(y, y + memory.outputs[0].type.dims.elements());
    });
  for (std::thread& t : threads) t.join();
  for (std::size_t t = 0; t < results.size(); ++t) {
    c::run_buffers memory(network);
    memory.randomise(t);
    c::dynamic_context context = engine.context();
    context.run(memory.inputs, memory.outputs);
    const auto* y = static_cast<const float*>(memory.outputs[0].data);
    EXPECT_TRUE(std::equal(results[t].begin(), results[t].end(), y)) << t;
  }
}

}  // namespace backends_openvino_test
#endif
