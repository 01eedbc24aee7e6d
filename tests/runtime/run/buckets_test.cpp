// Runs of sessions in buckets: padding and cutting at random shapes, what padding changes, the choice of a bucket, wrong use.
#include "support/effort.hpp"
#include "support/messages.hpp"
#include "support/random_numbers.hpp"
#include "support/sessions.hpp"

#include <collage/ops.hpp>
#include <collage/run/buckets.hpp>
#include <collage/run/buffers.hpp>
#include <collage/run/session.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace run_buckets_test {

namespace c = collage;
namespace op = collage::ops;
using collage_test::cases;
using collage_test::message_of;
using collage_test::unmeasured_session;

/// From x, float32[batch x T x 3], and ids, int64[T]:
///   each = softmax of the rows of x        [batch x T x 3]
///   sum = sum of x over T                  [batch x 3]
///   pairs = x times its transpose          [batch x T x T]
///   halves = x, two rows in one            [batch x T/2 x 6]
///   next = ids + 1                         [T]
c::graph network(std::span<const c::shape> dims) {
  c::graph_builder g;
  const c::value x = g.input("x", {c::dtype::f32, dims[0]});
  const c::value ids = g.input("ids", {c::dtype::i64, dims[1]});
  const std::int64_t batch = dims[0][0], length = dims[0][1];
  g.output("each", g(op::softmax, x, {.axis = 2}));
  g.output("sum", g(op::reduce_sum, x, {.axes = {1}, .keep_dims = false}));
  g.output("pairs", g(op::matmul, x, x, {.transpose_b = true}));
  g.output("halves", g(op::reshape, x, {.dims = {batch, length / 2, 6}}));
  g.output("next", g(op::add, ids, g.scalar("one", 1, c::dtype::i64)));
  return g.finish();
}

c::session session_of_rows(const c::session_options& options = {}) {
  const auto source =
      c::source_of({{.name = "x", .dims = {c::unknown, c::unknown, 3}, .symbols = {"batch", "T", ""}},
                    {.name = "ids", .type = c::dtype::i64, .dims = {c::unknown}, .symbols = {"T"}}},
                   {{.name = "each", .dims = {c::unknown, c::unknown, 3}, .symbols = {"batch", "T", ""}},
                    {.name = "sum", .dims = {c::unknown, 3}, .symbols = {"batch", ""}},
                    {.name = "pairs", .dims = {c::unknown, c::unknown, c::unknown}, .symbols = {"batch", "T", "T"}},
                    {.name = "halves", .dims = {c::unknown, c::unknown, 6}, .symbols = {"batch", "H", ""}},
                    {.name = "next", .type = c::dtype::i64, .dims = {c::unknown}, .symbols = {"T"}}},
                   network);
  return unmeasured_session(source, options);
}

c::bucket_options in_buckets(std::vector<c::bucket_list> buckets) {
  return {.buckets = std::move(buckets), .padding = {}, .cuts = {{"halves", 1, "T", 2}}};
}

/// Random inputs of a batch and length.
struct random_inputs {
  c::tensor x, ids;
  std::vector<c::const_tensor_view> views;

  random_inputs(std::int64_t batch, std::int64_t length, std::uint64_t seed)
      : x(c::tensor_type{c::dtype::f32, {batch, length, 3}}), ids(c::tensor_type{c::dtype::i64, {length}}) {
    std::mt19937_64 random(seed);
    c::fill_random(x, random);
    c::fill_random(ids, random);
    views = {x, ids};
  }
};

TEST(buckets, random_shapes_give_the_results_of_the_exact_shape) {
  c::bucketed_context context(session_of_rows(), in_buckets({{"T", {16, 4, 8}}, {"batch", {1, 2, 6}}}));
  const auto seed = collage_test::fresh_seed();
  std::mt19937_64 random(seed);
  for (int i = 0; i < cases(60); ++i) {
    const auto batch = static_cast<std::int64_t>(random() % 7), length = static_cast<std::int64_t>(random() % 9) * 2;
    const random_inputs in(batch, length, random());
    for (const c::bucket_difference& d : context.check(in.views))
      ASSERT_TRUE(d.found) << d.output << " at " << batch << " x " << length << ", seed " << seed << ": "
                           << d.found.why;
    EXPECT_GE(context.bucket()[0], length);
    EXPECT_LT(context.bucket()[0], length <= 4 ? 5 : length * 2);
    EXPECT_GE(context.bucket()[1], batch);
  }
}

