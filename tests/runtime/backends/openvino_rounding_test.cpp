// Regions of OpenVINO in bfloat16 and in integers of 8 bits: what they compute, and what they say that they round.
#ifdef COLLAGE_HAS_OPENVINO
#include "cases.hpp"
#include "support/backend_check.hpp"
#include "support/messages.hpp"
#include "support/placing.hpp"

#include <collage/backend_set.hpp>
#include <collage/backends/openvino.hpp>
#include <collage/backends/portable.hpp>
#include <collage/backends/reference.hpp>
#include <collage/calibrate/ranges.hpp>
#include <collage/graph/graph.hpp>
#include <collage/graph/print.hpp>
#include <collage/io/plan_file.hpp>
#include <collage/ops.hpp>
#include <collage/pass/optimise.hpp>
#include <collage/place.hpp>
#include <collage/place/within_error.hpp>
#include <collage/run/agreement.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/buffers.hpp>
#include <collage/run/engine.hpp>
#include <collage/run/kernel.hpp>
#include <collage/run/node_group.hpp>
#include <collage/run/plan.hpp>
#include <collage/run/precision.hpp>
#include <collage/run/tensor.hpp>
#include <collage/run/value_scales.hpp>
#include <collage/zoo/all.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace backends_openvino_rounding_test {

namespace c = collage;
namespace op = collage::ops;
using namespace collage_test;
using set = c::backend_set<c::openvino, c::openvino_bf16, c::openvino_int8, c::portable>;

c::node_group all_of(const c::graph& network) {
  std::vector<std::uint32_t> nodes(network.nodes().size());
  std::iota(nodes.begin(), nodes.end(), 0U);
  return c::group_of(network, nodes);
}

/// The memory of a tensor, which lives as long as it is used.
std::shared_ptr<const std::byte> bytes_of(const std::shared_ptr<c::tensor>& of) { return {of, of->data()}; }

/// The network with its weights rounded, in float32: to bfloat16, or to int8 as calibration says.
c::graph with_rounded_weights(c::graph network, const std::vector<c::rounded_value>& rounded) {
  for (const c::rounded_value& one : rounded) {
    if (network.at(one.value).role != c::value_role::constant) continue;
    const c::tensor_type& type = network.type_of(one.value);
    const auto made = std::make_shared<c::tensor>(type);
    std::memcpy(made->data(), network.bytes_of(one.value).data(), type.bytes());
    const std::span<float> contents = made->as<float>();
    if (one.element == c::dtype::bf16) c::round_elements(one.element, *made, nullptr);
    else
      c::round_to(c::weight_quantisation(contents, type.dims, c::weight_axis(network, one.value)), contents, type.dims);
    network.set_bytes(one.value, bytes_of(made));
  }
  return network;
}

/// Builds one region of a whole network in another element type, and compares it.
class region_checker {
 public:
  using build_function = std::function<void(c::graph_builder&, data_source&)>;
  explicit region_checker(std::size_t entry) : entry_(c::table_of<set>[entry]) {}
  data_source& data() { return data_; }
  std::size_t built() const { return built_; }

  /// Inputs are integers' numbers, so that only weights, and what lies between operators, are rounded.
  void integers(const build_function& build, c::tolerance allowed) {
    const c::graph network = made(build);
    c::value_scales scales;
    std::map<std::uint32_t, c::tensor> inputs;
    for (const std::uint32_t v : network.inputs()) {
      const double low = data_.chance(0.3) ? 0 : -static_cast<double>(data_.number(1, 200)) / 100;
      const c::integer_scale how = c::scale_for(c::dtype::u8, low, 1.5);
      scales.set(v, c::dtype::u8, how);
      c::tensor x(network.type_of(v));
      for (float& element : x.as<float>())
        element = c::number_for(static_cast<std::int32_t>(data_.number(0, 255)), how);
      inputs.emplace(v, std::move(x));
    }
    const auto expected = [&](const c::graph& of) {
      std::vector<c::const_tensor_view> views;
      for (const std::uint32_t v : of.inputs()) views.emplace_back(inputs.at(v));
      return c::evaluate(of, views).at(0);
    };
    const std::vector<c::rounded_value> rounded = entry_.rounds(network, all_of(network), &scales);
    // Values between operators have the range that they have here.
    const c::value_scales any(c::integer_scale{});
    for (const c::rounded_value& one : entry_.rounds(network, all_of(network), &any))
      if (network.at(one.value).producer >= 0) {
        const std::vector<std::uint32_t> wanted{one.value};
        std::vector<c::known_value> known;
        for (const auto& [v, x] : inputs) known.push_back({v, x});
        const c::node_group group = all_of(network);
        const auto found = c::evaluate_group(network, group.nodes, known, wanted);
        const auto [low, high] = std::ranges::minmax(found[0].real);
        scales.set(one.value, c::dtype::u8, c::scale_for(c::dtype::u8, low, high));
      }
    run(network, scales, inputs, expected(with_rounded_weights(network, rounded)), allowed);
  }

