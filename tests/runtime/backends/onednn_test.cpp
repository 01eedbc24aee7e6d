// oneDNN's convolutions and products against the reference. Where this build is without oneDNN there is nothing to
// test.
#ifdef COLLAGE_HAS_ONEDNN
#include "onednn_fixture.hpp"
#include "support/effort.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace backends_onednn_test {

using namespace collage_test;

TEST_F(onednn_test, says_what_it_is) {
  const collage::probe_result found = collage::onednn::probe();
  EXPECT_EQ(std::string(found.version).substr(0, 2), "3.");
  EXPECT_NE(std::string(found.details).find("kernels for "), std::string::npos) << found.details;
}

TEST_F(onednn_test, convolutions) {
  check_convs(check, as_it_is, lenient, 80);
  EXPECT_GT(check.checked("conv"), collage_test::cases(80U));
  EXPECT_TRUE(built(" 1x1"));
  EXPECT_TRUE(built(" inside"));
  EXPECT_TRUE(built_as(" nhwc"));
  EXPECT_TRUE(built_as(" nhwc inside"));
}

/// Values of an addition to x: one for each element, for each channel (or column), one.
std::vector<shape> addends(const shape& x, bool convolution) {
  shape small = shape::filled(x.size(), 1);
  if (convolution) small[1] = x[1];
  if (!convolution && !x.empty()) small[x.size() - 1] = x[x.size() - 1];
  return {x, small, {}};
}

TEST_F(onednn_test, what_follows_a_convolution_is_fused) {
  const auto chain = [&](const auto& then) {
    some_cases takes(6);
    for (const conv_case& c : conv_cases())
      if (takes())
        check([&](graph_builder& g, data_source& data) { return then(g, data, add_conv(g, data, c)); }, lenient);
  };
  const auto clip = [](graph_builder& g, value x) {
    return g(op::clip, x, g.scalar("low", -0.5), g.scalar("high", 2));
  };
  for (int round = 0; round < 2; ++round) {
    chain(apply(op::relu));
    chain(apply(op::sigmoid));
    chain(apply(op::tanh));
    chain([](graph_builder& g, data_source&, value x) { return g(op::leaky_relu, x, {.alpha = 0.25}); });
    chain([](graph_builder& g, data_source&, value x) { return g(op::elu, x, {.alpha = 0.5}); });
    chain([&](graph_builder& g, data_source&, value x) { return clip(g, x); });
    chain([](graph_builder& g, data_source&, value x) { return g(op::add, x, x); });
    for (std::size_t which = 0; which < 3; ++which) {
      const auto sum = [&](graph_builder& g, data_source& data, value x) {
        const collage::tensor_type type = f32(addends(g.type_of(x).dims, true)[which]);
        return g(op::add, round == 0 ? g.input("sum", type) : data.constant(g, "sum", type), x);
      };
      chain(sum);
      chain([&](graph_builder& g, data_source& data, value x) { return g(op::relu, sum(g, data, x)); });
      chain([&](graph_builder& g, data_source& data, value x) { return clip(g, sum(g, data, x)); });
    }
  }
  EXPECT_GT(check.checked("conv_chain"), collage_test::cases(100U));
}

/// The first match of a pattern in a graph, and what is built of it.
struct built_match {
  built_match(const collage::graph& network, const std::string& pattern) : of(&network) {
    const auto& table = backend_checker<collage::onednn>::table();
    for (const collage::pattern_entry& p : table.patterns)
      if (p.name == pattern) entry = &p;
    for (std::uint32_t node = 0; node < network.nodes().size() && !found; ++node)
      found = collage::match_at(network.view(), entry->nodes, node, record);
  }
  std::size_t choices() const { return entry->choices(of->view(), record); }
  bool is_on_bytes(std::size_t choice) const {
    const collage::value_forms forms = forms_of(*entry, of->view(), record, collage::configuration(choice));
    return forms.of(record.argument[0]).element == collage::dtype::u8;
  }
  std::string build(std::size_t choice, collage::packed_weights& packed, int threads = 1) const {
    collage::build_context context(*of, threads, packed);
    context.set_configuration(collage::configuration(choice));
    kernels.push_back(entry->build(of->view(), record, context));
    return kernels.back().name();
  }
  const collage::graph* of;
  const collage::pattern_entry* entry = nullptr;
  collage::match_record record;
  bool found = false;
  mutable std::vector<collage::kernel> kernels;  ///< alive, and with them what they packed
};

