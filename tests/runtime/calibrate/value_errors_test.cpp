// Errors of values: suffix runs against networks into which the rounding was inserted.
#include <gtest/gtest.h>

#include <collage/backends/portable.hpp>
#include <collage/backends/reference.hpp>
#include <collage/calibrate/confirm.hpp>
#include <collage/calibrate/rounded_run.hpp>
#include <collage/calibrate/value_errors.hpp>
#include <collage/collage.hpp>
#include <collage/every_backend.hpp>
#include <collage/pass/rewrite.hpp>
#include <collage/run/buffers.hpp>
#include <collage/run/engine.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "support/loops_backend.hpp"
#include "support/messages.hpp"
#include "support/plan_making.hpp"
#include "support/random_graph.hpp"

namespace calibrate_value_errors_test {

namespace c = collage;
namespace op = collage::ops;
using collage_test::contains;
using collage_test::message_of;
using loops_alone = c::backend_set<c::portable>;
constexpr double infinity = std::numeric_limits<double>::infinity();

/// Random inputs that depend on the number of the sample.
c::sample_source random_samples(std::size_t count) {
  return [count](std::size_t which, std::span<const c::tensor_view> inputs) {
    std::mt19937_64 random(which + 1);
    std::uniform_real_distribution<float> draw(-1, 1);
    for (const c::tensor_view& in : inputs)
      for (std::int64_t i = 0; i < in.type.dims.elements(); ++i) static_cast<float*>(in.data)[i] = draw(random);
    return which < count;
  };
}

c::rounding to_bf16() { return c::rounding_to(c::dtype::bf16); }
/// Coarse enough for every small network to notice.
c::rounding to_u8() { return c::rounding_to({c::dtype::u8, -1, {1.0F / 32}, {128}}); }

/// The network with a value rounded by nodes of its own; all that reads the value reads the rounded one.
c::graph with_rounding(const c::graph& network, std::uint32_t value, bool is_bf16) {
  const auto round = [&](c::rewriter& to) {
    c::graph_builder& g = to.to();
    const c::value x = to.of(value);
    if (is_bf16) {
      to.put(value, g(op::cast, g(op::cast, x, {.to = c::dtype::bf16}), {.to = c::dtype::f32}));
      return;
    }
    const c::value scale = g.scalar("rounding_scale", 1.0F / 32);
    const c::value zero = g.scalar("rounding_zero", 128, c::dtype::u8);
    to.put(value, g(op::dequantize_linear, g(op::quantize_linear, x, scale, zero), scale, zero));
  };
  c::rewrite_rules rules;
  rules.constant = [&](c::rewriter& to, std::uint32_t v) {
    to.copy_constant(v);
    if (v == value) round(to);
  };
  rules.node = [&](c::rewriter& to, std::uint32_t n) {
    to.copy_node(n);
    if (network.at(value).producer == static_cast<std::int32_t>(n)) round(to);
  };
  return c::rewrite(network, rules);
}

double error_of(std::span<const float> right, std::span<const float> changed) {
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < right.size(); ++i) {
    const double a = right[i], b = changed[i];
    difference += (b - a) * (b - a);
    size += a * a;
  }
  return difference == 0 ? 0 : size == 0 ? 1 : difference / size;
}

/// The error as defined, from whole runs of two networks by engines of separate kernels.
double error_by_engines(const c::graph& network, const c::graph& changed, c::backend_table backends,
                        const c::sample_source& samples) {
  std::vector<std::uint32_t> all;
  for (std::uint32_t v = 0; v < changed.values().size(); ++v) all.push_back(v);
  std::vector<std::uint32_t> own;
  for (std::uint32_t v = 0; v < network.values().size(); ++v) own.push_back(v);
  const c::dynamic_engine a(network, c::separate_kernels(network, backends, own, 1), backends, 1);
  const c::dynamic_engine b(changed, c::separate_kernels(changed, backends, all, 1), backends, 1);
  c::run_buffers right(network), wrong(network);
  const std::vector<c::tensor_view> inputs(right.in.begin(), right.in.end());
  std::vector<double> sums(right.out.size());
  std::size_t count = 0;
  for (; samples(count, inputs); ++count) {
    c::run_of(a)(right.inputs, right.outputs);
    c::run_of(b)(right.inputs, wrong.outputs);
    for (std::size_t o = 0; o < sums.size(); ++o)
      sums[o] += error_of(right.out[o].as<float>(), wrong.out[o].as<float>());
  }
  return *std::ranges::max_element(sums) / static_cast<double>(count);
}

