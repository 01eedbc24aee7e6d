#include <collage/backends/portable.hpp>
#include <collage/backends/reference.hpp>
#include <collage/graph/print.hpp>
#include <collage/run/agreement.hpp>
#include <collage/run/engine.hpp>
#include <collage/run/views.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/counting_allocator.hpp"
#include "support/engine_check.hpp"
#include "support/loops_backend.hpp"
#include "support/messages.hpp"
#include "support/plan_making.hpp"
#include "support/random_numbers.hpp"

namespace run_engine_test {

namespace c = collage;
namespace op = collage::ops;
using collage_test::count_views;
using collage_test::kernel_group;
using collage_test::kernel_of;
using collage_test::loops;
using collage_test::view_group;
using set = c::backend_set<loops>;

/// One group per node, in order; views where they can be.
c::plan one_by_one(const c::graph& network) {
  c::plan p;
  p.fingerprint = network.fingerprint();
  for (std::uint32_t n = 0; n < network.nodes().size(); ++n) {
    const bool is_view = !c::views_of(network, n).empty();
    p.chosen.groups.push_back(is_view ? view_group(n) : kernel_group({n}, "loops", network.node(n).kind->name));
  }
  return p;
}

struct memory {
  std::vector<c::tensor> in, out;
  std::vector<c::const_tensor_view> inputs;
  std::vector<c::tensor_view> outputs;
  explicit memory(const c::graph& network, unsigned seed = 1) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> real(-1, 1);
    for (const std::uint32_t v : network.inputs()) {
      in.emplace_back(network.type_of(v));
      for (float& x : in.back().as<float>()) x = real(random);
    }
    for (const std::uint32_t v : network.outputs()) out.emplace_back(network.type_of(v));
    for (const c::tensor& t : in) inputs.emplace_back(t);
    for (const c::tensor& t : out) outputs.emplace_back(t);
  }
};

void expect_right(const c::graph& network, const memory& m) {
  collage_test::expect_outputs(m, c::evaluate(network, m.inputs));
}

template <class Call>
std::string message_of(const Call& call) {
  return collage_test::message_of(call, 2);
}

c::graph two_sums() {
  c::graph_builder g;
  const c::value x = g.input("x", {c::dtype::f32, {2, 3}});
  const c::value y = g.input("y", {c::dtype::f32, {2, 3}});
  const c::value s = g(op::add, x, y);
  const c::value r = g(op::relu, s);
  g.output("z", g(op::add, r, x));
  return g.finish();
}

TEST(kernel, says_of_any_argument_that_it_is_not_read) {
  c::kernel k("nothing", [](const c::kernel_call&) {});
  k.does_not_read(3).does_not_read(200);
  for (const std::size_t i : {0U, 2U, 4U, 63U, 64U, 199U, 201U, 1000U}) EXPECT_TRUE(k.reads(i)) << i;
  EXPECT_FALSE(k.reads(3));
  EXPECT_FALSE(k.reads(200));
  const c::kernel copy = k;
  EXPECT_FALSE(copy.reads(200));
}

TEST(kernel, says_which_arguments_it_may_write_over) {
  c::kernel k("nothing", [](const c::kernel_call&) {});
  EXPECT_FALSE(k.writes_over(0));
  k.may_write_over(2).may_write_over(0, 1);
  EXPECT_TRUE(k.writes_over(2));
  EXPECT_TRUE(k.writes_over(0, 1));
  EXPECT_FALSE(k.writes_over(0));
  EXPECT_FALSE(k.writes_over(2, 1));
}

TEST(engine, runs_a_plan_and_agrees_with_the_reference) {
  const c::graph network = two_sums();
  memory m(network);
  c::dynamic_context context = c::engine<set>(network, one_by_one(network)).context();
  context.run(m.inputs, m.outputs);
  expect_right(network, m);
}

TEST(engine, says_what_it_takes_and_needs) {
  const c::graph network = two_sums();
  const c::dynamic_engine e = c::engine<set>(network, one_by_one(network));
  ASSERT_EQ(e.inputs().size(), 2U);
  EXPECT_EQ(e.inputs()[1].name, "y");
  EXPECT_EQ(e.outputs()[0].name, "z");
  EXPECT_EQ(e.outputs()[0].type, (c::tensor_type{c::dtype::f32, {2, 3}}));
  ASSERT_EQ(e.steps().size(), 3U);
  EXPECT_EQ(e.steps()[1].kernel, "loop relu");
  EXPECT_EQ(e.arena_bytes(), 64U);  // two inner values of 24 bytes in one line, since relu writes over its operand
  EXPECT_EQ(e.arena_lower_bound(), 64U);
}

