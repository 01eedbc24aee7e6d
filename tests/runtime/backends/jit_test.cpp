// The backend of generated kernels against the reference. Where this build is without it there is nothing to test.
#ifdef COLLAGE_HAS_JIT
#include "cases.hpp"
#include "jit_chains.hpp"
#include "support/effort.hpp"
#include "support/files.hpp"
#include "support/placing.hpp"

#include "jit/convolution_point.hpp"
#include "jit/product_point.hpp"

#include <collage/backends/jit.hpp>
#include <collage/backends/portable.hpp>
#include <collage/place.hpp>
#include <collage/run/plan_fit.hpp>
#include <collage/run/weights.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>

namespace backends_jit_test {

using namespace collage_test;

class jit_backend : public ::testing::Test {
 protected:
  void SetUp() override { options.must_cover = false; }  // it takes what has constant weights
  void TearDown() override { EXPECT_EQ(check.allocations_while_running(), 0U); }
  backend_checker<collage::jit> check;
  check_options options;
};

/// Weights are constant in all of them.
matmul_case product(data_source& data) {
  matmul_case c;
  const std::int64_t m = data.number(1, 90), n = data.number(1, 150), k = data.number(1, 300);
  c.attributes.transpose_b = data.chance(0.3);
  if (data.chance(0.3)) c.a.push_back(data.number(1, 3));
  if (data.chance(0.2)) c.a.push_back(data.number(1, 3));
  c.a.push_back(m);
  c.a.push_back(k);
  c.b = c.attributes.transpose_b ? shape{n, k} : shape{k, n};
  return c;
}

TEST_F(jit_backend, says_what_it_is) {
  const collage::probe_result found = collage::jit::probe();
  EXPECT_TRUE(found.available);
  EXPECT_STREQ(found.version, "generator 1, products 1, convolutions 1, direct 1, depthwise 1, attention 1, bytes 1");
  EXPECT_STRNE(found.details, "");
}

TEST_F(jit_backend, products) {
  check_matmuls(check, as_it_is, options, 20);
  EXPECT_TRUE(std::ranges::all_of(check.kernels(), [](const auto& k) { return k.first.starts_with("classical, "); }));
}

TEST_F(jit_backend, products_pass_nan_and_infinity_on) {
  options.range.specials = 0.01;
  check_matmuls(check, as_it_is, options);
  check_matmuls(check, apply(op::relu), options);
}

void check_chains(backend_checker<collage::jit>& check, const check_options& options, int count) {
  // Few cases may have none that can run in place.
  for (int i = 0; i < count || (check.in_place() == 0 && i < 8 * count); ++i)
    check(
        [](graph_builder& g, data_source& data) {
          const value x = add_matmul(g, data, product(data));
          return chain(g, data, x, g.type_of(x).dims.size() - 1);
        },
        options);
  EXPECT_GT(check.checked("matmul_chain"), 0U);
  EXPECT_GT(check.in_place(), 0U);
}
TEST_F(jit_backend, products_with_chains) { check_chains(check, options, cases(30)); }
class jit_backend_long : public jit_backend {};
TEST_F(jit_backend_long, products_with_chains) { check_chains(check, options, 300); }

TEST_F(jit_backend, gelu) {
  for (int i = 0; i < 8; ++i)
    check(
        [](graph_builder& g, data_source& data) {
          const value x = add_matmul(g, data, product(data));
          const shape dims = g.type_of(x).dims;
          const value y = g(op::add, data.constant(g, "bias", f32({dims[dims.size() - 1]})), x);
          const value erf = g(op::erf, g(op::div, y, g.scalar("root", 1.4142135623730951)));
          return g(op::mul, y, g(op::mul, g.scalar("half", 0.5), g(op::add, erf, g.scalar("one", 1))));
        },
        options);
  EXPECT_GT(check.checked("matmul_add_gelu"), 0U);
}

void check_pointwise(backend_checker<collage::jit>& check, const check_options& options, int count) {
  for (int i = 0; i < count; ++i)
    check(
        [i](graph_builder& g, data_source& data) {
          conv_case c;
          c.x = {data.number(1, 2), data.number(1, 120)};
          c.w = {data.number(1, 120), c.x[1]};
          for (std::int64_t d = data.number(1, 3); d > 0; --d) {
            c.x.push_back(data.number(1, 12));
            c.w.push_back(1);
          }
          c.bias = data.chance(0.5);
          const value y = add_conv(g, data, c);
          return i % 3 == 1 ? y : chain(g, data, y, 1, {.large_constants = false});
        },
        options);
  EXPECT_GT(check.checked("conv"), 0U);
  EXPECT_GT(check.checked("conv_chain"), 0U);
}
TEST_F(jit_backend, pointwise_convolutions) { check_pointwise(check, options, cases(30)); }
TEST_F(jit_backend_long, pointwise_convolutions) { check_pointwise(check, options, 300); }

/// A convolution of 3x3 or 5x5 that is no multiple of a tile, with any pads.
conv_case windowed(data_source& data) {
  const std::int64_t window = data.chance(0.7) ? 3 : 5;
  conv_case c;
  c.x = {data.number(1, 2), data.number(1, 40)};
  c.w = {data.number(1, 40), c.x[1], window, window};
  for (int d = 0; d < 2; ++d) {
    const std::int64_t before = data.number(0, window + 1), after = data.number(0, window + 1);
    c.attributes.pads_begin.push_back(before);
    c.attributes.pads_end.push_back(after);
    c.x.push_back(std::max(data.number(1, 15), window - before - after));
  }
  c.bias = data.chance(0.5);
  return c;
}

/// One of 3x3 or 5x5 in the last dimensions. Windows may be deeper than the image.
conv_case deep(data_source& data) {
  const std::int64_t window = data.chance(0.7) ? 3 : 5, depth = data.chance(0.6) ? 3 : data.number(1, 5);
  conv_case c;
  c.x = {data.number(1, 2), data.number(1, 24)};
  c.w = {data.number(1, 24), c.x[1], depth, window, window};
  for (std::size_t d = 2; d < 5; ++d) {
    const std::int64_t before = data.number(0, d == 2 ? 3 : window), after = data.number(0, d == 2 ? 3 : window);
    c.attributes.pads_begin.push_back(before);
    c.attributes.pads_end.push_back(after);
    c.x.push_back(std::max(data.number(1, d == 2 ? 9 : 11), c.w[d] - before - after));
  }
  c.bias = data.chance(0.5);
  return c;
}

bool names_algorithm(const std::string& kernel) {
  return std::ranges::any_of(collage::detail::jit::convolution_families,
                             [&](const auto& f) { return kernel.starts_with(std::string(f.name) + ", "); });
}

/// Errors are those of sums that an operator may make small afterwards, as clip does. How large they are without, the tests of
/// the convolutions themselves compare with each algorithm's expected error.
constexpr collage::tolerance tolerance_with_chains{2e-3, 1e-5};

void check_windowed(backend_checker<collage::jit>& check, check_options options, int count,
                    conv_case (*made)(data_source&) = windowed) {
  options.tolerance = tolerance_with_chains;
  for (int i = 0; i < count; ++i)
    check(
        [&](graph_builder& g, data_source& data) {
          const value y = add_conv(g, data, made(data));
          return i % 3 == 1 ? y : chain(g, data, y, 1, {.large_constants = false, .rows = false});
        },
        options);
  EXPECT_GT(check.checked("conv"), 0U);
  EXPECT_GT(check.checked("conv_chain"), 0U);
  EXPECT_TRUE(std::ranges::all_of(check.kernels(), [](const auto& k) { return names_algorithm(k.first); }));
  for (const char* layout : {"blocked-16", "channels-last", "plain"})
    EXPECT_TRUE(std::ranges::any_of(check.kernels(), [&](const auto& k) { return k.first.ends_with(layout); }));
}
TEST_F(jit_backend, convolutions_with_windows) { check_windowed(check, options, cases(12)); }
TEST_F(jit_backend_long, convolutions_with_windows) { check_windowed(check, options, 500); }
TEST_F(jit_backend, convolutions_in_depth) { check_windowed(check, options, cases(6), deep); }
TEST_F(jit_backend_long, convolutions_in_depth) { check_windowed(check, options, 100, deep); }

/// The input is added to the result, so it is read by tiles and by elements.
value with_residual(graph_builder& g, data_source& data) {
  conv_case c = windowed(data);
  const std::int64_t border = c.w[2] / 2;
  c.w[0] = c.w[1] = c.x[1];
  c.attributes.pads_begin = c.attributes.pads_end = {border, border};
  const value x = g.input("x", f32(c.x));
  return g(op::relu, g(op::add, g(op::conv, x, data.constant(g, "w", f32(c.w)), c.attributes), x));
}
TEST_F(jit_backend, convolutions_that_add_their_input) {
  options.tolerance = tolerance_with_chains;
  for (int i = 0; i < cases(4); ++i) check(with_residual, options);
  EXPECT_GT(check.checked("conv_chain"), 0U);
}

TEST_F(jit_backend, convolutions_in_depth_that_add_their_input) {
  options.tolerance = tolerance_with_chains;
  for (int i = 0; i < cases(3); ++i)
    check(
        [](graph_builder& g, data_source& data) {
          const std::int64_t channels = data.number(1, 20);
          const value x = g.input("x", f32({1, channels, data.number(1, 6), data.number(2, 9), data.number(2, 9)}));
          const value w = data.constant(g, "w", f32({channels, channels, 3, 3, 3}));
          const value y = g(op::conv, x, w, {.pads_begin = {1, 1, 1}, .pads_end = {1, 1, 1}});
          return g(op::relu, g(op::add, y, x));
        },
        options);
  EXPECT_GT(check.checked("conv_chain"), 0U);
}

bool is_direct(const auto& kernel) { return kernel.first.starts_with("direct, "); }

/// Windows that have no algorithm in their last two dimensions, strides and dilations. Several groups are refused.
TEST_F(jit_backend, other_convolutions_in_depth_are_direct) {
  const conv_case others[] = {{{1, 4, 6, 6, 6}, {5, 4, 3, 1, 1}},
                              {{1, 4, 6, 6, 6}, {5, 4, 3, 3, 5}},
                              {{1, 4, 6, 9, 9}, {5, 4, 3, 7, 7}},
                              {{1, 4, 6, 6, 6}, {5, 4, 3, 3, 3}, {.strides = {2, 1, 1}}},
                              {{1, 4, 6, 6, 6}, {5, 4, 2, 3, 3}, {.dilations = {2, 1, 1}}},
                              {{1, 4, 6, 6, 6}, {6, 2, 3, 3, 3}, {.groups = 2}}};
  for (const conv_case& c : others)
    check([&](graph_builder& g, data_source& data) { return add_conv(g, data, c); }, options);
  EXPECT_EQ(check.checked("conv"), std::size(others) - 1);
  EXPECT_EQ(check.refused("conv"), 1U);
  EXPECT_TRUE(std::ranges::all_of(check.kernels(), [](const auto& k) { return is_direct(k); }));
}

/// All rules by which a resize to twice the size repeats each element.
op::resize_attributes repeats_once(data_source& data, const shape& sizes) {
  using enum op::resize_coordinates;
  using enum op::resize_rounding;
  op::resize_attributes a{.sizes = sizes};
  a.coordinates = data.chance(0.5) ? asymmetric : data.chance(0.5) ? half_pixel : pytorch_half_pixel;
  a.rounding = data.chance(0.5) ? prefer_floor : a.coordinates == asymmetric ? down : prefer_ceil;
  return a;
}

/// A convolution of an image that was enlarged to about the size of the case. Its pads are those of the large image.
value add_enlarged(graph_builder& g, data_source& data, conv_case c) {
  shape large = c.x;
  for (const std::size_t d : {2, 3}) large[d] = 2 * (c.x[d] = (c.x[d] + 1) / 2);
  const value x = g.input("x", f32(c.x));
  const value y = g(op::resize, x, repeats_once(data, large)), w = data.constant(g, "w", f32(c.w));
  if (!c.bias) return g(op::conv, y, w, c.attributes);
  return g(op::conv, y, w, g.input("bias", f32({c.w[0]})), c.attributes);
}

bool enlarges(const std::string& kernel) { return kernel.starts_with("up2 "); }

void check_enlarged(backend_checker<collage::jit>& check, check_options options, int count) {
  options.tolerance = tolerance_with_chains;
  for (int i = 0; i < count; ++i)
    check(
        [i](graph_builder& g, data_source& data) {
          const value y = add_enlarged(g, data, windowed(data));
          return i % 3 == 1 ? y : chain(g, data, y, 1, {.large_constants = false, .rows = false});
        },
        options);
  EXPECT_GT(check.checked("upsampled_conv"), 0U);
  EXPECT_TRUE(std::ranges::all_of(check.kernels(), [](const auto& k) { return names_algorithm(k.first); }));
  for (const char* layout : {"blocked-16", "channels-last", "plain"})
    EXPECT_TRUE(std::ranges::any_of(check.kernels(),
                                    [&](const auto& k) { return enlarges(k.first) && k.first.ends_with(layout); }));
}
TEST_F(jit_backend, convolutions_of_enlarged_images) { check_enlarged(check, options, cases(6)); }
TEST_F(jit_backend_long, convolutions_of_enlarged_images) { check_enlarged(check, options, 500); }

TEST_F(jit_backend, convolutions_of_enlarged_images_may_write_over_what_they_add) {
  options.tolerance = tolerance_with_chains;
  check(
      [](graph_builder& g, data_source& data) {
        const conv_case c{{1, 7, 9, 6}, {18, 7, 3, 3}, {.pads_begin = {1, 1}, .pads_end = {1, 1}}, true};
        const value y = add_enlarged(g, data, c);
        return g(op::relu, g(op::add, y, g.input("other", g.type_of(y))));
      },
      options);
  EXPECT_EQ(check.checked("upsampled_conv"), 3U);
  EXPECT_GT(check.in_place(), 0U);
}

/// The small image has the size of the result, and is added to it.
TEST_F(jit_backend, enlarged_images_that_are_added_to_the_result) {
  options.tolerance = tolerance_with_chains;
  check(
      [](graph_builder& g, data_source& data) {
        const value x = g.input("x", f32({1, 20, 2, 2}));
        const value y = g(op::resize, x, repeats_once(data, {1, 20, 4, 4}));
        return g(op::relu, g(op::add, g(op::conv, y, data.constant(g, "w", f32({20, 20, 3, 3}))), x));
      },
      options);
  EXPECT_EQ(check.checked("upsampled_conv"), 3U);
}

/// Why a convolution is not computed with the resize before it; empty if it is.
std::string refusal_with_resize(const op::resize_attributes& how, const shape& w, const op::conv_attributes& a = {},
                                bool is_read_elsewhere = false) {
  graph_builder g;
  data_source data;
  const value y = g(op::resize, g.input("x", f32({1, 4, 6, 6})), how);
  g.output("out", g(op::conv, y, data.constant(g, "w", f32(w)), a));
  if (is_read_elsewhere) g.output("large", y);
  return refusal_of_match<collage::jit>(g.finish(), "upsampled_conv");
}

constexpr const char* other_resize =
    "before a convolution it computes a resize that repeats each element of an image once in both dimensions, and no "
    "other";
constexpr const char* other_window =
    "after a resize it computes convolutions of 3x3 and 5x5 with stride 1 and dilation 1, and no other";

TEST(jit_backend_resize, must_repeat_each_element_once) {
  using enum op::resize_coordinates;
  using enum op::resize_rounding;
  const auto refusal = [](op::resize_coordinates coordinates, op::resize_rounding rounding) {
    return refusal_with_resize({.sizes = {1, 4, 12, 12}, .coordinates = coordinates, .rounding = rounding},
                               {6, 4, 3, 3});
  };
  for (const auto rounding : {prefer_floor, down}) EXPECT_EQ(refusal(asymmetric, rounding), "");
  for (const auto rounding : {prefer_ceil, up}) EXPECT_EQ(refusal(asymmetric, rounding), other_resize);
  for (const auto coordinates : {half_pixel, pytorch_half_pixel, half_pixel_symmetric}) {
    for (const auto rounding : {prefer_floor, prefer_ceil}) EXPECT_EQ(refusal(coordinates, rounding), "");
    for (const auto rounding : {down, up}) EXPECT_EQ(refusal(coordinates, rounding), other_resize);
  }
  EXPECT_EQ(refusal(align_corners, prefer_floor), other_resize);
  EXPECT_EQ(refusal_with_resize({.sizes = {1, 4, 12, 12}, .mode = op::resize_mode::linear}, {6, 4, 3, 3}),
            other_resize);
  for (const shape& sizes : {shape{1, 4, 12, 6}, {1, 4, 18, 18}, {1, 4, 13, 12}, {2, 4, 12, 12}})
    EXPECT_EQ(refusal_with_resize({.sizes = sizes}, {6, 4, 3, 3}), other_resize);
}

TEST(jit_backend_resize, is_taken_with_some_convolutions) {
  const auto refusal = [](const shape& w, const op::conv_attributes& a = {}) {
    return refusal_with_resize({.sizes = {1, 4, 12, 12}}, w, a);
  };
  EXPECT_EQ(refusal({6, 4, 3, 3}, {.pads_begin = {5, 0}, .pads_end = {0, 3}}), "");
  EXPECT_EQ(refusal({6, 4, 5, 5}), "");
  EXPECT_EQ(refusal({6, 4, 1, 1}), other_window);
  EXPECT_NE(refusal({6, 4, 3, 5}), "");
  EXPECT_NE(refusal({6, 4, 3, 3}, {.strides = {2, 1}}), "");
  EXPECT_NE(refusal({6, 4, 3, 3}, {.dilations = {1, 2}}), "");
  EXPECT_NE(refusal({6, 2, 3, 3}, {.groups = 2}), "");
}

TEST(jit_backend_resize, is_not_taken_if_its_result_is_read_elsewhere) {
  EXPECT_EQ(refusal_with_resize({.sizes = {1, 4, 12, 12}}, {6, 4, 3, 3}, {}, true), "there is no match");
}

TEST_F(jit_backend, operands_for_rows_of_a_convolution_are_refused) {
  check(
      [](graph_builder& g, data_source& data) {
        const conv_case c{{1, 4, 6, 6}, {5, 4, 3, 3}};
        return g(op::add, add_conv(g, data, c), g.input("row", f32({1, 1, 4, 4})));
      },
      options);
  EXPECT_EQ(check.checked("conv"), 1U);
  EXPECT_EQ(check.refused("conv_chain"), 1U);
}

/// With strides, dilations, groups, and windows and pads of any size.
TEST_F(jit_backend, any_convolutions) {
  options.tolerance = tolerance_with_chains;
  check_convs(check, as_it_is, options);
  check_convs(
      check,
      [](graph_builder& g, data_source& data, value y) {
        return chain(g, data, y, 1, {.large_constants = false, .rows = false});
      },
      options);
  EXPECT_GT(check.checked("conv"), 0U);
  EXPECT_GT(check.checked("conv_chain"), 0U);
  EXPECT_GT(check.refused("conv"), 0U);
  EXPECT_TRUE(std::ranges::any_of(check.kernels(), [](const auto& k) { return is_direct(k); }));
}

TEST_F(jit_backend, integers_are_refused) { expect_integers_refused(check, options); }

/// The backend, with other configurations.
struct every_scheme : collage::jit {
  static void configurations(const collage::any_match&, collage::configuration_list& to) {
    namespace jit = collage::detail::jit;
    for (const jit::scheme& s : jit::schemes())
      for (const auto set : {jit::instruction_set::avx512, jit::instruction_set::avx2})
        if (jit::refusal_of(set).empty() || set == jit::instruction_set::avx2)
          to.add(jit::product_point{&s, jit::default_configuration(set)}.text());
  }
};

TEST(jit_backend_schemes, agree_for_finite_numbers) {
  backend_checker<every_scheme> check;
  check_options options;
  options.must_cover = false;
  for (int i = 0; i < cases(5); ++i)
    check(
        [](graph_builder& g, data_source& data) {
          const value x = add_matmul(g, data, product(data));
          return data.chance(0.5) ? x : chain(g, data, x, g.type_of(x).dims.size() - 1);
        },
        options);
  EXPECT_GT(check.kernels().count("strassen, 14x2") + check.kernels().count("strassen, 6x2"), 0U);
  EXPECT_EQ(check.allocations_while_running(), 0U);
}

/// All algorithms for a window, between all layouts.
struct every_layout : collage::jit {
  static void configurations(const collage::any_match& m, collage::configuration_list& to) {
    namespace jit = collage::detail::jit;
    const jit::product_match product(m);
    const std::int64_t window = m.type_of(product.right).dims[2];
    constexpr jit::image_layout layouts[] = {jit::image_layout::plain, jit::image_layout::channels_last,
                                             jit::image_layout::blocked_16};
    for (int family = 0; family < static_cast<int>(jit::convolution_family_count); ++family)
      for (const jit::image_layout from : layouts)
        for (const jit::image_layout result : layouts) {
          jit::convolution_point p{
              {.family = family, .product = jit::default_configuration(jit::instruction_set::avx2)}, from, result};
          if (p.how.algorithm().window_rows == window && (p.how.algorithm().enlargement == 2) == product.is_enlarged())
            to.add(p.text());
        }
  }
};

TEST(jit_backend_layouts, may_differ) {
  backend_checker<every_layout> check;
  check_options options;
  options.must_cover = false;
  options.tolerance = tolerance_with_chains;
  for (int i = 0; i < cases(3); ++i)
    check(
        [](graph_builder& g, data_source& data) {
          const conv_case c = windowed(data);
          const value y = data.chance(0.5) ? add_conv(g, data, c) : add_enlarged(g, data, c);
          return chain(g, data, y, 1, {.large_constants = false, .rows = false});
        },
        options);
  EXPECT_GT(check.checked("conv"), 0U);
  EXPECT_TRUE(std::ranges::any_of(check.kernels(),
                                  [](const auto& k) { return k.first.ends_with("blocked-16 to channels-last"); }));
  EXPECT_EQ(check.allocations_while_running(), 0U);
}

TEST(jit_backend_layouts, are_equal_if_the_input_is_added) {
  backend_checker<every_layout> check;
  check_options options;
  options.must_cover = false;
  check(
      [](graph_builder& g, data_source& data) {
        const value x = g.input("x", f32({1, 8, 6, 6}));
        const value w = data.constant(g, "w", f32({8, 8, 3, 3}));
        return g(op::add, x, g(op::conv, x, w, {.pads_begin = {1, 1}, .pads_end = {1, 1}}));
      },
      options);
  EXPECT_EQ(check.checked("conv_chain") + check.refused("conv_chain"), 1U);
}

/// A convolution of 3x3, with weights.
collage::graph small_convolution() {
  graph_builder g;
  data_source data;
  g.output("y", g(op::conv, g.input("x", f32({1, 16, 12, 12})), data.constant(g, "w", f32({16, 16, 3, 3}))));
  return g.finish();
}

TEST(jit_backend_non_finite, kernels_that_spread_it_are_refused_where_it_is_kept) {
  collage::place_options options = quick_options();
  options.keep_non_finite = true;
  const collage::placed_plan plan =
      collage::place<collage::backend_set<collage::jit, collage::portable>>(small_convolution(), options);
  const auto is_refused = [](const collage::place_refusal& r) {
    return std::string(r.backend) == "jit" && r.reason.find("NaN and infinity do not pass") != std::string::npos;
  };
  EXPECT_TRUE(std::ranges::any_of(plan.report.refusals, is_refused));
  for (const collage::plan_group& g : plan.chosen.groups) EXPECT_NE(g.backend(), "jit");
}

bool names_an_algorithm(const collage::placement& p) {
  return std::ranges::any_of(p.groups, [](const collage::plan_group& g) { return names_algorithm(g.kernel); });
}

TEST(jit_backend_algorithms, direct_plans_have_none_of_them) {
  using set = collage::backend_set<collage::jit, collage::portable>;
  const collage::graph network = small_convolution();
  collage::place_options options = quick_options();
  options.algorithms = collage::algorithms::direct;
  EXPECT_FALSE(names_an_algorithm(collage::place<set>(network, options).chosen));
  // Without measuring, accuracy is not known.
  options.costs = collage::placing_costs::none;
  options.algorithms = collage::algorithms::accurate;
  EXPECT_FALSE(names_an_algorithm(collage::place<set>(network, options).chosen));
  options.algorithms = collage::algorithms::all;
  options.memory.ratio = 8;  // the network has no other weights
  const collage::placed_plan any = collage::place<set>(network, options);
  EXPECT_TRUE(names_an_algorithm(any.chosen));
  // Such a plan is refused where direct kernels are wanted, now or as a previous one.
  EXPECT_FALSE(collage::misfit_of(any, network, collage::table_of<set>));
  const auto misfit =
      collage::misfit_of(any, network, collage::table_of<set>, {.algorithms = collage::algorithms::direct});
  ASSERT_TRUE(misfit);
  EXPECT_NE(misfit->what.find("computes by the algorithm F("), std::string::npos) << misfit->what;
  options = quick_options();
  options.algorithms = collage::algorithms::direct;
  options.previous = &any;
  EXPECT_FALSE(names_an_algorithm(collage::place<set>(network, options).chosen));
}

TEST(jit_backend_algorithms, inaccurate_ones_are_refused_and_remembered) {
  using set = collage::backend_set<collage::jit, collage::portable>;
  const collage_test::temporary_folder here;
  const collage::graph network = small_convolution();
  collage::place_options options = quick_options();
  options.store = here.path("costs.db");
  options.measuring.complete = true;
  const auto inaccurate = [&](collage::algorithms which) {
    options.algorithms = which;
    return std::ranges::count_if(collage::place<set>(network, options).report.refusals, [](const auto& r) {
      return r.reason.find("accurate algorithms at most twice") != std::string::npos;
    });
  };
  const auto refused = inaccurate(collage::algorithms::accurate);
  EXPECT_GT(refused, 0);  // F(6,3) errs much more
  EXPECT_EQ(inaccurate(collage::algorithms::all), 0);
  EXPECT_EQ(inaccurate(collage::algorithms::accurate), refused);
}

/// Builds each configuration that is proposed for each pattern of a network's first node. `weights` must name the packed form that
/// the kernel then shares, and its bytes.
void expect_weights_as_built(const collage::graph& network) {
  std::size_t built = 0;
  for (const collage::pattern_entry& pattern : backend_checker<collage::jit>::table().patterns) {
    collage::match_record record;
    if (!collage::match_at(network.view(), pattern.nodes, 0, record) || !pattern.accepts(network.view(), record))
      continue;
    const collage::configuration_list proposed = collage::proposed_for(pattern, network.view(), record);
    for (const collage::configuration& how : proposed) {
      const collage::kept_constants kept = pattern.weights(network.view(), record, how);
      ASSERT_EQ(kept.size(), 1U) << how.text();
      collage::packed_weights packed;
      collage::build_context context(network, 2, packed);
      context.set_configuration(how);
      const collage::kernel made = pattern.build(network.view(), record, context);
      EXPECT_EQ(packed.bytes(), kept[0].bytes) << how.text();
      const auto same = packed.get(network.constant(kept[0].value).bytes, kept[0].packing, kept[0].bytes,
                                   [&](std::byte*) { ADD_FAILURE() << how.text() << ": " << kept[0].packing; });
      EXPECT_EQ(packed.size(), 1U) << how.text();
      ++built;
    }
  }
  EXPECT_GT(built, 0U);
}

TEST(jit_backend_weights, are_as_built) {
  expect_weights_as_built(small_convolution());
  for (const bool is_transposed : {false, true})
    for (const std::int64_t columns : {7, 96, 200}) {
      graph_builder g;
      data_source data;
      const shape dims = is_transposed ? shape{columns, 130} : shape{130, columns};
      g.output("y", g(op::matmul, g.input("a", f32({70, 130})), data.constant(g, "b", f32(dims)),
                      {.transpose_b = is_transposed}));
      expect_weights_as_built(g.finish());
    }
  // Large enough for schemes, and a convolution of 1x1.
  graph_builder g;
  data_source data;
  g.output("y", g(op::matmul, g.input("a", f32({512, 512})), data.constant(g, "b", f32({512, 512}))));
  expect_weights_as_built(g.finish());
  graph_builder pointwise;
  pointwise.output("y", pointwise(op::conv, pointwise.input("x", f32({1, 24, 9, 9})),
                                  data.constant(pointwise, "w", f32({20, 24, 1, 1}))));
  expect_weights_as_built(pointwise.finish());
}

TEST(jit_backend_weights, of_a_plan_keep_the_bound) {
  using set = collage::backend_set<collage::jit, collage::portable>;
  const collage::graph network = small_convolution();
  collage::place_options options = quick_options();
  for (const double ratio : {1.0, 1.5, 2.0, 8.0}) {
    options.memory.ratio = ratio;
    const collage::plan made = collage::place<set>(network, options);
    ASSERT_TRUE(made.memory);
    EXPECT_EQ(made.memory->network, 16U * 16 * 9 * 4);
    EXPECT_LE(made.memory->weights, made.memory->bound);
    EXPECT_LE(static_cast<double>(made.memory->bound), ratio * static_cast<double>(made.memory->network));
  }
}

TEST(jit_backend_configurations, convolutions_know_their_texts) {
  const collage::graph network = small_convolution();
  const auto patterns = backend_checker<collage::jit>::table().patterns;
  const auto pattern = std::ranges::find(patterns, std::string("conv"), &collage::pattern_entry::name);
  ASSERT_NE(pattern, patterns.end());
  collage::match_record record;
  ASSERT_TRUE(collage::match_at(network.view(), pattern->nodes, 0, record));
  const auto knows = [&](const std::string& text) {
    return pattern->knows(network.view(), record, *collage::configuration::of(text));
  };
  const std::string how = " avx2 tile 6x2 unroll 4 prefetch 0 broadcast register block 8 threads tiles";
  EXPECT_TRUE(knows("winograd1 F(4,3)" + how + " from plain to channels-last"));
  EXPECT_STREQ(knows("winograd1 up2 F(4,2)" + how + " from plain to plain").rule,
               "its algorithm enlarges images, and this one must not be enlarged");
  EXPECT_STREQ(knows("winograd1 F(4,5)" + how + " from plain to plain").rule,
               "it has an algorithm for windows of another size");
  EXPECT_STREQ(knows("winograd1 F(4,3)" + how).rule,
               "it does not end as in: from plain to blocked-16, with the layouts plain, channels-last and blocked-16");
  EXPECT_FALSE(knows("product1 classical avx2 tile 6x2 unroll 4 prefetch 0"));
  const collage::configuration_list proposed = collage::proposed_for(*pattern, network.view(), record);
  EXPECT_TRUE(proposed.faults().empty());
  EXPECT_EQ(proposed.size(), 12U);
}

TEST(jit_backend_configurations, texts_of_others_are_refused) {
  graph_builder g;
  const std::shared_ptr<std::byte> zeros = collage::allocate_bytes(4 * 12);
  std::fill_n(zeros.get(), 4 * 12, std::byte{0});
  g.output("y", g(op::matmul, g.input("a", f32({2, 3})), g.constant("b", f32({3, 4}), zeros)));
  const collage::graph network = g.finish();
  const collage::pattern_entry& pattern = backend_checker<collage::jit>::table().patterns[0];
  collage::match_record record;
  ASSERT_TRUE(collage::match_at(network.view(), pattern.nodes, 0, record));
  const auto knows = [&](const char* text) {
    return pattern.knows(network.view(), record, *collage::configuration::of(text));
  };
  EXPECT_TRUE(knows("product1 winograd avx2 tile 6x2 unroll 4 prefetch 0"));
  EXPECT_STREQ(knows("4").rule, "it does not begin with product1, the version of this generator");
  EXPECT_STREQ(
      knows("product1 gauss avx2 tile 6x2 unroll 4 prefetch 0").rule,
      "it names an algorithm that this program does not have: jit_with adds one, and placing again finds another");
  EXPECT_FALSE(knows("product1 classical avx2 tile 9x2 unroll 4 prefetch 0"));
}

}  // namespace backends_jit_test
#endif