/// Requests for both roundings of all values that can be rounded, but for inputs.
std::vector<c::value_rounding> all_requests(const c::graph& network, bool inputs = false) {
  std::vector<c::value_rounding> list;
  for (std::uint32_t v = 0; v < network.values().size(); ++v) {
    const c::value_record& r = network.at(v);
    if (r.type.type != c::dtype::f32 || r.has_scalar || (r.role == c::value_role::input && !inputs)) continue;
    list.push_back({v, to_bf16()});
    list.push_back({v, to_u8()});
  }
  return list;
}

/// What fits two samples at once least, as the error says it.
std::size_t least_memory(const c::graph& network, c::backend_table backends,
                         const std::vector<c::value_rounding>& requests) {
  const std::string said = message_of(
      [&] { c::measure_value_errors(network, backends, requests, random_samples(1), {.threads = 1, .memory = 1}); });
  const std::string before = "need at least ";
  const std::size_t at = said.find(before);
  EXPECT_NE(at, std::string::npos) << said;
  return at == std::string::npos ? 0 : std::strtoull(said.c_str() + at + before.size(), nullptr, 10);
}

void expect_brute_force(const c::graph& network, const std::string& where) {
  const c::backend_table backends = c::table_of<loops_alone>;
  const std::vector<c::value_rounding> requests = all_requests(network);
  const c::sample_source samples = random_samples(3);
  const c::value_errors found = c::measure_value_errors(network, backends, requests, samples, {.threads = 1});
  const std::size_t least = least_memory(network, backends, requests);
  const c::value_errors tight =
      c::measure_value_errors(network, backends, requests, samples, {.threads = 1, .memory = least});
  EXPECT_TRUE(found.keeps_all && found.is_complete && tight.is_complete) << where;
  EXPECT_EQ(found.samples, 3U);
  EXPECT_LE(tight.peak_bytes, least) << where;
  ASSERT_EQ(found.list.size(), requests.size());
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const c::value_error& e = found.list[i];
    const double expected = error_by_engines(
        network, with_rounding(network, requests[i].value, e.rounding == "bfloat16"), backends, samples);
    const std::string what = where + network.value_name(e.value) + " as " + e.rounding;
    EXPECT_NEAR(e.nmse, expected, 1e-9 * expected + 1e-30) << what;
    EXPECT_EQ(e.nmse, tight.list[i].nmse) << what;
    EXPECT_EQ(e.own, tight.list[i].own) << what;
    EXPECT_GE(e.worst * 1.0000001, e.nmse) << what;
    EXPECT_EQ(e.samples, 3U) << what;
  }
}

TEST(value_errors, are_those_of_networks_with_the_rounding_inside) {
  collage_test::generator random(11);
  for (int i = 0; i < 30; ++i) {
    c::graph network = collage_test::random_graph(random, {.nodes = 9});
    c::fill_constants(network);
    expect_brute_force(network, "graph " + std::to_string(i) + ", ");
  }
}

/// Views, a loop of copies, and several outputs, one of which is an operand of others.
TEST(value_errors, of_views_are_disturbed_one_by_one) {
  c::graph_builder g;
  const c::value x = g.input("x", {c::dtype::f32, {2, 16}});
  const c::value w = g.constant("w", {c::dtype::f32, {2, 16}}, c::uniform{-1, 1});
  const c::value a = g(op::mul, x, w);
  const c::value flat = g(op::reshape, a, {.dims = {32}});
  const c::value upper = g(op::slice, flat, {.starts = {16}, .steps = {1}, .extents = {16}});
  const c::value other = g(op::sigmoid, upper);
  const c::value joined = g(op::concat, std::vector<c::value>{other, upper, flat}, {.axis = 0});
  g.output("joined", joined);
  g.output("sum", g(op::add, a, w));
  g.output("again", g(op::relu, joined));
  c::graph network = g.finish();
  c::fill_constants(network);
  expect_brute_force(network, "");
}

