// The search spaces of generated kernels: their points are configurations that the backend has, and compute what the reference does.
// Where this build is without the backend there is nothing to test.
#ifdef COLLAGE_HAS_JIT
#include "cases.hpp"
#include "support/backend_check.hpp"
#include "support/effort.hpp"

#include "jit/convolution_kernel.hpp"
#include "jit/convolution_point.hpp"

#include <collage/backends/jit.hpp>
#include <collage/tune/any_space.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace backends_jit_search_space_test {

using namespace collage_test;
namespace tune = collage::tune;
namespace jit = collage::detail::jit;

bool have_same_forms(const collage::any_match& m, const collage::configuration& a, const collage::configuration& b) {
  collage::value_forms of_a, of_b;
  collage::jit::layouts(m, a, of_a);
  collage::jit::layouts(m, b, of_b);
  return of_a.list() == of_b.list();
}

/// A block of more tiles than the image has is a second text for one block, which no space needs.
bool is_second_text(const collage::any_match& m, const std::string& text) {
  const jit::convolution_point::reading read = jit::convolution_point::read(text);
  if (!read.point) return false;
  const jit::convolution_shape s = jit::convolution_of(m, jit::product_match(m));
  return read.point->how.block > jit::blocks_of(read.point->how, s).tiles;
}

/// The backend, which proposes random points of its search spaces instead of its own configurations.
struct random_points : collage::jit {
  static inline tune::random_source random{0};
  static inline std::size_t found = 0, without = 0;  ///< proposals
  static constexpr std::size_t of_each = 3;

  static void configurations(const collage::any_match& m, collage::configuration_list& to) {
    collage::configuration_list proposed;
    collage::jit::configurations(m, proposed);
    std::size_t number = 0;
    for (const collage::configuration& like : proposed) {
      const std::shared_ptr<const tune::any_space> space = collage::jit::search_space(m, like, 2);
      without += space == nullptr ? 1 : 0;
      if (space == nullptr) continue;
      if (!is_second_text(m, like.text())) {
        EXPECT_TRUE(space->find(like.text())) << like.text() << " is proposed";
        ++found;
      }
      // Proposals of a family are in all three layouts.
      for (std::size_t i = 0; number < 3 && i < of_each; ++i) add_point(m, *space, like, to);
      ++number;
    }
  }
  static void add_point(const collage::any_match& m, const tune::any_space& space, const collage::configuration& like,
                        collage::configuration_list& to) {
    ASSERT_GT(space.size(), 0U) << like.text();
    const auto point = static_cast<std::uint32_t>(random.below(space.size()));
    const std::string text = space.text(point);
    const std::optional<collage::configuration> how = collage::configuration::of(text);
    ASSERT_TRUE(how) << text;
    EXPECT_EQ(space.find(text), point) << text;
    const collage::verdict known = collage::jit::knows(m, *how);
    EXPECT_TRUE(known) << text << ": " << known.rule;
    EXPECT_TRUE(have_same_forms(m, *how, like)) << text << ", like " << like.text();
    to.add(text);
  }
};

class jit_search_space : public ::testing::Test {
 protected:
  void SetUp() override {
    options.must_cover = false;
    random_points::random = tune::random_source(check.data().seed());
    random_points::found = random_points::without = 0;
  }
  backend_checker<random_points> check;
  check_options options;
};

TEST_F(jit_search_space, of_products) {
  for (int i = 0; i < cases(4); ++i)
    check(
        [&](graph_builder& g, data_source& data) {
          const std::int64_t k = data.number(1, 200), n = data.number(1, 100);
          const value x = g.input("x", f32({data.number(1, 60), k})), w = data.constant(g, "w", f32({k, n}));
          const value y = g(op::matmul, x, w);
          // The second needs many registers.
          return i % 2 == 0 ? g(op::relu, y) : g(op::mul, y, g(op::sigmoid, y));
        },
        options);
  EXPECT_GT(check.checked("matmul"), 0U);
  EXPECT_GT(check.checked("matmul_chain"), 0U);
  EXPECT_GT(random_points::found, 0U);
  EXPECT_EQ(random_points::without, 0U);
}

TEST_F(jit_search_space, of_products_with_one_left_operand) {
  check(
      [&](graph_builder& g, data_source& data) {
        const value x = g.input("x", f32({19, 40}));
        const value a = g(op::matmul, x, data.constant(g, "a", f32({40, 9})));
        const value b = g(op::matmul, x, data.constant(g, "b", f32({40, 70})));
        g.output("other", a);
        return b;
      },
      options);
  EXPECT_GT(check.checked("two_products"), 0U);
}

TEST_F(jit_search_space, of_pointwise_and_windowed_convolutions) {
  options.tolerance = {2e-3, 1e-5};
  for (const std::int64_t window : {1, 3, 5}) {
    check(
        [&](graph_builder& g, data_source& data) {
          const value x = g.input("x", f32({1, data.number(1, 40), 13, 11}));
          const value w = data.constant(g, "w", f32({data.number(1, 40), g.type_of(x).dims[1], window, window}));
          const std::int64_t pad = window / 2;
          return g(op::relu, g(op::conv, x, w, {.pads_begin = {pad, pad}, .pads_end = {pad, pad}}));
        },
        options);
  }
  EXPECT_GT(check.checked("conv_chain"), 2U);
  EXPECT_GT(random_points::found, 0U);
  EXPECT_EQ(random_points::without, 0U);
}