  void bfloat16(const build_function& build, c::tolerance allowed = {0x1p-4, 1e-5}) {
    const c::graph network = made(build);
    std::map<std::uint32_t, c::tensor> inputs;
    for (const std::uint32_t v : network.inputs()) {
      c::tensor x(network.type_of(v));
      for (float& element : x.as<float>()) element = static_cast<float>(data_.number(-64, 64)) / 64;  // exact
      inputs.emplace(v, std::move(x));
    }
    std::vector<c::const_tensor_view> views;
    for (const std::uint32_t v : network.inputs()) views.emplace_back(inputs.at(v));
    const c::graph rounded = with_rounded_weights(network, entry_.rounds(network, all_of(network), nullptr));
    run(network, {}, inputs, c::evaluate(rounded, views).at(0), allowed);
  }

 private:
  c::graph made(const build_function& build) {
    c::graph_builder g;
    build(g, data_);
    c::graph network = g.finish();
    c::fill_constants(network);
    return network;
  }
  void run(const c::graph& network, const c::value_scales& scales, const std::map<std::uint32_t, c::tensor>& inputs,
           const c::oracle_value& expected, c::tolerance allowed) {
    const c::node_group group = all_of(network);
    for (const std::uint32_t n : group.nodes) {
      const c::verdict taken = c::judge_node(entry_, network, n);
      if (!taken && std::string(taken.rule).find("in lower precision") != std::string::npos) return;
      ASSERT_TRUE(taken) << network.node(n).kind->name << ": " << taken.rule << ", COLLAGE_SEED=" << data_.seed();
    }
    c::packed_weights packed;
    c::build_context context(network, 1, packed);
    context.set_scales(&scales);
    const c::kernel built = entry_.build_group(group, context);
    std::vector<const void*> in;
    for (const std::uint32_t v : group.arguments) in.push_back(inputs.contains(v) ? inputs.at(v).data() : nullptr);
    std::map<std::uint32_t, c::tensor> results;  // also of values that nothing reads
    std::vector<void*> out;
    for (const std::uint32_t v : group.outputs)
      out.push_back(results.emplace(v, network.type_of(v)).first->second.data());
    built(c::kernel_call{in.data(), out.data(), nullptr});
    const c::agreement a = c::compare(results.at(network.outputs()[0]), expected, allowed);
    EXPECT_TRUE(a) << a.why << " (" << a.actual << ", not " << a.expected << ", off by " << a.worst_relative << ") "
                   << built.name() << ", COLLAGE_SEED=" << data_.seed() << '\n'
                   << network;
    ++built_;
  }

  const c::backend_entry& entry_;
  data_source data_;
  std::size_t built_ = 0;
};

bool holds_something(const c::shape& dims) { return dims.elements() > 0; }

/// Calls `run` with the usual convolutions that are not empty, and with random ones.
void for_convolutions(region_checker& check, const std::function<void(const conv_case&)>& run) {
  std::vector<conv_case> cases = conv_cases();
  for (int i = 0; i < 40; ++i) cases.push_back(random_conv(check.data()));
  for (const conv_case& one : cases)
    if (holds_something(one.x) && holds_something(one.w)) run(one);
  EXPECT_GT(check.built(), cases.size() / 4);  // the library errs in the others
}
/// The same for products.
void for_products(region_checker& check, const std::function<void(const matmul_case&)>& run) {
  std::vector<matmul_case> cases = matmul_cases();
  for (int i = 0; i < 40; ++i) cases.push_back(random_matmul(check.data()));
  for (const matmul_case& one : cases)
    if (holds_something(one.a) && holds_something(one.b)) run(one);
}

