// Products by schemes, in memory between guard pages. Numbers are small and whole, so that results must be exact.
#include "support/effort.hpp"
#include "testing.hpp"

#include "jit/product_point.hpp"
#include "jit/scheme.hpp"
#include "jit/scheme_product.hpp"

#include <collage/bilinear/all.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace jit_scheme_product_test {

using namespace collage_test;
using namespace collage_test::jit_testing;
using jit::scheme;
using jit::scheme_product;
namespace bilinear = collage::bilinear;

/// A product with a bias, a residual and relu after it, or with nothing. The sum before relu may be a second output.
class scheme_case {
 public:
  scheme_case(random_numbers& random, const scheme& s, const configuration& how, const jit::product_extents& e,
              bool has_epilogue, bool is_whole = true)
      : scheme_(s),
        how_(how),
        extents_(e),
        has_epilogue_(has_epilogue),
        keeps_sum_(has_epilogue && random.chance(0.5)),
        at_end_(random.chance(0.5)),
        is_transposed_(random.chance(0.5)),
        a_(static_cast<std::size_t>(e.m * e.k), at_end_),
        b_(static_cast<std::size_t>(e.k * e.n)),
        bias_(static_cast<std::size_t>(e.n), at_end_),
        residual_(static_cast<std::size_t>(e.m * e.n), at_end_) {
    const auto fill = [&](float* to, std::size_t count) {
      for (std::size_t i = 0; i < count; ++i)
        to[i] = is_whole ? static_cast<float>(random.number(-2, 2)) : static_cast<float>(random.real(-1, 1));
    };
    fill(a_.data(), a_.size());
    fill(b_.data(), b_.size());
    fill(bias_.data(), bias_.size());
    fill(residual_.data(), residual_.size());
  }

  std::vector<float> run(int threads, unsigned features = jit::processor_features(), bool in_place = false) {
    jit::epilogue_maker make;
    if (has_epilogue_) {
      const auto biased = make(op::add, {make.product(), make.operand(operand_shape::per_column)});
      const auto sum = make(op::add, {make.operand(operand_shape::whole), biased});
      make.output(make(op::relu, {sum}));
      if (keeps_sum_) make.output(sum);
    }
    const scheme_product product(scheme_, how_, extents_, has_epilogue_ ? make.finish() : epilogue(), threads,
                                 features);
    EXPECT_EQ(product.refusal().empty(), jit::refusal_of(how_.set, features).empty()) << product.refusal();
    const walled_floats packed(product.packed_size(), at_end_);
    product.pack(b_.data(), is_transposed_, packed.data());
    const walled_floats workspace(product.workspace() / 4 + 16, false);
    std::fill_n(workspace.data(), workspace.size(), not_a_number);
    const walled_floats result(static_cast<std::size_t>(extents_.m * extents_.n), at_end_);
    const walled_floats sum(keeps_sum_ ? result.size() : 0, at_end_);
    std::fill_n(result.data(), result.size(), not_a_number);
    std::fill_n(sum.data(), sum.size(), not_a_number);
    scheme_product::call c;
    c.a = a_.data();
    c.right[0].packed = packed.data();
    c.right[0].operands = {bias_.data(), residual_.data()};
    if (in_place) {
      std::copy_n(residual_.data(), residual_.size(), result.data());
      c.right[0].operands[1] = result.data();
    }
    c.right[0].outputs = {result.data(), sum.data()};
    c.workspace = workspace.data();
    product.run(c);
    for (std::size_t i = product.workspace() / 4; i < workspace.size(); ++i)
      EXPECT_TRUE(std::isnan(workspace.data()[i])) << "it wrote behind its workspace, " << text();
    std::vector<float> both(result.data(), result.data() + result.size());
    both.insert(both.end(), sum.data(), sum.data() + sum.size());
    return both;
  }