/// A random chain of what can become a post-op.
value random_chain(graph_builder& g, data_source& data, value x, bool convolution, std::int64_t steps) {
  for (std::int64_t i = 0; i < steps; ++i) {
    const auto name = [&](const char* what) { return what + std::to_string(i); };
    const std::vector<shape> shapes = addends(g.type_of(x).dims, convolution);
    const auto operand = [&] {
      const collage::tensor_type type = f32(shapes[static_cast<std::size_t>(data.number(0, 2))]);
      const std::string it = name("operand");
      return data.chance(0.5) ? g.input(it.c_str(), type) : data.constant(g, it, type);
    };
    switch (data.number(0, 8)) {
      case 0: x = g(op::relu, x); break;
      case 1: x = g(op::tanh, x); break;
      case 2: x = g(op::leaky_relu, x, {.alpha = 0.25}); break;
      case 3: x = g(op::mul, x, g(op::sigmoid, x)); break;
      case 4: x = g(op::clip, x, g.scalar(name("low").c_str(), -0.5), g.scalar(name("high").c_str(), 2)); break;
      case 5: x = g(op::add, operand(), x); break;
      case 6: x = g(op::sub, x, operand()); break;
      case 7: x = g(op::mul, x, operand()); break;
      default:
        x = g(op::div, x, g.input(name("divisor").c_str(), f32(shapes[static_cast<std::size_t>(data.number(0, 2))])));
    }
  }
  return x;
}

TEST_F(onednn_test, chains_of_any_length_are_fused) {
  lenient.range.low = 0.25;  // of divisors, too
  const std::vector<conv_case> convs = conv_cases();
  const std::vector<matmul_case> products = matmul_cases();
  for (int i = 0; i < collage_test::cases(60); ++i) {
    const std::int64_t steps = check.data().number(1, 6);
    const auto at =
        static_cast<std::size_t>(check.data().number(0, 25));  // those behind are odd, or have weights that vary
    check([&](graph_builder& g,
              data_source& data) { return random_chain(g, data, add_conv(g, data, convs[at]), true, steps); },
          lenient);
    const auto product =
        static_cast<std::size_t>(check.data().number(0, static_cast<std::int64_t>(products.size()) - 1));
    check(
        [&](graph_builder& g, data_source& data) {
          return random_chain(g, data, add_matmul(g, data, products[product]), false, steps);
        },
        lenient);
  }
  EXPECT_GT(check.checked("conv_chain"), collage_test::cases(60U));  // each start of a chain is one
  EXPECT_GT(check.checked("matmul_chain"), collage_test::cases(60U));
}

struct deconv_case {
  shape x, w;
  op::conv_transpose_attributes attributes{};
  bool bias = false;
  bool constant_weights = true;
};

value add_deconv(graph_builder& g, data_source& data, const deconv_case& c) {
  const value x = g.input("x", f32(c.x));
  const auto operand = [&](const std::string& name, const shape& dims) {
    return c.constant_weights ? data.constant(g, name, f32(dims)) : g.input(name.c_str(), f32(dims));
  };
  const value w = operand("w", c.w);
  if (!c.bias) return g(op::conv_transpose, x, w, c.attributes);
  return g(op::conv_transpose, x, w, operand("bias", {c.w[1] * c.attributes.groups}), c.attributes);
}