class openvino_int8 : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const c::probe_result p = c::openvino_int8::probe(); !p.available) GTEST_SKIP() << p.reason;
  }
  region_checker check{2};
  /// Sums of integers are exact. Then come factors and what is added, in float32.
  static constexpr c::tolerance exact{1e-4, 1e-6};
};

TEST_F(openvino_int8, convolutions) {
  for_convolutions(check, [&](const conv_case& one) {
    check.integers([&](c::graph_builder& g, data_source& data) { g.output("y", add_conv(g, data, one)); }, exact);
  });
}

TEST_F(openvino_int8, products) {
  for_products(check, [&](const matmul_case& one) {
    check.integers([&](c::graph_builder& g, data_source& data) { g.output("y", add_matmul(g, data, one)); }, exact);
  });
}

TEST_F(openvino_int8, means_sums_and_maxima) {
  check.integers(
      [](c::graph_builder& g, data_source&) {
        g.output("y", g(op::average_pool, g.input("x", f32({1, 9, 14, 14})), {.window = {2, 2}, .strides = {2, 2}}));
      },
      exact);
  check.integers(
      [](c::graph_builder& g, data_source&) {
        g.output("y", g(op::reduce_mean, g.input("x", f32({2, 17, 7, 7})), {.axes = {2, 3}, .keep_dims = false}));
      },
      exact);
  check.integers(
      [](c::graph_builder& g, data_source&) {
        g.output("y", g(op::max_pool, g.input("x", f32({1, 9, 13, 14})),
                        {.window = {3, 3}, .strides = {2, 2}, .pads_begin = {1, 1}, .pads_end = {0, 1}}));
      },
      exact);
  check.integers(
      [](c::graph_builder& g, data_source&) {
        g.output("y", g(op::relu, g(op::add, g.input("a", f32({1, 16, 9, 9})), g.input("b", f32({1, 16, 9, 9})))));
      },
      exact);
}

/// A residual block: the sum happens inside a convolution, and its operands are rounded. So are the values between convolutions.
TEST_F(openvino_int8, residual_blocks) {
  for (int i = 0; i < 6; ++i)
    check.integers(
        [](c::graph_builder& g, data_source& data) {
          const std::int64_t channels = 16 * data.number(1, 4), extent = data.number(5, 20);
          const c::value x = g.input("x", f32({1, channels, extent, extent}));
          const auto conv = [&](c::value from, const std::string& name, std::int64_t window) {
            const c::value w = data.constant(g, name, f32({channels, channels, window, window}));
            return g(op::conv, from, w, {.pads_begin = {window / 2, window / 2}, .pads_end = {window / 2, window / 2}});
          };
          const c::value first = g(op::relu, conv(x, "w1", 3));
          const c::value sum = g(op::relu, g(op::add, conv(first, "w2", 1), x));
          g.output("y", g(op::add, conv(g(op::relu, conv(sum, "w3", 1)), "w4", 3), sum));
        },
        {0.03, 1e-5});
}

