// The backend of generated kernels against the reference. Where this build is without it there is nothing to test.
#ifdef COLLAGE_HAS_JIT
#include "cases.hpp"
#include "support/effort.hpp"

#include "jit/product_point.hpp"

#include <collage/backends/jit.hpp>

#include <gtest/gtest.h>

#include <algorithm>
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

/// Any operand of a later operator.
value operand(graph_builder& g, data_source& data, const shape& dims, std::size_t column, const std::string& name,
              bool allows_large_constants = true) {
  shape s = dims;
  const std::int64_t kind = data.number(0, 3);  // whole, for each column, for each row, single
  for (std::size_t d = 0; d < s.size(); ++d)
    if (kind == 3 || (kind == 1 && d != column) || (kind == 2 && d == column)) s[d] = 1;
  const bool is_constant = data.chance(0.5) && (allows_large_constants || kind != 0);
  return is_constant ? data.constant(g, name, f32(s), {0.5, 1}) : g.input(name.c_str(), f32(s));
}

/// Up to five operators.
value chain(graph_builder& g, data_source& data, value x, std::size_t column, bool allows_large_constants = true) {
  for (std::int64_t i = 0, steps = data.number(1, 5); i < steps; ++i) {
    const shape dims = g.type_of(x).dims;
    const auto other = [&] {
      return operand(g, data, dims, column, "other" + std::to_string(i), allows_large_constants);
    };
    switch (data.number(0, 9)) {
      case 0: x = g(op::relu, x); break;
      case 1: x = g(op::sigmoid, x); break;
      case 2: x = g(op::tanh, x); break;
      case 3: x = g(op::leaky_relu, x, {.alpha = 0.1}); break;
      case 4: x = g(op::mul, x, g(op::sigmoid, x)); break;
      case 5:
        x = g(op::clip, x, g.scalar("low" + std::to_string(i), -1), g.scalar("high" + std::to_string(i), 6));
        break;
      case 6: x = g(op::mul, x, other()); break;
      case 7: x = g(op::sub, x, other()); break;
      case 8: x = g(op::div, x, g.scalar("factor" + std::to_string(i), 3)); break;
      default: x = data.chance(0.5) ? g(op::add, x, other()) : g(op::add, other(), x);
    }
  }
  return x;
}

TEST_F(jit_backend, says_what_it_is) {
  const collage::probe_result found = collage::jit::probe();
  EXPECT_TRUE(found.available);
  EXPECT_STREQ(found.version, "generator 1, products 1");
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
  for (int i = 0; i < count; ++i)
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
        [](graph_builder& g, data_source& data) {
          conv_case c;
          c.x = {data.number(1, 2), data.number(1, 120)};
          c.w = {data.number(1, 120), c.x[1]};
          for (std::int64_t d = data.number(1, 3); d > 0; --d) {
            c.x.push_back(data.number(1, 12));
            c.w.push_back(1);
          }
          c.bias = data.chance(0.5);
          const value y = add_conv(g, data, c);
          return data.chance(0.3) ? y : chain(g, data, y, 1, false);
        },
        options);
  EXPECT_GT(check.checked("conv"), 0U);
  EXPECT_GT(check.checked("conv_chain"), 0U);
}
TEST_F(jit_backend, pointwise_convolutions) { check_pointwise(check, options, cases(30)); }
TEST_F(jit_backend_long, pointwise_convolutions) { check_pointwise(check, options, 300); }

TEST_F(jit_backend, other_convolutions_are_refused) {
  check_convs(check, as_it_is, options);
  EXPECT_GT(check.checked("conv"), 0U);
  EXPECT_GT(check.refused("conv"), check.checked("conv"));
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
  EXPECT_STREQ(knows("product1 gauss avx2 tile 6x2 unroll 4 prefetch 0").rule,
               "it names an algorithm that the backend does not have");
  EXPECT_FALSE(knows("product1 classical avx2 tile 9x2 unroll 4 prefetch 0"));
}

}  // namespace backends_jit_test
#endif
