// Calibration: what is seen of every value, values without numbers, weights, merging, memory, and what is refused.
#include <collage/backends/portable.hpp>
#include <collage/calibrate/calibrate.hpp>
#include <collage/calibrate/histogram.hpp>
#include <collage/calibrate/merge.hpp>
#include <collage/error.hpp>
#include <collage/op/control.hpp>
#include <collage/ops.hpp>
#include <collage/run/buffers.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "rounded_run.hpp"
#include "support/counting_allocator.hpp"
#include "support/messages.hpp"
#include "support/random_graph.hpp"

namespace calibrate_calibration_test {

namespace c = collage;
namespace op = collage::ops;
using collage_test::message_of;
using set = c::backend_set<c::portable>;
const c::backend_table table = c::table_of<set>;

c::tensor_type f32(const c::shape& dims) { return {c::dtype::f32, dims}; }

/// The inputs of several samples, from 1 to -1 but for an offset.
std::vector<c::run_buffers> samples_of(const c::graph& network, std::size_t count, std::uint64_t seed = 1) {
  std::vector<c::run_buffers> list;
  for (std::size_t i = 0; i < count; ++i) {
    list.emplace_back(network);
    list.back().randomise(seed + i);
  }
  return list;
}

c::network_ranges ranges_of(const c::graph& network, const std::vector<c::run_buffers>& samples,
                            const c::range_origin& how = {}) {
  c::calibration pass(network, table);
  for (const c::run_buffers& s : samples) pass.add(s.inputs);
  return std::move(pass).finish(how);
}

const c::value_range& range_of(const c::graph& network, const c::graph_ranges& in, const std::string& name) {
  for (std::uint32_t v = 0; v < network.values().size(); ++v)
    if (network.value_name(v) == name) return *c::find_range(in, v);
  throw std::runtime_error("no value " + name);
}

/// All numbers of every value of a random graph, computed one operator after the other.
std::vector<std::vector<float>> numbers_of(const c::graph& network, const std::vector<c::run_buffers>& samples) {
  std::vector<std::vector<float>> all(network.values().size());
  for (const c::run_buffers& s : samples) {
    std::vector<std::vector<float>> now(network.values().size());
    for (std::size_t i = 0; i < s.in.size(); ++i)
      now[network.inputs()[i]].assign(s.in[i].as<float>().begin(), s.in[i].as<float>().end());
    for (std::uint32_t v = 0; v < now.size(); ++v)
      if (network.at(v).role == c::value_role::constant) {
        now[v].resize(6);
        std::memcpy(now[v].data(), network.bytes_of(v).data(), 24);
      }
    for (std::uint32_t n = 0; n < network.nodes().size(); ++n) {
      const auto in = network.view().inputs_of(n);
      const std::string kind = network.node(n).kind->name;
      for (std::size_t i = 0; i < 6; ++i) {
        const float a = now[in[0]][i], b = in.size() > 1 ? now[in[1]][i] : 0;
        now[network.view().output_of(n)].push_back(kind == "relu"      ? std::max(a, 0.0F)
                                                   : kind == "sigmoid" ? 1 / (1 + std::exp(-a))
                                                   : kind == "add"     ? a + b
                                                   : kind == "sub"     ? a - b
                                                                       : a * b);
      }
    }
    for (std::uint32_t v = 0; v < now.size(); ++v) all[v].insert(all[v].end(), now[v].begin(), now[v].end());
  }
  return all;
}

TEST(Calibration, SeesEveryValueOfRandomNetworks) {
  collage_test::generator random(1);
  for (int round = 0; round < 20; ++round) {
    c::graph network = collage_test::random_graph(random, {});
    c::fill_constants(network);
    const auto samples = samples_of(network, 4);
    const c::network_ranges found = ranges_of(network, samples);
    const auto all = numbers_of(network, samples);
    EXPECT_EQ(found.made_by.samples, 4U);
    EXPECT_EQ(found.fingerprint, network.fingerprint());
    for (std::uint32_t v = 0; v < network.values().size(); ++v) {
      const c::value_record& r = network.at(v);
      const c::value_range* const range = c::find_range(found.top, v);
      const bool is_read = r.uses != 0 || r.is_output || r.role == c::value_role::input;
      ASSERT_EQ(range != nullptr, is_read) << v;
      if (range == nullptr) continue;
      if (r.role != c::value_role::constant) { EXPECT_EQ(range->numbers->count(), 24U); }
      const auto [low, high] = std::ranges::minmax(all[v]);
      EXPECT_NEAR(range->seen.low, low, 1e-5F + 1e-5F * std::abs(low)) << network.value_name(v);
      EXPECT_NEAR(range->seen.high, high, 1e-5F + 1e-5F * std::abs(high)) << network.value_name(v);
      EXPECT_EQ(range->has_numbers(), range->seen != c::interval{}) << range->why;
    }
  }
}

TEST(Calibration, ValuesThatAreMovedOrPickedHaveTheRangeOfTheirOrigin) {
  c::graph_builder g;
  const c::value x = g.input("x", f32({1, 2, 4, 4}));
  const c::value pooled = g(op::max_pool, x, {.window = {2, 2}, .strides = {2, 2}});
  const c::value turned = g(op::transpose, pooled, {.permutation = {0, 2, 3, 1}});
  const c::value flat = g(op::reshape, turned, {.dims = {8}});
  g.output("y", g(op::exp, flat));
  const c::graph network = g.finish();
  const c::network_ranges found = ranges_of(network, samples_of(network, 2));
  const c::value_range& origin = *c::find_range(found.top, x.index);
  for (const c::value v : {pooled, turned, flat}) {
    const c::value_range& range = *c::find_range(found.top, v.index);
    EXPECT_EQ(range.same_as, std::optional<std::uint32_t>(x.index));
    EXPECT_EQ(range.how, origin.how);
    EXPECT_EQ(range.numbers, nullptr);
  }
  EXPECT_FALSE(origin.same_as.has_value());
  EXPECT_EQ(found.top.values.size(), 5U);
}

std::shared_ptr<const c::graph> side(double factor) {
  c::graph_builder g;
  const c::value x = g.input("x", f32({3}));
  g.output("y", g(op::mul, x, g.scalar("factor", factor)));
  return std::make_shared<const c::graph>(g.finish());
}

c::graph branching() {
  c::graph_builder g;
  const c::value operands[] = {g.input("condition", {c::dtype::boolean, {}}), g.input("x", f32({3}))};
  const std::shared_ptr<const c::graph> bodies[] = {side(10), side(-2)};
  g.output("z", g(op::relu, g.add(c::kind_of<decltype(op::branch)>, operands, {}, "choice", bodies)));
  return g.finish();
}

TEST(Calibration, SeesTheSidesOfBranchesThatRun) {
  const c::graph network = branching();
  c::run_buffers memory(network);
  std::ranges::copy(std::vector<float>{1, -2, 3}, memory.in[1].as<float>().begin());
  const auto run = [&](std::vector<bool> conditions) {
    c::calibration pass(network, table);
    for (const bool condition : conditions) {
      memory.in[0].as<std::uint8_t>()[0] = condition;
      pass.add(memory.inputs);
    }
    return std::move(pass).finish({});
  };
  const c::network_ranges one = run({true}), both = run({true, false, true});
  ASSERT_EQ(one.top.bodies.size(), 2U);
  const auto body = [&](const c::network_ranges& of, std::size_t which, const std::string& name) {
    return range_of(*network.bodies_of(0)[which], of.top.bodies[which].inside, name);
  };
  EXPECT_EQ(body(one, 0, "x").seen, (c::interval{-2, 3}));
  EXPECT_EQ(body(one, 0, "mul_0").seen, (c::interval{-20, 30}));
  EXPECT_EQ(body(one, 1, "mul_0").why, "is not computed in any sample");
  EXPECT_FALSE(body(one, 1, "mul_0").has_numbers());
  EXPECT_EQ(body(both, 1, "mul_0").seen, (c::interval{-6, 4}));
  EXPECT_EQ(body(both, 0, "mul_0").numbers->count(), 6U);
}

TEST(Calibration, SeesEveryRoundOfALoop) {
  c::graph_builder inside;
  (void)inside.input("round", {c::dtype::i64, {}});
  const c::value goes_on = inside.input("goes_on", {c::dtype::boolean, {}});
  const c::value x = inside.input("x", f32({2}));
  inside.output("again", goes_on);
  inside.output("twice", inside(op::add, x, x));
  const auto body = std::make_shared<const c::graph>(inside.finish());
  c::graph_builder g;
  const std::int64_t rounds = 4;
  const std::shared_ptr<std::byte> count = c::allocate_bytes(sizeof rounds);
  std::memcpy(count.get(), &rounds, sizeof rounds);
  const c::value operands[] = {g.constant("rounds", {c::dtype::i64, {}}, count), g.scalar("true", 1, c::dtype::boolean),
                               g.input("x", f32({2}))};
  const std::shared_ptr<const c::graph> bodies[] = {body};
  g.output("last", g.add(c::kind_of<decltype(op::loop)>, operands,
                         c::to_words(op::loop_attributes{.carried = 1, .stops = false}), "rounds_of_x", bodies));
  const c::graph network = g.finish();
  c::run_buffers memory(network);
  std::ranges::copy(std::vector<float>{1, -1.5F}, memory.in[0].as<float>().begin());
  c::calibration pass(network, table);
  pass.add(memory.inputs);
  const c::network_ranges found = std::move(pass).finish({});
  const c::value_range& carried = range_of(*body, found.top.bodies[0].inside, "x");
  EXPECT_EQ(carried.seen, (c::interval{-12, 8}));
  EXPECT_EQ(carried.numbers->count(), 8U);
  EXPECT_EQ(c::find_range(found.top, network.outputs()[0])->seen, (c::interval{-24, 16}));
}

TEST(Calibration, WeightsHaveTheAxisOfTheirOutputChannels) {
  c::graph_builder g;
  const c::uniform fill{-1, 1};
  const c::value x = g.input("x", f32({1, 3, 4, 4}));
  const c::value y = g(op::conv, x, g.constant("w", f32({5, 3, 1, 1}), fill), g.constant("b", f32({5}), fill));
  const c::value z = g(op::conv_transpose, y, g.constant("t", f32({5, 2, 1, 1}), fill));
  const c::value rows = g(op::reshape, z, {.dims = {8, 4}});
  const c::value m = g(op::matmul, rows, g.constant("m", f32({4, 6}), fill));
  const c::value n = g(op::matmul, m, g.constant("n", f32({7, 6}), fill), {.transpose_b = true});
  g.output("out", g(op::add, n, g.constant("offset", f32({7}), fill)));
  c::graph network = g.finish();
  c::fill_constants(network);
  for (const bool per_channel : {true, false}) {
    const c::network_ranges found = ranges_of(
        network, samples_of(network, 1), {.schema = c::quantisation_schema::asymmetric, .per_channel = per_channel});
    const std::vector<std::pair<const char*, std::int32_t>> axes = {{"w", 0}, {"t", 1}, {"m", 1}, {"n", 0}};
    for (const auto& [name, axis] : axes) {
      const c::value_range& range = range_of(network, found.top, name);
      EXPECT_EQ(range.how.element, c::dtype::i8) << name;
      EXPECT_EQ(range.how.axis, per_channel ? axis : -1) << name;
      const auto v = range.value;
      EXPECT_EQ(range.how.scales.size(),
                per_channel ? static_cast<std::size_t>(network.type_of(v).dims[static_cast<std::size_t>(axis)]) : 1U);
    }
    EXPECT_EQ(range_of(network, found.top, "offset").how.element, c::dtype::u8);
    const auto has_bias = std::ranges::any_of(found.top.values, [](const c::value_range& r) { return r.name == "b"; });
    EXPECT_FALSE(has_bias) << "it is int32, by the scales of input and weights";
  }
}

TEST(Calibration, NumbersThatAreNotFiniteKeepAValueInFloat32) {
  c::graph_builder g;
  const c::value x = g.input("x", f32({4}));
  g.output("y", g(op::relu, g(op::reciprocal, x)));
  g.output("z", g(op::sqrt, x));
  g.output("zero", g(op::mul, x, g.scalar("nothing", 0)));
  const c::graph network = g.finish();
  c::run_buffers memory(network);
  c::calibration pass(network, table);
  for (const float first : {2.0F, 0.0F, -1.0F}) {
    std::ranges::copy(std::vector<float>{first, 1, 2, 3}, memory.in[0].as<float>().begin());
    pass.add(memory.inputs);
  }
  const c::network_ranges found = std::move(pass).finish({.method = c::range_method::mse});
  EXPECT_EQ(range_of(network, found.top, "reciprocal_0").why, "is infinite in sample 2");
  EXPECT_FALSE(range_of(network, found.top, "reciprocal_0").has_numbers());
  EXPECT_EQ(c::find_range(found.top, network.outputs()[0])->why, "is infinite in sample 2");
  EXPECT_EQ(c::find_range(found.top, network.outputs()[1])->why, "has NaN in sample 3");
  EXPECT_EQ(c::find_range(found.top, network.outputs()[2])->why, "is 0 in all samples");
  EXPECT_TRUE(range_of(network, found.top, "x").has_numbers());
}

void expect_equal(const c::graph_ranges& a, const c::graph_ranges& b) {
  ASSERT_EQ(a.values.size(), b.values.size());
  for (std::size_t i = 0; i < a.values.size(); ++i) {
    const c::value_range &x = a.values[i], &y = b.values[i];
    EXPECT_EQ(x.name, y.name);
    EXPECT_EQ(x.seen, y.seen) << x.name;
    EXPECT_EQ(x.kept, y.kept) << x.name;
    EXPECT_EQ(x.how, y.how) << x.name;
    EXPECT_EQ(x.why, y.why) << x.name;
    ASSERT_EQ(x.numbers == nullptr, y.numbers == nullptr);
    if (x.numbers != nullptr) { EXPECT_EQ(*x.numbers, *y.numbers) << x.name; }
  }
  ASSERT_EQ(a.bodies.size(), b.bodies.size());
  for (std::size_t i = 0; i < a.bodies.size(); ++i) expect_equal(a.bodies[i].inside, b.bodies[i].inside);
}

TEST(Calibration, MergingIsOnePassOverBoth) {
  collage_test::generator random(2);
  std::vector<c::graph> networks;
  for (int i = 0; i < 6; ++i) networks.push_back(collage_test::random_graph(random, {}));
  networks.push_back(branching());
  for (c::graph& network : networks) {
    c::fill_constants(network);
    const auto first = samples_of(network, 3, 1), second = samples_of(network, 2, 50);
    auto all = samples_of(network, 3, 1);
    std::ranges::move(samples_of(network, 2, 50), std::back_inserter(all));
    for (const c::range_method m : {c::range_method::minmax, c::range_method::entropy}) {
      const c::range_origin how{.method = m};
      const c::network_ranges a = ranges_of(network, first, how), b = ranges_of(network, second, how);
      const c::network_ranges both = ranges_of(network, all, how);
      expect_equal(c::merged(a, b).top, both.top);
      expect_equal(c::merged(b, a).top, both.top);
      EXPECT_EQ(c::merged(a, b).made_by.samples, 5U);
      c::network_ranges again = ranges_of(network, all);
      c::choose_again(again, m, how.schema, how.percentile);
      expect_equal(again.top, both.top);
    }
  }
}

TEST(Calibration, MergingCountsSamplesOfValuesThatAreNotFinite) {
  c::graph_builder g;
  g.output("y", g(op::reciprocal, g.input("x", f32({2}))));
  const c::graph network = g.finish();
  const auto run = [&](std::vector<float> firsts) {
    c::run_buffers memory(network);
    c::calibration pass(network, table);
    for (const float first : firsts) {
      std::ranges::copy(std::vector<float>{first, 1}, memory.in[0].as<float>().begin());
      pass.add(memory.inputs);
    }
    return std::move(pass).finish({});
  };
  expect_equal(c::merged(run({2, 3}), run({4, 0, 5})).top, run({2, 3, 4, 0, 5}).top);
  expect_equal(c::merged(run({2, 0}), run({0, 4})).top, run({2, 0, 0, 4}).top);
  EXPECT_EQ(c::find_range(c::merged(run({2, 3}), run({4, 0, 5})).top, network.outputs()[0])->why,
            "is infinite in sample 4");
}

TEST(Calibration, RangesThatDoNotBelongTogetherAreNotMerged) {
  collage_test::generator random(3);
  c::graph network = collage_test::random_graph(random, {}), another = branching();
  c::fill_constants(network);
  const c::network_ranges a = ranges_of(network, samples_of(network, 1));
  const c::network_ranges b = ranges_of(another, samples_of(another, 1));
  EXPECT_TRUE(message_of([&] { c::merged(a, b); }, 2).starts_with("ranges: are of different networks ("));
  c::network_ranges channels = a, noise = a;
  channels.made_by.per_channel = true;
  noise.made_by.is_random = true;
  EXPECT_EQ(message_of([&] { c::merged(a, channels); }, 2),
            "ranges: have weights per channel in only one of them; calibrate again");
  EXPECT_EQ(message_of([&] { c::merged(a, noise); }, 2),
            "ranges: come from random numbers in only one of them; calibrate again");
}

TEST(Calibration, RangesOfAnotherNetworkOrOtherWeightsAreRefused) {
  c::graph_builder g;
  g.output("y", g(op::matmul, g.input("x", f32({2, 3})), g.constant("w", f32({3, 4}), c::uniform{-1, 1})));
  c::graph network = g.finish();
  c::fill_constants(network);
  const c::network_ranges found = ranges_of(network, samples_of(network, 1));
  EXPECT_NO_THROW(c::check_ranges(network, found, "r.json"));
  std::vector<float> weights(12, 0.25F);
  c::graph retrained = network;
  retrained.bind("w", weights);
  EXPECT_EQ(message_of([&] { c::check_ranges(retrained, found, "r.json"); }, 2),
            "r.json: was made for other weights: those of w differ; calibrate this network");
  const c::graph another = branching();
  EXPECT_TRUE(message_of([&] { c::check_ranges(another, found, "r.json"); }, 2)
                  .starts_with("r.json: was made for another network ("));
  c::network_ranges renamed = found;
  renamed.top.values[0].name = "q";
  EXPECT_EQ(message_of([&] { c::check_ranges(network, renamed, "r.json"); }, 2),
            "r.json: has a range for q, which the network does not have; calibrate this network");
}

TEST(Calibration, MemoryIsBoundedWhateverTheSamplesAndTheNetwork) {
  for (const std::size_t nodes : {4U, 60U, 400U}) {
    collage_test::generator random(4);
    c::graph network = collage_test::random_graph(random, {.nodes = nodes});
    c::fill_constants(network);
    constexpr std::size_t most = 1U << 20U;
    c::calibration pass(network, table, {.bytes = most});
    EXPECT_LE(pass.bytes(), most);
    EXPECT_GE(pass.bytes(), nodes <= 4 ? 0 : most / 3) << "histograms are as fine as they may be";
    const auto samples = samples_of(network, 8);
    for (const c::run_buffers& s : samples) pass.add(s.inputs);
    const std::size_t before = collage_test::allocations();
    for (int i = 0; i < 20; ++i)
      for (const c::run_buffers& s : samples) pass.add(s.inputs);
    // A sample allocates the record of what runs; histograms that have seen these numbers do not grow.
    EXPECT_LE(collage_test::allocations() - before, 160U * 2);
    std::size_t held = 0;
    const c::network_ranges found = std::move(pass).finish({});
    for (const c::value_range& r : found.top.values)
      if (r.numbers != nullptr) held += r.numbers->bytes();
    EXPECT_LE(held, most);
  }
}

TEST(Calibration, LargeNetworksKeepMinimumAndMaximumOnly) {
  collage_test::generator random(5);
  c::graph network = collage_test::random_graph(random, {.nodes = 100});
  c::fill_constants(network);
  constexpr std::size_t few = 64U << 10U;
  EXPECT_EQ(message_of([&] { c::calibration(network, table, {.bytes = few}); }, 2),
            "calibration: has 73 float32 values, and histograms of all of them would take more than 0 MB; choose the "
            "method minmax, which keeps no histograms");
  c::calibration pass(network, table, {.bytes = few, .minmax_only = true});
  EXPECT_EQ(pass.bins(), 2U);
  pass.add(samples_of(network, 1)[0].inputs);
  c::network_ranges found = std::move(pass).finish({});
  EXPECT_EQ(message_of([&] { c::choose_again(found, c::range_method::mse, {}, 99); }, 2),
            "ranges: have no histograms, which the method mse needs; choose the method minmax");
}

TEST(Calibration, SamplesThatCannotBeRightAreRefused) {
  c::graph_builder g;
  const c::value a = g.input("a", f32({2, 3})), b = g.input("b", f32({2, 3}));
  g.output("y", g(op::add, a, b));
  const c::graph network = g.finish();
  c::run_buffers memory(network);
  memory.randomise(1);
  const auto add = [&](c::calibration& pass) { return message_of([&] { pass.add(memory.inputs); }, 2); };
  c::calibration pass(network, table);
  EXPECT_EQ(add(pass), "no error");
  memory.in[1].as<float>()[4] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(add(pass), "sample 2, input b: has NaN at element 4; give samples whose numbers are finite");
  memory.in[1].as<float>()[4] = 1;
  memory.in[0].as<float>()[0] = -std::numeric_limits<float>::infinity();
  EXPECT_EQ(add(pass), "sample 2, input a: is infinite at element 0; give samples whose numbers are finite");
  EXPECT_EQ(pass.samples(), 1U);
  const c::tensor other(f32({3, 2}));
  const std::vector<c::const_tensor_view> wrong = {other, other}, few = {memory.inputs[1]};
  EXPECT_EQ(message_of([&] { pass.add(wrong); }, 2), "input a: is float32[3x2], but the network needs float32[2x3]");
  EXPECT_EQ(message_of([&] { pass.add(few); }, 2), "run: takes 2 inputs and 1 outputs, not 1 and 1");

  c::calibration none(network, table);
  EXPECT_EQ(message_of([&] { std::move(none).finish({}); }, 2), "calibration: there is no sample; give one at least");
  c::run_buffers zeros(network);
  c::calibration constant(network, table);
  constant.add(zeros.inputs);
  constant.add(zeros.inputs);
  EXPECT_EQ(message_of([&] { std::move(constant).finish({}); }, 2),
            "input a: is constant: all its numbers are 0 in all 2 samples; give samples as the network will see them");

  c::graph_builder integers;
  integers.output(
      "y", integers(op::add, integers.input("a", {c::dtype::i64, {2}}), integers.input("b", {c::dtype::i64, {2}})));
  const c::graph whole = integers.finish();
  EXPECT_EQ(message_of([&] { c::calibration(whole, table); }, 2),
            "network: has no float32 values, so there is nothing to calibrate");
}

TEST(Calibration, OneConstantInputAmongOthersIsFine) {
  c::graph_builder g;
  const c::value a = g.input("state", f32({2, 3})), b = g.input("b", f32({2, 3}));
  g.output("y", g(op::add, a, b));
  const c::graph network = g.finish();
  c::run_buffers memory(network);
  memory.randomise(1);
  std::ranges::fill(memory.in[0].as<float>(), 0.0F);
  const c::network_ranges found =
      c::calibrate<set>(network,
                        [&, left = 3](std::span<const c::tensor> to) mutable {
                          for (std::size_t i = 0; i < to.size(); ++i)
                            std::ranges::copy(memory.in[i].as<float>(), to[i].as<float>().begin());
                          return left-- > 0;
                        },
                        {.method = c::range_method::percentile});
  EXPECT_EQ(found.made_by.samples, 3U);
  EXPECT_EQ(range_of(network, found.top, "state").why, "is 0 in all samples");
  EXPECT_TRUE(range_of(network, found.top, "b").has_numbers());
}

TEST(Calibration, NetworksOfRoundedValuesErrByAFewPercent) {
  c::graph_builder g;
  c::value x = g.input("x", f32({1, 8, 12, 12}));
  for (int i = 0; i < 4; ++i)
    x = g(op::relu, g(op::conv, x, g.constant(c::label("w") + i, f32({8, 8, 3, 3}), c::uniform{-0.3F, 0.3F}),
                      {.pads_begin = {1, 1}, .pads_end = {1, 1}}));
  g.output("y", x);
  c::graph network = g.finish();
  c::fill_constants(network);
  const auto samples = samples_of(network, 4);
  const c::dynamic_engine engine = collage_test::unfused_engine(network, table);
  for (const c::range_method m :
       {c::range_method::minmax, c::range_method::percentile, c::range_method::entropy, c::range_method::mse})
    for (const auto s : {c::quantisation_schema::asymmetric, c::quantisation_schema::symmetric,
                         c::quantisation_schema::symmetric_unsigned}) {
      const c::network_ranges found = ranges_of(network, samples, {.method = m, .schema = s});
      c::run_buffers exact(network), rounded(network);
      exact.randomise(99);
      rounded.randomise(99);
      engine.context().run(exact.inputs, exact.outputs);
      collage_test::rounding{network, found.top, engine}.run(rounded);
      collage_test::squared_error all;
      all.add(exact.out[0].as<float>(), rounded.out[0].as<float>());
      const double relative = all.relative();
      EXPECT_LT(relative, m == c::range_method::entropy ? 0.08 : 0.03) << c::name_of(m) << ' ' << c::name_of(s);
      EXPECT_GT(relative, 1e-4) << "something was rounded";
    }
}

}  // namespace calibrate_calibration_test
