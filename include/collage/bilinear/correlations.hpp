// Toom-Cook algorithms for convolutions: F(M,R) gives M outputs of a filter with R taps by M + R - 1 multiplications.
//
// In one dimension the definition takes M R multiplications. Nested with itself, F(M,R) is F(M x M, R x R) for images:
// `in_two_dimensions<f_4_3>` takes 36 multiplications instead of 144. Points near 1 keep errors small. The points 0, 1, -1,
// 2, -2 of Lavin and Gray are simple; points such as 2/3 and 3/2 are more accurate.
#pragma once

#include <collage/bilinear/combine.hpp>
#include <collage/bilinear/problem.hpp>
#include <collage/bilinear/toom_cook.hpp>

namespace collage::inline v0::bilinear {

namespace detail {

struct f_2_2_points {
  using problem = correlation<2, 2>;
  static constexpr const char* name = "F(2,2)";
  static constexpr point points[] = {0, 1, infinity};
};
struct f_3_2_points {
  using problem = correlation<3, 2>;
  static constexpr const char* name = "F(3,2)";
  static constexpr point points[] = {0, 1, -1, infinity};
};
struct f_4_2_points {
  using problem = correlation<4, 2>;
  static constexpr const char* name = "F(4,2)";
  static constexpr point points[] = {0, 1, -1, {1, 2}, infinity};
};
struct f_2_3_points {
  using problem = correlation<2, 3>;
  static constexpr const char* name = "F(2,3)";
  static constexpr point points[] = {0, 1, -1, infinity};
};
struct f_4_3_points {
  using problem = correlation<4, 3>;
  static constexpr const char* name = "F(4,3)";
  static constexpr point points[] = {0, 1, -1, 2, -2, infinity};
};
struct f_4_3_accurate_points {
  using problem = correlation<4, 3>;
  static constexpr const char* name = "F(4,3) accurate";
  static constexpr point points[] = {0, {2, 3}, {-2, 3}, {3, 2}, {-3, 2}, infinity};
};
struct f_6_3_points {
  using problem = correlation<6, 3>;
  static constexpr const char* name = "F(6,3)";
  static constexpr point points[] = {0, 1, -1, 2, -2, {1, 2}, {-1, 2}, infinity};
};
struct f_2_5_points {
  using problem = correlation<2, 5>;
  static constexpr const char* name = "F(2,5)";
  static constexpr point points[] = {0, 1, -1, 2, -2, infinity};
};
struct f_4_5_points {
  using problem = correlation<4, 5>;
  static constexpr const char* name = "F(4,5)";
  static constexpr point points[] = {0, 1, -1, 2, -2, {1, 2}, {-1, 2}, infinity};
};

}  // namespace detail

using f_2_2 = toom_cook<detail::f_2_2_points>;
using f_3_2 = toom_cook<detail::f_3_2_points>;
using f_4_2 = toom_cook<detail::f_4_2_points>;

/// Winograd's minimal filtering: 4 multiplications instead of 6.
using f_2_3 = toom_cook<detail::f_2_3_points>;
/// At the points of Lavin and Gray (Fast algorithms for convolutional neural networks, CVPR 2016).
using f_4_3 = toom_cook<detail::f_4_3_points>;
/// At 0, 2/3, -2/3, 3/2, -3/2: the errors of float32 convolutions with it are smaller.
using f_4_3_accurate = toom_cook<detail::f_4_3_accurate_points>;
using f_6_3 = toom_cook<detail::f_6_3_points>;

using f_2_5 = toom_cook<detail::f_2_5_points>;
using f_4_5 = toom_cook<detail::f_4_5_points>;

/// The same in both dimensions of an image, with rows first.
template <class S>
using in_two_dimensions = nested<S, S>;

}  // namespace collage::inline v0::bilinear