TEST(engine, outputs_of_every_sort) {
  c::graph_builder g;
  const c::value x = g.input("x", {c::dtype::f32, {2, 6}});
  const c::value k = g.constant("k", {c::dtype::f32, {4}}, {-1, 1});
  const c::value a = g(op::relu, x);
  const c::value shaped = g(op::reshape, a, {.dims = {3, 4}});
  const c::value b = g(op::neg, shaped);
  g.output("the input itself", x);
  g.output("a constant", k);
  g.output("a computed value", a);
  g.output("another view of it", shaped);
  g.output("the same again", a);
  g.output("a value behind the view", b);
  g.output("a view of the input", g(op::reshape, x, {.dims = {12}}));
  c::graph network = g.finish();
  c::fill_constants(network);
  memory m(network);
  c::dynamic_context context = c::engine<set>(network, one_by_one(network)).context();
  context.run(m.inputs, m.outputs);
  expect_right(network, m);
}

TEST(engine, random_graphs_agree_with_the_reference) {
  std::mt19937 engine(static_cast<std::uint32_t>(collage_test::fresh_seed()));
  const auto random = [&] { return static_cast<unsigned>(engine()); };
  for (unsigned trial = 0; trial < 100; ++trial) {
    c::graph_builder g;
    std::vector<c::value> values{g.input("x", {c::dtype::f32, {3, 4}}), g.input("y", {c::dtype::f32, {3, 4}})};
    const auto any = [&] { return values[random() % values.size()]; };
    const unsigned count = 1 + random() % 25;
    for (unsigned i = 0; i < count; ++i) {
      switch (random() % 4) {
        case 0: values.push_back(g(op::relu, any())); break;
        case 1: values.push_back(g(op::add, any(), any())); break;
        case 2: values.push_back(g(op::neg, any())); break;
        default: values.push_back(g(op::reshape, any(), {.dims = {3, 4}})); break;
      }
    }
    g.output("last", values.back());
    g.output("some", any());
    g.output("some more", any());
    const c::graph network = g.finish();
    memory m(network, trial);
    c::dynamic_context context = c::engine<set>(network, one_by_one(network)).context();
    context.run(m.inputs, m.outputs);
    context.run(m.inputs, m.outputs);  // nothing may be left over from the first run
    expect_right(network, m);
  }
}

TEST(engine, running_does_not_allocate) {
  const c::graph network = two_sums();
  memory m(network);
  c::dynamic_context context = c::engine<set>(network, one_by_one(network)).context();
  context.run(m.inputs, m.outputs);
  const std::size_t before = collage_test::allocations();
  for (int i = 0; i < 100; ++i) context.run(m.inputs, m.outputs);
  EXPECT_EQ(collage_test::allocations(), before);
  const auto* counted = new int(1);  // the counter counts
  EXPECT_GT(collage_test::allocations(), before);
  delete counted;
}

/// Counts in its workspace, which it first fills up.
struct scribbler : c::backend<"scribbler"> {
  using patterns = c::patterns<c::single<op::neg>>;
  static constexpr std::size_t scratch = 1000;
  static c::kernel build(const c::match<c::single<op::neg>>& m, c::build_context&) {
    const auto count = static_cast<std::size_t>(m.output().out.elements());
    const std::size_t bytes = count == 1 ? scratch : 0;
    return {"scribble",
            [count, bytes](const c::kernel_call& call) {
              EXPECT_EQ(call.workspace == nullptr, bytes == 0);
              if (bytes != 0) std::memset(call.workspace, 0x5A, bytes);
              for (std::size_t i = 0; i < count; ++i)
                static_cast<float*>(call.out[0])[i] = -static_cast<const float*>(call.in[0])[i];
            },
            bytes};
  }
};

