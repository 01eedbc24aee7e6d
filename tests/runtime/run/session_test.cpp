// Sessions over networks made by functions: results at random shapes, the limits on engines, shared weights, threads, wrong use.
#include "support/effort.hpp"
#include "support/messages.hpp"
#include "support/own_memory.hpp"
#include "support/random_numbers.hpp"
#include "support/sessions.hpp"

#include <collage/backends/reference.hpp>
#include <collage/ops.hpp>
#include <collage/run/agreement.hpp>
#include <collage/run/buffers.hpp>
#include <collage/run/session.hpp>

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace run_session_test {

namespace c = collage;
namespace op = collage::ops;
using collage_test::cases;
using collage_test::message_of;
using collage_test::unmeasured_session;

/// y = relu(x w + b) + mean over the columns; x is float32[rows x 3], and weights are the same at all shapes.
struct rows_network {
  std::shared_ptr<const std::byte> weights = [] {
    const auto bytes = c::allocate_bytes(12 * sizeof(float));
    for (int i = 0; i < 12; ++i) reinterpret_cast<float*>(bytes.get())[i] = 0.25F * static_cast<float>(i % 5) - 0.5F;
    return bytes;
  }();

  c::graph operator()(std::span<const c::shape> dims) const {
    c::graph_builder g;
    const c::value x = g.input("x", {c::dtype::f32, dims[0]});
    const c::value w = g.constant("w", {c::dtype::f32, {3, 4}}, weights);
    // Computed when the network is optimised: equal contents at every shape, at another address each time.
    const c::value doubled = g(op::add, w, w);
    const c::value y = g(op::relu, g(op::matmul, x, doubled));
    g.output("y", y);
    g.output("same", x);
    return g.finish();
  }
};

c::session rows_session(const c::session_options& options = {}) {
  const auto source = c::source_of({{.name = "x", .dims = {c::unknown, 3}, .symbols = {"rows", ""}}},
                                   {{.name = "y"}, {.name = "same"}}, rows_network{});
  return unmeasured_session(source, options);
}

c::tensor random_rows(std::int64_t rows, std::uint64_t seed) {
  c::tensor x(c::tensor_type{c::dtype::f32, {rows, 3}});
  std::mt19937_64 random(seed);
  c::fill_random(x, random);
  return x;
}

/// Why the outputs of a run are not those of the reference; empty if they are.
std::string difference(std::span<const c::session_output> outputs, const c::tensor& x) {
  const c::shape dims[] = {x.type().dims};
  const std::vector<c::const_tensor_view> inputs{x};
  const std::vector<c::oracle_value> expected = c::evaluate(rows_network{}(dims), inputs);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (outputs[i].contents.type != expected[i].type) return outputs[i].name + " has another type";
    if (const c::agreement a = c::compare(outputs[i].contents, expected[i]); !a) return outputs[i].name + ": " + a.why;
  }
  return "";
}

TEST(session, runs_at_any_shape_and_makes_one_engine_for_each) {
  const c::session session = rows_session();
  ASSERT_EQ(session.inputs().size(), 1U);
  EXPECT_EQ(session.inputs()[0].symbols[0], "rows");
  c::session_context context = session.context();
  for (const std::int64_t rows : {1, 7, 0, 7, 64, 1, 33}) {
    const c::tensor x = random_rows(rows, static_cast<std::uint64_t>(rows));
    EXPECT_EQ(difference(context.run({x}), x), "") << rows;
  }
  EXPECT_EQ(session.state().made, 5U);
  EXPECT_EQ(session.state().engines, 5U);
}

TEST(session, random_shapes_agree_with_the_reference) {
  const c::session session = rows_session({.most_engines = 4});
  c::session_context context = session.context();
  const auto seed = collage_test::fresh_seed();
  std::mt19937_64 random(seed);
  for (int i = 0; i < cases(60); ++i) {
    const c::tensor x = random_rows(static_cast<std::int64_t>(random() % 12), random());
    ASSERT_EQ(difference(context.run({x}), x), "") << "seed " << seed;
    ASSERT_LE(session.state().engines, 4U);
  }
}

