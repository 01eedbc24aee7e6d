// The reference of determinants and quantisation against their definitions, written down naively.
#include "support/reference_check.hpp"

#include <algorithm>
#include <array>

namespace backends_reference_algebra_test {

using namespace collage_test::reference;

/// By the first row's minors.
double expanded(const std::vector<double>& m, std::size_t n) {
  if (n == 0) return 1;
  double sum = 0;
  for (std::size_t column = 0; column < n; ++column) {
    std::vector<double> minor;
    for (std::size_t i = n; i < n * n; ++i)
      if (i % n != column) minor.push_back(m[i]);
    sum += (column % 2 == 0 ? 1 : -1) * m[column] * expanded(minor, n - 1);
  }
  return sum;
}

TEST(algebra_determinant, agrees_with_expansion_by_minors) {
  random_source random;
  for (int round = 0; round < 60; ++round) {
    shape dims = random.dims(random.number(0, 2));
    const auto n = random.number(0, 6);
    dims.push_back(n);
    dims.push_back(n);
    oracle_value x = random.tensor(dims, dtype::f64);
    for (double& element : x.real)
      if (random.chance(0.3)) element = 0;  // pivots that are not there
    const oracle_value y = run(op::determinant, {x});
    ASSERT_EQ(y.type.dims, dims.first(dims.size() - 2));
    const auto size = static_cast<std::ptrdiff_t>(n * n);
    for (std::size_t i = 0; i < y.real.size(); ++i) {
      const auto first = x.real.begin() + static_cast<std::ptrdiff_t>(i) * size;
      EXPECT_NEAR(y.real[i], expanded(std::vector<double>(first, first + size), static_cast<std::size_t>(n)), 1e-10);
    }
  }
  const oracle_value strange = reals({2, 2}, {1, not_a_number, 2, 3});
  EXPECT_TRUE(std::isnan(run(op::determinant, {strange}).real[0]));
}

/// Where the scale of an element lies.
std::size_t scale_at(const op::quantize_attributes& a, const shape& scale, const multi_index& i) {
  if (scale.rank == 0) return 0;
  const auto axis = static_cast<std::size_t>(a.axis);
  if (a.block == 0) return static_cast<std::size_t>(i[axis]);
  multi_index at_scale = i;
  at_scale[axis] /= a.block;
  return at(scale, at_scale);
}

TEST(algebra_quantisation, agrees_with_its_definition) {
  random_source random;
  constexpr std::array types{dtype::i8, dtype::u8, dtype::i16, dtype::u16, dtype::i32,
                             dtype::i4, dtype::u4, dtype::i2,  dtype::u2};
  for (int round = 0; round < 200; ++round) {
    const shape dims = random.dims(random.number(1, 4));
    op::quantize_attributes a{.axis = random.number(0, static_cast<std::int64_t>(dims.size()) - 1)};
    a.type = types[static_cast<std::size_t>(random.number(0, std::ssize(types) - 1))];
    shape scale_dims;
    const std::int64_t extent = dims[static_cast<std::size_t>(a.axis)];
    if (random.chance(0.4)) {
      scale_dims = {extent};
    } else if (random.chance(0.5) && dims.size() > 1) {
      a.block = random.number(1, 4);
      scale_dims = dims;
      scale_dims[static_cast<std::size_t>(a.axis)] = (extent + a.block - 1) / a.block;
    }
    oracle_value x = random.tensor(dims, dtype::f32, 0.05), scale = random.tensor(scale_dims);
    for (double& s : scale.real) s = std::exp2(static_cast<double>(random.number(-9, 2)));
    for (double& e : x.real)
      if (std::isfinite(e)) e = std::round(e * 1024) / 64;  // with many ties
    oracle_value zero = random.tensor(scale_dims, a.type);
    if (collage::is_small(a.type))
      for (std::int64_t& z : zero.integer) z = collage::detail::wrap_small(a.type, z);
    const bool shifts = random.chance(0.7);
    std::vector<oracle_value> operands{x, scale};
    if (shifts) operands.push_back(zero);
    const oracle_value y = run(op::quantize_linear, operands, a);
    double low = 0, high = 0;
    collage::detail::with_integer_type(a.type, [&](auto z) {
      low = static_cast<double>(std::numeric_limits<decltype(z)>::min());
      high = static_cast<double>(std::numeric_limits<decltype(z)>::max());
    });
    if (collage::is_small(a.type)) {
      const double range = std::exp2(static_cast<double>(collage::bits_of(a.type)));
      low = low < 0 ? -range / 2 : 0;
      high = low + range - 1;
    }
    operands[0] = y;
    const oracle_value back = run(op::dequantize_linear, operands, a);
    for_each_index(dims, [&](const multi_index& i) {
      const std::size_t s = scale_at(a, scale_dims, i);
      const double shift = shifts ? static_cast<double>(zero.integer[s]) : 0;
      const double quotient = x.real[at(dims, i)] / scale.real[s];  // exact: scales are powers of two
      const double below = std::floor(quotient), part = quotient - below;
      const double whole = part < 0.5 || (part == 0.5 && std::fmod(below, 2) == 0) ? below : below + 1;
      const double expected = std::isnan(quotient)   ? 0
                              : std::isinf(quotient) ? (quotient < 0 ? low : high)
                                                     : std::clamp(whole + shift, low, high);
      EXPECT_EQ(static_cast<double>(y.integer[at(dims, i)]), expected) << text_of(dims);
      EXPECT_EQ(back.real[at(dims, i)], (expected - shift) * scale.real[s]);
    });
  }
}

TEST(algebra_quantisation, rounds_quotients_to_small_floating_point_types) {
  const oracle_value x = reals({6}, {0, 1, 2, 100000, 200, -infinity}), scale = reals({}, {2});
  for (const bool saturate : {true, false}) {
    const auto y = [&](dtype type) {
      return run(op::quantize_linear, {x, scale}, {.type = type, .saturate = saturate}).real;
    };
    using list = std::vector<double>;
    EXPECT_EQ(y(dtype::f8e5m2), (list{0, 0.5, 1, 49152, 96, saturate ? -57344 : -infinity}));
    EXPECT_EQ(y(dtype::f4e2m1), (list{0, 0.5, 1, 6, 6, -6}));
    const list fn = y(dtype::f8e4m3fn);
    EXPECT_EQ(fn[4], 96);  // 100 is as far from 104 as from 96, whose code is even
    if (saturate) {
      EXPECT_EQ(fn[3], 448);
      EXPECT_EQ(fn[5], -448);
    } else {
      EXPECT_TRUE(std::isnan(fn[3]) && std::isnan(fn[5]));
    }
  }
  oracle_value numbers({dtype::f4e2m1, {4}}), zero({dtype::f4e2m1, {}});
  numbers.real = {6, -0.5, 0, 3};
  EXPECT_EQ(run(op::dequantize_linear, {numbers, scale, zero}).real, (std::vector<double>{12, -1, 0, 6}));
}

TEST(algebra_quantisation, takes_ties_of_float32) {
  // In float32, 1.5 by 0.2 is 7.5 and 1.7 by 0.2 is 8.5, which both go to 8; in double precision, with the float32 nearest
  // to each, they lie on the other sides of those ties.
  const auto scale = static_cast<double>(0.2F), first = static_cast<double>(1.5F), second = static_cast<double>(1.7F);
  ASSERT_LT(first / scale, 7.5);
  ASSERT_GT(second / scale, 8.5);
  const oracle_value y = run(op::quantize_linear, {reals({2}, {first, second}), reals({}, {scale})});
  EXPECT_EQ(y.integer, (std::vector<std::int64_t>{8, 8}));
}

TEST(algebra_quantisation, takes_integers_and_refuses_what_does_not_fit) {
  const oracle_value y =
      run(op::quantize_linear, {integers({2}, {7, -1000000}, dtype::i32), reals({}, {2})}, {.type = dtype::i8});
  EXPECT_EQ(y.integer, (std::vector<std::int64_t>{4, -128}));
  const oracle_value x = reals({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_THROW((void)run(op::quantize_linear, {x, reals({2}, {1, 1})}, {.axis = 1}), collage::error);
  EXPECT_THROW((void)run(op::quantize_linear, {x, reals({3}, {1, 1, 1})}, {.axis = 2}), collage::error);
  EXPECT_THROW((void)run(op::quantize_linear, {x, reals({}, {1}), integers({}, {0}, dtype::i8)}), collage::error);
  EXPECT_THROW((void)run(op::quantize_linear, {x, reals({2, 2}, {1, 1, 1, 1})}, {.block = 3}), collage::error);
  EXPECT_THROW((void)run(op::quantize_linear, {x, reals({}, {1})}, {.type = dtype::i64}), collage::error);
  EXPECT_THROW((void)run(op::dequantize_linear, {x, reals({}, {1})}), collage::error);
}

}  // namespace backends_reference_algebra_test