TEST(value_errors, pass_through_branches) {
  const auto body = [](auto kind) {
    c::graph_builder g;
    g.output("out", g(kind, g.input("in", {c::dtype::f32, {2, 3}})));
    return std::make_shared<const c::graph>(g.finish());
  };
  c::graph_builder g;
  const c::tensor_type type{c::dtype::f32, {2, 3}};
  const c::value x = g.input("x", type);
  const c::value w = g.constant("w", type, c::uniform{-1, 1});
  const c::value sum = g(op::add, x, w);
  const std::vector<c::value> operands = {g.scalar("yes", 1, c::dtype::boolean), sum};
  const std::vector<std::shared_ptr<const c::graph>> bodies = {body(op::sigmoid), body(op::neg)};
  g.output("y", g(op::add, g.add(c::kind_of<decltype(op::branch)>, operands, {}, "branch", bodies), x));
  c::graph network = g.finish();
  c::fill_constants(network);
  expect_brute_force(network, "");
}

/// Convolutions with packed weights, a residual connection, pooling and a product.
c::graph small_network(bool with_constant_bias = true) {
  c::graph_builder g;
  const auto weights = [&](const char* name, c::shape dims, float most) {
    return g.constant(name, {c::dtype::f32, dims}, c::uniform{-most, most});
  };
  const c::value x = g.input("x", {c::dtype::f32, {1, 8, 14, 14}});
  const c::value one = g(op::conv, x, weights("w1", {16, 8, 3, 3}, 0.2F), {.pads_begin = {1, 1}, .pads_end = {1, 1}});
  const c::value biased = with_constant_bias ? g(op::add, one, weights("b1", {16, 1, 1}, 0.1F)) : one;
  const c::value active = g(op::relu, biased);
  const c::value two =
      g(op::conv, active, weights("w2", {16, 16, 3, 3}, 0.15F), {.pads_begin = {1, 1}, .pads_end = {1, 1}});
  const c::value sum = g(op::relu, g(op::add, two, active));
  const c::value flat = g(op::reshape, sum, {.dims = {1, 16 * 14 * 14}});
  g.output("scores", g(op::matmul, flat, weights("w3", {16 * 14 * 14, 10}, 0.05F)));
  c::graph network = g.finish();
  c::fill_constants(network);
  return network;
}

/// By the reference in double precision. Rounding other numbers than the engine's moves a few elements by one step.
TEST(value_errors, of_convolutions_agree_with_the_reference) {
  const c::graph network = small_network();
  const std::vector<c::value_rounding> requests = all_requests(network);
  const c::value_errors found =
      c::measure_value_errors(network, c::table_of<c::every_backend>, requests, random_samples(2), {.threads = 2});
  c::run_buffers memory(network);
  std::vector<double> expected(requests.size());
  for (std::size_t s = 0; s < 2; ++s) {
    random_samples(2)(s, std::vector<c::tensor_view>(memory.in.begin(), memory.in.end()));
    const std::vector<double> right = c::evaluate(network, memory.inputs)[0].real;
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const bool is_bf16 = requests[i].how.name == "bfloat16";
      const std::vector<double> changed =
          c::evaluate(with_rounding(network, requests[i].value, is_bf16), memory.inputs)[0].real;
      double difference = 0, size = 0;
      for (std::size_t e = 0; e < right.size(); ++e) {
        difference += (changed[e] - right[e]) * (changed[e] - right[e]);
        size += right[e] * right[e];
      }
      expected[i] += difference / size / 2;
    }
  }
  for (std::size_t i = 0; i < requests.size(); ++i)
    EXPECT_NEAR(found.list[i].nmse, expected[i], 0.03 * expected[i] + 1e-12)
        << network.value_name(requests[i].value) << " as " << requests[i].how.name;
}

TEST(value_errors, take_roundings_from_ranges) {
  c::graph_ranges ranges;
  ranges.values.resize(3);
  for (std::uint32_t v = 0; v < 3; ++v) ranges.values[v].value = 2 * v;
  ranges.values[0].how = c::quantisation_of({-1, 2}, c::quantisation_schema::asymmetric);
  ranges.values[2].how = c::quantisation_of({0, 2}, c::quantisation_schema::symmetric);
  const std::vector<c::value_rounding> list = c::roundings_of(ranges);
  ASSERT_EQ(list.size(), 2U);
  EXPECT_EQ(list[0].value, 0U);
  EXPECT_EQ(list[1].value, 4U);
  EXPECT_EQ(list[0].how.name, c::rounding_to(ranges.values[0].how).name);
}