TEST(engine, a_workspace_lies_where_no_value_is_alive) {
  c::graph_builder g;
  const c::value x = g.input("x", {c::dtype::f32, {1}});
  const c::value y = g(op::neg, g(op::neg, x));  // two values of 64 bytes, and 1,024 at each step
  const c::value wide = g.input("wide", {c::dtype::f32, {300}});
  const c::value z = g(op::neg, g(op::neg, wide));  // 1,216 bytes
  g.output("y", g(op::neg, y));
  g.output("z", z);
  const c::graph network = g.finish();
  c::plan p = one_by_one(network);
  for (c::plan_group& group : p.chosen.groups) kernel_of(group).backend = "scribbler";
  const c::dynamic_engine e = c::engine<c::backend_set<scribbler>>(network, p);
  EXPECT_EQ(e.arena_bytes(), 64U + 1216U);
  EXPECT_EQ(e.arena_lower_bound(), 64U + 1216U);
  memory m(network);
  c::dynamic_context context = e.context();
  context.run(m.inputs, m.outputs);
  expect_right(network, m);
}

/// What the arena of a network takes, each node by the loops, which may write over any operand; and that it runs right.
std::size_t arena_of(c::graph_builder& g) {
  const c::graph network = g.finish();
  const c::dynamic_engine e = c::engine<set>(network, one_by_one(network));
  memory m(network);
  c::dynamic_context context = e.context();
  context.run(m.inputs, m.outputs);
  context.run(m.inputs, m.outputs);
  expect_right(network, m);
  EXPECT_EQ(e.arena_bytes(), e.arena_lower_bound());
  return e.arena_bytes();
}

TEST(engine, writes_over_what_nobody_needs_any_more) {
  const c::tensor_type line = {c::dtype::f32, {16}};
  {
    c::graph_builder g;
    c::value x = g.input("x", line);
    for (int i = 0; i < 5; ++i) x = g(op::neg, x);
    g.output("y", x);
    EXPECT_EQ(arena_of(g), 64U);
  }
  {  // the sum is written over its second operand: the first is read once more
    c::graph_builder g;
    const c::value x = g.input("x", line);
    const c::value a = g(op::neg, x), b = g(op::relu, x);
    const c::value sum = g(op::add, a, b);
    g.output("y", g(op::add, g(op::neg, sum), a));
    EXPECT_EQ(arena_of(g), 128U);
  }
  {  // through a view, whose memory is the same
    c::graph_builder g;
    const c::value a = g(op::neg, g.input("x", line));
    const c::value b = g(op::neg, g(op::reshape, a, {.dims = {4, 4}}));
    g.output("y", g(op::neg, b));
    EXPECT_EQ(arena_of(g), 64U);
  }
}

TEST(engine, leaves_alone_what_is_still_needed) {
  const c::tensor_type line = {c::dtype::f32, {16}};
  {  // a is read by a later step, under another name
    c::graph_builder g;
    const c::value a = g(op::neg, g.input("x", line));
    const c::value view = g(op::reshape, a, {.dims = {4, 4}});
    const c::value b = g(op::relu, a);
    g.output("y", g(op::add, g(op::reshape, b, {.dims = {4, 4}}), view));
    EXPECT_EQ(arena_of(g), 128U);
  }
  {  // one value and a view of it are both operands of one kernel
    c::graph_builder g;
    const c::value a = g(op::neg, g.input("x", {c::dtype::f32, {4, 4}}));
    const c::value b = g(op::add, a, g(op::reshape, a, {.dims = {4, 4}}));
    g.output("y", g(op::neg, b));
    EXPECT_EQ(arena_of(g), 128U);
  }
  {  // inputs, constants and what becomes an output
    c::graph_builder g;
    const c::value x = g.input("x", line);
    const c::value k = g.constant("k", line, {-1, 1});
    const c::value a = g(op::neg, x);
    const c::value b = g(op::relu, a);
    g.output("a", a);
    g.output("y", g(op::add, g(op::neg, b), g(op::add, k, x)));
    c::graph network = g.finish();
    c::fill_constants(network);
    const c::dynamic_engine e = c::engine<set>(network, one_by_one(network));
    memory m(network);
    const std::vector<float> before(m.in[0].as<float>().begin(), m.in[0].as<float>().end());
    c::dynamic_context context = e.context();
    for (int i = 0; i < 2; ++i) {
      context.run(m.inputs, m.outputs);
      expect_right(network, m);
    }
    EXPECT_TRUE(std::ranges::equal(before, m.in[0].as<float>()));
    EXPECT_EQ(e.arena_bytes(), 128U);
  }
}