/// Convolutions with what stands between them in networks of images. The library moves integers and factors through all of it.
void random_images(c::graph_builder& g, data_source& data) {
  const std::int64_t channels = 8 * data.number(1, 4), extent = data.number(8, 20);
  std::vector<c::value> values{g.input("x", f32({1, channels, extent, extent}))};
  int named = 0;
  const auto any = [&] { return values[static_cast<std::size_t>(data.number(0, std::ssize(values) - 1))]; };
  const auto conv = [&](c::value x, std::int64_t groups) {
    const std::int64_t window = data.chance(0.5) ? 1 : 3, side = window / 2, in = g.type_of(x).dims[1];
    const c::value w = data.constant(g, "w" + std::to_string(++named), f32({channels, in / groups, window, window}));
    const op::conv_attributes how{.groups = groups, .pads_begin = {side, side}, .pads_end = {side, side}};
    if (data.chance(0.5)) return g(op::conv, x, w, how);
    return g(op::conv, x, w, data.constant(g, "b" + std::to_string(named), f32({channels})), how);
  };
  const auto activated = [&](c::value x) {
    ++named;
    switch (data.number(0, 6)) {
      case 0:
        return g(op::clip, x, g.scalar("low" + std::to_string(named), 0), g.scalar("high" + std::to_string(named), 6));
      case 1: return g(op::hard_swish, x);
      case 2: return g(op::sigmoid, x);
      case 3: return x;
      default: return g(op::relu, x);
    }
  };
  const decltype(op::max_pool)::attributes around{.window = {3, 3}, .pads_begin = {1, 1}, .pads_end = {1, 1}};
  for (std::int64_t n = data.number(2, 9); n > 0; --n) switch (data.number(0, 8)) {
      case 0: values.push_back(g(op::add, any(), any())); break;
      case 1: values.push_back(g(op::mul, any(), g(op::sigmoid, any()))); break;
      case 2: values.push_back(activated(conv(g(op::concat, any(), any(), {.axis = 1}), 1))); break;
      case 3: values.push_back(g(op::max_pool, any(), around)); break;
      case 4: values.push_back(activated(conv(any(), channels))); break;
      default: values.push_back(activated(conv(any(), 1)));
    }
  const c::value last = conv(values.back(), 1);
  if (data.chance(0.5)) return g.output("y", last);
  const c::value flat = g(op::reduce_mean, last, {.axes = {2, 3}, .keep_dims = false});
  g.output("y", g(op::matmul, flat, data.constant(g, "dense", f32({channels, 10}))));
}

TEST_F(openvino_int8, random_networks_of_images) {
  for (int i = 0; i < 30; ++i) check.integers(random_images, c::tolerance_of_rounded_region(c::dtype::u8));
  EXPECT_EQ(check.built(), 30U);
}

class openvino_bf16 : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const c::probe_result p = c::openvino_bf16::probe(); !p.available) GTEST_SKIP() << p.reason;
  }
  region_checker check{1};
};

TEST_F(openvino_bf16, convolutions) {
  for_convolutions(check, [&](const conv_case& one) {
    check.bfloat16([&](c::graph_builder& g, data_source& data) { g.output("y", g(op::relu, add_conv(g, data, one))); });
  });
}

TEST_F(openvino_bf16, products) {
  for_products(check, [&](const matmul_case& one) {
    check.bfloat16([&](c::graph_builder& g, data_source& data) { g.output("y", add_matmul(g, data, one)); });
  });
}

TEST_F(openvino_bf16, random_networks_of_images) {
  for (int i = 0; i < 30; ++i) check.bfloat16(random_images, c::tolerance_of_rounded_region(c::dtype::bf16));
  EXPECT_EQ(check.built(), 30U);
}

/// x -> conv (w1) -> relu -> conv (w2) -> add x -> reshape -> product (w3)
c::graph small_network() {
  data_source data;
  c::graph_builder g;
  const c::value x = g.input("x", f32({1, 8, 4, 4}));
  const auto conv = [&](c::value from, const std::string& name) {
    return g(op::conv, from, data.constant(g, name, f32({8, 8, 1, 1})));
  };
  const c::value sum = g(op::add, conv(g(op::relu, conv(x, "w1")), "w2"), x);
  g.output("y", g(op::matmul, g(op::reshape, sum, {.dims = {1, 128}}), data.constant(g, "w3", f32({128, 10}))));
  c::graph network = g.finish();
  c::fill_constants(network);
  return network;
}
std::vector<std::string> names_of(const c::graph& network, const std::vector<c::rounded_value>& rounded) {
  std::vector<std::string> names;
  for (const c::rounded_value& one : rounded)
    names.push_back(network.value_name(one.value) + ' ' + c::name_of(one.element));
  return names;
}