TEST(value_errors, of_inputs_are_measured) {
  const c::graph network = small_network();
  const c::value_rounding request{network.inputs()[0], to_bf16()};
  const c::value_errors found =
      c::measure_value_errors(network, c::table_of<loops_alone>, {&request, 1}, random_samples(2), {.threads = 1});
  EXPECT_GT(found.list[0].nmse, 1e-8);
  EXPECT_LT(found.list[0].nmse, 1e-4);
}

/// All roundings at once, against a network with all of them inside, and against the sum of single ones.
TEST(value_errors, of_all_values_at_once) {
  const c::graph network = small_network();
  const c::backend_table backends = c::table_of<c::every_backend>;
  const std::vector<c::value_rounding> all = all_requests(network);
  for (const bool is_bf16 : {true, false}) {
    std::vector<c::value_rounding> requests;
    std::vector<std::uint32_t> visible;
    for (const c::value_rounding& r : all)
      if ((r.how.name == "bfloat16") == is_bf16) {
        requests.push_back(r);
        visible.push_back(r.value);
      }
    const c::placement separate = c::separate_kernels(network, backends, visible, 1);
    const c::value_errors found =
        c::measure_value_errors(network, separate, backends, requests, random_samples(4), {.threads = 1});
    double sum = 0;
    for (const c::value_error& e : found.list) sum += e.nmse;
    const c::dynamic_engine exact(network, separate, backends, 1);
    const c::confirmation one =
        c::confirm(network, c::run_of(exact), c::run_with_roundings(network, separate, backends, {&requests[3], 1}, 1),
                   random_samples(4));
    EXPECT_NEAR(one.value * one.value, found.list[3].nmse, 1e-9 * found.list[3].nmse);
    const c::confirmation whole = c::confirm(
        network, c::run_of(exact), c::run_with_roundings(network, separate, backends, requests, 1), random_samples(4));
    const double factor = whole.value * whole.value / sum;
    RecordProperty(is_bf16 ? "bfloat16_over_sum" : "uint8_over_sum", std::to_string(factor));
    EXPECT_GT(factor, 0.1);
    EXPECT_LT(factor, 10);
  }
}

// ---- Time and memory -------------------------------------------------------------------------------------------------

TEST(value_errors, memory_is_bounded_and_changes_nothing) {
  const c::graph network = small_network();
  const std::vector<c::value_rounding> requests = all_requests(network, true);
  const c::backend_table backends = c::table_of<c::every_backend>;
  const c::value_errors wide = c::measure_value_errors(network, backends, requests, random_samples(2), {.threads = 1});
  const std::size_t least = least_memory(network, backends, requests);
  const c::value_errors tight =
      c::measure_value_errors(network, backends, requests, random_samples(2), {.threads = 1, .memory = least});
  EXPECT_TRUE(wide.keeps_all);
  EXPECT_FALSE(tight.keeps_all);
  EXPECT_LE(tight.peak_bytes, least);
  EXPECT_LT(tight.peak_bytes, wide.peak_bytes);
  EXPECT_GE(tight.steps, wide.steps);
  for (std::size_t i = 0; i < requests.size(); ++i) EXPECT_EQ(wide.list[i].nmse, tight.list[i].nmse);
}

TEST(value_errors, no_time_leaves_no_measurement) {
  const c::graph network = small_network();
  const std::vector<c::value_rounding> requests = all_requests(network);
  const c::value_errors found = c::measure_value_errors(network, c::table_of<loops_alone>, requests, random_samples(2),
                                                        {.threads = 1, .seconds = 0});
  EXPECT_FALSE(found.is_complete);
  EXPECT_EQ(found.samples, 1U);
  for (const c::value_error& e : found.list) {
    EXPECT_TRUE(e.is_estimate);
    EXPECT_EQ(e.nmse, infinity);
    EXPECT_GT(e.own, 0);
  }
}

