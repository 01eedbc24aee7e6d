// Bilinear algorithms on random operands: exact in exact arithmetic, within their bound in floating point.
#include <collage/bilinear/all.hpp>
#include <collage/error.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "algorithms.hpp"
#include "support/messages.hpp"
#include "support/random_numbers.hpp"

namespace bilinear_apply_test {

namespace b = collage::bilinear;
using namespace collage_test;

// Exact ---------------------------------------------------------------------------------------------------------------

TEST(bilinear_apply, is_exact_over_fractions) {
  random_numbers random;
  for (const tried_algorithm& a : tried_algorithms()) {
    std::vector<b::rational> left, right, output(a.output_size);
    for (std::size_t i = 0; i < a.left_size; ++i) left.emplace_back(random.number(-20, 20), random.number(1, 4));
    for (std::size_t j = 0; j < a.right_size; ++j) right.emplace_back(random.number(-20, 20), random.number(1, 4));
    a.over_fractions(left, right, output);
    const std::vector<b::rational> wanted = define_outputs(a, left, right);
    for (std::size_t o = 0; o < a.output_size; ++o)
      EXPECT_TRUE(output[o] == wanted[o]) << a.name << ", output " << o << ": " << output[o].text().c_str();
  }
}

TEST(bilinear_apply, is_exact_over_whole_numbers) {
  random_numbers random;
  std::size_t tried = 0;
  for (const tried_algorithm& a : tried_algorithms()) {
    if (a.over_whole_numbers == nullptr) continue;
    ++tried;
    std::vector<std::int64_t> left(a.left_size), right(a.right_size), output(a.output_size);
    for (std::int64_t& x : left) x = random.number(-100, 100);
    for (std::int64_t& x : right) x = random.number(-100, 100);
    a.over_whole_numbers(left, right, output);
    EXPECT_EQ(output, define_outputs(a, left, right)) << a.name;
  }
  EXPECT_GE(tried, 12U);
}

TEST(bilinear_apply, takes_every_kind_of_list_and_number) {
  const std::int16_t left[] = {1, 2, 3, 4};
  const std::vector<std::int16_t> right = {5, 6, 7, 8};
  std::int16_t output[4] = {};
  b::apply<b::strassen>(std::span(left), right, std::span(output));
  EXPECT_EQ(std::vector<int>(output, output + 4), (std::vector<int>{19, 22, 43, 50}));
  const collage::list_view<const std::int16_t> view(right);
  std::int16_t* const pointer = output;
  b::apply<b::winograd>(view, left, pointer);
  EXPECT_EQ(std::vector<int>(output, output + 4), (std::vector<int>{23, 34, 31, 46}));

  using complex = std::complex<double>;
  const std::vector<complex> data = {{1, 1}, {0, 2}, {3, 0}, {1, -1}}, filter = {{1, 0}, {0, 1}, {2, 0}};
  std::vector<complex> filtered(2);
  b::apply<b::f_2_3>(data, filter, filtered);
  for (std::size_t o = 0; o < 2; ++o)
    EXPECT_LT(std::abs(filtered[o] - data[o] * filter[0] - data[o + 1] * filter[1] - data[o + 2] * filter[2]), 1e-14);
}

TEST(bilinear_apply, refuses_lists_of_another_size) {
  const std::vector<int> four(4), three(3);
  std::vector<int> output(4);
  EXPECT_EQ(message_of([&] { b::apply<b::strassen>(three, four, output); }),
            "strassen: the left operand has 3 elements; give it 4, as <2,2,2> needs");
  EXPECT_EQ(message_of([&] { b::apply<b::strassen>(four, three, output); }),
            "strassen: the right operand has 3 elements; give it 4, as <2,2,2> needs");
  int short_output[3] = {};
  EXPECT_EQ(message_of([&] { b::apply<b::strassen>(four, four, short_output); }),
            "strassen: the output has 3 elements; give it 4, as <2,2,2> needs");
}

TEST(bilinear_apply, refuses_fractions_among_whole_numbers) {
  const std::vector<int> data(4, 1), filter(3, 1);
  std::vector<int> output(2);
  EXPECT_EQ(message_of([&] { b::apply<b::f_2_3>(data, filter, output); }),
            "1/2: a coefficient that is no whole number is read as one; read it as rational or as a floating-point "
            "number");
}

// Tiles ---------------------------------------------------------------------------------------------------------------

/// A block of a matrix, with a product of its own.
struct block {
  using scalar = double;
  static constexpr std::size_t size = 3;
  double at[size][size] = {};

