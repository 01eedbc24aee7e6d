// Depthwise convolutions of quantised files, on the backend of generated kernels, against the reference. Where this build is without
// it there is nothing to test.
#ifdef COLLAGE_HAS_JIT
#include "cases.hpp"
#include "support/backend_check.hpp"
#include "support/effort.hpp"
#include "support/messages.hpp"

#include "jit/byte_depthwise_kernel.hpp"

#include <collage/backends/jit.hpp>
#include <collage/pass/optimise.hpp>
#include <collage/run/weights.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace backends_jit_quantised_test {

using namespace collage_test;
using collage::dtype;

class jit_quantised_backend : public ::testing::Test {
 protected:
  void SetUp() override { options.must_cover = false; }
  void TearDown() override { EXPECT_EQ(check.allocations_while_running(), 0U); }
  backend_checker<collage::jit> check;
  check_options options;
};

template <class T>
std::shared_ptr<std::byte> contents_of(const std::vector<T>& list) {
  std::shared_ptr<std::byte> bytes = collage::allocate_bytes(list.size() * sizeof(T));
  std::memcpy(bytes.get(), list.data(), list.size() * sizeof(T));
  return bytes;
}
value floats(graph_builder& g, const char* name, const std::vector<float>& list) {
  const shape dims = list.size() == 1 ? shape{} : shape{static_cast<std::int64_t>(list.size())};
  return g.constant(name, f32(dims), contents_of(list));
}
/// Numbers of 8 bits. Those of int8 are given by their bits.
value bytes(graph_builder& g, const char* name, dtype type, const shape& dims, const std::vector<std::uint8_t>& list) {
  return g.constant(name, {type, dims}, contents_of(list));
}

struct quantised_case {
  shape x = {1, 24, 9, 9};
  shape window = {3, 3};
  op::conv_attributes t = {.groups = 24, .pads_begin = {1, 1}, .pads_end = {1, 1}};
  dtype image = dtype::u8, weights = dtype::i8, result = dtype::u8;
  bool has_bias = true, has_zeros = true, is_quantised = true, is_per_channel = true;
  int between = 0;               ///< nothing, relu or clip
  bool has_exact_scales = true;  ///< powers of two: then the reference has no rounding that a kernel lacks
};

quantised_case random_case(data_source& data) {
  quantised_case c;
  c.x = {data.number(1, 2), data.number(2, data.chance(0.3) ? 150 : 70), data.number(5, 15), data.number(5, 15)};
  c.window = {data.number(1, 5), data.number(1, 5)};
  if (data.chance(0.5)) c.window = {3, 3};
  c.t.groups = c.x[1];
  c.t.strides = {data.number(1, 2), data.number(1, 2)};
  if (data.chance(0.3)) c.t.dilations = {data.number(1, 2), data.number(1, 2)};
  c.t.pads_begin = {data.number(0, 2), data.number(2, 4)};
  c.t.pads_end = {data.number(2, 4), data.number(0, 2)};
  // The window fits: at least 5 elements and 2 of padding hold 5 taps, or 4 that are two apart.
  for (std::size_t d = 0; d < 2; ++d)
    if (!c.t.dilations.empty() && c.t.dilations[d] == 2) c.window[d] = std::min<std::int64_t>(c.window[d], 4);
  for (dtype* type : {&c.image, &c.weights, &c.result}) *type = data.chance(0.5) ? dtype::u8 : dtype::i8;
  c.has_bias = data.chance(0.5);
  c.has_zeros = data.chance(0.8);
  if (!c.has_zeros) c.weights = dtype::i8;
  c.is_quantised = data.chance(0.8);
  c.is_per_channel = data.chance(0.7);
  c.between = static_cast<int>(data.number(0, 2));
  return c;
}

float scale_of(data_source& data, bool is_exact, int least, int most) {
  const auto exponent = static_cast<int>(data.number(least, most));
  return std::ldexp(is_exact ? 1.0F : static_cast<float>(data.real(1, 2)), exponent);
}

