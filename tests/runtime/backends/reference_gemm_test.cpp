// The reference's matrix product against plain loops, with every inner loop that this processor can run.
#include "support/reference_check.hpp"

#include <collage/backends/impl/reference_gemm.hpp>

namespace backends_reference_gemm_test {

using collage::detail::gemm_kernel;
using collage::detail::gemm_problem;
using collage::detail::matrix_columns;
using collage::detail::matrix_view;
using collage_test::reference::random_source;

/// One product with both operands possibly transposed and rows possibly apart, in plain loops beside it.
void check_product(random_source& random, const gemm_kernel* kernel, std::int64_t rows, std::int64_t columns,
                   std::int64_t depth) {
  const bool transpose_a = random.chance(0.5);
  const bool transpose_b = random.chance(0.5);
  const std::int64_t gap = random.number(0, 3);
  const std::int64_t c_step = columns + gap;
  const auto fill = [&](std::int64_t count) {
    std::vector<double> list(static_cast<std::size_t>(count));
    for (double& x : list) x = random.real();
    return list;
  };
  const matrix_view a_shape{nullptr, transpose_a ? 1 : depth + gap, transpose_a ? rows + gap : 1};
  const matrix_view b_shape{nullptr, transpose_b ? 1 : columns + gap, transpose_b ? depth + gap : 1};
  const std::vector<double> a = fill((rows + gap) * (depth + gap));
  const std::vector<double> b = fill((columns + gap) * (depth + gap));
  const std::vector<double> before = fill(rows * c_step + 1);
  std::vector<double> c = before;
  const matrix_view a_view{a.data(), a_shape.row_step, a_shape.column_step};
  const matrix_view b_view{b.data(), b_shape.row_step, b_shape.column_step};
  if (kernel == nullptr) collage::detail::gemm(rows, columns, depth, a_view, b_view, c.data(), c_step);
  else
    collage::detail::multiply_all(
        1, rows, columns, depth, c_step,
        [&](std::int64_t) { return gemm_problem<matrix_columns>{a_view, {b_view}, c.data()}; }, *kernel);

  std::vector<double> expected = before;
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t k = 0; k < depth; ++k)
      for (std::int64_t j = 0; j < columns; ++j)
        expected[static_cast<std::size_t>(i * c_step + j)] +=
            a[static_cast<std::size_t>(i * a_view.row_step + k * a_view.column_step)] *
            b[static_cast<std::size_t>(k * b_view.row_step + j * b_view.column_step)];
  for (std::size_t i = 0; i < c.size(); ++i)
    ASSERT_NEAR(c[i], expected[i], 1e-13 * static_cast<double>(depth + 1))
        << (kernel != nullptr ? kernel->instruction_set : "default") << ", " << rows << " x " << columns << " x "
        << depth << ", element " << i << (transpose_a ? ", a transposed" : "") << (transpose_b ? ", b transposed" : "");
}

TEST(reference_gemm, agrees_with_plain_loops) {
  random_source random;
  const std::int64_t awkward[] = {0,   1,   2,   3,   7,   8,   9,   23,  24,  25, 31,
                                  127, 128, 129, 239, 240, 241, 255, 256, 257, 300};
  const auto extent = [&] { return awkward[random.number(0, static_cast<std::int64_t>(std::size(awkward)) - 1)]; };
  for (const gemm_kernel& kernel : collage::detail::gemm_kernels())
    for (int i = 0; i < 40; ++i) check_product(random, &kernel, extent(), extent(), extent());
  for (int i = 0; i < 20; ++i) check_product(random, nullptr, extent(), extent(), extent());
  check_product(random, nullptr, 1, 1, 5000);
  check_product(random, nullptr, 5000, 1, 3);
  check_product(random, nullptr, 1, 5000, 3);
}

TEST(reference_gemm, says_what_it_runs_on) {
  const std::string set = collage::detail::gemm_instruction_set();
  EXPECT_EQ(set, collage::detail::gemm_kernels().front().instruction_set);
  EXPECT_STREQ(collage::detail::gemm_kernels().back().instruction_set, "portable");
  EXPECT_NE(std::string(collage::reference::probe().details).find(set), std::string::npos);
}

TEST(reference_gemm, special_values_follow_ieee_754) {
  // One infinite element spoils its row and nothing else, also in tiles filled up with zeros; infinity times zero is
  // NaN.
  constexpr std::int64_t n = 13;
  std::vector<double> a(n * n, 1.0), b(n * n, 1.0), c(n * n, 0.0);
  a[5 * n + 2] = collage_test::reference::infinity;
  b[2 * n + 7] = 0.0;
  collage::detail::gemm(n, n, n, {a.data(), n, 1}, {b.data(), n, 1}, c.data(), n);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j) {
      const double value = c[i * n + j];
      if (i == 5 && j == 7) EXPECT_TRUE(std::isnan(value));
      else if (i == 5) EXPECT_EQ(value, collage_test::reference::infinity);
      else EXPECT_EQ(value, j == 7 ? 12.0 : 13.0);
    }
}

}  // namespace backends_reference_gemm_test