TEST_F(jit_search_space, of_enlarged_images) {
  options.tolerance = {2e-3, 1e-5};
  check(
      [&](graph_builder& g, data_source& data) {
        const value x = g.input("x", f32({1, 20, 7, 6}));
        const value y = g(op::resize, x,
                          {.sizes = {1, 20, 14, 12},
                           .coordinates = op::resize_coordinates::asymmetric,
                           .rounding = op::resize_rounding::down});
        return g(op::conv, y, data.constant(g, "w", f32({18, 20, 3, 3})), {.pads_begin = {1, 1}, .pads_end = {1, 1}});
      },
      options);
  EXPECT_GT(check.checked("upsampled_conv"), 0U);
  EXPECT_EQ(random_points::without, 0U);
}

TEST_F(jit_search_space, of_depthwise_and_pointwise_convolutions) {
  check(
      [&](graph_builder& g, data_source& data) {
        const value x = g.input("x", f32({1, 24, 15, 9})), w = data.constant(g, "window", f32({24, 1, 3, 3}));
        const value y = g(op::relu, g(op::conv, x, w, {.groups = 24, .pads_begin = {1, 1}, .pads_end = {1, 1}}));
        return g(op::conv, y, data.constant(g, "w", f32({20, 24, 1, 1})));
      },
      options);
  EXPECT_GT(check.checked("depthwise_pointwise"), 0U);
  EXPECT_GT(random_points::found, 0U);
}

TEST_F(jit_search_space, of_direct_convolutions) {
  for (const std::int64_t window : {1, 3, 7})
    check(
        [&](graph_builder& g, data_source& data) {
          const value x = g.input("x", f32({1, data.number(1, 40), 13, 11}));
          const value w = data.constant(g, "w", f32({data.number(1, 40), g.type_of(x).dims[1], window, window}));
          const std::int64_t pad = window / 2;
          return g(op::relu, g(op::conv, x, w, {.strides = {2, 2}, .pads_begin = {pad, pad}, .pads_end = {pad, pad}}));
        },
        options);
  EXPECT_GT(check.checked("conv_chain"), 2U);
  EXPECT_GT(random_points::found, 0U);
  EXPECT_EQ(random_points::without, 0U);
}

TEST_F(jit_search_space, of_attention) {
  check(
      [&](graph_builder& g, data_source& data) {
        const std::int64_t queries = data.number(1, 30), keys = data.number(1, 50);
        const value x = g(op::matmul, g.input("q", f32({3, queries, 20})), g.input("k", f32({3, 20, keys})));
        return g(op::matmul, g(op::softmax, x), g.input("v", f32({3, keys, 24})));
      },
      options);
  EXPECT_EQ(check.checked("attention"), 1U);
  EXPECT_GT(random_points::found, 0U);
}

TEST_F(jit_search_space, of_convolutions_in_depth_there_is_none) {
  check(
      [&](graph_builder& g, data_source& data) {
        const value x = g.input("x", f32({1, 8, 4, 6, 6}));
        return g(op::conv, x, data.constant(g, "w", f32({8, 8, 3, 3, 3})),
                 {.pads_begin = {1, 1, 1}, .pads_end = {1, 1, 1}});
      },
      options);
  EXPECT_EQ(check.checked("conv"), 0U);
  EXPECT_GT(random_points::without, 0U);
}

TEST(jit_search_space_of_others, is_none) {
  graph_builder g;
  data_source data;
  g.output("y", g(op::matmul, g.input("x", f32({40, 30})), data.constant(g, "w", f32({30, 20}))));
  const collage::graph network = g.finish();
  const collage::pattern_entry& product = *backend_checker<collage::jit>::table().find("matmul");
  collage::match_record record;
  ASSERT_TRUE(collage::match_at(network.view(), product.nodes, 0, record));
  const auto space_like = [&](const char* text) {
    return product.search_space(network.view(), record, *collage::configuration::of(text), 1);
  };
  EXPECT_EQ(space_like("winograd"), nullptr);
  EXPECT_EQ(space_like("0"), nullptr);
  // The space has the algorithm of `like`, and tiles for its blocks.
  const auto divided = space_like("product1 strassen avx2 tile 6x2 unroll 4 prefetch 0");
  ASSERT_NE(divided, nullptr);
  EXPECT_TRUE(divided->find("product1 strassen avx2 tile 6x2 unroll 4 prefetch 0"));
  EXPECT_FALSE(divided->find("product1 strassen avx2 tile 6x3 unroll 4 prefetch 0")) << "10 columns of a block";
  EXPECT_FALSE(divided->find("product1 classical avx2 tile 6x2 unroll 4 prefetch 0"));
  EXPECT_FALSE(divided->find("product1 strassen avx512 tile 6x2 unroll 4 prefetch 0"));
}

}  // namespace backends_jit_search_space_test
#endif