value add_quantised(graph_builder& g, data_source& data, const quantised_case& c) {
  const auto random_bytes = [&](std::int64_t count) {
    std::vector<std::uint8_t> list;
    for (std::int64_t i = 0; i < count; ++i) list.push_back(static_cast<std::uint8_t>(data.number(0, 255)));
    return list;
  };
  const auto zero = [&](const char* name, dtype type) { return bytes(g, name, type, {}, random_bytes(1)); };
  const value x = g.input("x", {c.image, c.x}),
              x_scale = floats(g, "x scale", {scale_of(data, c.has_exact_scales, -8, -4)});
  const value image = c.has_zeros ? g(op::dequantize_linear, x, x_scale, zero("x zero", c.image))
                                  : g(op::dequantize_linear, x, x_scale);
  const std::int64_t channels = c.x[1], scales = c.is_per_channel ? channels : 1;
  std::vector<float> scale;
  for (std::int64_t i = 0; i < scales; ++i) scale.push_back(scale_of(data, c.has_exact_scales, -9, -5));
  const value w = bytes(g, "w", c.weights, {channels, 1, c.window[0], c.window[1]},
                        random_bytes(channels * c.window[0] * c.window[1]));
  const value w_scale = floats(g, "w scale", scale);
  const std::vector<std::uint8_t> centre(static_cast<std::size_t>(scales), c.weights == dtype::u8 ? 128 : 0);
  const value weights =
      c.has_zeros ? g(op::dequantize_linear, w, w_scale,
                      bytes(g, "w zero", c.weights, scales == 1 ? shape{} : shape{scales}, centre), {.axis = 0})
                  : g(op::dequantize_linear, w, w_scale, {.axis = 0});
  std::vector<float> bias;
  for (std::int64_t i = 0; i < channels; ++i)
    bias.push_back(std::ldexp(static_cast<float>(data.number(-999, 999)), -10));
  value y = c.has_bias ? g(op::conv, image, weights, g.constant("bias", f32({channels}), contents_of(bias)), c.t)
                       : g(op::conv, image, weights, c.t);
  if (c.between == 1) y = g(op::relu, y);
  if (c.between == 2) y = g(op::clip, y, g.scalar("least", -0.5), g.scalar("most", 6));
  if (!c.is_quantised) return y;
  const value y_scale = floats(g, "y scale", {scale_of(data, c.has_exact_scales, -7, -3)});
  return c.has_zeros ? g(op::quantize_linear, y, y_scale, zero("y zero", c.result), {.type = c.result})
                     : g(op::quantize_linear, y, y_scale, {.type = c.result});
}

/// Scales are powers of two, so that even ties are those of the reference.
TEST_F(jit_quantised_backend, depthwise) {
  const int count = cases(24);
  for (int i = 0; i < count; ++i)
    check([](graph_builder& g, data_source& data) { return add_quantised(g, data, random_case(data)); }, options);
  EXPECT_GE(check.checked("quantised_depthwise"), static_cast<std::size_t>(count));
}
TEST_F(jit_quantised_backend, layers_of_networks) {
  for (const std::int64_t stride : {1, 2})
    for (const std::int64_t size : {3, 5}) {
      quantised_case c;
      c.x = {1, 96, 14, 14};
      c.window = {size, size};
      c.t = {.groups = 96,
             .strides = {stride, stride},
             .pads_begin = {size / 2, size / 2},
             .pads_end = {size / 2, size / 2}};
      c.between = 1;
      check([&](graph_builder& g, data_source& data) { return add_quantised(g, data, c); }, options);
    }
  EXPECT_GT(check.checked("quantised_depthwise"), 3U);
}

/// The first match of the pattern.
struct found_match {
  const collage::pattern_entry* pattern = &pattern_called<collage::jit>("quantised_depthwise");
  collage::match_record record;
  explicit found_match(const collage::graph& network) {
    for (std::uint32_t node = 0; node < network.nodes().size(); ++node) {
      collage::match_record found;
      if (collage::match_at(network.view(), pattern->nodes, node, found)) record = found;  // the last is the largest
    }
  }
};