TEST(buckets, padding_that_changes_results_is_found) {
  c::bucket_options padded = in_buckets({{"T", {8}}});
  padded.padding = {{"x", 0.5}};
  c::bucketed_context context(session_of_rows(), padded);
  const random_inputs in(2, 6, 1);
  for (const c::bucket_difference& d : context.check(in.views)) EXPECT_EQ(!d.found, d.output == "sum") << d.output;
  // A length that is a bucket's needs no padding.
  const random_inputs whole(2, 8, 1);
  for (const c::bucket_difference& d : context.check(whole.views)) EXPECT_TRUE(d.found) << d.output;
}

TEST(buckets, outputs_may_be_inputs_of_the_next_run) {
  c::bucketed_context context(session_of_rows(), in_buckets({{"T", {8}}}));
  random_inputs in(1, 6, 2);
  std::vector<std::int64_t> expected(in.ids.as<std::int64_t>().begin(), in.ids.as<std::int64_t>().end());
  std::vector<c::const_tensor_view> views = in.views;
  for (int i = 1; i <= 5; ++i) {
    const c::session_output next = context.run(views)[4];
    ASSERT_EQ(next.contents.type.dims, c::shape({6}));
    for (std::size_t k = 0; k < 6; ++k) ASSERT_EQ(next.contents.as<std::int64_t>()[k], expected[k] + i);
    views[1] = next.contents;
  }
}

TEST(buckets, outputs_stay_until_the_run_after_the_next) {
  c::bucketed_context context(session_of_rows(), in_buckets({{"T", {8}}}));
  const random_inputs first(1, 6, 7), second(1, 4, 8);
  const std::span<const c::session_output> a = context.run(first.views), b = context.run(second.views);
  EXPECT_EQ(a[4].contents.type.dims, c::shape({6}));
  EXPECT_EQ(b[4].contents.type.dims, c::shape({4}));
  EXPECT_EQ(a[4].contents.as<std::int64_t>()[5], first.ids.as<std::int64_t>()[5] + 1);
}

TEST(buckets, the_fastest_that_was_prepared_is_taken) {
  // At a length of 4 it multiplies large matrices, of which it needs nothing.
  const auto source =
      c::source_of({{.name = "x", .dims = {c::unknown}, .symbols = {"T"}}},
                   {{.name = "y", .dims = {c::unknown}, .symbols = {"T"}}}, [](std::span<const c::shape> dims) {
                     c::graph_builder g;
                     const c::value x = g.input("x", {c::dtype::f32, dims[0]});
                     c::value y = g(op::neg, x);
                     if (dims[0][0] == 4) {
                       c::value z = g(op::expand, g(op::reduce_sum, x, {.keep_dims = true}), {.dims = {400, 400}});
                       for (int i = 0; i < 4; ++i) z = g(op::matmul, z, z);
                       y = g(op::add, y, g(op::mul, g(op::reduce_max, z, {.keep_dims = false}), g.scalar("none", 0)));
                     }
                     g.output("y", y);
                     return g.finish();
                   });
  const c::session session = unmeasured_session(source);
  c::bucketed_context context(session, {{{"T", {4, 8}}}});
  const c::tensor x(c::tensor_type{c::dtype::f32, {3}});
  const std::vector<c::const_tensor_view> in{x};
  (void)context.run(in);
  EXPECT_EQ(context.bucket()[0], 4);
  context.prepare();
  (void)context.run(in);
  EXPECT_EQ(context.bucket()[0], 8);
}

TEST(buckets, only_the_declared_extents_get_engines) {
  const c::session session = session_of_rows();
  c::bucketed_context context(session, in_buckets({{"T", {4, 8}}}));
  for (const std::int64_t length : {2, 4, 6, 8, 2, 0}) (void)context.run(random_inputs(1, length, 3).views);
  EXPECT_EQ(session.state().made, 2U);
}