  /// The definition: the result, and then the sum if it is kept.
  std::vector<float> expected() const {
    const auto [m, n, k] = extents_;
    std::vector<float> list, sums;
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j) {
        float sum = 0;
        for (std::int64_t q = 0; q < k; ++q)
          sum += a_[i * k + q] * b_[static_cast<std::size_t>(is_transposed_ ? j * k + q : q * n + j)];
        if (has_epilogue_) sum += bias_[j] + residual_[i * n + j];
        list.push_back(has_epilogue_ ? std::max(sum, 0.0F) : sum);
        if (keeps_sum_) sums.push_back(sum);
      }
    list.insert(list.end(), sums.begin(), sums.end());
    return list;
  }
  std::string text() const {
    return std::string(scheme_.name) + ", " + jit::to_text(how_) + ", " + std::to_string(extents_.m) + "x" +
           std::to_string(extents_.k) + "x" + std::to_string(extents_.n) + (has_epilogue_ ? ", epilogue" : "") +
           (keeps_sum_ ? ", two outputs" : "") + (is_transposed_ ? ", transposed" : "");
  }

 private:
  const scheme& scheme_;
  configuration how_;
  jit::product_extents extents_;
  bool has_epilogue_, keeps_sum_, at_end_, is_transposed_;
  walled_floats a_;
  std::vector<float> b_;
  walled_floats bias_, residual_;
};

std::int64_t extent(random_numbers& random) {
  constexpr std::int64_t awkward[] = {1, 2, 3, 5, 7, 13, 16, 17, 31, 32, 47, 64, 97};
  return random.chance(0.5) ? awkward[random.number(0, 12)] : random.number(1, 120);
}

/// Runs so many cases of each scheme with each instruction set. Without features, the replica runs them.
void run_random_cases(std::span<const scheme> all, int count, unsigned features) {
  random_numbers random;
  for (const scheme& s : all)
    for (const instruction_set set : {instruction_set::avx512, instruction_set::avx2})
      for (int i = 0; i < count && jit::refusal_of(set).empty() && !testing::Test::HasFailure(); ++i) {
        const configuration how = random_configuration(random, set);
        const jit::product_extents e = {extent(random), extent(random), random.chance(0.02) ? 0 : extent(random)};
        scheme_case c(random, s, how, e, random.chance(0.5));
        const int threads = static_cast<int>(random.number(1, 3));
        EXPECT_EQ(c.run(threads, features, random.chance(0.5)), c.expected())
            << c.text() << ", " << threads << " threads, COLLAGE_SEED=" << random.seed();
      }
}

constexpr int all_shapes = 500;  // for each scheme and instruction set

TEST(jit_schemes, random_shapes) {
  run_random_cases(jit::schemes(), cases(all_shapes / 20), jit::processor_features());
}
TEST(jit_schemes_long, random_shapes) { run_random_cases(jit::schemes(), all_shapes, jit::processor_features()); }
TEST(jit_schemes, random_shapes_of_the_replica) { run_random_cases(jit::schemes(), cases(all_shapes / 40), 0); }
TEST(jit_schemes_long, random_shapes_of_the_replica) { run_random_cases(jit::schemes(), all_shapes, 0); }

/// A scheme of a program. Factors may be larger than 1.
struct own_products {
  using problem = bilinear::matmul<1, 2, 1>;
  static constexpr const char* name = "own";
  static constexpr bilinear::product<problem> products[] = {
      {{1, 3}, {1, 0}, {1}},   // (a0 + 3 a1) b0
      {{0, -1}, {3, -1}, {1}}  // -a1 (3 b0 - b1)
  };
};
constexpr scheme own_schemes[] = {
    jit::own_scheme<bilinear::scheme<own_products>>,
    jit::own_scheme<bilinear::nested<bilinear::scheme<own_products>, bilinear::hopcroft_kerr>>,
    jit::own_scheme<bilinear::rotated<bilinear::laderman>>,
};

TEST(jit_schemes, random_shapes_of_own_schemes) {
  run_random_cases(own_schemes, cases(12), jit::processor_features());
  run_random_cases(own_schemes, cases(6), 0);
}
TEST(jit_schemes_long, random_shapes_of_own_schemes) {
  run_random_cases(own_schemes, all_shapes, jit::processor_features());
  run_random_cases(own_schemes, all_shapes, 0);
}

TEST(jit_schemes, empty_extents) {
  random_numbers random;
  const configuration how = jit::default_configuration(instruction_set::avx2);
  for (const scheme& s : jit::schemes())
    for (const jit::product_extents& e : {jit::product_extents{0, 5, 7}, {5, 0, 7}, {5, 7, 0}, {0, 0, 0}}) {
      scheme_case c(random, s, how, e, true);
      EXPECT_EQ(c.run(2), c.expected()) << c.text();
    }
}

