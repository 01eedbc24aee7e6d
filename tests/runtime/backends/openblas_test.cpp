// OpenBLAS's kernels against the reference. Where this build is without OpenBLAS there is nothing to test.
#ifdef COLLAGE_HAS_OPENBLAS
#include "cases.hpp"

#include <collage/backends/openblas.hpp>

#include <gtest/gtest.h>

#include <string>

namespace backends_openblas_test {

using namespace collage_test;
using checker = backend_checker<collage::openblas>;

const auto type_of = [](graph_builder& g, value x) { return g.type_of(x); };

class openblas_test : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!check.available()) GTEST_SKIP() << check.why_not();
    options.must_cover = false;  // of a chain it takes the products
  }
  void TearDown() override { EXPECT_EQ(check.allocations_while_running(), 0U); }
  checker check;
  check_options options;
};

TEST_F(openblas_test, says_what_it_is) {
  const collage::probe_result found = collage::openblas::probe();
  EXPECT_NE(std::string(found.version), "");
  EXPECT_NE(std::string(found.details).find("kernels "), std::string::npos) << found.details;
}

TEST_F(openblas_test, convolutions) {
  check_convs(check, as_it_is, {}, 60);
  EXPECT_GT(check.kernels().count("im2col sgemm"), 0U);
  EXPECT_GT(check.kernels().count("sgemm pointwise"), 0U);
}

TEST_F(openblas_test, convolutions_pass_nan_and_infinity_on) {
  options.range.specials = 0.01;
  check_convs(check, as_it_is, options);
}

TEST_F(openblas_test, products) {
  check_matmuls(check, as_it_is, {}, 60);
  EXPECT_GT(check.kernels().count("sgemm"), 0U);
  EXPECT_GT(check.kernels().count("sgemv"), 0U);
}

TEST_F(openblas_test, products_pass_nan_and_infinity_on) {
  options.range.specials = 0.01;
  check_matmuls(check, as_it_is, options);
}

TEST_F(openblas_test, what_follows_is_fused) {
  options.range.specials = 0.01;
  const auto same = [](graph_builder& g, data_source&, value x) {
    return g(op::relu, g(op::add, g.input("sum", type_of(g, x)), x));
  };
  check_convs(check, same, options, 10);
  check_convs(check, apply(op::relu), options);
  check_convs(check, clipped, options);
  check_convs(
      check,
      [](graph_builder& g, data_source& data, value x) {  // one number per channel, and one at each end
        shape dims = g.type_of(x).dims;
        for (std::size_t i = 0; i < dims.size(); ++i)
          if (i != 1) dims[i] = 1;
        const value low = g(op::add, x, data.constant(g, "channel", f32(dims)));
        return g(op::clip, low, data.constant(g, "low", f32({1})), g.input("high", f32({})));
      },
      options);
  check_matmuls(check, same, options, 10);
  check_matmuls(
      check,
      [](graph_builder& g, data_source& data, value x) {
        const shape dims = g.type_of(x).dims;
        const shape last = dims.empty() ? shape{} : shape{dims[dims.size() - 1]};
        const value sum = g(op::add, x, data.constant(g, "bias", f32(last)));
        return g(op::add, g.input("sum", f32(dims)), sum);
      },
      options, 10);
  check.expect_every_pattern_checked();
}

TEST_F(openblas_test, refuses_what_it_cannot_do) {
  graph_builder g;
  const value x = g.input("x", f32({1, 4, 8, 8}));
  const value y = g(op::conv, x, g.input("w", f32({6, 4, 3, 3})));
  g.output("wide", g(op::add, y, g.input("sum", f32({2, 6, 6, 6}))));
  check.check(g.finish(), options);
  EXPECT_EQ(check.checked("conv"), 1U);
  EXPECT_EQ(check.refused("conv_add"), 1U);
  expect_integers_refused(check, options);
}

}  // namespace backends_openblas_test
#endif