/// With any scales, a result differs by at most one step, and only where the exact number is next to a tie.
TEST(jit_quantised, results_are_those_of_the_reference_ties_aside) {
  data_source data;
  std::int64_t all = 0, other = 0;
  for (int i = 0; i < cases(40); ++i) {
    quantised_case c = random_case(data);
    c.has_exact_scales = false;
    c.is_quantised = true;
    graph_builder g;
    g.output("y", add_quantised(g, data, c));
    const collage::graph network = g.finish();
    const found_match found(network);
    const collage::tensor x({c.image, c.x}), result(network.type_of(network.outputs()[0]));
    const auto contents = data.contents(x.type());
    std::memcpy(x.data(), contents.get(), x.type().bytes());
    std::vector<const void*> in(found.record.argument_list().size());
    const std::uint32_t input = network.inputs()[0];
    in[found.record.index_of(input)] = x.data();
    const std::vector<collage::known_value> known = {{input, {x.data(), x.type()}}};
    const auto expected = collage::evaluate_group(network, found.record.node_list(), known, network.outputs());
    collage::packed_weights packed;
    collage::build_context context(network, 1, packed);
    context.set_configuration(*collage::proposed_for(*found.pattern, network.view(), found.record).begin());
    const collage::kernel made = found.pattern->build(network.view(), found.record, context);
    // Channels last.
    const collage::tensor from(x.type()), to(result.type());
    collage::from_plain(x.type(), collage::channels_last, x.data(), from.data());
    in[found.record.index_of(input)] = from.data();
    void* out[] = {to.data()};
    made({in.data(), out, nullptr});
    collage::to_plain(result.type(), collage::channels_last, to.data(), result.data());
    for (std::int64_t e = 0; e < result.type().dims.elements(); ++e) {
      const auto bits = static_cast<std::uint8_t>(result.data()[e]);
      const std::int64_t number = c.result == dtype::i8 ? static_cast<std::int8_t>(bits) : std::int64_t{bits};
      const std::int64_t wanted = expected[0].integer[static_cast<std::size_t>(e)];
      ++all;
      other += number != wanted;
      ASSERT_LE(std::abs(number - wanted), 1) << "element " << e << ", COLLAGE_SEED=" << data.seed();
    }
  }
  EXPECT_LE(other, 2 + all / 5000);
}

collage::graph small_case(const quantised_case& c) {
  graph_builder g;
  data_source data;
  g.output("y", add_quantised(g, data, c));
  return g.finish();
}

TEST(jit_quantised_rules, say_what_is_computed) {
  const auto refusal = [](const auto& change) {
    quantised_case c;
    change(c);
    const collage::graph network = small_case(c);
    const found_match found(network);
    if (found.record.nodes == 0) return std::string("there is no match");
    const collage::verdict v = found.pattern->accepts(network.view(), found.record);
    return std::string(v ? "" : v.rule);
  };
  EXPECT_EQ(refusal([](quantised_case&) {}), "");
  EXPECT_EQ(refusal([](quantised_case& c) {
              c.t.groups = 1;
              c.x = {1, 1, 9, 9};
            }),
            "there is no match");
  EXPECT_EQ(refusal([](quantised_case& c) {
              c.window = {23, 23};
              c.t.pads_begin = c.t.pads_end = {11, 11};
            }),
            "the window of a quantised depthwise convolution may have 512 elements");
  EXPECT_EQ(refusal([](quantised_case& c) {
              c.image = dtype::u16;
              c.has_zeros = false;
            }),
            "the image of a quantised convolution must be int8 or uint8, with one known positive scale");
  EXPECT_EQ(refusal([](quantised_case& c) {
              c.result = dtype::i16;
              c.has_zeros = false;
            }),
            "the result of a quantised convolution must be int8 or uint8, with one known positive scale");
}

/// Two depthwise layers, as a file has them: the first result is read by the second alone. Folding leaves their weights.
TEST(jit_quantised_rules, layers_of_optimised_networks_match) {
  graph_builder g;
  const auto scale = [&](const std::string& name) { return floats(g, name.c_str(), {0.05F}); };
  const auto zero = [&](const std::string& name) { return bytes(g, name.c_str(), dtype::u8, {}, {3}); };
  value x = g.input("x", {dtype::u8, {1, 16, 9, 9}});
  for (const std::string layer : {"first ", "second "}) {
    const value image = g(op::dequantize_linear, x, scale(layer + "x scale"), zero(layer + "x zero"));
    const value w = bytes(g, (layer + "w").c_str(), dtype::i8, {16, 1, 3, 3}, std::vector<std::uint8_t>(144, 7));
    const value weights =
        g(op::dequantize_linear, w, floats(g, (layer + "w scale").c_str(), std::vector<float>(16, 0.1F)), {.axis = 0});
    const value bias =
        g(op::dequantize_linear,
          g.constant((layer + "bias").c_str(), {dtype::i32, {16}}, contents_of(std::vector<std::int32_t>(16, 50))),
          floats(g, (layer + "bias scale").c_str(), {0.005F}));
    const value y =
        g(op::relu, g(op::conv, image, weights, bias, {.groups = 16, .pads_begin = {1, 1}, .pads_end = {1, 1}}));
    x = g(op::quantize_linear, y, scale(layer + "y scale"), zero(layer + "y zero"));
  }
  g.output("y", x);
  const collage::graph network = collage::optimise(g.finish());
  const collage::pattern_entry& pattern = pattern_called<collage::jit>("quantised_depthwise");
  int whole = 0;
  for (std::uint32_t node = 0; node < network.nodes().size(); ++node) {
    collage::match_record record;
    if (collage::match_at(network.view(), pattern.nodes, node, record) && record.nodes == 5 &&
        pattern.accepts(network.view(), record))
      ++whole;  // both dequantize_linear, conv, relu and quantize_linear
  }
  EXPECT_EQ(whole, 2);
}