TEST(session, writes_into_the_callers_memory) {
  const c::session session = rows_session();
  c::session_context context = session.context();
  const c::tensor x = random_rows(5, 1);
  const c::tensor y(c::tensor_type{c::dtype::f32, {5, 4}}), same(x.type());
  const std::vector<c::const_tensor_view> in{x};
  const std::vector<c::tensor_view> out{y, same};
  context.run(in, out);
  const std::vector<c::session_output> views{{"y", y}, {"same", same}};
  EXPECT_EQ(difference(views, x), "");
}

TEST(session, gives_back_the_engines_that_ran_longest_ago) {
  const c::session session = rows_session({.most_engines = 2});
  c::session_context context = session.context();
  const auto run = [&](std::int64_t rows) {
    const c::tensor x = random_rows(rows, 3);
    EXPECT_EQ(difference(context.run({x}), x), "") << rows;
  };
  run(1);
  run(2);
  run(1);
  run(3);  // in place of 2
  EXPECT_EQ(session.state().engines, 2U);
  EXPECT_EQ(session.state().given_back, 1U);
  run(1);
  EXPECT_EQ(session.state().made, 3U);
  run(2);
  EXPECT_EQ(session.state().made, 4U);
}

TEST(session, outputs_of_a_run_may_be_inputs_of_the_next) {
  // As a cache that grows: each run appends two rows to its input.
  const auto source = c::source_of(
      {{.name = "cache", .dims = {c::unknown, 3}}}, {{.name = "more"}}, [](std::span<const c::shape> dims) {
        c::graph_builder g;
        const c::value old = g.input("cache", {c::dtype::f32, dims[0]});
        const c::value rows = g.constant("rows", {c::dtype::f32, {2, 3}}, c::uniform{1, 2});
        g.output("more", g(op::concat, old, rows, {.axis = 0}));
        c::graph made = g.finish();
        c::fill_constants(made);
        return made;
      });
  const c::session session = unmeasured_session(source);
  c::session_context context = session.context();
  const c::tensor empty(c::tensor_type{c::dtype::f32, {0, 3}});
  c::const_tensor_view cache = empty;
  std::vector<float> rows;
  for (std::int64_t n = 1; n <= 20; ++n) {
    cache = context.run({cache})[0].contents;
    ASSERT_EQ(cache.type.dims, (c::shape{2 * n, 3}));
    const auto all = cache.as<float>();
    if (n == 1) rows.assign(all.begin(), all.end());
    for (std::size_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i], rows[i % 6]);
  }
}

TEST(session, an_output_may_have_the_name_of_an_input) {
  const auto source = c::source_of({{.name = "a", .dims = {c::unknown}}, {.name = "state", .dims = {c::unknown}}},
                                   {{.name = "state"}}, [](std::span<const c::shape> dims) {
                                     c::graph_builder g;
                                     const c::value a = g.input("a", {c::dtype::f32, dims[0]}),
                                                    s = g.input("state", {c::dtype::f32, dims[1]});
                                     g.output("state", g(op::sub, a, s));
                                     return g.finish();
                                   });
  const c::session session = unmeasured_session(source);
  c::session_context context = session.context();
  const c::tensor a(c::tensor_type{c::dtype::f32, {1}}), s(c::tensor_type{c::dtype::f32, {1}});
  a.as<float>()[0] = 5;
  s.as<float>()[0] = 2;
  EXPECT_EQ(context.run({a, s})[0].contents.as<float>()[0], 3);
}

TEST(session, an_output_that_is_an_input_is_copied) {
  const c::session session = rows_session();
  c::session_context context = session.context();
  const c::tensor x = random_rows(2, 1);
  const c::const_tensor_view same = context.run({x})[1].contents;
  const float before = x.as<float>()[0];
  x.as<float>()[0] = before + 1;
  EXPECT_EQ(same.as<float>()[0], before);
}