deconv_case random_deconv(data_source& data) {
  deconv_case c;
  const auto rank = static_cast<std::size_t>(data.number(1, 3));
  const std::int64_t groups = data.chance(0.6) ? 1 : data.number(2, 4);
  const bool wide = data.chance(0.5);  // channels that fill vectors
  const std::int64_t in = wide ? 16 * data.number(1, 3) : data.number(1, 9);
  c.x = {data.number(1, 2), groups * in};
  c.w = {groups * in, wide ? 16 * data.number(1, 2) : data.number(1, 9)};
  c.attributes.groups = groups;
  for (std::size_t d = 0; d < rank; ++d) {
    const std::int64_t window = data.number(1, 5), stride = data.number(1, 4);
    const std::int64_t dilation = data.chance(0.2) ? 2 : 1;
    const std::int64_t reach = dilation * (window - 1) + 1;
    c.x.push_back(data.number(1, rank == 3 ? 5 : 12));
    c.w.push_back(window);
    c.attributes.strides.push_back(stride);
    c.attributes.dilations.push_back(dilation);
    c.attributes.output_padding.push_back(data.chance(0.7) ? 0 : data.number(0, std::max(stride, dilation) - 1));
    const std::int64_t whole = stride * (c.x.end()[-1] - 1) + reach;
    c.attributes.pads_begin.push_back(data.chance(0.5) ? 0 : data.number(0, std::min(reach, whole - 1)));
    c.attributes.pads_end.push_back(
        data.chance(0.5) ? 0 : data.number(0, std::min(reach, whole - 1 - c.attributes.pads_begin.end()[-1])));
  }
  c.bias = data.chance(0.5);
  c.constant_weights = data.chance(0.8);
  return c;
}

TEST_F(onednn_test, transposed_convolutions) {
  std::vector<deconv_case> cases = {
      {{1, 32, 8, 8}, {32, 16, 4, 4}, {.strides = {2, 2}, .pads_begin = {1, 1}, .pads_end = {1, 1}}, true},
      {{1, 64, 7, 7}, {64, 24, 2, 2}, {.strides = {2, 2}}, true},  // as decoders of segmentation have
      {{1, 16, 5, 5},
       {16, 3, 5, 5},
       {.strides = {2, 2}, .pads_begin = {2, 2}, .pads_end = {2, 2}, .output_padding = {1, 1}}},
      {{1, 100, 1, 1}, {100, 48, 4, 4}},  // the first of a generator
      {{2, 16, 9}, {16, 8, 8}, {.strides = {4}, .pads_begin = {2}, .pads_end = {2}}, true},
      {{1, 16, 6, 6}, {16, 1, 3, 3}, {.groups = 16, .strides = {2, 2}}},  // depthwise
      {{1, 16, 3, 4, 5}, {16, 16, 2, 2, 2}, {.strides = {2, 2, 2}}, true},
      {{1, 4, 3, 3}, {4, 5, 2, 2}, {.strides = {5, 5}}},  // places that nothing reaches
      {{1, 16, 4, 4}, {16, 16, 3, 3}, {.strides = {2, 2}}, true, false},
  };
  for (int i = 0; i < collage_test::cases(60); ++i) cases.push_back(random_deconv(check.data()));
  for (const deconv_case& c : cases)
    check([&](graph_builder& g, data_source& data) { return add_deconv(g, data, c); }, lenient);
  EXPECT_GT(check.checked("conv_transpose"), collage_test::cases(60U));
  EXPECT_TRUE(built_as(" nhwc"));
  lenient.range.low = 0.25;  // of divisors, too
  for (const deconv_case& c : cases)
    check([&](graph_builder& g,
              data_source& data) { return random_chain(g, data, add_deconv(g, data, c), true, data.number(1, 4)); },
          lenient);
  EXPECT_GT(check.checked("conv_transpose_chain"), collage_test::cases(20U));
}

/// A convolution behind a resize that repeats elements.
struct upsampled_case {
  conv_case conv;
  shape factors;
};