TEST(engine, operands_of_a_concat_are_parts_of_its_result) {
  c::graph_builder g;
  const c::tensor_type half = {c::dtype::f32, {1, 16, 2}};
  const c::value x = g.input("x", half);
  const c::value a = g(op::neg, x), b = g(op::relu, x);
  const c::value inner[] = {a, b};
  const c::value ab = g(op::concat, inner, {.axis = 1});
  const c::value d = g(op::relu, g(op::neg, a));  // written over what stands between
  const c::value outer[] = {ab, d};
  const c::value all = g(op::concat, outer, {.axis = 1});
  const c::value part = g(op::slice, all, {.starts = {0, 16, 0}, .steps = {1, 1, 1}, .extents = {1, 24, 2}});
  g.output("y", g(op::neg, part));
  g.output("all", g(op::neg, all));
  const c::graph network = g.finish();
  const c::plan p = one_by_one(network);
  EXPECT_EQ(count_views(p.chosen), 3);
  const c::dynamic_engine e = c::engine<set>(network, p);
  EXPECT_EQ(e.steps().size(), 6U);
  EXPECT_EQ(e.arena_bytes(), 3U * 128 + 128);  // the result, and once the value between
  memory m(network);
  c::dynamic_context context = e.context();
  context.run(m.inputs, m.outputs);
  expect_right(network, m);
}

TEST(engine, parts_of_inputs_and_outputs) {
  c::graph_builder g;
  const c::value x = g.input("x", {c::dtype::f32, {48}});
  const c::value middle = g(op::slice, x, {.starts = {16}, .steps = {1}, .extents = {16}});
  const c::value a = g(op::neg, middle);
  const c::value b = g(op::relu, middle);
  const c::value both[] = {a, b};
  const c::value y = g(op::concat, both, {.axis = 0});
  g.output("y", y);  // its parts are written where the caller wants it
  g.output("a part of the input", middle);
  g.output("a part of an output", g(op::slice, y, {.starts = {16}, .steps = {1}, .extents = {5}}));
  const c::value z = g(op::neg, b);
  g.output("a part of an inner value", g(op::slice, z, {.starts = {0}, .steps = {1}, .extents = {7}}));
  const c::graph network = g.finish();
  const c::dynamic_engine e = c::engine<set>(network, one_by_one(network));
  EXPECT_EQ(e.steps().size(), 3U);
  EXPECT_EQ(e.arena_bytes(), 64U);
  memory m(network);
  c::dynamic_context context = e.context();
  for (int i = 0; i < 2; ++i) {
    context.run(m.inputs, m.outputs);
    expect_right(network, m);
  }
}

TEST(views, are_only_what_lies_in_one_piece_at_an_aligned_place) {
  c::graph_builder g;
  const auto values = [&](std::vector<c::shape> dims) {
    std::vector<c::value> list;
    for (const c::shape& s : dims)
      list.push_back(g(op::neg, g.input("x" + std::to_string(g.node_count()), {c::dtype::f32, s})));
    return list;
  };
  std::vector<std::pair<c::value, bool>> expected;
  const auto concat = [&](const std::vector<c::value>& parts, std::int64_t axis, bool is_view) {
    expected.emplace_back(g(op::concat, parts, {.axis = axis}), is_view);
  };
  const auto slice = [&](c::shape of, c::shape starts, c::shape steps, c::shape extents, bool is_view) {
    expected.emplace_back(g(op::slice, values({of})[0], {.starts = starts, .steps = steps, .extents = extents}),
                          is_view);
  };
  concat(values({{16}, {3}}), 0, true);
  concat(values({{3}, {16}}), 0, false);  // the second would begin at byte 12
  concat(values({{1, 4, 4}, {1, 8, 4}, {1, 1, 4}}), 1, true);
  concat(values({{2, 4, 4}, {2, 4, 4}}), 1, false);
  concat(values({{2, 4, 4}, {2, 4, 4}}), 0, true);
  concat(values({{0, 4}, {4, 4}}), 0, false);
  concat({g.input("given", {c::dtype::f32, {16}})}, 0, false);
  concat({g.constant("known", {c::dtype::f32, {16}}, {-1, 1})}, 0, false);
  const std::vector<c::value> twice = values({{16}, {16}, {16}});
  concat({twice[0], twice[0]}, 0, false);
  concat({twice[1], twice[2]}, 0, true);
  concat({twice[2]}, 0, false);  // it lies in the one before
  const std::vector<c::value> out = values({{16}});
  g.output("out", out[0]);
  concat(out, 0, false);
  concat({g(op::reshape, values({{4, 4}})[0], {.dims = {16}})}, 0, false);
  slice({64}, {16}, {1}, {5}, true);
  slice({64}, {15}, {1}, {5}, false);
  slice({64}, {16}, {2}, {5}, false);
  slice({64}, {63}, {-1}, {64}, false);
  slice({3, 16}, {1, 0}, {1, 1}, {2, 16}, true);
  slice({3, 16}, {1, 0}, {1, 1}, {2, 15}, false);
  slice({3, 32}, {2, 16}, {1, 1}, {1, 15}, true);
  slice({1, 4, 4, 4}, {0, 1, 0, 0}, {1, 1, 1, 1}, {1, 2, 4, 4}, true);
  slice({2, 4, 4, 4}, {0, 1, 0, 0}, {1, 1, 1, 1}, {2, 2, 4, 4}, false);
  slice({64}, {0}, {1}, {0}, false);
  for (std::size_t i = 0; i < expected.size(); ++i) g.output("y" + std::to_string(i), expected[i].first);
  const c::graph network = g.finish();
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto node = static_cast<std::uint32_t>(network.at(expected[i].first.index).producer);
    EXPECT_EQ(!c::views_of(network, node).empty(), expected[i].second) << i << " " << c::to_string(network, node);
  }
}

