// The reference of resize (what reference_test.cpp leaves out), grid_sample, roi_align, col2im and deform_conv
// against their definitions, written down naively.
#include "support/reference_check.hpp"

#include <algorithm>
#include <array>

namespace backends_reference_sampling_test {

using namespace collage_test::reference;
using collage::ops::resize_coordinates;
using collage::ops::resize_mode;
using collage::ops::resize_rounding;
using collage::ops::sample_padding;

double keys(double x, double a) {
  x = std::abs(x);
  if (x < 1) return (a + 2) * x * x * x - (a + 3) * x * x + 1;
  return x < 2 ? a * x * x * x - 5 * a * x * x + 8 * a * x - 4 * a : 0;
}
double triangle(double x) { return std::abs(x) < 1 ? 1 - std::abs(x) : 0; }

// resize ----------------------------------------------------------------------------------------------------------------

struct line_case {
  op::resize_attributes a;
  std::int64_t in = 1, out = 1;
  double scale = 1;
};

/// The place of an output index by the text of ONNX Resize; NaN where the answer is the extrapolation value.
double place_of(const line_case& c, std::int64_t o) {
  const auto x = static_cast<double>(o), in = static_cast<double>(c.in), out = static_cast<double>(c.out);
  switch (c.a.coordinates) {
    case resize_coordinates::asymmetric: return x / c.scale;
    case resize_coordinates::align_corners: return c.out == 1 ? 0 : x * (in - 1) / (out - 1);
    case resize_coordinates::pytorch_half_pixel: return c.out == 1 ? 0 : (x + 0.5) / c.scale - 0.5;
    case resize_coordinates::half_pixel: return (x + 0.5) / c.scale - 0.5;
    case resize_coordinates::half_pixel_symmetric:
      return in / 2 * (1 - out / (c.scale * in)) + (x + 0.5) / c.scale - 0.5;
    case resize_coordinates::tf_crop_and_resize: break;
  }
  const double begin = c.a.region_begin[0], end = c.a.region_end[0];
  const double p =
      c.out == 1 ? 0.5 * (begin + end) * (in - 1) : begin * (in - 1) + x * (end - begin) * (in - 1) / (out - 1);
  return p < 0 || p > in - 1 ? not_a_number : p;
}

double resized(const line_case& c, const std::vector<double>& x, std::int64_t o) {
  const double p = place_of(c, o);
  if (std::isnan(p)) return c.a.extrapolation;
  const double shrink = c.a.antialias ? std::max(1.0, 1 / c.scale) : 1;
  double sum = 0, weights = 0;
  for (std::int64_t i = -200; i < c.in + 200; ++i) {
    const bool inside = i >= 0 && i < c.in;
    if (c.a.exclude_outside && !inside) continue;
    const double distance = (static_cast<double>(i) - p) / shrink;
    const double weight = c.a.mode == resize_mode::cubic ? keys(distance, c.a.cubic_coefficient) : triangle(distance);
    sum += weight * x[static_cast<std::size_t>(std::clamp<std::int64_t>(i, 0, c.in - 1))];
    weights += weight;
  }
  return sum / weights;
}

TEST(sampling_resize, every_filter_agrees_with_its_definition) {
  random_source random;
  for (int round = 0; round < 400; ++round) {
    line_case c;
    c.in = random.number(1, 9);
    c.a.mode = random.chance(0.5) ? resize_mode::cubic : resize_mode::linear;
    c.a.coordinates = static_cast<resize_coordinates>(random.number(0, 5));
    c.a.cubic_coefficient = random.chance(0.5) ? -0.5 : -0.75;
    c.a.antialias = random.chance(0.4);
    c.a.exclude_outside = (c.a.mode == resize_mode::cubic || c.a.antialias) && random.chance(0.3);
    c.a.extrapolation = 3;
    const bool crops = c.a.coordinates == resize_coordinates::tf_crop_and_resize;
    if (crops) {
      c.a.region_begin = {1, {random.real() / 4}};
      c.a.region_end = {1, {c.a.region_begin[0] + 0.7}};
    }
    if (random.chance(0.5) && !crops) {
      c.scale = std::array{0.375, 0.6875, 1.3125, 2.4375}[static_cast<std::size_t>(random.number(0, 3))];
      c.out = std::max<std::int64_t>(static_cast<std::int64_t>(static_cast<double>(c.in) * c.scale), 1);
      c.a.scales = {1, {c.scale}};
    } else {
      c.out = random.number(1, 12);
      c.scale = static_cast<double>(c.out) / static_cast<double>(c.in);
    }
    c.a.sizes = {c.out};
    const oracle_value x = random.tensor({c.in}, dtype::f64);
    const oracle_value y = run(op::resize, {x}, c.a);
    // Places that are given by a scale pass through float32.
    const double tolerance = c.a.scales.empty() ? 1e-12 : 1e-5;
    for (std::int64_t o = 0; o < c.out; ++o)
      EXPECT_NEAR(y.real[static_cast<std::size_t>(o)], resized(c, x.real, o), tolerance)
          << c.in << " to " << c.out << ", mode " << int(c.a.mode) << ", coordinates " << int(c.a.coordinates);
  }
}

TEST(sampling_resize, dimensions_are_filtered_one_by_one) {
  random_source random;
  const oracle_value x = random.tensor({2, 5, 6}, dtype::f64);
  const op::resize_attributes a{.sizes = {2, 3, 9}, .mode = resize_mode::cubic, .antialias = true};
  op::resize_attributes rows = a, columns = a;
  rows.sizes = {2, 3, 6};
  columns.sizes = {2, 3, 9};
  expect_same(run(op::resize, {x}, a), run(op::resize, {run(op::resize, {x}, rows)}, columns), "two dimensions");
}

TEST(sampling_resize, nearest_follows_a_scale_that_is_not_the_ratio) {
  // 0.6 * 2 extents of 4 make 2: the ratio would take elements 0 and 2.
  const oracle_value x = reals({4}, {10, 11, 12, 13});
  const op::resize_attributes a{.sizes = {2},
                                .coordinates = resize_coordinates::asymmetric,
                                .rounding = resize_rounding::down,
                                .scales = {1, {0.6}}};
  expect_same(run(op::resize, {x}, a), reals({2}, {10, 11}), "scaled");
  // A third as float32 is a little more than a third; three times it is still 1.
  const op::resize_attributes third{.sizes = {3},
                                    .coordinates = resize_coordinates::asymmetric,
                                    .rounding = resize_rounding::down,
                                    .scales = {1, {static_cast<double>(1.0F / 3.0F)}}};
  const oracle_value long_row = reals({11}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  expect_same(run(op::resize, {long_row}, third), reals({3}, {0, 3, 6}), "a third");
}

TEST(sampling_resize, scales_that_are_the_ratio_are_dropped) {
  const collage::tensor_type x{dtype::f32, {1, 10, 10}};
  op::resize_attributes a{.sizes = {1, 6, 20}, .scales = {3, {1, static_cast<double>(0.6F), 2}}};
  op::resize.normalise(a, std::span(&x, 1));
  EXPECT_TRUE(a.scales.empty());
  EXPECT_TRUE(op::resize.is_common(a));
  a = {.sizes = {1, 6, 20}, .scales = {3, {1, 0.65, 2}}};
  op::resize.normalise(a, std::span(&x, 1));
  EXPECT_EQ(a.scales.size(), 3U);
  EXPECT_FALSE(op::resize.is_common(a));
}

// grid_sample -----------------------------------------------------------------------------------------------------------

struct grid_case {
  op::grid_sample_attributes a;
  shape spatial;
};

std::int64_t mirrored(std::int64_t i, std::int64_t extent, bool align_corners) {
  if (extent == 1) return 0;
  // Walks there and back again: ... 2 1 0 1 2 ... or ... 1 0 0 1 ...
  while (i < 0 || i >= extent) {
    if (i < 0) i = align_corners ? -i : -1 - i;
    else i = align_corners ? 2 * (extent - 1) - i : 2 * extent - 1 - i;
  }
  return i;
}

/// An element, with zeros, borders or reflections around the image.
double element_at(const grid_case& c, const double* image, const multi_index& index) {
  multi_index inside = index;
  for (std::size_t d = 0; d < index.size(); ++d) {
    const std::int64_t extent = c.spatial[d];
    if (c.a.padding == sample_padding::zeros && (index[d] < 0 || index[d] >= extent)) return 0;
    if (c.a.padding == sample_padding::border) inside[d] = std::clamp<std::int64_t>(index[d], 0, extent - 1);
    if (c.a.padding == sample_padding::reflection) inside[d] = mirrored(index[d], extent, c.a.align_corners);
  }
  return image[at(c.spatial, inside)];
}

double sampled(const grid_case& c, const double* image, const std::vector<double>& place) {
  const std::size_t rank = place.size();
  double sum = 0;
  // All elements within three of the place; outside an element's own weights are zero.
  shape around = shape::filled(rank, 7);
  for_each_index(around, [&](const multi_index& offset) {
    double weight = 1;
    multi_index index(rank);
    for (std::size_t d = 0; d < rank; ++d) {
      index[d] = static_cast<std::int64_t>(std::floor(place[d])) + offset[d] - 3;
      const double distance = static_cast<double>(index[d]) - place[d];
      weight *= c.a.mode == resize_mode::cubic    ? keys(distance, -0.75)
                : c.a.mode == resize_mode::linear ? triangle(distance)
                                                  : (std::nearbyint(place[d]) - static_cast<double>(index[d]) == 0);
    }
    if (weight != 0) sum += weight * element_at(c, image, index);
  });
  return sum;
}

TEST(sampling_grid, agrees_with_its_definition) {
  random_source random;
  for (int round = 0; round < 150; ++round) {
    grid_case c;
    const std::int64_t rank = random.number(1, 3);
    c.a.mode = static_cast<resize_mode>(random.number(0, 2));
    c.a.padding = static_cast<sample_padding>(random.number(0, 2));
    c.a.align_corners = random.chance(0.5);
    c.spatial = random.dims(rank, false);
    shape x_dims{2, 2}, grid_dims{2}, places;
    for (const std::int64_t extent : c.spatial) x_dims.push_back(extent);
    for (std::int64_t d = 0; d < rank; ++d) {
      places.push_back(random.number(0, 3));
      grid_dims.push_back(places[static_cast<std::size_t>(d)]);
    }
    grid_dims.push_back(rank);
    const oracle_value x = random.tensor(x_dims, dtype::f64), grid = random.tensor(grid_dims, dtype::f64);
    const oracle_value y = run(op::grid_sample, {x, grid}, c.a);
    ASSERT_EQ(y.type.dims.size(), static_cast<std::size_t>(rank) + 2);
    const std::int64_t count = places.elements(), plane = c.spatial.elements();
    for (std::int64_t i = 0; i < 4 * count; ++i) {
      std::vector<double> place;
      for (std::int64_t d = 0; d < rank; ++d) {
        const double g = grid.real[static_cast<std::size_t>((i / count / 2 * count + i % count) * rank + rank - 1 - d)];
        const auto extent = static_cast<double>(c.spatial[static_cast<std::size_t>(d)]);
        place.push_back(c.a.align_corners ? (g + 1) / 2 * (extent - 1) : ((g + 1) * extent - 1) / 2);
      }
      EXPECT_NEAR(y.real[static_cast<std::size_t>(i)], sampled(c, x.real.data() + i / count * plane, place), 1e-12)
          << text_of(x_dims) << ", mode " << int(c.a.mode) << ", padding " << int(c.a.padding);
    }
  }
}

TEST(sampling_grid, ties_and_what_is_no_number) {
  const oracle_value x = reals({1, 1, 5}, {1, 2, 3, 4, 5});
  // As float32 these lie at 0.5, 1.5 and 2.5; in double precision beside them.
  oracle_value grid = reals({1, 3, 1}, {-0.6F, -0.2F, 0.2F});
  expect_same(run(op::grid_sample, {x, grid}, {.mode = resize_mode::nearest}), reals({1, 1, 3}, {1, 3, 3}), "ties");
  grid = reals({1, 3, 1}, {not_a_number, infinity, -infinity});
  for (const auto mode : {resize_mode::nearest, resize_mode::linear, resize_mode::cubic}) {
    expect_same(run(op::grid_sample, {x, grid}, {.mode = mode}), reals({1, 1, 3}, {0, 0, 0}), "zeros");
    expect_same(run(op::grid_sample, {x, grid}, {.mode = mode, .padding = sample_padding::border}),
                reals({1, 1, 3}, {1, 5, 1}), "border");
    const oracle_value y = run(op::grid_sample, {x, grid}, {.mode = mode, .padding = sample_padding::reflection});
    for (const double element : y.real) EXPECT_TRUE(element > 0 && element < 6) << element;
  }
}

// roi_align -------------------------------------------------------------------------------------------------------------

TEST(sampling_regions, agree_with_their_definition) {
  random_source random;
  for (int round = 0; round < 60; ++round) {
    const shape dims{random.number(1, 2), 2, random.number(1, 6), random.number(1, 6)};
    op::roi_align_attributes a{.height = random.number(1, 3), .width = random.number(1, 3)};
    a.samples = random.number(0, 3);
    a.scale = random.chance(0.5) ? 0.5 : 1;
    a.half_pixel = random.chance(0.5);
    a.mode = random.chance(0.5) ? op::roi_mode::average : op::roi_mode::largest;
    const oracle_value x = random.tensor(dims, dtype::f64);
    oracle_value regions = random.tensor({3, 4}, dtype::f64);
    for (std::size_t i = 0; i < regions.real.size(); ++i)
      regions.real[i] = i % 4 < 2 ? 2 * regions.real[i] : regions.real[i - 2] + 3 * std::abs(regions.real[i]);
    const oracle_value images = integers({3}, {0, dims[0] - 1, 0});
    const oracle_value y = run(op::roi_align, {x, regions, images}, a);
    for_each_index(y.type.dims, [&](const multi_index& o) {
      const auto r = static_cast<std::size_t>(o[0]);
      double begin[2], step[2];
      std::int64_t samples[2];
      for (std::size_t d = 0; d < 2; ++d) {
        const double shift = a.half_pixel ? 0.5 : 0;
        begin[d] = regions.real[r * 4 + 1 - d] * a.scale - shift;
        double extent = regions.real[r * 4 + 3 - d] * a.scale - shift - begin[d];
        if (!a.half_pixel) extent = std::max(extent, 1.0);
        step[d] = extent / static_cast<double>(d == 0 ? a.height : a.width);
        samples[d] = a.samples > 0 ? a.samples : static_cast<std::int64_t>(std::ceil(step[d]));
      }
      double sum = 0, largest = -infinity;
      for (std::int64_t i = 0; i < samples[0] * samples[1]; ++i) {
        double p[2];
        bool outside = false;
        for (std::size_t d = 0; d < 2; ++d) {
          const auto which = static_cast<double>(d == 0 ? i / samples[1] : i % samples[1]);
          p[d] = begin[d] + static_cast<double>(o[d + 2]) * step[d] +
                 (which + 0.5) * step[d] / static_cast<double>(samples[d]);
          outside = outside || p[d] < -1 || p[d] > static_cast<double>(dims[d + 2]);
          p[d] = std::clamp(p[d], 0.0, static_cast<double>(dims[d + 2] - 1));
        }
        double share = outside ? 0 : -infinity;
        for (std::int64_t corner = 0; corner < 4 && !outside; ++corner) {
          const auto h = static_cast<std::int64_t>(p[0]) + corner / 2, w = static_cast<std::int64_t>(p[1]) + corner % 2;
          const double weight = triangle(p[0] - static_cast<double>(h)) * triangle(p[1] - static_cast<double>(w));
          const bool there = h < dims[2] && w < dims[3];
          const double one = there ? weight * x.real[at(dims, {images.integer[r], o[1], h, w})] : 0.0;
          sum += one;
          share = std::max(share, one);
        }
        largest = std::max(largest, share);
      }
      const std::int64_t count = samples[0] * samples[1];
      const double expected = a.mode == op::roi_mode::average
                                  ? sum / static_cast<double>(std::max<std::int64_t>(count, 1))
                              : count == 0 ? 0
                                           : largest;
      EXPECT_NEAR(y.real[at(y.type.dims, o)], expected, 1e-12) << text_of(dims);
    });
  }
}

TEST(sampling_regions, of_an_image_that_is_not_there_are_an_error) {
  const oracle_value x = reals({1, 1, 2, 2}, {1, 2, 3, 4}), region = reals({1, 4}, {0, 0, 1, 1});
  EXPECT_THROW((void)run(op::roi_align, {x, region, integers({1}, {1})}), collage::error);
  EXPECT_THROW((void)run(op::roi_align, {x, region, integers({1}, {-1})}), collage::error);
  const oracle_value immense = reals({1, 4}, {0, 0, 1e30, 1});
  EXPECT_THROW((void)run(op::roi_align, {x, immense, integers({1}, {0})}), collage::error);
}

// col2im ----------------------------------------------------------------------------------------------------------------

/// Reading blocks and adding them up are transposed maps: <blocks of z, x> is <z, col2im(x)> for every image z.
TEST(sampling_blocks, adding_up_is_the_transpose_of_reading) {
  random_source random;
  for (int round = 0; round < 60; ++round) {
    const std::int64_t rank = random.number(1, 3);
    op::col2im_attributes a;
    shape places;
    std::int64_t rows = 2;
    for (std::int64_t d = 0; d < rank; ++d) {
      a.window.push_back(random.number(1, 3));
      a.strides.push_back(random.number(1, 3));
      a.dilations.push_back(random.number(1, 2));
      a.pads_begin.push_back(random.number(0, 2));
      a.pads_end.push_back(random.number(0, 2));
      const auto i = static_cast<std::size_t>(d);
      const std::int64_t reach = (a.window[i] - 1) * a.dilations[i];
      a.image.push_back(reach + random.number(1, 4));
      places.push_back((a.image[i] + a.pads_begin[i] + a.pads_end[i] - reach - 1) / a.strides[i] + 1);
      rows *= a.window[i];
    }
    const bool whole = random.chance(0.3);
    const oracle_value x = random.tensor({2, rows, places.elements()}, whole ? dtype::i64 : dtype::f64);
    const oracle_value y = run(op::col2im, {x}, a);
    const oracle_value z = random.tensor(y.type.dims, y.type.type);
    double left = 0, right = 0;
    std::uint64_t left_whole = 0, right_whole = 0;
    for (std::size_t i = 0; i < z.size(); ++i)
      if (whole) right_whole += static_cast<std::uint64_t>(z.integer[i]) * static_cast<std::uint64_t>(y.integer[i]);
      else right += z.real[i] * y.real[i];
    for (std::int64_t channel = 0; channel < 4; ++channel)
      for_each_index(a.window, [&](const multi_index& tap) {
        for_each_index(places, [&](const multi_index& place) {
          multi_index source;
          for (std::size_t d = 0; d < tap.size(); ++d) {
            source.push_back(place[d] * a.strides[d] + tap[d] * a.dilations[d] - a.pads_begin[d]);
            if (source[d] < 0 || source[d] >= a.image[d]) return;
          }
          const std::size_t from = static_cast<std::size_t>(channel * a.image.elements()) + at(a.image, source);
          const std::size_t to = static_cast<std::size_t>(channel * a.window.elements() * places.elements()) +
                                 at(a.window, tap) * static_cast<std::size_t>(places.elements()) + at(places, place);
          if (whole)
            left_whole += static_cast<std::uint64_t>(z.integer[from]) * static_cast<std::uint64_t>(x.integer[to]);
          else left += z.real[from] * x.real[to];
        });
      });
    EXPECT_NEAR(left, right, 1e-9);
    EXPECT_EQ(left_whole, right_whole);
  }
}

// deform_conv -----------------------------------------------------------------------------------------------------------

TEST(sampling_deformed_convolution, agrees_with_its_definition) {
  random_source random;
  for (int round = 0; round < 25; ++round) {
    op::deform_conv_attributes a{.groups = random.number(1, 2), .offset_groups = random.number(1, 2)};
    shape window, places;
    const shape x_dims{2, 4, random.number(3, 6), random.number(3, 6)};
    for (std::size_t d = 0; d < 2; ++d) {
      window.push_back(random.number(1, 2));
      a.strides.push_back(random.number(1, 2));
      a.dilations.push_back(random.number(1, 2));
      a.pads_begin.push_back(random.number(0, 2));
      a.pads_end.push_back(random.number(0, 2));
      const std::int64_t reach = (window[d] - 1) * a.dilations[d] + 1;
      places.push_back((x_dims[d + 2] + a.pads_begin[d] + a.pads_end[d] - reach) / a.strides[d] + 1);
    }
    const std::int64_t taps = window.elements(), filters = 2 * a.groups;
    const oracle_value x = random.tensor(x_dims, dtype::f64);
    const oracle_value w = random.tensor({filters, 4 / a.groups, window[0], window[1]}, dtype::f64);
    const shape mask_dims{2, a.offset_groups * taps, places[0], places[1]};
    const shape offset_dims{2, a.offset_groups * taps * 2, places[0], places[1]};
    const oracle_value offsets = random.tensor(offset_dims, dtype::f64), mask = random.tensor(mask_dims, dtype::f64);
    const bool masks = random.chance(0.5);
    std::vector<oracle_value> operands{x, w, offsets};
    if (masks) operands.push_back(mask);
    const oracle_value y = run(op::deform_conv, operands, a);
    for_each_index(y.type.dims, [&](const multi_index& o) {
      double sum = 0;
      for_each_index({4 / a.groups, window[0], window[1]}, [&](const multi_index& k) {
        const std::int64_t channel = o[1] / (filters / a.groups) * (4 / a.groups) + k[0];
        const std::int64_t tap = channel / (4 / a.offset_groups) * taps + k[1] * window[1] + k[2];
        double p[2];
        for (std::size_t d = 0; d < 2; ++d)
          p[d] = static_cast<double>(o[d + 2] * a.strides[d] - a.pads_begin[d] + k[d + 1] * a.dilations[d]) +
                 offsets.real[at(offset_dims, {o[0], tap * 2 + static_cast<std::int64_t>(d), o[2], o[3]})];
        double read = 0;
        for_each_index({x_dims[2], x_dims[3]}, [&](const multi_index& i) {
          read += triangle(p[0] - static_cast<double>(i[0])) * triangle(p[1] - static_cast<double>(i[1])) *
                  x.real[at(x_dims, {o[0], channel, i[0], i[1]})];
        });
        sum += read * w.real[at(w.type.dims, {o[1], k[0], k[1], k[2]})] *
               (masks ? mask.real[at(mask_dims, {o[0], tap, o[2], o[3]})] : 1.0);
      });
      EXPECT_NEAR(y.real[at(y.type.dims, o)], sum, 1e-10) << text_of(x_dims);
    });
  }
}

}  // namespace backends_reference_sampling_test