TEST(session, few_bytes_leave_it_usable) {
  const c::session session = rows_session({.most_bytes = 1});
  c::session_context context = session.context();
  for (const std::int64_t rows : {1, 2, 3, 1, 2}) {
    const c::tensor x = random_rows(rows, 3);
    EXPECT_EQ(difference(context.run({x}), x), "") << rows;
  }
}

TEST(session, keeps_one_engine_if_it_may_keep_none) {
  const c::session session = rows_session({.most_engines = 0});
  c::session_context context = session.context();
  for (const std::int64_t rows : {1, 1, 2, 1}) {
    const c::tensor x = random_rows(rows, 3);
    EXPECT_EQ(difference(context.run({x}), x), "") << rows;
    EXPECT_EQ(session.state().engines, 1U);
  }
  EXPECT_EQ(session.state().made, 3U);
}

TEST(session, values_larger_than_it_may_have_are_refused) {
  const c::session session = rows_session({.most_value_bytes = 64});
  c::session_context context = session.context();
  for (const std::int64_t rows : {4, 5, 4}) {
    const c::tensor x = random_rows(rows, 1);
    if (rows == 4) EXPECT_EQ(difference(context.run({x}), x), "");
    else
      EXPECT_EQ(message_of([&] { (void)context.run({x}); }, c::error_kind::invalid_argument),
                "value matmul_1, float32[5x4]: has 80 bytes at these shapes, and a value may have 64; raise "
                "session_options::most_value_bytes");
  }
}

TEST(session, memory_that_the_process_may_not_have_is_refused) {
  if (collage_test::keeps_memory) GTEST_SKIP() << "the sanitizer's own memory counts";
  const c::session session = rows_session();
  c::session_context context = session.context();
  const c::tensor x = random_rows(std::int64_t{1} << 20, 1), few = random_rows(3, 1);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  rlimit lower = before;
  lower.rlim_cur = collage_test::own_memory("VmSize") + (std::size_t{8} << 20);
  ASSERT_EQ(setrlimit(RLIMIT_AS, &lower), 0);
  const std::string said = message_of([&] { (void)context.run({x}); }, c::error_kind::environment);
  const std::string still = difference(context.run({few}), few);
  ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_TRUE(collage_test::contains(said, "needs 16.8 MB, but the limit of the address space (ulimit -v) is")) << said;
  EXPECT_EQ(still, "");
  EXPECT_EQ(context.run({x})[0].contents.type.dims, (c::shape{std::int64_t{1} << 20, 4}));
}

TEST(session, constants_of_one_shape_do_not_pile_up) {
  // Every network has a constant of its own, besides the one of all.
  std::vector<std::weak_ptr<const std::byte>> made;
  const rows_network whole;
  const auto source =
      c::source_of({{.name = "x", .dims = {c::unknown, 3}}}, {{.name = "y"}}, [&](std::span<const c::shape> dims) {
        const auto own = c::allocate_bytes(4 * sizeof(float));
        std::fill_n(reinterpret_cast<float*>(own.get()), 4, static_cast<float>(dims[0][0]));
        made.push_back(own);
        c::graph_builder g;
        const c::value x = g.input("x", {c::dtype::f32, dims[0]});
        const c::value y = g(op::matmul, x, g.constant("w", {c::dtype::f32, {3, 4}}, whole.weights));
        g.output("y", g(op::add, y, g.constant("own", {c::dtype::f32, {4}}, own)));
        return g.finish();
      });
  const c::session session = unmeasured_session(source, {.most_engines = 2});
  c::session_context context = session.context();
  for (std::int64_t rows = 1; rows <= 40; ++rows) {
    const c::tensor x = random_rows(rows, 1);
    (void)context.run({x});
  }
  const auto alive = std::ranges::count_if(made, [](const auto& bytes) { return !bytes.expired(); });
  EXPECT_LE(alive, 12);
  EXPECT_GE(alive, 2);
}