TEST(engine, random_graphs_of_views_agree_with_the_reference) {
  using both = c::backend_set<loops, c::portable>;
  std::mt19937 engine(static_cast<std::uint32_t>(collage_test::fresh_seed()));
  const auto random = [&](std::size_t end) { return static_cast<std::size_t>(engine() % end); };
  std::size_t views = 0, copies = 0;
  for (unsigned trial = 0; trial < 200; ++trial) {
    c::graph_builder g;
    std::vector<c::value> values{g.input("x", {c::dtype::f32, {32}}), g.input("y", {c::dtype::f32, {48}})};
    const auto any = [&] { return values[random(values.size())]; };
    const std::size_t count = 2 + random(25);
    for (std::size_t i = 0; i < count; ++i) {
      const c::value x = any();
      const std::int64_t extent = g.type_of(x).dims[0];
      switch (random(6)) {
        case 0: values.push_back(g(op::relu, x)); break;
        case 1: values.push_back(g(op::neg, x)); break;
        case 2: {
          const c::value y = any();
          if (g.type_of(y) == g.type_of(x)) values.push_back(g(op::add, x, y));
          break;
        }
        case 3: values.push_back(g(op::reshape, x, {.dims = {extent}})); break;
        case 4: {
          std::vector<c::value> parts{x};
          for (std::size_t k = 1 + random(2); k > 0; --k) parts.push_back(any());
          std::int64_t sum = 0;
          for (const c::value v : parts) sum += g.type_of(v).dims[0];
          if (sum < 1000) values.push_back(g(op::concat, parts, {.axis = 0}));
          break;
        }
        default: {
          const std::int64_t start = random(4) == 0 ? 1 : 16 * static_cast<std::int64_t>(random(2));
          const std::int64_t taken = random(3) == 0 ? 16 : extent - start;
          if (start + taken <= extent && taken > 0)
            values.push_back(g(op::slice, x, {.starts = {start}, .steps = {1}, .extents = {taken}}));
        }
      }
    }
    g.output("last", values.back());
    g.output("some", any());
    g.output("some more", any());
    const c::graph network = g.finish();
    c::plan p = one_by_one(network);
    for (c::plan_group& group : p.chosen.groups) {
      const std::uint64_t kind = network.node(group.nodes[0]).kind->id;
      if (kind != c::kind_id<struct op::concat> && kind != c::kind_id<struct op::slice>) continue;
      if (group.is_view() && random(5) != 0) {
        ++views;
        continue;
      }
      group = kernel_group(group.nodes, "portable", "loops");
      ++copies;
    }
    memory m(network, trial);
    std::vector<std::vector<float>> before;
    for (const c::tensor& t : m.in) before.emplace_back(t.as<float>().begin(), t.as<float>().end());
    const c::dynamic_engine e = c::engine<both>(network, p);
    EXPECT_EQ(c::fault_of(e.code()), "") << c::to_text(e.code(), network);
    c::dynamic_context context = e.context();
    context.run(m.inputs, m.outputs);
    context.run(m.inputs, m.outputs);
    expect_right(network, m);
    for (std::size_t i = 0; i < before.size(); ++i) EXPECT_TRUE(std::ranges::equal(before[i], m.in[i].as<float>()));
  }
  EXPECT_GT(views, 100U);
  EXPECT_GT(copies, 20U);
}