TEST(buckets, prepared_buckets_have_engines_and_serve_every_extent) {
  const c::session session = session_of_rows();
  c::bucketed_context context(session, in_buckets({{"T", {4, 8, 64}}}));
  const std::int64_t batch[] = {2};
  context.prepare(batch);
  EXPECT_EQ(session.state().made, 3U);
  for (const std::int64_t length : {0, 2, 4, 6, 8, 30, 64}) {
    const random_inputs in(2, length, 4);
    const c::session_output each = context.run(in.views)[0];
    EXPECT_EQ(each.contents.type.dims, c::shape({2, length, 3}));
    EXPECT_GE(context.bucket()[0], length);
  }
  EXPECT_EQ(session.state().made, 3U);
  EXPECT_NE(message_of([&] { context.prepare(); }).find("1 open extents without a bucket, and 0 were given"),
            std::string::npos);
}

TEST(buckets, wrong_use_is_told) {
  const c::session session = session_of_rows();
  const auto told = [&](const c::bucket_options& options) {
    return message_of([&] { c::bucketed_context(session, options); });
  };
  EXPECT_EQ(told({{{"L", {4}}}}), "bucket L: no input has an open extent of this name");
  EXPECT_EQ(told({{{"T", {}}}}), "bucket T: has no extents");
  EXPECT_EQ(told({{{"T", {4, -1}}}}), "bucket T: has a negative extent");
  EXPECT_EQ(told({{{"T", {4}}, {"T", {8}}}}), "bucket T: is given twice or has no name");
  EXPECT_EQ(told({{{"T", {4}}}, {{"y", 0}}}), "padding of y: the network has no such input");
  EXPECT_EQ(told({{{"T", {4}}}, {{"ids", 0.5}}}), "input ids: the padding 0.500000 is no int64");
  EXPECT_EQ(told({{{"T", {4}}}, {}, {{"z", 0, "T"}}}), "cut of z: the network has no such output");
  EXPECT_EQ(told({{{"T", {4}}}, {}, {{"sum", 0, "U"}}}), "cut of sum: there is no bucket of the name U");
  EXPECT_EQ(told({{{"T", {4}}}, {}, {{"sum", 0, "T", 0}}}),
            "cut of sum: has a divisor below 1, or an addend that is negative or too large");

  c::bucketed_context context(session, in_buckets({{"T", {4, 8}}}));
  EXPECT_EQ(message_of([&] { (void)context.run(random_inputs(1, 10, 5).views); }),
            "the extent T: is 10, and the largest bucket is 8; declare a larger bucket");
  random_inputs in(1, 4, 5);
  const c::tensor other(c::tensor_type{c::dtype::i64, {2}});
  in.views[1] = other;
  EXPECT_EQ(message_of([&] { (void)context.run(in.views); }), "a run: the extent T is 4 in input x and 2 in input ids");
  EXPECT_EQ(message_of([&] { (void)context.run(std::span(in.views).first(1)); }), "a run: it takes 2 inputs, not 1");
  in.views[1] = c::tensor(c::tensor_type{c::dtype::f32, {4}});
  EXPECT_EQ(message_of([&] { (void)context.run(in.views); }),
            "input ids: is given as float32, and the network takes int64");
  // Sizes that no memory holds, a session that keeps too few engines, and one that carries state.
  c::bucketed_context huge(session, in_buckets({{"T", {std::int64_t{1} << 62}}}));
  EXPECT_NE(message_of([&] { (void)huge.run(random_inputs(1, 2, 6).views); }).find("which no memory holds"),
            std::string::npos);
  const std::int64_t negative[] = {-1}, one[] = {1};
  EXPECT_NE(message_of([&] { context.prepare(negative); }).find("the extent -1 is negative"), std::string::npos);
  c::bucketed_context few(session_of_rows({.most_engines = 1}), in_buckets({{"T", {4, 8}}}));
  EXPECT_NE(message_of([&] { few.prepare(one); }).find("it cannot keep all 2; raise most_engines"), std::string::npos);
  const c::session carrying = session_of_rows({.carried = {{.output = "next", .input = "ids"}}});
  EXPECT_EQ(message_of([&] { c::bucketed_context(carrying, {{{"T", {4}}}}); }),
            "state ids: the session carries state, and a state of one bucket does not fit another; make a session that "
            "carries none");
  // An output whose extent is not the bucket's needs a cut of its own.
  c::bucketed_context uncut(session, {{{"T", {4}}}, {}, {{"sum", 1, "T"}}});
  EXPECT_EQ(message_of([&] { (void)uncut.run(random_inputs(1, 2, 6).views); }),
            "output sum: is float32[1x3], and dimension 1 is cut from 4; name how it is cut");
}

}  // namespace run_buckets_test