  block operator-() const { return -1.0 * *this; }
  friend block operator+(block x, const block& y) {
    for (std::size_t i = 0; i < size; ++i)
      for (std::size_t j = 0; j < size; ++j) x.at[i][j] += y.at[i][j];
    return x;
  }
  friend block operator-(const block& x, const block& y) { return x + -y; }
  friend block operator*(double factor, block x) {
    for (auto& row : x.at)
      for (double& element : row) element *= factor;
    return x;
  }
};

block multiplied(const block& x, const block& y) {
  block z;
  for (std::size_t i = 0; i < block::size; ++i)
    for (std::size_t j = 0; j < block::size; ++j)
      for (std::size_t k = 0; k < block::size; ++k) z.at[i][j] += x.at[i][k] * y.at[k][j];
  return z;
}

/// Matrices of whole numbers, in doubles, cut into blocks that do not commute.
template <class S>
void check_blocks(random_numbers& random, const char* name) {
  using problem = typename S::problem;
  std::vector<block> left(problem::left_size), right(problem::right_size), output(problem::output_size);
  for (auto* list : {&left, &right})
    for (block& tile : *list)
      for (auto& row : tile.at)
        for (double& element : row) element = static_cast<double>(random.number(-9, 9));
  b::apply<S>(left, right, output, multiplied);
  for (std::size_t o = 0; o < problem::output_size; ++o) {
    block wanted;
    for (std::size_t i = 0; i < problem::left_size; ++i)
      for (std::size_t j = 0; j < problem::right_size; ++j)
        if (problem::coefficient(o, i, j) != 0) wanted = wanted + multiplied(left[i], right[j]);
    for (std::size_t i = 0; i < block::size; ++i)
      for (std::size_t j = 0; j < block::size; ++j)
        EXPECT_NEAR(output[o].at[i][j], wanted.at[i][j], 1e-9) << name << ", output " << o;
  }
}

TEST(bilinear_apply, multiplies_matrices_of_blocks) {
  random_numbers random;
  check_blocks<b::strassen>(random, "strassen");
  check_blocks<b::winograd>(random, "winograd");
  check_blocks<b::laderman>(random, "laderman");
  check_blocks<b::hopcroft_kerr>(random, "hopcroft_kerr");
  check_blocks<b::rotated<b::hopcroft_kerr>>(random, "rotated<hopcroft_kerr>");
  check_blocks<b::two_strassen>(random, "two_strassen");
  check_blocks<b::in_two_dimensions<b::f_2_3>>(random, "in_two_dimensions<f_2_3>");
}

// Rounding ------------------------------------------------------------------------------------------------------------

/// Random operands of magnitude at most 1. Half of them have extreme signs: there the terms do not cancel.
template <class T>
std::vector<T> random_operand(random_numbers& random, std::size_t size, bool is_extreme) {
  std::vector<T> operand(size);
  for (T& x : operand)
    x = static_cast<T>(is_extreme ? (random.chance(0.5) ? 1 : -1) * random.real(0.5, 1) : random.real(-1, 1));
  return operand;
}
template <class T>
double largest_magnitude(const std::vector<T>& list) {
  double largest = 0;
  for (const T x : list) largest = std::max(largest, std::abs(double(x)));
  return largest;
}

/// The largest error over many random operands, as a part of the bound.
template <class T, class Exact>
double largest_part_of_bound(const tried_algorithm& a, apply_function<T> apply, random_numbers& random,
                             double unit_roundoff, int tries) {
  double largest = 0;
  for (int n = 0; n < tries; ++n) {
    const std::vector<T> left = random_operand<T>(random, a.left_size, n % 2 == 0);
    const std::vector<T> right = random_operand<T>(random, a.right_size, n % 2 == 0);
    std::vector<T> output(a.output_size);
    apply(left, right, output);
    const std::vector<Exact> wanted =
        define_outputs(a, std::vector<Exact>(left.begin(), left.end()), std::vector<Exact>(right.begin(), right.end()));
    const double bound = a.error.bound(unit_roundoff) * largest_magnitude(left) * largest_magnitude(right);
    for (std::size_t o = 0; o < a.output_size; ++o)
      largest = std::max(largest, double(std::abs(Exact(output[o]) - wanted[o])) / bound);
  }
  return largest;
}

TEST(bilinear_error, of_float_is_within_the_bound) {
  random_numbers random;
  for (const tried_algorithm& a : tried_algorithms()) {
    const double part = largest_part_of_bound<float, double>(a, a.over_floats, random, 0x1p-24, 400);
    EXPECT_LE(part, 1) << a.name;
    EXPECT_GT(part, 1e-4) << a.name << ": the bound says too little";
  }
}

TEST(bilinear_error, of_double_is_within_the_bound) {
  random_numbers random;
  for (const tried_algorithm& a : tried_algorithms())
    EXPECT_LE((largest_part_of_bound<double, long double>(a, a.over_doubles, random, 0x1p-53, 100)), 1) << a.name;
}

/// The square root of the mean squared error of float over many random operands.
double usual_error(const std::string& name, random_numbers& random) {
  for (const tried_algorithm& a : tried_algorithms()) {
    if (a.name != name) continue;
    double sum = 0;
    std::size_t count = 0;
    for (int n = 0; n < 2000; ++n) {
      const std::vector<float> left = random_operand<float>(random, a.left_size, false);
      const std::vector<float> right = random_operand<float>(random, a.right_size, false);
      std::vector<float> output(a.output_size);
      a.over_floats(left, right, output);
      const std::vector<double> wanted = define_outputs(a, std::vector<double>(left.begin(), left.end()),
                                                        std::vector<double>(right.begin(), right.end()));
      for (std::size_t o = 0; o < a.output_size; ++o, ++count) sum += std::pow(double(output[o]) - wanted[o], 2);
    }
    return std::sqrt(sum / static_cast<double>(count));
  }
  ADD_FAILURE() << "there is no algorithm " << name;
  return 0;
}

TEST(bilinear_error, is_smaller_where_growth_is_smaller) {
  random_numbers random;
  EXPECT_LT(usual_error("in_two_dimensions<f_4_3_accurate>", random), usual_error("in_two_dimensions<f_4_3>", random));
  EXPECT_LT(usual_error("in_two_dimensions<f_2_3>", random), usual_error("in_two_dimensions<f_4_3_accurate>", random));
  EXPECT_LT(usual_error("strassen", random), usual_error("two_strassen", random));
}

TEST(bilinear_error, holds_for_products_that_are_sums) {
  // A matrix product of blocks with 64 inner elements by Strassen's scheme, as a kernel computes it.
  random_numbers random;
  constexpr std::size_t inner = 64;
  double largest = 0;
  for (int n = 0; n < 50; ++n) {
    std::vector<float> left(4 * inner), right(4 * inner);  // 4 blocks of 1 x inner and of inner x 1
    for (auto* list : {&left, &right})
      for (float& x : *list) x = static_cast<float>(random.real(-1, 1));
    float products[7] = {}, output[4] = {}, values[32] = {};
    for (std::size_t k = 0; k < inner; ++k) {
      float a[4], c[4], u[7], v[7];
      for (std::size_t i = 0; i < 4; ++i) a[i] = left[i * inner + k], c[i] = right[i * inner + k];
      b::run(b::strassen::left, a, u, values);
      b::run(b::strassen::right, c, v, values);
      for (std::size_t p = 0; p < 7; ++p) products[p] += u[p] * v[p];
    }
    b::run(b::strassen::output, products, output, values);
    for (std::size_t o = 0; o < 4; ++o) {
      double wanted = 0;
      for (std::size_t i = 0; i < 4; ++i)
        for (std::size_t j = 0; j < 4; ++j)
          if (b::strassen::problem::coefficient(o, i, j) != 0)
            for (std::size_t k = 0; k < inner; ++k) wanted += double(left[i * inner + k]) * right[j * inner + k];
      largest = std::max(largest, std::abs(output[o] - wanted));
    }
  }
  EXPECT_LE(largest, b::strassen::error.bound(0x1p-24, inner));
  EXPECT_GT(largest, 0);
}

}  // namespace bilinear_apply_test