TEST(engine, takes_the_callers_memory) {
  const c::graph network = two_sums();
  const c::dynamic_engine e = c::engine<set>(network, one_by_one(network));
  memory m(network);
  const c::buffer arena(e.arena_bytes() + 64);
  c::dynamic_context context = e.context({arena.data(), e.arena_bytes()});
  context.run(m.inputs, m.outputs);
  expect_right(network, m);
  EXPECT_EQ(message_of([&] { (void)e.context({arena.data(), 63}); }),
            "context: the arena has 63 bytes but 64 are needed; call arena_bytes() of the engine");
  EXPECT_EQ(message_of([&] { (void)e.context({arena.data() + 4, e.arena_bytes()}); }),
            "context: the arena must be aligned to 64 bytes; allocate it with aligned_alloc(64, ...)");
}

TEST(engine, contexts_run_side_by_side) {
  const c::graph network = two_sums();
  const c::dynamic_engine e = c::engine<set>(network, one_by_one(network));
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      memory m(network, t);
      c::dynamic_context context = e.context();
      for (int i = 0; i < 200; ++i) context.run(m.inputs, m.outputs);
      expect_right(network, m);
    });
  for (std::thread& t : threads) t.join();
}

TEST(engine, observers_see_every_step_and_its_value) {
  const c::graph network = two_sums();
  const c::plan p = one_by_one(network);
  memory m(network);
  c::dynamic_context context = c::engine<set>(network, p).context();
  std::vector<std::pair<std::size_t, float>> seen;
  struct state {
    std::vector<std::pair<std::size_t, float>>* seen;
    const c::graph* network;
  } s{&seen, &network};
  context.run(m.inputs, m.outputs, {&s, nullptr, [](void* data, std::size_t step, const c::dynamic_context& run) {
                                      auto* to = static_cast<state*>(data);
                                      const std::uint32_t v =
                                          to->network->view().output_of(static_cast<std::uint32_t>(step));
                                      to->seen->emplace_back(step, static_cast<const float*>(run.data_of(v))[0]);
                                    }});
  ASSERT_EQ(seen.size(), 3U);
  EXPECT_EQ(seen[0].second, m.in[0].as<float>()[0] + m.in[1].as<float>()[0]);
  EXPECT_EQ(seen[2].second, m.out[0].as<float>()[0]);
}

/// The kernels of `loops`. Each run of `relu` sets a flag.
struct stopper : c::backend<"stopper"> {
  using patterns = c::patterns<c::single<op::relu>, c::single<op::add>>;
  static inline std::atomic<bool> flag = false;
  static c::kernel build(const c::match<c::single<op::add>>& m, c::build_context& context) {
    return loops::build(m, context);
  }
  static c::kernel build(const c::match<c::single<op::relu>>& m, c::build_context& context) {
    const c::kernel inner = loops::build(m, context);
    return {"relu", [inner](const c::kernel_call& call) {
              inner(call);
              flag = true;
            }};
  }
};

TEST(engine, limits_end_a_run_between_steps) {
  const c::graph network = two_sums();
  c::plan p = one_by_one(network);
  for (std::uint32_t n = 0; n < 3; ++n) p.chosen.groups[n] = kernel_group({n}, "stopper", network.node(n).kind->name);
  memory m(network);
  const c::dynamic_engine engine = c::engine<c::backend_set<stopper>>(network, p);
  c::dynamic_context context = engine.context();
  const auto message = [&](const c::run_limits& limits) -> std::string {
    try {
      context.run(m.inputs, m.outputs, limits);
    } catch (const c::error& e) {
      EXPECT_EQ(e.kind(), c::error_kind::cancelled);
      EXPECT_EQ(e.exit_code(), 1);
      return e.what();
    }
    return "";
  };
  EXPECT_EQ(message({}), "");
  expect_right(network, m);
  EXPECT_EQ(message({.seconds = 3600}), "");
  // The flag is set by the second step.
  stopper::flag = false;
  EXPECT_EQ(message({.stop = &stopper::flag}),
            "run: was ended before step 3 of 3 (add_2), because the caller stopped it");
  EXPECT_EQ(message({.stop = &stopper::flag}),
            "run: was ended before step 1 of 3 (add_0), because the caller stopped it");
  for (const double passed : {0.0, -1.0})
    EXPECT_EQ(message({.seconds = passed}), "run: was ended before step 1 of 3 (add_0), because its time is over");
  // Arguments are checked first, and the context can run again.
  EXPECT_THROW(context.run({}, {}, c::run_limits{.seconds = 0}), c::error);
  for (c::tensor& t : m.out) std::ranges::fill(t.as<float>(), -7.0F);
  context.run(m.inputs, m.outputs);
  expect_right(network, m);
}

