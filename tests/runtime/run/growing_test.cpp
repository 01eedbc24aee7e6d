// Runs of a session with growing caches: random sequences against caches of exact length, what padding changes, wrong use.
#include "support/effort.hpp"
#include "support/messages.hpp"
#include "support/random_numbers.hpp"
#include "support/sessions.hpp"

#include <collage/ops.hpp>
#include <collage/run/buffers.hpp>
#include <collage/run/growing.hpp>
#include <collage/run/session.hpp>
#include <collage/run/verify.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace run_growing_test {

namespace c = collage;
namespace op = collage::ops;
using collage_test::cases;
using collage_test::message_of;
using collage_test::unmeasured_session;

constexpr std::int64_t heads = 2, width = 3;

/// Attention over the words before. From q, float32[batch x heads x k x width], mask, float32[batch x 1 x 1 x T+k], and the caches
/// keys, [batch x heads x T x width], and values, [batch x heads x width x T]:
///   keys_next = keys and q, values_next = values and q transposed; y = softmax(q keys_next' + mask) values_next'
c::graph attention(std::span<const c::shape> dims) {
  c::graph_builder g;
  const c::value q = g.input("q", {c::dtype::f32, dims[0]});
  const c::value keys = g.input("keys", {c::dtype::f32, dims[1]});
  const c::value mask = g.input("mask", {c::dtype::f32, dims[2]});
  const c::value values = g.input("values", {c::dtype::f32, dims[3]});
  const c::value all_keys = g(op::concat, keys, q, {.axis = 2});
  const c::value all_values = g(op::concat, values, g(op::transpose, q, {.permutation = {0, 1, 3, 2}}), {.axis = 3});
  const c::value scores = g(op::add, g(op::matmul, q, all_keys, {.transpose_b = true}), mask);
  g.output("y", g(op::matmul, g(op::softmax, scores, {.axis = 3}), all_values, {.transpose_b = true}));
  g.output("keys_next", all_keys);
  g.output("values_next", all_values);
  return g.finish();
}

c::open_port port(const char* name, const c::shape& dims, std::vector<std::string> symbols,
                  c::dtype type = c::dtype::f32) {
  return {.name = name, .type = type, .dims = dims, .symbols = std::move(symbols)};
}

c::session session_of_words(const c::session_options& options = {}) {
  constexpr std::int64_t any = c::unknown;
  const auto source = c::source_of({port("q", {any, heads, any, width}, {"batch", "", "k", ""}),
                                    port("keys", {any, heads, any, width}, {"batch", "", "past", ""}),
                                    port("mask", {any, 1, 1, any}, {"batch", "", "", "past + k"}),
                                    port("values", {any, heads, width, any}, {"batch", "", "", "past"})},
                                   {port("y", {any, heads, any, width}, {"batch", "", "k", ""}),
                                    port("keys_next", {any, heads, any, width}, {"batch", "", "past + k", ""}),
                                    port("values_next", {any, heads, width, any}, {"batch", "", "", "past + k"})},
                                   attention);
  return unmeasured_session(source, options);
}

c::growing_options growing(std::vector<std::int64_t> capacities) {
  return {.caches = {{.input = "keys", .output = "keys_next", .dimension = 2},
                     {.input = "values", .output = "values_next", .dimension = 3}},
          .capacities = std::move(capacities),
          .masks = {{.input = "mask", .dimension = 3, .value = -std::numeric_limits<double>::infinity()}}};
}

struct words {
  c::tensor q, mask;
  words(std::int64_t batch, std::int64_t count, std::int64_t past, std::uint64_t seed)
      : q(c::tensor_type{c::dtype::f32, {batch, heads, count, width}}),
        mask(c::tensor_type{c::dtype::f32, {batch, 1, 1, past + count}}) {
    std::mt19937_64 random(seed);
    c::fill_random(q, random);
    c::fill_random(mask, random);
  }
};

bool are_close(const c::const_tensor_view& a, const c::const_tensor_view& b) {
  return a.type == b.type && c::compare(a, c::to_oracle(b));
}

TEST(growing, random_sequences_give_the_results_of_exact_lengths) {
  const c::session session = session_of_words();
  c::growing_context context(session, growing({0, 4, 8, 24}));
  ASSERT_EQ(context.inputs().size(), 2U);
  ASSERT_EQ(context.outputs().size(), 1U);
  const auto seed = collage_test::fresh_seed();
  std::mt19937_64 random(seed);
  for (int i = 0; i < cases(12); ++i) {
    const auto batch = 1 + static_cast<std::int64_t>(random() % 3);
    context.reset();
    EXPECT_EQ(context.capacity(), 0);
    c::tensor keys(c::tensor_type{c::dtype::f32, {batch, heads, 0, width}}),
        values(c::tensor_type{c::dtype::f32, {batch, heads, width, 0}});
    c::session_context exact = session.context();
    for (std::int64_t past = 0; past < 20;) {
      const auto count = std::int64_t{1} + (past == 0 ? static_cast<std::int64_t>(random() % 6) : 0);
      const words in(batch, count, past, random());
      const auto right = exact.run({in.q, keys, in.mask, values});
      const auto found = context.run({in.q, in.mask});
      ASSERT_EQ(found.size(), 1U);
      ASSERT_TRUE(are_close(found[0].contents, right[0].contents)) << "after " << past << " words, seed " << seed;
      past += count;
      ASSERT_EQ(context.length(), past);
      ASSERT_EQ(context.capacity(), past <= 4 ? 4 : past <= 8 ? 8 : 24);
      ASSERT_TRUE(are_close(context.cache("keys"), right[1].contents)) << "seed " << seed;
      ASSERT_TRUE(are_close(context.cache("values"), right[2].contents)) << "seed " << seed;
      keys = context.cache("keys");
      values = context.cache("values");
    }
  }
}