value add_upsampled(graph_builder& g, data_source& data, const upsampled_case& c) {
  const value x = g.input("x", f32(c.conv.x));
  op::resize_attributes a{.sizes = c.conv.x};
  for (std::size_t i = 0; i < c.factors.size(); ++i) a.sizes[i + 2] *= c.factors[i];
  if (data.chance(0.5)) {  // the same elements by another rule
    a.coordinates = op::resize_coordinates::asymmetric;
    a.rounding = op::resize_rounding::down;
  }
  const value w = data.constant(g, "w", f32(c.conv.w)), y = g(op::resize, x, a);
  if (!c.conv.bias) return g(op::conv, y, w, c.conv.attributes);
  return g(op::conv, y, w, g.input("bias", f32({c.conv.w[0]})), c.conv.attributes);
}

upsampled_case random_upsampled(data_source& data) {
  upsampled_case c;
  const auto rank = static_cast<std::size_t>(data.number(1, 3));
  const std::int64_t groups = data.chance(0.7) ? 1 : data.number(2, 3);
  const bool wide = data.chance(0.5);
  const auto channels = [&] { return wide ? 16 * data.number(1, 2) : data.number(1, 7); };
  const std::int64_t in = channels();
  c.conv.x = {data.number(1, 2), groups * in};
  c.conv.w = {groups * channels(), in};
  c.conv.attributes.groups = groups;
  for (std::size_t d = 0; d < rank; ++d) {
    const std::int64_t window = data.number(1, 5), factor = data.number(1, 3);
    c.factors.push_back(factor);
    c.conv.w.push_back(window);
    c.conv.x.push_back(std::max<std::int64_t>(data.number(1, rank == 3 ? 4 : 10), (window + factor - 1) / factor));
    c.conv.attributes.pads_begin.push_back(data.chance(0.3) ? 0 : data.number(0, window - 1));
    c.conv.attributes.pads_end.push_back(data.chance(0.3) ? 0 : data.number(0, window - 1));
  }
  c.conv.bias = data.chance(0.5);
  return c;
}

TEST_F(onednn_test, convolutions_of_repeated_elements_are_transposed_ones) {
  std::vector<upsampled_case> cases = {
      {{{1, 32, 8, 8}, {16, 32, 3, 3}, {.pads_begin = {1, 1}, .pads_end = {1, 1}}, true}, {2, 2}},
      {{{1, 16, 5, 7}, {16, 16, 5, 5}, {.pads_begin = {2, 2}, .pads_end = {2, 2}}}, {3, 2}},
      {{{1, 16, 1, 1}, {20, 16, 3, 3}, {.pads_begin = {2, 0}, .pads_end = {1, 1}}}, {4, 4}},
      {{{2, 32, 6, 6}, {32, 16, 3, 3}, {.groups = 2, .pads_begin = {1, 1}, .pads_end = {1, 1}}, true}, {2, 2}},
      {{{1, 16, 6, 6}, {16, 1, 3, 3}, {.groups = 16, .pads_begin = {1, 1}, .pads_end = {1, 1}}}, {2, 1}},
      {{{1, 16, 4, 4, 4}, {16, 16, 3, 3, 3}, {.pads_begin = {1, 1, 1}, .pads_end = {1, 1, 1}}, true}, {2, 2, 2}},
      {{{1, 16, 9}, {16, 16, 2}, {.pads_begin = {1}}}, {2}},
  };
  for (int i = 0; i < collage_test::cases(60); ++i) cases.push_back(random_upsampled(check.data()));
  for (const upsampled_case& c : cases)
    check([&](graph_builder& g, data_source& data) { return add_upsampled(g, data, c); }, lenient);
  const std::size_t alone = check.checked("upsampled_conv");
  EXPECT_GT(alone, collage_test::cases(30U));
  lenient.range.low = 0.25;  // of divisors, too
  for (const upsampled_case& c : cases)
    check([&](graph_builder& g,
              data_source& data) { return random_chain(g, data, add_upsampled(g, data, c), true, data.number(1, 4)); },
          lenient);
  EXPECT_GT(check.checked("upsampled_conv"), alone + collage_test::cases(40U));
}

/// How many operators the longest chain has that is taken where a graph ends.
std::size_t longest_chain(const collage::graph& network, const char* pattern) {
  const built_match found(network, pattern);
  std::size_t longest = 0;
  for (std::uint32_t node = 0; node < network.nodes().size(); ++node) {
    collage::match_record record;
    if (!collage::match_at(network.view(), found.entry->nodes, node, record)) continue;
    if (found.entry->accepts(network.view(), record)) longest = std::max<std::size_t>(longest, record.nodes);
  }
  return longest;
}