TEST(jit_schemes, every_number_of_threads_computes_the_same) {
  random_numbers random;
  for (const scheme& s : jit::schemes())
    for (int i = 0; i < 4; ++i) {
      const bool is_wide = jit::refusal_of(instruction_set::avx512).empty();
      const configuration how = random_configuration(random, is_wide ? instruction_set::avx512 : instruction_set::avx2);
      scheme_case c(random, s, how, {random.number(1, 200), random.number(1, 200), random.number(1, 200)},
                    random.chance(0.5), false);
      const std::vector<float> one = c.run(1);
      for (int threads = 2; threads <= 5; ++threads) {
        const std::vector<float> several = c.run(threads);
        EXPECT_EQ(std::memcmp(one.data(), several.data(), one.size() * sizeof(float)), 0)
            << c.text() << ", " << threads << " threads, COLLAGE_SEED=" << random.seed();
      }
    }
}

/// Rows that are a multiple of a page apart are copied first, and long sums are split over nothing.
TEST(jit_schemes, long_rows) {
  random_numbers random;
  const configuration how = jit::default_configuration(instruction_set::avx2);
  for (const scheme& s : jit::schemes())
    for (const std::int64_t k : {1024, 2049}) {
      scheme_case c(random, s, how, {50, 70, k}, true);
      EXPECT_EQ(c.run(2), c.expected()) << c.text();
    }
}

TEST(jit_product_points, texts) {
  const char* const text = "product1 strassen avx512 tile 14x2 unroll 4 prefetch 0";
  const jit::product_point::reading read = jit::product_point::read(text);
  ASSERT_TRUE(read.point) << read.fault;
  EXPECT_EQ(read.point->text(), text);
  EXPECT_STREQ(read.point->algorithm->name, "strassen");
  EXPECT_EQ(read.point->how.rows, 14);
  for (const char* wrong : {"", "product1", "product2 strassen avx512 tile 14x2 unroll 4 prefetch 0",
                            "product1 strassen", "product1 lagrange avx512 tile 14x2 unroll 4 prefetch 0",
                            "product1 strassen avx512 tile 16x2 unroll 4 prefetch 0",
                            "product1 strassen avx512 tile 14x2 unroll 04 prefetch 0",
                            "product1 strassen avx512 tile 14x2 unroll 4 prefetch 0 broadcast memory",
                            "product1 strassen sse tile 14x2 unroll 4 prefetch 0"}) {
    const jit::product_point::reading refused = jit::product_point::read(wrong);
    EXPECT_FALSE(refused.point) << wrong;
    EXPECT_STRNE(refused.fault, "") << wrong;
  }
}

TEST(jit_product_points, few_are_promising) {
  random_numbers random;
  for (int i = 0; i < 500; ++i) {
    const std::int64_t m = random.number(0, 300), n = random.number(0, 300), k = random.number(0, 5000);
    for (const unsigned features : {0U, 3U, 7U})
      for (const bool is_long : {false, true}) {
        const std::vector<jit::product_point> list = jit::promising_points(m, n, k, is_long, features);
        EXPECT_GE(list.size(), 1U) << m << " " << n << " " << k;
        EXPECT_LE(list.size(), 12U);
        EXPECT_TRUE(list.front().algorithm->is_classical());
        for (const jit::product_point& p : list) {
          EXPECT_TRUE(jit::fault_of(p.how).empty());
          EXPECT_EQ(p.how.set == instruction_set::avx512, features == 7U);
          const jit::product_point::reading read = jit::product_point::read(p.text());
          ASSERT_TRUE(read.point) << p.text() << ": " << read.fault;
          EXPECT_EQ(read.point->how, p.how);
        }
      }
  }
}

TEST(jit_product_points, schemes_are_proposed_where_they_pay) {
  const auto names = [](std::int64_t m, std::int64_t k, std::int64_t n) {
    std::set<std::string> list;
    for (const jit::product_point& p : jit::promising_points(m, n, k, false, 7U)) list.insert(p.algorithm->name);
    return list;
  };
  EXPECT_TRUE(names(128, 768, 768).contains("two-strassen"));
  EXPECT_TRUE(names(784, 512, 128).contains("strassen"));
  // The definition takes less time, by measurement.
  EXPECT_EQ(names(3136, 256, 64), std::set<std::string>{"classical"});
  // Weights are read once, and a scheme has more of them.
  EXPECT_EQ(names(1, 2048, 1000), std::set<std::string>{"classical"});
}

}  // namespace jit_scheme_product_test