TEST(engine, keeps_only_the_constants_its_kernels_read) {
  c::graph_builder g;
  const c::value x = g.input("x", {c::dtype::f32, {4}});
  const c::value used = g.constant("used", {c::dtype::f32, {4}}, {-1, 1});
  g.constant("unused", {c::dtype::f32, {4}}, {-1, 1});
  g.output("y", g(op::add, x, used));
  c::graph network = g.finish();
  c::fill_constants(network);
  const std::weak_ptr<const std::byte> kept = network.constant(1).bytes;
  const std::weak_ptr<const std::byte> dropped = network.constant(2).bytes;
  const c::dynamic_engine e = c::engine<set>(network, one_by_one(network));
  network = c::graph();
  EXPECT_FALSE(kept.expired());
  EXPECT_TRUE(dropped.expired());
}

/// Packs what it adds; and notes, while it packs, how many of some constants are in memory.
struct packer : c::backend<"packer"> {
  using patterns = c::patterns<c::single<op::add>>;
  static inline std::vector<std::weak_ptr<const std::byte>> watched;
  static inline std::vector<std::size_t> alive;

  static c::kernel build(const c::match<c::single<op::add>>& m, c::build_context& context) {
    alive.push_back(
        static_cast<std::size_t>(std::ranges::count_if(watched, [](const auto& w) { return !w.expired(); })));
    const std::uint32_t v = m.record().argument[1];
    const std::size_t bytes = m.graph().values[v].type.bytes();
    const auto* const contents = context.constant<std::byte>(v);
    auto packed = context.packed(v, "as it is", bytes, [&](std::byte* to) { std::copy_n(contents, bytes, to); });
    c::kernel made("packed", [packed, count = bytes / sizeof(float)](const c::kernel_call& call) {
      for (std::size_t i = 0; i < count; ++i)
        static_cast<float*>(call.out[0])[i] =
            static_cast<const float*>(call.in[0])[i] + reinterpret_cast<const float*>(packed.get())[i];
    });
    return std::move(made.does_not_read(1));
  }
};

TEST(engine, takes_over_the_constants_of_a_network_that_it_may_keep) {
  c::graph_builder g;
  const c::value x = g.input("x", {c::dtype::f32, {4}});
  const c::value shared = g.constant("shared", {c::dtype::f32, {4}}, {-1, 1});
  c::value y = g(op::add, x, shared);
  std::vector<c::value> weights;
  for (int i = 0; i < 3; ++i) {
    weights.push_back(g.constant("w" + std::to_string(i), {c::dtype::f32, {4}}, {-1, 1}));
    y = g(op::add, y, weights.back());
  }
  g.output("y", g(op::add, y, shared));
  g.output("shared", shared);
  c::graph network = g.finish();
  c::fill_constants(network);
  c::plan p = one_by_one(network);
  for (c::plan_group& group : p.chosen.groups) kernel_of(group).backend = "packer";
  packer::watched.clear();
  weights.push_back(shared);
  for (const c::value v : weights) packer::watched.push_back(network.constant(v.index).bytes);

  memory m(network), again(network);
  packer::alive.clear();
  const c::dynamic_engine kept = c::engine<c::backend_set<packer>>(network, p);
  EXPECT_EQ(packer::alive, std::vector<std::size_t>(5, 4U));
  kept.context().run(m.inputs, m.outputs);
  packer::alive.clear();
  const c::dynamic_engine alone = c::engine<c::backend_set<packer>>(std::move(network), p);
  EXPECT_EQ(packer::alive, (std::vector<std::size_t>{4, 4, 3, 2, 1}));  // those that were packed are gone
  alone.context().run(again.inputs, again.outputs);
  for (std::size_t o = 0; o < 2; ++o)
    for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(again.out[o].as<float>()[i], m.out[o].as<float>()[i]);
  try {
    (void)c::engine<c::backend_set<packer>>(network, p);
    FAIL();
  } catch (const c::error& e) {
    EXPECT_NE(std::string(e.what()).find("contents are missing"), std::string::npos) << e.what();
  }
}