TEST(session, threads_share_engines) {
  const c::session session = rows_session();
  std::vector<std::string> wrong(4);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < wrong.size(); ++t)
    threads.emplace_back([&, t] {
      c::session_context context = session.context();
      for (int i = 0; i < cases(40) && wrong[t].empty(); ++i) {
        const c::tensor x = random_rows(1 + (i + static_cast<int>(t)) % 6, t);
        wrong[t] = difference(context.run({x}), x);
      }
    });
  for (std::thread& t : threads) t.join();
  for (const std::string& w : wrong) EXPECT_EQ(w, "");
  EXPECT_EQ(session.state().made, 6U);
}

TEST(session, making_one_engine_blocks_no_other) {
  std::atomic<bool> may_end = false, is_making = false;
  const auto source = c::source_of({{.name = "x", .dims = {c::unknown, 3}}}, {{.name = "y"}, {.name = "same"}},
                                   [&](std::span<const c::shape> dims) {
                                     if (dims[0][0] == 9) {
                                       is_making = true;
                                       while (!may_end) std::this_thread::yield();
                                     }
                                     return rows_network{}(dims);
                                   });
  const c::session session = unmeasured_session(source);
  std::string wrong;
  std::thread slow([&] {
    const c::tensor x = random_rows(9, 1);
    c::session_context context = session.context();
    wrong = difference(context.run({x}), x);
  });
  while (!is_making) std::this_thread::yield();
  const c::tensor x = random_rows(2, 1);
  c::session_context context = session.context();
  EXPECT_EQ(difference(context.run({x}), x), "");
  may_end = true;
  slow.join();
  EXPECT_EQ(wrong, "");
}

TEST(session, a_failure_leaves_the_session_usable) {
  const auto source = c::source_of({{.name = "x", .dims = {c::unknown, 3}}}, {{.name = "y"}, {.name = "same"}},
                                   [](std::span<const c::shape> dims) {
                                     if (dims[0][0] == 4)
                                       throw c::error(c::error_kind::unsupported, "cannot have 4 rows", "network");
                                     return rows_network{}(dims);
                                   });
  const c::session session = unmeasured_session(source);
  c::session_context context = session.context();
  const c::tensor good = random_rows(3, 1), bad = random_rows(4, 1);
  EXPECT_EQ(message_of([&] { (void)context.run({bad}); }, 2), "network: cannot have 4 rows");
  EXPECT_EQ(message_of([&] { (void)context.run({bad}); }, 2), "network: cannot have 4 rows");
  EXPECT_EQ(difference(context.run({good}), good), "");
}

TEST(session, says_what_is_wrong_with_inputs) {
  const c::session session = rows_session();
  c::session_context context = session.context();
  const c::tensor wide(c::tensor_type{c::dtype::f32, {2, 4}}), whole(c::tensor_type{c::dtype::i64, {2, 3}}),
      flat(c::tensor_type{c::dtype::f32, {3}});
  const auto message = [&](const c::tensor& x) { return message_of([&] { (void)context.run({x}); }, 2); };
  EXPECT_EQ(message(wide), "input x: is given as 2x4, but the network declares ?x3");
  EXPECT_EQ(message(whole), "input x: is given as int64, and the network takes float32");
  EXPECT_EQ(message(flat), "input x: is given as 3, but the network declares ?x3");
  EXPECT_EQ(message_of([&] { (void)context.run({}); }, 2), "a run: it takes 1 input, not 0");
  const c::tensor x = random_rows(2, 1), y(c::tensor_type{c::dtype::f32, {3, 4}});
  const std::vector<c::const_tensor_view> in{x};
  const std::vector<c::tensor_view> out{y, x};
  EXPECT_EQ(message_of([&] { context.run(in, out); }, 2),
            "output y: is float32[2x4] at these shapes, and the memory given for it float32[3x4]");
}

TEST(session, runs_within_limits) {
  const c::session session = rows_session();
  c::session_context context = session.context();
  const c::tensor x = random_rows(2, 1);
  (void)context.run({x});
  const std::atomic<bool> stop = true;
  EXPECT_THROW((void)context.run({x}, {.stop = &stop}), c::error);
  EXPECT_THROW((void)context.run({x}, {.seconds = 0}), c::error);
  EXPECT_EQ(difference(context.run({x}), x), "");
}

}  // namespace run_session_test