TEST(openvino_rounding, says_what_regions_round) {
  const c::graph network = small_network();
  const c::backend_entry &bf16 = c::table_of<set>[1], &int8 = c::table_of<set>[2];
  const c::node_group group = all_of(network);
  // The first and the second convolution run with what follows, and a reshape rounds nothing.
  EXPECT_EQ(names_of(network, bf16.rounds(network, group, nullptr)),
            (std::vector<std::string>{"x bfloat16", "w1 bfloat16", "relu_1 bfloat16", "w2 bfloat16", "add_3 bfloat16",
                                      "w3 bfloat16", "matmul_5 bfloat16"}));
  EXPECT_TRUE(int8.rounds(network, group, nullptr).empty());  // no value has a scale
  const c::value_scales any(c::integer_scale{});
  EXPECT_EQ(names_of(network, int8.rounds(network, group, &any)),
            (std::vector<std::string>{"x uint8", "w1 int8", "relu_1 uint8", "w2 int8", "conv_2 uint8", "w3 int8",
                                      "reshape_4 uint8"}));
  c::value_scales few;
  few.set(network.inputs()[0], c::dtype::u8, {});
  EXPECT_EQ(names_of(network, int8.rounds(network, group, &few)), (std::vector<std::string>{"x uint8", "w1 int8"}));
}

TEST(openvino_rounding, weights_that_are_not_finite_are_refused) {
  if (const c::probe_result p = c::openvino_int8::probe(); !p.available) GTEST_SKIP() << p.reason;
  c::graph network = small_network();
  const auto w1 = network.view().inputs_of(0)[1];
  const auto spoilt = std::make_shared<c::tensor>(network.type_of(w1));
  std::ranges::fill(spoilt->as<float>(), std::numeric_limits<float>::infinity());
  network.set_bytes(w1, bytes_of(spoilt));
  const c::value_scales any(c::integer_scale{});
  c::packed_weights packed;
  c::build_context context(network, 1, packed);
  context.set_scales(&any);
  EXPECT_EQ(message_of([&] { (void)c::openvino_int8::build(all_of(network), context); }),
            "openvino-int8: weights contain NaN or infinity");
}

/// A plan of regions alone keeps its bound on samples, and computes the same after it was written to a file and read again.
TEST(place_within_error, openvino_alone_runs_a_network_in_lower_precision) {
  c::graph_builder g;
  ASSERT_TRUE(c::zoo::build("mobilenet-v2", g));
  c::graph network = g.finish();
  c::fill_constants(network);
  network = c::optimise(network);
  const c::sample_source samples = [](std::size_t which, std::span<const c::tensor_view> inputs) {
    if (which >= 6) return false;
    std::mt19937_64 random(which);
    std::normal_distribution<float> normal;
    auto* const x = static_cast<float*>(inputs[0].data);
    for (std::int64_t i = 0; i < inputs[0].type.dims.elements(); ++i) x[i] = normal(random);
    return true;
  };
  for (const c::precisions elements : {c::precisions::bf16, c::precisions::int8}) {
    const bool is_bf16 = elements == c::precisions::bf16;
    const c::probe_result able = is_bf16 ? c::openvino_bf16::probe() : c::openvino_int8::probe();
    if (!able.available) GTEST_SKIP() << able.reason;
    c::place_options how = quick_options();
    how.precision = {elements, 0.5};
    how.regions.seconds = 0;
    how.backends = {is_bf16 ? "openvino-bf16" : "openvino-int8", "portable"};  // portable takes much longer
    const c::placed_within_error made = c::place_within_error(network, c::table_of<set>, how, samples);
    ASSERT_TRUE(made.plan::error) << made.why_unrounded;
    EXPECT_GT(made.plan::error->measured, 1e-4);
    EXPECT_LE(made.plan::error->upper, 0.5);
    EXPECT_EQ(made.chosen.groups[0].backend(), how.backends[0]);
    EXPECT_EQ(made.chosen.scales != nullptr, elements == c::precisions::int8);
    const c::plan read = c::plan_from_json(c::plan_to_json(made, network), network, "a file");
    std::vector<c::run_buffers> runs;
    for (const c::placement* chosen : {&made.chosen, &read.chosen}) {
      const c::run_buffers& memory = runs.emplace_back(network);
      const std::vector<c::tensor_view> inputs(memory.in.begin(), memory.in.end());
      ASSERT_TRUE(samples(0, inputs));
      const c::dynamic_engine engine(network, *chosen, c::table_of<set>, 1);
      engine.context().run(memory.inputs, memory.outputs);
    }
    EXPECT_EQ(std::memcmp(runs[0].out[0].data(), runs[1].out[0].data(), runs[0].out[0].bytes()), 0);
  }
}

}  // namespace backends_openvino_rounding_test
#endif