TEST_F(onednn_test, what_a_resize_must_be_before_a_convolution) {
  const auto is_taken = [](const op::resize_attributes& how, const shape& w, const op::conv_attributes& a) {
    graph_builder g;
    const value x = g.input("x", f32({1, 4, 6, 6}));
    g.output("y", g(op::conv, g(op::resize, x, how), g.constant("w", f32(w)), a));
    return longest_chain(g.finish(), "upsampled_conv") == 2U;
  };
  const op::resize_attributes twice{.sizes = {1, 4, 12, 12}};
  EXPECT_TRUE(is_taken(twice, {6, 4, 3, 3}, {}));
  EXPECT_TRUE(is_taken(twice, {6, 4, 1, 3}, {.pads_end = {0, 2}}));
  EXPECT_FALSE(is_taken(twice, {6, 4, 1, 1}, {}));
  EXPECT_FALSE(is_taken(twice, {6, 4, 3, 3}, {.strides = {2, 1}}));
  EXPECT_FALSE(is_taken(twice, {6, 4, 3, 3}, {.dilations = {1, 2}}));
  EXPECT_FALSE(is_taken(twice, {6, 4, 3, 3}, {.pads_begin = {3, 0}}));
  EXPECT_FALSE(is_taken({.sizes = {1, 4, 12, 12}, .mode = op::resize_mode::linear}, {6, 4, 3, 3}, {}));
  EXPECT_FALSE(is_taken(
      {.sizes = {1, 4, 12, 12}, .coordinates = op::resize_coordinates::asymmetric, .rounding = op::resize_rounding::up},
      {6, 4, 3, 3}, {}));
  EXPECT_FALSE(is_taken({.sizes = {1, 4, 9, 12}}, {6, 4, 3, 3}, {}));
  EXPECT_FALSE(is_taken({.sizes = {1, 4, 6, 6}}, {6, 4, 3, 3}, {}));
}

TEST_F(onednn_test, chains_end_where_post_ops_cannot_go_on) {
  const auto longest = [&](const auto& then) {
    graph_builder g;
    const value x = g(op::conv, g.input("x", f32({1, 4, 8, 8})), g.input("w", f32({6, 4, 3, 3})));
    g.output("y", then(g, x));
    return longest_chain(g.finish(), "conv_chain");
  };
  const auto relus = [&](int count) {
    return longest([count](graph_builder& g, value x) {
      for (int i = 0; i < count; ++i) x = g(op::relu, x);
      return x;
    });
  };
  EXPECT_EQ(relus(6), 7U);
  EXPECT_EQ(relus(7), 7U);
  EXPECT_EQ(longest([](graph_builder& g, value x) { return g(op::mul, x, g(op::sigmoid, x)); }), 3U);
  EXPECT_EQ(longest([](graph_builder& g, value x) { return g(op::add, x, g(op::sigmoid, x)); }), 0U);
  EXPECT_EQ(longest([](graph_builder& g, value x) { return g(op::mul, x, x); }), 0U);
  EXPECT_EQ(longest([](graph_builder& g, value x) { return g(op::sub, g.input("a", g.type_of(x)), x); }), 0U);
  EXPECT_EQ(longest([](graph_builder& g, value x) {
              g.output("also", x);  // read outside
              return g(op::relu, x);
            }),
            0U);
}