TEST(value_errors, the_rest_is_estimated_when_time_is_up) {
  const c::graph network = small_network();
  std::vector<c::value_rounding> requests = all_requests(network);
  // Late values come first. The roundings of one in the middle take all the time.
  std::size_t middle = 0;
  for (std::size_t i = 0; i < requests.size(); ++i)
    if (network.at(requests[i].value).role == c::value_role::computed && middle < requests.size() / 2) middle = i;
  requests[middle].how.apply = [](std::span<float> x, const c::shape& dims) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2000));
    to_bf16().apply(x, dims);
  };
  const c::value_errors found = c::measure_value_errors(network, c::table_of<loops_alone>, requests, random_samples(5),
                                                        {.threads = 1, .seconds = 1.5});
  EXPECT_FALSE(found.is_complete);
  EXPECT_EQ(found.samples, 1U);
  EXPECT_LT(found.seconds, 10);
  double amplification = 0;
  std::size_t measured = 0;
  for (const c::value_error& e : found.list)
    if (!e.is_estimate) {
      ++measured;
      amplification = std::max(amplification, e.nmse / e.own);
      EXPECT_EQ(e.samples, 1U);
    }
  EXPECT_GT(measured, 0U);
  EXPECT_LT(measured, requests.size());
  EXPECT_TRUE(found.list[middle].is_estimate);
  for (const c::value_error& e : found.list) {
    if (e.is_estimate) { EXPECT_DOUBLE_EQ(e.nmse, e.own * amplification * c::estimate_margin); }
  }
}

TEST(value_errors, reports_progress) {
  const c::graph network = small_network();
  const std::vector<c::value_rounding> requests = all_requests(network);
  std::size_t last = 0, expected = 0;
  c::value_error_options options{.threads = 1, .samples = 2};
  options.progress = [&](std::size_t done, std::size_t all) {
    EXPECT_EQ(done, last + 1);
    last = done;
    expected = all;
  };
  c::measure_value_errors(network, c::table_of<loops_alone>, requests, random_samples(9), options);
  EXPECT_EQ(last, requests.size() * 2);
  EXPECT_EQ(expected, last);
}

TEST(value_errors, that_are_known_are_not_measured_again) {
  const c::graph network = small_network();
  const std::vector<c::value_rounding> requests = all_requests(network);
  std::map<std::string, c::value_error> kept;
  const auto text_of = [](const c::value_error_key& k) {
    return std::to_string(k.network) + ' ' + std::to_string(k.contents) + ' ' + std::to_string(k.samples) + ' ' +
           std::to_string(k.value) + ' ' + k.rounding;
  };
  c::value_error_options options{.threads = 1};
  options.keep = [&](const c::value_error_key& key, const c::value_error& e) { kept[text_of(key)] = e; };
  options.recall = [&](const c::value_error_key& key) -> std::optional<c::value_error> {
    const auto at = kept.find(text_of(key));
    return at == kept.end() ? std::nullopt : std::optional(at->second);
  };
  const auto measure = [&](const c::graph& of, std::size_t samples) {
    return c::measure_value_errors(of, c::table_of<loops_alone>, requests, random_samples(samples), options);
  };
  const c::value_errors first = measure(network, 2), second = measure(network, 2);
  EXPECT_EQ(kept.size(), requests.size());
  EXPECT_EQ(second.steps, 0U);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    EXPECT_FALSE(first.list[i].is_recalled);
    EXPECT_TRUE(second.list[i].is_recalled);
    EXPECT_EQ(first.list[i].nmse, second.list[i].nmse);
  }
  EXPECT_GT(measure(network, 3).steps, 0U) << "other samples";
  c::graph other = network;
  other.bind("b1", std::vector<float>(16, 0.25F));
  EXPECT_GT(measure(other, 2).steps, 0U) << "other weights";
}

// ---- Numbers that are not usual --------------------------------------------------------------------------------------

c::graph one_operator(auto kind) {
  c::graph_builder g;
  g.output("y", g(kind, g.input("x", {c::dtype::f32, {4}})));
  return g.finish();
}

