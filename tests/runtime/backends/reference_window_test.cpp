// The reference's convolution and pooling against their definitions, and against results of ONNX Runtime.
#include "support/effort.hpp"
#include "support/reference_check.hpp"

namespace backends_reference_window_test {

using namespace collage_test::reference;

struct window {
  shape extent, size, strides, dilations, pads_begin, pads_end;
};

/// A window that fits at least once; strides and pads may be huge.
window random_window(random_source& random, std::int64_t rank, bool small_pads) {
  window w;
  for (std::int64_t d = 0; d < rank; ++d) {
    const std::int64_t size = random.number(1, 4);
    const std::int64_t dilation = random.chance(0.6) ? 1 : random.number(1, 3);
    const std::int64_t reach = dilation * (size - 1);
    w.size.push_back(size);
    w.dilations.push_back(dilation);
    w.strides.push_back(random.chance(0.05) ? 1000 : random.number(1, 3));
    w.pads_begin.push_back(small_pads ? random.number(0, size - 1) : random.number(0, 5));
    w.pads_end.push_back(small_pads ? random.number(0, size - 1) : random.number(0, 5));
    const std::int64_t pads = w.pads_begin.end()[-1] + w.pads_end.end()[-1];
    w.extent.push_back(small_pads ? reach + random.number(1, 8) : std::max(random.number(1, 8), reach + 1 - pads));
  }
  return w;
}

/// Calls body(x index, window index) for each tap of output index `o` that is inside the input.
template <class Body>
void for_each_tap(const window& w, const shape& x, const multi_index& o, const Body& body) {
  for_each_index(w.size, [&](const multi_index& tap) {
    multi_index i{o[0], 0};
    bool inside = true;
    for (std::size_t d = 0; d < tap.size(); ++d) {
      i.push_back(o[d + 2] * w.strides[d] + tap[d] * w.dilations[d] - w.pads_begin[d]);
      inside = inside && i[d + 2] >= 0 && i[d + 2] < x[d + 2];
    }
    if (inside) body(i, tap);
  });
}

TEST(reference_conv, agrees_with_its_definition) {
  random_source random;
  for (int round = 0; round < collage_test::cases(150); ++round) {
    const window w = random_window(random, random.chance(0.1) ? 4 : random.number(1, 3), false);
    const std::int64_t groups = random.chance(0.5) ? 1 : random.number(1, 4);
    const std::int64_t per_group = random.chance(0.03) ? 0 : random.number(1, 5);
    const std::int64_t filters = groups * random.number(1, 5);
    const std::int64_t batch = random.chance(0.03) ? 0 : random.number(1, 3);
    const dtype type = random.chance(0.25) ? (random.chance(0.5) ? dtype::i64 : dtype::i8) : dtype::f32;
    std::vector<oracle_value> in{random.tensor(joined({batch, groups * per_group}, w.extent), type),
                                 random.tensor(joined({filters, per_group}, w.size), type)};
    if (random.chance(0.5)) in.push_back(random.tensor({filters}, type));
    const oracle_value y = run(op::conv, in,
                               {.groups = groups,
                                .strides = w.strides,
                                .dilations = w.dilations,
                                .pads_begin = w.pads_begin,
                                .pads_end = w.pads_end});
    oracle_value expected(y.type);
    const shape& x = in[0].type.dims;
    for_each_index(y.type.dims, [&](const multi_index& o) {
      const auto filter = static_cast<std::size_t>(o[1]);
      double sum = in.size() == 3 && type == dtype::f32 ? in[2].real[filter] : 0.0;
      std::uint64_t whole =
          in.size() == 3 && type != dtype::f32 ? static_cast<std::uint64_t>(in[2].integer[filter]) : 0;
      for (std::int64_t c = 0; c < per_group; ++c)
        for_each_tap(w, x, o, [&](multi_index i, const multi_index& tap) {
          i[1] = o[1] / (filters / groups) * per_group + c;
          multi_index k{o[1], c};
          k.insert(k.end(), tap.begin(), tap.end());
          // `at` takes an extent of 1 for index 0, which is what it can only be here.
          if (type == dtype::f32) sum += in[0].real[at(x, i)] * in[1].real[at(in[1].type.dims, k)];
          else
            whole += static_cast<std::uint64_t>(in[0].integer[at(x, i)]) *
                     static_cast<std::uint64_t>(in[1].integer[at(in[1].type.dims, k)]);
        });
      if (type == dtype::f32) expected.real[at(y.type.dims, o)] = sum;
      else
        expected.integer[at(y.type.dims, o)] =
            type == dtype::i8 ? static_cast<std::int8_t>(whole) : static_cast<std::int64_t>(whole);
    });
    expect_same(y, expected,
                "conv of " + text_of(x) + " with " + text_of(in[1].type.dims) + " strides " + text_of(w.strides));
  }
}

TEST(reference_conv, agrees_with_its_definition_over_several_blocks) {
  // More channels, filters and places than one block of the product holds, and not multiples of any tile.
  random_source random;
  const oracle_value x = random.tensor({1, 130, 19, 23});
  const oracle_value w = random.tensor({131, 130, 3, 3});
  const oracle_value y = run(op::conv, {x, w}, {.strides = {1, 1}, .pads_begin = {1, 0}, .pads_end = {0, 2}});
  ASSERT_EQ(y.type.dims, (shape{1, 131, 18, 23}));
  for (int sample = 0; sample < 500; ++sample) {
    const multi_index o{0, random.number(0, 130), random.number(0, 17), random.number(0, 22)};
    double sum = 0;
    for (std::int64_t c = 0; c < 130; ++c)
      for (std::int64_t i = 0; i < 3; ++i)
        for (std::int64_t j = 0; j < 3; ++j) {
          const std::int64_t row = o[2] + i - 1;
          const std::int64_t column = o[3] + j;
          if (row >= 0 && row < 19 && column < 23)
            sum += x.real[at(x.type.dims, {0, c, row, column})] * w.real[at(w.type.dims, {o[1], c, i, j})];
        }
    ASSERT_NEAR(y.real[at(y.type.dims, o)], sum, 1e-10);
  }
}

TEST(reference_conv, pads_are_zeros_also_for_infinite_weights) {
  const oracle_value y =
      run(op::conv, {reals({1, 1, 2}, {1, 2}), reals({1, 1, 2}, {infinity, 1})}, {.pads_begin = {1}});
  EXPECT_TRUE(std::isnan(y.real[0]));  // 0 * infinity + 1
  EXPECT_EQ(y.real[1], infinity);
}

TEST(reference_pool, agrees_with_its_definition) {
  random_source random;
  for (int round = 0; round < 150; ++round) {
    const window w = random_window(random, random.number(1, 3), true);
    const shape dims = joined({random.chance(0.03) ? 0 : random.number(1, 3), random.number(1, 3)}, w.extent);
    const dtype type = random.chance(0.25) ? dtype::i32 : dtype::f32;
    const oracle_value x = random.tensor(dims, type, random.chance(0.2) ? 0.05 : 0.0);
    const op::pool_attributes a{.window = w.size,
                                .strides = w.strides,
                                .dilations = w.dilations,
                                .pads_begin = w.pads_begin,
                                .pads_end = w.pads_end,
                                .round_up = random.chance(0.5),
                                .count_padding = random.chance(0.5)};
    const oracle_value largest = run(op::max_pool, {x}, a);
    const oracle_value mean = run(op::average_pool, {x}, a);
    oracle_value expected_largest(largest.type);
    oracle_value expected_mean(mean.type);
    for_each_index(largest.type.dims, [&](const multi_index& o) {
      const std::size_t place = at(largest.type.dims, o);
      double top = -infinity;
      double sum = 0;
      std::int64_t whole_top = std::numeric_limits<std::int32_t>::min();
      std::int64_t whole_sum = 0;
      for_each_tap(w, dims, o, [&](multi_index i, const multi_index&) {
        i[1] = o[1];
        if (type == dtype::i32) {
          whole_top = std::max(whole_top, x.integer[at(dims, i)]);
          whole_sum += x.integer[at(dims, i)];
          return;
        }
        const double e = x.real[at(dims, i)];
        sum += e;
        if (std::isnan(e) || e > top) top = std::isnan(top) ? top : e;
      });
      // Taps in the pads count, if wanted; what a partial window covers beyond the pads does not.
      double count = 0;
      for_each_index(w.size, [&](const multi_index& tap) {
        bool counts = true;
        for (std::size_t d = 0; d < tap.size(); ++d) {
          const std::int64_t e = o[d + 2] * w.strides[d] + tap[d] * w.dilations[d] - w.pads_begin[d];
          counts = counts && (a.count_padding ? e < w.extent[d] + w.pads_end[d] : e >= 0 && e < w.extent[d]);
        }
        if (counts) count += 1;
      });
      if (type == dtype::i32) {
        expected_largest.integer[place] = whole_top;
        expected_mean.integer[place] =
            count == 0 ? 0 : static_cast<std::int32_t>(whole_sum / static_cast<std::int64_t>(count));
      } else {
        expected_largest.real[place] = top;
        expected_mean.real[place] = sum / count;
      }
    });
    const std::string what =
        " of " + text_of(dims) + " window " + text_of(w.size) + " dilations " + text_of(w.dilations);
    expect_same(largest, expected_largest, "max_pool" + what);
    expect_same(mean, expected_mean, "average_pool" + what);
  }
}

TEST(reference_pool, nan_wins) {
  const oracle_value x = reals({1, 1, 5}, {1, not_a_number, infinity, -infinity, -infinity});
  const oracle_value y = run(op::max_pool, {x}, {.window = {2}});
  expect_same(y, reals({1, 1, 4}, {not_a_number, not_a_number, infinity, -infinity}), "max_pool");
}

// Computed by ONNX Runtime 1.31 (opset 22).
TEST(reference_pool, agrees_with_onnx_runtime) {
  const auto expect_close = [](const oracle_value& got, const oracle_value& wanted) {
    EXPECT_EQ(text_of(got.type.dims), text_of(wanted.type.dims));
    for (std::size_t i = 0; i < wanted.real.size(); ++i)
      EXPECT_NEAR(got.real[i], wanted.real[i], 1e-6) << "element " << i;
  };
  const oracle_value line = reals({1, 1, 8}, {3, -1, 4, 1, -5, 9, 2, -6});
  const oracle_value plane =
      reals({1, 1, 4, 5}, {-6, 1, -5, 2, -4, 3, -3, 4, -2, 5, -1, 6, 0, -6, 1, -5, 2, -4, 3, -3});
  expect_close(
      run(op::average_pool, {line},
          {.window = {3}, .strides = {2}, .pads_begin = {1}, .pads_end = {1}, .round_up = true, .count_padding = true}),
      reals({1, 1, 5}, {0.666666687, 1.33333337, 1.66666663, 1.66666663, -3}));
  expect_close(
      run(op::max_pool, {line}, {.window = {3}, .strides = {2}, .pads_begin = {1}, .pads_end = {1}, .round_up = true}),
      reals({1, 1, 5}, {3, 4, 9, 9, -6}));
  expect_close(run(op::average_pool, {line},
                   {.window = {3},
                    .strides = {2},
                    .pads_begin = {1},
                    .pads_end = {1},
                    .round_up = true,
                    .count_padding = false}),
               reals({1, 1, 5}, {1, 1.33333337, 1.66666663, 1.66666663, -6}));
  expect_close(
      run(op::average_pool, {line},
          {.window = {3}, .strides = {3}, .pads_begin = {2}, .pads_end = {0}, .round_up = true, .count_padding = true}),
      reals({1, 1, 4}, {1, 1.33333337, 2, -6}));
  expect_close(
      run(op::max_pool, {line}, {.window = {3}, .strides = {3}, .pads_begin = {2}, .pads_end = {0}, .round_up = true}),
      reals({1, 1, 4}, {3, 4, 9, -6}));
  expect_close(run(op::average_pool, {plane},
                   {.window = {3, 2},
                    .strides = {2, 2},
                    .pads_begin = {1, 0},
                    .pads_end = {1, 1},
                    .round_up = true,
                    .count_padding = true}),
               reals({1, 1, 3, 3},
                     {-0.833333313, -0.166666672, 0.166666672, 0.333333343, -0.833333313, 0.5, -0.75, -0.25, -0.75}));
  expect_close(run(op::max_pool, {plane},
                   {.window = {3, 2}, .strides = {2, 2}, .pads_begin = {1, 0}, .pads_end = {1, 1}, .round_up = true}),
               reals({1, 1, 3, 3}, {3, 4, 5, 6, 4, 5, 2, 3, -3}));
  expect_close(run(op::average_pool, {plane},
                   {.window = {2, 2},
                    .strides = {2, 3},
                    .dilations = {2, 1},
                    .pads_begin = {0, 1},
                    .pads_end = {1, 1},
                    .round_up = true,
                    .count_padding = true}),
               reals({1, 1, 2, 2}, {-1.75, -2.25, -0.25, -1.5}));
  expect_close(run(op::max_pool, {plane},
                   {.window = {2, 2},
                    .strides = {2, 3},
                    .dilations = {2, 1},
                    .pads_begin = {0, 1},
                    .pads_end = {1, 1},
                    .round_up = true}),
               reals({1, 1, 2, 2}, {-1, 2, -1, 0}));
}

}  // namespace backends_reference_window_test