TEST_F(onednn_test, depthwise_convolutions_are_fused_behind_others) {
  struct pair_case {
    std::int64_t images, channels, inner, height, width, stride;
    bool biases;
  };
  const auto clip = [](graph_builder& g, value x, const std::string& name) {
    return g(op::clip, x, g.scalar((name + " low").c_str(), -0.5), g.scalar((name + " high").c_str(), 2));
  };
  const auto pair = [&](const pair_case& c, const auto& between, const auto& behind) {
    check(
        [&](graph_builder& g, data_source& data) {
          const auto conv = [&](const char* name, value x, const shape& w, const op::conv_attributes& a) {
            const value filters = data.constant(g, name, f32(w));
            if (!c.biases) return g(op::conv, x, filters, a);
            return g(op::conv, x, filters, data.constant(g, std::string(name) + ".bias", f32({w[0]})), a);
          };
          const value x = g.input("x", f32({c.images, c.channels, c.height, c.width}));
          const value inner = between(g, conv("v", x, {c.inner, c.channels, 1, 1}, {}), "between");
          const op::conv_attributes a{
              .groups = c.inner, .strides = {c.stride, c.stride}, .pads_begin = {1, 1}, .pads_end = {1, 1}};
          return behind(g, conv("w", inner, {c.inner, 1, 3, 3}, a), "behind");
        },
        lenient);
  };
  const auto nothing = [](graph_builder&, value x, const std::string&) { return x; };
  const auto relu = [](graph_builder& g, value x, const std::string&) { return g(op::relu, x); };
  // Large ones, since the library has kernels for those alone.
  pair({1, 16, 96, 112, 112, 2, true}, clip, clip);
  if (!collage::detail::is_watched) {
    pair({1, 5, 90, 111, 113, 2, false}, relu, nothing);
    pair({2, 19, 104, 101, 103, 2, true}, nothing, relu);
  }
  const std::size_t large = check.checked("conv_depthwise");
  pair({1, 16, 32, 20, 20, 1, true}, clip, clip);
  pair({1, 5, 7, 3, 1, 2, false}, relu, relu);
  EXPECT_EQ(check.checked("conv_depthwise"), large);  // the library has only slow loops
  EXPECT_EQ(check.refused("conv_depthwise"), 0U);
  // Windows and steps that the library's post-op does not know, or groups of several channels.
  for (const op::conv_attributes& a :
       {op::conv_attributes{.groups = 16, .strides = {2, 1}, .pads_begin = {1, 1}, .pads_end = {1, 1}},
        op::conv_attributes{.groups = 16, .pads_begin = {0, 0}, .pads_end = {2, 2}},
        op::conv_attributes{.groups = 16, .dilations = {2, 2}, .pads_begin = {1, 1}, .pads_end = {1, 1}},
        op::conv_attributes{.groups = 8, .pads_begin = {1, 1}, .pads_end = {1, 1}}}) {
    const std::size_t before = check.refused("conv_depthwise");
    check(
        [&](graph_builder& g, data_source& data) {
          const value x = g(op::conv, g.input("x", f32({1, 8, 9, 9})), data.constant(g, "v", f32({16, 8, 1, 1})));
          return g(op::conv, x, data.constant(g, "w", f32({16, 16 / a.groups, 3, 3})), a);
        },
        lenient);
    EXPECT_EQ(check.refused("conv_depthwise"), before + 1);
  }
  if (large == 0) GTEST_SKIP() << "the library has no such kernels for this processor";
  EXPECT_TRUE(built(" and depthwise nChw"));
}

TEST_F(onednn_test, products) {
  check_matmuls(check, as_it_is, lenient, 80);
  EXPECT_GT(check.checked("matmul"), collage_test::cases(100U));
  EXPECT_TRUE(built(" packed"));
}

TEST_F(onednn_test, products_by_several_implementations) {
  graph_builder g;
  g.output("y", g(op::matmul, g.input("x", f32({64, 96})), check.data().constant(g, "w", f32({96, 80}))));
  const collage::graph network = g.finish();
  const built_match product(network, "matmul");
  ASSERT_TRUE(product.found);
  // Two in float32, and two in bfloat16. With VNNI, two on integers follow.
  ASSERT_TRUE(product.choices() == 4 || product.choices() == 6) << product.choices();
  collage::packed_weights packed;
  const std::string first = product.build(0, packed);
  std::string second;
  try {
    second = product.build(1, packed);
  } catch (const collage::error& none) { GTEST_SKIP() << none.what(); }  // as on processors without AVX-512
  EXPECT_NE(first, second);
  for (int i = 0; i < 3;
       ++i) {  // version 3.2 lists again what it has cached, and would then answer the first one twice
    EXPECT_EQ(product.build(1, packed), second);
    EXPECT_EQ(product.build(0, packed), first);
  }
}