c::value_error error_of_input(const c::graph& network, const std::vector<float>& sample, const c::rounding& how) {
  const c::value_rounding request{network.inputs()[0], how};
  const c::sample_source samples = [&](std::size_t which, std::span<const c::tensor_view> inputs) {
    std::memcpy(inputs[0].data, sample.data(), sample.size() * sizeof(float));
    return which < 1;
  };
  return c::measure_value_errors(network, c::table_of<loops_alone>, {&request, 1}, samples, {.threads = 1}).list[0];
}

TEST(value_errors, of_outputs_that_are_zero_are_0_or_1) {
  const c::graph floor = one_operator(op::floor);
  EXPECT_EQ(error_of_input(floor, {0.1F, 0.2F, 0.3F, 0.4F}, to_bf16()).nmse, 0);
  EXPECT_EQ(error_of_input(floor, {0.1F, 0.2F, 0.3F, 0.99999F}, to_bf16()).nmse, 1);
}

TEST(value_errors, of_values_beyond_the_range_are_infinite) {
  EXPECT_EQ(error_of_input(one_operator(op::neg), {1, 2, 3, 1e6F}, c::rounding_to(c::dtype::f16)).nmse, infinity);
}

TEST(value_errors, what_is_not_finite_is_one_sentence) {
  EXPECT_EQ(message_of([] { error_of_input(one_operator(op::neg), {1, 2, 3, std::nanf("")}, to_bf16()); }),
            "output y: has NaN or infinity for sample 0 without any rounding, so that no error can be measured; leave "
            "that sample out");
}

TEST(value_errors, mistakes_are_sentences) {
  const c::graph network = small_network();
  const auto refused = [&](const c::graph& of, std::uint32_t value, std::size_t samples = 1) {
    const c::value_rounding request{value, to_bf16()};
    return message_of([&] {
      c::measure_value_errors(of, c::table_of<loops_alone>, {&request, 1}, random_samples(samples), {.threads = 1});
    });
  };
  EXPECT_EQ(refused(network, 1000),
            "value 1000: does not exist: the network has " + std::to_string(network.values().size()) + " values");
  EXPECT_EQ(refused(network, 1, 0), "errors of values: has no samples; give at least one");
  c::graph_builder g;
  const c::value x = g.input("x", {c::dtype::f32, {4}});
  const c::value two = g.scalar("two", 2);
  const c::value whole = g(op::cast, g(op::mul, x, two), {.to = c::dtype::i32});
  g.output("y", g(op::cast, whole, {.to = c::dtype::f32}));
  const c::graph mixed = g.finish();
  EXPECT_EQ(refused(mixed, two.index),
            "constant two: is one number, which kernels take as it is; leave it out: it "
            "takes no memory worth saving");
  EXPECT_TRUE(contains(refused(mixed, whole.index), "has elements of int32, but only float32 is rounded"));
  c::graph_builder integers;
  integers.output("y", integers(op::cast, integers.input("x", {c::dtype::f32, {4}}), {.to = c::dtype::i32}));
  EXPECT_TRUE(contains(refused(integers.finish(), 0), "has no output of a floating-point type"));
}

TEST(value_errors, values_inside_a_group_are_refused) {
  c::graph_builder g;
  const c::tensor_type type{c::dtype::f32, {4}};
  const c::value sum = g(op::add, g.input("a", type), g.input("b", type));
  g.output("y", g(op::relu, sum));
  const c::graph network = g.finish();
  using set = c::backend_set<collage_test::loops>;
  c::placement fused;
  fused.groups = {collage_test::kernel_group({0, 1}, "loops", "add_relu")};
  const c::value_rounding request{sum.index, to_bf16()};
  const std::string said =
      message_of([&] { c::measure_value_errors(network, fused, c::table_of<set>, {&request, 1}, random_samples(1)); });
  EXPECT_TRUE(contains(said, "is written by no kernel of this placement, because it is inside a group")) << said;
  // The value that is asked for stays apart; where none is, kernels are as large as they can be.
  EXPECT_EQ(c::separate_kernels(network, c::table_of<set>, {&request.value, 1}, 1).groups.size(), 2U);
  EXPECT_EQ(c::separate_kernels(network, c::table_of<set>, {}, 1).groups.size(), 1U);
  EXPECT_EQ(c::measure_value_errors(network, c::table_of<set>, {&request, 1}, random_samples(1)).list.size(), 1U);
}

}  // namespace calibrate_value_errors_test