TEST(growing, one_engine_serves_each_capacity) {
  const c::session session = session_of_words();
  c::growing_context context(session, growing({16, 64}));
  for (std::int64_t past = 0; past < 40; ++past) {
    const words in(1, 1, past, 5);
    (void)context.run({in.q, in.mask});
  }
  EXPECT_EQ(session.state().made, 2U);
}

TEST(growing, outputs_stay_until_the_run_after_the_next) {
  c::growing_context context(session_of_words(), growing({16}));
  const words a(1, 2, 0, 1), b(1, 1, 2, 2);
  const auto first = context.run({a.q, a.mask});
  const std::vector<float> kept(first[0].contents.as<float>().begin(), first[0].contents.as<float>().end());
  (void)context.run({b.q, b.mask});
  EXPECT_TRUE(std::ranges::equal(first[0].contents.as<float>(), kept));
}

TEST(growing, padding_that_changes_results_is_found) {
  c::growing_context masked(session_of_words(), growing({8}));
  c::growing_options open = growing({8});
  open.masks[0].value = 0;
  c::growing_context unmasked(session_of_words(), open);
  for (c::growing_context* const context : {&masked, &unmasked}) {
    const words first(2, 3, 0, 1), second(2, 1, 3, 2);
    (void)context->run({first.q, first.mask});
    const std::vector<c::const_tensor_view> in{second.q, second.mask};
    const auto found = context->check(in);
    ASSERT_EQ(found.size(), 3U);
    EXPECT_EQ(found[0].output, "y");
    EXPECT_EQ(static_cast<bool>(found[0].found), context == &masked);
    EXPECT_TRUE(found[1].found && found[2].found);  // the new elements are those of q
    EXPECT_EQ(context->length(), 3);
  }
}

TEST(growing, caches_are_shortened_kept_and_restored) {
  c::growing_context context(session_of_words(), growing({4, 16}));
  const words prompt(1, 6, 0, 1);
  (void)context.run({prompt.q, prompt.mask});
  const c::tensor keys = context.cache("keys"), values = context.cache("values");
  EXPECT_EQ(keys.type().dims, c::shape({1, heads, 6, width}));
  const words next(1, 1, 6, 2);
  const auto y = context.run({next.q, next.mask});
  const std::vector<float> expected(y[0].contents.as<float>().begin(), y[0].contents.as<float>().end());
  const auto runs_again = [&] {
    EXPECT_EQ(context.length(), 6);
    const auto again = context.run({next.q, next.mask});
    EXPECT_TRUE(std::ranges::equal(again[0].contents.as<float>(), expected));
  };
  context.shorten(6);
  runs_again();
  context.reset();
  EXPECT_EQ(context.length(), 0);
  const std::vector<c::const_tensor_view> kept{keys, values};
  context.restore(kept);
  runs_again();
  // What is cut off leaves nothing behind, not even NaN.
  c::tensor broken = context.cache("keys");
  broken.as<float>().back() = std::numeric_limits<float>::quiet_NaN();
  const c::tensor others = context.cache("values");
  const std::vector<c::const_tensor_view> with_nan{broken, others};
  context.restore(with_nan);
  context.shorten(6);
  runs_again();
}

TEST(growing, failures_leave_the_caches) {
  c::growing_context context(session_of_words(), growing({2, 4}));
  const words first(1, 3, 0, 1), many(1, 2, 3, 2), last(1, 1, 3, 3);
  (void)context.run({first.q, first.mask});
  EXPECT_EQ(
      message_of([&] { (void)context.run({many.q, many.mask}); }),
      "caches: they would have 5 elements, and the largest capacity is 4; shorten or reset them, or allow a larger "
      "capacity");
  EXPECT_EQ(message_of([&] { (void)context.run({many.q, first.mask}); }).find("caches"), std::string::npos);
  EXPECT_EQ(context.length(), 3);
  (void)context.run({last.q, last.mask});
  EXPECT_EQ(context.length(), 4);
  EXPECT_EQ(message_of([&] { (void)context.run({last.q, first.mask}); }),
            "input mask: has 3 elements, and the caches have 4");
  EXPECT_EQ(message_of([&] { (void)context.run({last.q}); }), "a run: it takes 2 inputs, not 1");
  EXPECT_EQ(message_of([&] { context.shorten(5); }),
            "shortening caches: they have 4 elements, so that 5 cannot be kept");
  EXPECT_EQ(message_of([&] { (void)context.cache("q"); }), "cache q: there is no such cache");
  EXPECT_EQ(message_of([&] { context.restore({}); }), "restoring caches: there are 2 caches, and 0 were given");
  const c::tensor keys = context.cache("keys");
  const std::vector<c::const_tensor_view> twice{keys, keys};
  EXPECT_NE(message_of([&] { context.restore(twice); }).find("cache values: is given as"), std::string::npos);
  EXPECT_EQ(context.length(), 4);
}