TEST(jit_quantised_rules, scales_must_be_positive) {
  graph_builder g;
  data_source data;
  const value x = g(op::dequantize_linear, g.input("x", {dtype::u8, {1, 4, 9, 9}}), floats(g, "zero", {0}));
  const value w = g(op::dequantize_linear, bytes(g, "w", dtype::i8, {4, 1, 3, 3}, std::vector<std::uint8_t>(36, 1)),
                    floats(g, "one", {1}));
  g.output("y", g(op::conv, x, w, {.groups = 4}));
  EXPECT_EQ(refusal_of_match<collage::jit>(g.finish(), "quantised_depthwise"),
            "the image of a quantised convolution must be int8 or uint8, with one known positive scale");
}

TEST(jit_quantised_weights, are_as_built) {
  for (const dtype type : {dtype::i8, dtype::u8}) {
    quantised_case c;
    c.weights = type;
    const collage::graph network = small_case(c);
    const found_match found(network);
    for (const collage::configuration& how : collage::proposed_for(*found.pattern, network.view(), found.record)) {
      const collage::kept_constants kept = found.pattern->weights(network.view(), found.record, how);
      ASSERT_EQ(kept.size(), 1U) << how.text();
      collage::packed_weights packed;
      collage::build_context context(network, 2, packed);
      context.set_configuration(how);
      const collage::kernel made = found.pattern->build(network.view(), found.record, context);
      EXPECT_EQ(packed.bytes(), kept[0].bytes) << how.text();
      static_cast<void>(packed.get(network.constant(kept[0].value).bytes, kept[0].packing, kept[0].bytes,
                                   [&](std::byte*) { ADD_FAILURE() << how.text() << ": " << kept[0].packing; }));
      EXPECT_TRUE(found.pattern->knows(network.view(), found.record, how));
    }
    EXPECT_FALSE(found.pattern->knows(network.view(), found.record, *collage::configuration::of("product1 classical")));
    EXPECT_FALSE(found.pattern->knows(network.view(), found.record,
                                      *collage::configuration::of("bytes1 avx512-vnni tile 4x8 order columns")));
  }
}

TEST(jit_quantised_weights, with_other_zero_points_are_refused) {
  graph_builder g;
  const value x = g(op::dequantize_linear, g.input("x", {dtype::u8, {1, 4, 9, 9}}), floats(g, "x scale", {1}));
  const value w = g(op::dequantize_linear, bytes(g, "w", dtype::i8, {4, 1, 3, 3}, std::vector<std::uint8_t>(36, 1)),
                    floats(g, "w scale", {1}), bytes(g, "w zero", dtype::i8, {}, {1}));
  g.output("y", g(op::conv, x, w, {.groups = 4}));
  const collage::graph network = g.finish();
  const found_match found(network);
  collage::packed_weights packed;
  collage::build_context context(network, 1, packed);
  context.set_configuration(*collage::proposed_for(*found.pattern, network.view(), found.record).begin());
  const std::string why =
      collage_test::message_of([&] { static_cast<void>(found.pattern->build(network.view(), found.record, context)); },
                               collage::error_kind::unsupported);
  EXPECT_NE(why.find("have a zero point other than 0"), std::string::npos) << why;
}

}  // namespace backends_jit_quantised_test
#endif