/// Two operators that end in a third, listed in the order of the pattern: that of the branches, then the root.
struct fan : c::backend<"fan"> {
  struct sum_of_both : c::pattern<"sum_of_both"> {
    static constexpr auto expr = op::add(op::neg(c::any), op::relu(c::any));
  };
  using patterns = c::patterns<sum_of_both>;
  static c::kernel build(const c::match<sum_of_both>&, c::build_context&) {
    return {"fan", [](const c::kernel_call&) {}};
  }
};

TEST(engine, takes_plans_that_list_a_group_in_another_order) {
  c::graph_builder g;
  const c::value x = g.input("x", {c::dtype::f32, {4}});
  const c::value r = g(op::relu, x);
  g.output(g(op::add, g(op::neg, x), r));
  const c::graph network = g.finish();
  c::plan p;
  p.fingerprint = network.fingerprint();
  p.chosen.groups = {kernel_group({1, 0, 2}, "fan", "sum_of_both")};
  EXPECT_EQ(c::engine<c::backend_set<fan>>(network, p).steps().size(), 1U);
  p.chosen.groups[0].nodes = {1, 0, 0};
  EXPECT_NE(message_of([&] { (void)c::engine<c::backend_set<fan>>(network, p); }).find("runs node relu_0 twice"),
            std::string::npos);
}

TEST(engine, refuses_plans_that_do_not_fit) {
  const c::graph network = two_sums();
  const c::plan good = one_by_one(network);
  const auto with = [&](auto change) {
    return message_of([&] {
      c::plan p = good;
      change(p);
      (void)c::engine<set>(network, p);
    });
  };
  EXPECT_NE(with([](c::plan& p) { p.fingerprint ^= 1; }).find("the plan was made for another network"),
            std::string::npos);
  EXPECT_NE(with([](c::plan& p) { p.chosen.groups.pop_back(); }).find("does not run node add_2"), std::string::npos);
  EXPECT_NE(with([](c::plan& p) { p.chosen.groups.push_back(p.chosen.groups[0]); }).find("runs node add_0 twice"),
            std::string::npos);
  EXPECT_NE(with([](c::plan& p) { std::swap(p.chosen.groups[0], p.chosen.groups[1]); }).find("before it is computed"),
            std::string::npos);
  EXPECT_NE(with([](c::plan& p) {
              kernel_of(p.chosen.groups[0]).backend = "nobody";
            }).find("backend nobody is not in this program's set"),
            std::string::npos);
  EXPECT_NE(with([](c::plan& p) { kernel_of(p.chosen.groups[0]).pattern = "conv"; }).find("has no pattern conv"),
            std::string::npos);
  EXPECT_NE(with([](c::plan& p) { kernel_of(p.chosen.groups[0]).pattern = "relu"; }).find("does not match there"),
            std::string::npos);
  for (const char* const configuration : {"1", "-1", "01", "first", ""})
    EXPECT_NE(with([&](c::plan& p) {
                kernel_of(p.chosen.groups[0]).configuration = configuration;
              }).find(std::string("loops has no configuration ") + configuration + " for pattern add"),
              std::string::npos)
        << configuration;
  for (const c::plan_step& step : {c::plan_step(c::conversion_step()), c::plan_step(c::copy_step())})
    EXPECT_NE(with([&](c::plan& p) { p.chosen.groups[0].step = step; }).find("runs no operator at node add_0"),
              std::string::npos);
  EXPECT_NE(
      with([](c::plan& p) { p.chosen.groups[0].nodes = {99}; }).find("names node 99, but the network has 3 nodes"),
      std::string::npos);
  EXPECT_NE(with([](c::plan& p) { p.chosen.groups[0].nodes.clear(); }).find("a group without nodes"),
            std::string::npos);
}

TEST(engine, refuses_tensors_that_do_not_fit) {
  const c::graph network = two_sums();
  c::dynamic_context context = c::engine<set>(network, one_by_one(network)).context();
  memory m(network);
  const c::tensor wrong({c::dtype::f32, {3, 2}});
  std::vector<c::const_tensor_view> inputs = m.inputs;
  inputs[1] = wrong;
  EXPECT_EQ(message_of([&] { context.run(inputs, m.outputs); }),
            "input y: is float32[3x2], but the network needs float32[2x3]");
  inputs[1] = c::const_tensor_view(nullptr, m.inputs[1].type);
  EXPECT_EQ(message_of([&] { context.run(inputs, m.outputs); }), "input y: has no memory");
  inputs.pop_back();
  EXPECT_EQ(message_of([&] { context.run(inputs, m.outputs); }), "run: takes 2 inputs and 1 outputs, not 1 and 1");
}

}  // namespace run_engine_test