TEST_F(onednn_test, packed_weights_are_shared_by_choices_patterns_and_threads) {
  graph_builder g;
  const conv_case c{{1, 64, 14, 14}, {64, 64, 3, 3}, {.pads_begin = {1, 1}, .pads_end = {1, 1}}};
  g.output("y", g(op::relu, add_conv(g, check.data(), c)));
  const collage::graph network = g.finish();
  const built_match alone(network, "conv"), fused(network, "conv_chain");
  ASSERT_TRUE(alone.found && fused.found);
  ASSERT_EQ(alone.choices(), fused.choices());
  collage::packed_weights packed;
  std::vector<std::string> implementations;
  for (std::size_t choice = 0; choice < alone.choices(); ++choice) {
    if (alone.is_on_bytes(choice)) continue;  // these need scales
    std::string name;
    try {
      name = alone.build(choice, packed);
    } catch (const collage::error&) { continue; }  // bfloat16, on processors without AVX-512
    implementations.push_back(name.substr(0, name.find(' ')));
    std::ranges::sort(implementations);
    implementations.erase(std::ranges::unique(implementations).begin(), implementations.end());
    EXPECT_EQ(packed.size(), implementations.size()) << name;  // one form for each
    const std::size_t forms = packed.size();
    fused.build(choice, packed);
    fused.build(choice, packed, 2);
    EXPECT_EQ(packed.size(), forms) << name;
  }
  EXPECT_FALSE(implementations.empty());
  EXPECT_LT(implementations.size(), alone.choices());  // the library's own choice is channels last, too
}

TEST_F(onednn_test, what_follows_a_product_is_fused) {
  const auto chain = [&](const auto& then) { check_matmuls(check, then, lenient, 8, some_cases(3)); };
  chain(apply(op::relu));
  chain(apply(op::tanh));
  chain([](graph_builder& g, data_source&, value x) { return g(op::div, x, g.scalar("root", 5.656854152679443)); });
  chain([](graph_builder& g, data_source&, value x) { return g(op::mul, g.scalar("factor", -3), x); });
  for (std::size_t which = 0; which < 3; ++which) {
    const auto sum = [which](graph_builder& g, data_source& data, value x) {
      const collage::tensor_type type = f32(addends(g.type_of(x).dims, false)[which]);
      return g(op::add, which == 0 ? g.input("bias", type) : data.constant(g, "bias", type), x);
    };
    chain(sum);
    chain([&](graph_builder& g, data_source& data, value x) { return g(op::sigmoid, sum(g, data, x)); });
    chain([&](graph_builder& g, data_source& data, value x) {
      return g(op::add, g.input("more", g.type_of(x)), sum(g, data, x));
    });
    chain([&](graph_builder& g, data_source& data, value x) {
      const value y = sum(g, data, x);
      const value shifted = g(op::add, g(op::erf, g(op::div, y, g.scalar("root", std::sqrt(2.0)))), g.scalar("one", 1));
      return g(op::mul, y, g(op::mul, g.scalar("half", 0.5), shifted));
    });
  }
  EXPECT_GT(check.checked("matmul_chain"), collage_test::cases(100U));
  EXPECT_GT(check.checked("matmul_add_gelu"), collage_test::cases(10U));
}