TEST(growing, a_first_run_that_fails_leaves_the_shape_of_caches_open) {
  c::growing_context context(session_of_words(), growing({0, 4}));
  const words of_three(3, 1, 0, 1), of_one(1, 1, 0, 2), next(1, 1, 1, 3);
  EXPECT_NE(message_of([&] { (void)context.run({of_three.q, of_three.mask}, {.seconds = -1}); }), "");
  const std::vector<c::const_tensor_view> three{of_three.q, of_three.mask};
  for (const c::bucket_difference& d : context.check(three)) EXPECT_TRUE(d.found) << d.output;
  EXPECT_EQ(message_of([&] { (void)context.cache("keys"); }), "cache keys: has no shape before the first run");
  const auto first = context.run({of_one.q, of_one.mask});
  const std::vector<float> kept(first[0].contents.as<float>().begin(), first[0].contents.as<float>().end());
  // Checks and one more run leave its outputs.
  const std::vector<c::const_tensor_view> one{next.q, next.mask};
  for (int i = 0; i < 3; ++i) (void)context.check(one);
  (void)context.run({next.q, next.mask});
  EXPECT_TRUE(std::ranges::equal(first[0].contents.as<float>(), kept));
  // Caches that do not fit each other are refused before the old ones go.
  const c::tensor keys(c::tensor_type{c::dtype::f32, {2, heads, 1, width}}),
      values(c::tensor_type{c::dtype::f32, {3, heads, width, 1}});
  const std::vector<c::const_tensor_view> apart{keys, values};
  EXPECT_EQ(message_of([&] { context.restore(apart); }),
            "cache values: is given as 3x2x3x1, and another cache has 2 in place of extent 0");
  EXPECT_EQ(context.length(), 2);
}

TEST(growing, wrong_options_are_refused) {
  const c::session session = session_of_words();
  const auto refusal = [&](auto change) {
    c::growing_options options = growing({4});
    change(options);
    return message_of([&] { c::growing_context(session, options); });
  };
  EXPECT_EQ(refusal([](c::growing_options& o) { o.capacities.clear(); }), "capacities: there are none");
  EXPECT_EQ(refusal([](c::growing_options& o) { o.capacities = {-1}; }), "capacities: one is negative");
  EXPECT_EQ(refusal([](c::growing_options& o) { o.caches.clear(); }), "caches: there are none");
  EXPECT_EQ(refusal([](c::growing_options& o) { o.caches[0].output = "z"; }), "cache keys: the network has no z");
  EXPECT_EQ(refusal([](c::growing_options& o) { o.caches[0].dimension = 1; }),
            "cache keys: dimension 1 of keys is not open");
  EXPECT_EQ(refusal([](c::growing_options& o) { o.caches[1] = o.caches[0]; }), "cache keys: is given twice");
  EXPECT_EQ(refusal([](c::growing_options& o) { o.caches[0].dims = {2, 2, 0, 4}; }),
            "cache keys: is given as 2x2x0x4, but the network declares ?x2x?x3");
  EXPECT_EQ(refusal([](c::growing_options& o) { o.masks[0].input = "keys"; }),
            "mask keys: dimension 3 of keys is not open");
  EXPECT_EQ(refusal([](c::growing_options& o) { o.masks.push_back(o.masks[0]); }), "mask mask: is given twice");
  EXPECT_EQ(
      message_of([&] { c::growing_context(session_of_words({.carried = {{"keys_next", "keys"}}}), growing({4})); }),
      "state keys: the session carries it, too; make a session that carries none");
}

TEST(growing, caches_need_new_elements_behind_the_old_ones) {
  constexpr std::int64_t any = c::unknown;
  const auto halving =
      c::source_of({port("x", {any}, {"T"})}, {port("y", {any}, {"U"})}, [](std::span<const c::shape> dims) {
        c::graph_builder g;
        const c::value x = g.input("x", {c::dtype::f32, dims[0]});
        g.output("y", g(op::slice, x, {.starts = {0}, .steps = {1}, .extents = {dims[0][0] / 2}}));
        return g.finish();
      });
  c::growing_context context(unmeasured_session(halving), {.caches = {{"x", "y", 0}}, .capacities = {4}, .masks = {}});
  EXPECT_EQ(message_of([&] { (void)context.run({}); }),
            "output y: is float32[2], and not float32[4] with new elements in dimension 0");
  EXPECT_EQ(context.length(), 0);
}

}  // namespace run_growing_test
