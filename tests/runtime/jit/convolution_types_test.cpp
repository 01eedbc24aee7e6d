// Transforms are generated from any F x F': here from one whose rows and columns differ, and from one with other points.
#include "jit/transform_tiles.hpp"
#include "support/random_numbers.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace jit_convolution_types_test {

namespace jit = collage::detail::jit;
namespace bilinear = collage::bilinear;

struct other_points {
  using problem = bilinear::correlation<3, 4>;
  static constexpr const char* name = "other F(3,4)";
  static constexpr bilinear::point points[] = {0, 1, -1, {1, 2}, {-3, 2}, bilinear::infinity};
};
using other = bilinear::toom_cook<other_points>;

using mixed = jit::image_algorithm<bilinear::nested<bilinear::f_4_3, bilinear::f_2_5>>;
static_assert(std::string_view(mixed::name) == "F(4,3) x F(2,5)");
static_assert(mixed::tile_rows == 4 && mixed::tile_columns == 2 && mixed::window_rows == 3 &&
              mixed::window_columns == 5 && mixed::products == 36);
static_assert(std::string_view(jit::image_algorithm<bilinear::in_two_dimensions<bilinear::f_4_3>>::name) == "F(4,3)");

/// One channel of one image, with one pad on all sides.
template <class S>
void check() {
  using A = jit::image_algorithm<S>;
  collage_test::random_numbers random;
  constexpr std::int64_t e = A::enlargement, skip = e - 1;
  const std::int64_t height = 11, width = 13;
  const std::int64_t out_height = e * height + 3 - A::window_rows, out_width = e * width + 3 - A::window_columns;
  const std::int64_t down = (out_height + skip + A::tile_rows - 1) / A::tile_rows,
                     across = (out_width + skip + A::tile_columns - 1) / A::tile_columns, tiles = down * across;
  const auto numbers = [&](std::int64_t count) {
    std::vector<float> list(static_cast<std::size_t>(count));
    for (float& x : list) x = static_cast<float>(random.real(-1, 1));
    return list;
  };
  const std::vector<float> from = numbers(height * width), window = numbers(A::window_rows * A::window_columns);
  std::vector<float> products(static_cast<std::size_t>(A::products * tiles * 16));
  std::vector<float> to(static_cast<std::size_t>(out_height * out_width));
  jit::HWY_NAMESPACE::input_tiles<S>({.from = from.data(),
                                      .steps = jit::steps_of(jit::image_layout::plain, 1, height, width),
                                      .channels = 1,
                                      .height = height,
                                      .width = width,
                                      .pad_top = 1,
                                      .pad_left = 1,
                                      .down = down,
                                      .across = across,
                                      .to = products.data(),
                                      .to_step = tiles * 16,
                                      .to_row = 16},
                                     {0, tiles, 0, 16});
  const auto weights = bilinear::coefficients<double>(S::v);
  for (std::size_t p = 0; p < S::rank; ++p) {
    double sum = 0;
    for (std::size_t i = 0; i < window.size(); ++i) sum += weights[p][i] * static_cast<double>(window[i]);
    for (std::size_t t = 0; t < static_cast<std::size_t>(tiles) * 16; ++t)
      products[p * static_cast<std::size_t>(tiles) * 16 + t] *= static_cast<float>(sum);
  }
  const jit::epilogue none;
  float* const outputs[] = {to.data()};
  EXPECT_TRUE(
      jit::HWY_NAMESPACE::output_tiles<S>({.from = products.data(),
                                           .from_step = tiles * 16,
                                           .from_row = 16,
                                           .steps = jit::steps_of(jit::image_layout::plain, 1, out_height, out_width),
                                           .channels = 1,
                                           .height = out_height,
                                           .width = out_width,
                                           .down = down,
                                           .across = across,
                                           .skip_top = skip,
                                           .skip_left = skip,
                                           .finish = &none,
                                           .outputs = outputs},
                                          {0, tiles, 0, 16}));
  for (std::int64_t y = 0; y < out_height; ++y)
    for (std::int64_t x = 0; x < out_width; ++x) {
      double sum = 0;
      for (std::int64_t i = 0; i < A::window_rows; ++i)
        for (std::int64_t j = 0; j < A::window_columns; ++j) {
          const std::int64_t row = y + i - 1, column = x + j - 1;
          if (row < 0 || column < 0 || row >= e * height || column >= e * width) continue;
          sum += static_cast<double>(from[static_cast<std::size_t>(row / e * width + column / e)]) *
                 static_cast<double>(window[static_cast<std::size_t>(i * A::window_columns + j)]);
        }
      ASSERT_NEAR(static_cast<double>(to[static_cast<std::size_t>(y * out_width + x)]), sum,
                  S::error.bound(0x1p-24) / 8)
          << S::name << " at " << y << ", " << x << ", COLLAGE_SEED=" << random.seed();
    }
}

TEST(jit_convolution_types, rows_and_columns_may_differ) {
  check<bilinear::nested<bilinear::f_4_3, bilinear::f_2_5>>();
  check<bilinear::nested<bilinear::f_2_2, bilinear::f_6_3>>();
}
TEST(jit_convolution_types, rows_and_columns_of_enlarged_images_may_differ) {
  check<bilinear::nested<bilinear::up2_f_4_2, bilinear::up2_f_2_3>>();
  check<bilinear::nested<bilinear::up2_f_4_3, bilinear::up2_f_3_2>>();
}
TEST(jit_convolution_types, any_points) { check<bilinear::nested<other, bilinear::f_2_3>>(); }

}  // namespace jit_convolution_types_test