TEST_F(onednn_test, transposes_around_products_are_strides) {
  const auto heads = [&](bool a, bool b, bool out, bool scale, bool constant_b) {
    check(
        [&](graph_builder& g, data_source& data) {
          const std::int64_t h = data.number(1, 4), m = data.number(1, 40), n = data.number(1, 40),
                             k = data.number(1, 40);
          value x = g.input("x", f32(a ? shape{2, m, h, k} : shape{2, h, m, k}));
          const collage::tensor_type y_type = f32(b ? shape{2, n, h, k} : shape{2, h, k, n});
          value y = constant_b ? data.constant(g, "y", y_type) : g.input("y", y_type);
          if (a) x = g(op::transpose, x, {.permutation = {0, 2, 1, 3}});
          if (b) y = g(op::transpose, y, {.permutation = {0, 2, 3, 1}});
          value z = g(op::matmul, x, y);
          if (scale) z = g(op::div, z, g.scalar("root", 3));
          return out ? g(op::transpose, z, {.permutation = {0, 2, 1, 3}}) : z;
        },
        lenient);
  };
  for (int i = 0; i < 8; ++i)
    for (const bool a : {false, true})
      for (const bool b : {false, true})
        for (const bool out : {false, true})
          for (const bool scale : {false, true}) heads(a, b, out, scale, i % 4 == 3);
  check(  // of plain matrices, twice transposed
      [](graph_builder& g, data_source& data) {
        const value x = g(op::transpose, g.input("x", f32({30, 20})));
        return g(op::transpose, g(op::matmul, x, g(op::transpose, data.constant(g, "y", f32({25, 30})))));
      },
      lenient);
  check(
      [](graph_builder& g, data_source&) {
        const value x = g(op::transpose, g.input("x", f32({20, 30})));
        return g(op::matmul, x, g(op::transpose, g.input("y", f32({30, 25}))),
                 {.transpose_a = true, .transpose_b = true});
      },
      lenient);
  check(  // rows and columns
      [](graph_builder& g, data_source&) {
        return g(op::transpose, g(op::matmul, g.input("x", f32({20})), g.input("y", f32({20, 30}))));
      },
      lenient);
  for (const char* pattern : {"matmul_of_transposed", "matmul_by_transposed", "matmul_both_transposed",
                              "matmul_both_transposed_scale", "matmul_transpose", "matmul_by_transposed_transpose"})
    EXPECT_GT(check.checked(pattern), 5U) << pattern;
}

TEST_F(onednn_test, nan_and_infinity_pass) {
  const auto convs = [&](const auto& then) {
    collage_test::some_cases takes;
    for (const conv_case& c : conv_cases()) {
      if (!c.constant_weights || !takes())
        continue;  // an infinite weight meets a pad: the reference has a product there, the library none
      check([&](graph_builder& g, data_source& data) { return then(g, data, add_conv(g, data, c)); }, special);
    }
  };
  convs(as_it_is);
  convs(apply(op::tanh));
  convs([](graph_builder& g, data_source&, value x) { return g(op::add, g.input("sum", g.type_of(x)), x); });
  convs([](graph_builder& g, data_source&, value x) { return g(op::mul, x, g(op::sigmoid, x)); });
  convs([](graph_builder& g, data_source&, value x) {
    const value y = g(op::sub, g(op::mul, x, g.input("factor", g.type_of(x))), g.input("less", f32({})));
    return g(op::div, y, g.input("divisor", f32(addends(g.type_of(x).dims, true)[1])));
  });
  check_matmuls(check, as_it_is, special);
  check_matmuls(check, apply(op::sigmoid), special);
  check_matmuls(
      check, [](graph_builder& g, data_source&, value x) { return g(op::add, g.input("sum", g.type_of(x)), x); },
      special);
}

TEST_F(onednn_test, refuses_what_it_cannot_do) {
  graph_builder g;
  const value x = g.input("x", f32({1, 4, 8, 8}));
  const value y = g(op::conv, x, g.input("w", f32({6, 4, 3, 3})));
  g.output("wide", g(op::add, y, g.input("sum", f32({2, 6, 6, 6}))));
  g.output("rows", g(op::add, g(op::conv, x, g.input("v", f32({6, 4, 3, 3}))), g.input("row", f32({6, 1}))));
  check.check(g.finish(), lenient);
  EXPECT_EQ(check.checked("conv"), 2U);
  EXPECT_EQ(check.refused("conv_chain"), 2U);
  expect_integers_refused(check, lenient);
}

}  // namespace backends_onednn_test
#endif
