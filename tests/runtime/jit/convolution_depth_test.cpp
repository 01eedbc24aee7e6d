// Convolutions in three dimensions, by two-dimensional algorithms that sum over the slices of the window.
#include "convolution_testing.hpp"

#include "support/effort.hpp"

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <limits>
#include <string>
#include <vector>

namespace jit_convolution_depth_test {

using namespace collage_test;
using namespace collage_test::jit_testing;

constexpr int all_shapes = 500;
constexpr int families = static_cast<int>(jit::convolution_family_count);

double work_of(const convolution_shape& s) {
  return static_cast<double>(s.batch * s.channels * s.outputs) *
         static_cast<double>(s.output_depth() * s.output_height() * s.output_width()) *
         static_cast<double>(s.window_depth * s.window_height * s.window_width);
}

/// Windows may be deeper than the image, and pads larger than the window.
convolution_case random_case(random_numbers& random, int family, instruction_set set) {
  convolution_case c;
  c.how.family = family;
  c.how.product = random_configuration(random, set);
  c.how.block = static_cast<int>(random.number(1, random.chance(0.5) ? 4 : 30));
  c.how.slices = static_cast<int>(random.number(1, random.chance(0.5) ? 3 : 12));
  c.how.partition = random.chance(0.5) ? work_partition::tiles : work_partition::phases;
  if (random.chance(0.3)) c.how.weights = weight_transform_time::on_the_fly;
  c.threads = random.chance(0.75) ? 1 : static_cast<int>(random.number(2, 4));
  const jit::convolution_family& f = c.how.algorithm();
  convolution_shape& s = c.shape;
  s.window_height = f.window_rows;
  s.window_width = f.window_columns;
  s.enlargement = f.enlargement;
  s.from = random_layout(random);
  s.to = random_layout(random);
  const auto pad = [&] { return random.chance(0.4) ? 0 : random.number(0, random.chance(0.8) ? 2 : 7); };
  do {
    s.batch = random.chance(0.7) ? 1 : 2;
    s.channels = awkward(random, 40);
    s.outputs = awkward(random, 50);
    s.depth = awkward(random, 17);
    s.height = awkward(random, 17);
    s.width = awkward(random, 17);
    s.window_depth = random.chance(0.5) ? 3 : random.number(1, 6);
    s.pad_front = pad();
    s.pad_top = pad();
    s.pad_left = pad();
    s.pad_back = pad();
    s.pad_bottom = pad();
    s.pad_right = pad();
  } while (!jit::fault_of(c.how, s).empty() || work_of(s) > 1e6);
  if (random.chance(0.5)) c.finish = random_finish(random);
  return c;
}

TEST(jit_convolutions_in_depth, random_shapes) { run_random_cases(cases(30), random_case); }
TEST(jit_convolutions_in_depth_long, random_shapes) { run_random_cases(all_shapes, random_case); }

TEST(jit_convolutions_in_depth, random_shapes_of_the_replica) { run_cases_of_replica(cases(5), random_case); }

/// One slice, windows deeper than the image, pads beyond the window, primes: by turns in every `step`th of the nine pairs of layouts,
/// and in blocks whose products are of tiles and of slices.
void run_awkward_shapes(int step) {
  random_numbers random;
  const convolution_shape shapes[] = {{.channels = 1,
                                       .outputs = 1,
                                       .height = 1,
                                       .width = 1,
                                       .pad_top = 2,
                                       .pad_left = 4,
                                       .pad_bottom = 3,
                                       .pad_right = 1,
                                       .depth = 1,
                                       .window_depth = 5,
                                       .pad_front = 3,
                                       .pad_back = 7},
                                      {.channels = 19,
                                       .outputs = 17,
                                       .height = 5,
                                       .width = 7,
                                       .depth = 1,
                                       .window_depth = 3,
                                       .pad_front = 1,
                                       .pad_back = 1},
                                      {.channels = 3,
                                       .outputs = 33,
                                       .height = 11,
                                       .width = 5,
                                       .pad_left = 9,
                                       .depth = 2,
                                       .window_depth = 7,
                                       .pad_front = 5,
                                       .pad_back = 1},
                                      {.batch = 2,
                                       .channels = 16,
                                       .outputs = 5,
                                       .height = 7,
                                       .width = 13,
                                       .pad_top = 1,
                                       .depth = 13,
                                       .window_depth = 3,
                                       .pad_front = 1,
                                       .pad_back = 1},
                                      {.batch = 2,
                                       .channels = 18,
                                       .outputs = 7,
                                       .height = 6,
                                       .width = 5,
                                       .pad_right = 1,
                                       .depth = 7,
                                       .window_depth = 4,
                                       .pad_back = 9},
                                      {.channels = 20,
                                       .outputs = 12,
                                       .height = 9,
                                       .width = 8,
                                       .depth = 5,
                                       .window_depth = 1,
                                       .pad_front = 2,
                                       .pad_back = 3}};
  for (const instruction_set set : {instruction_set::avx512, instruction_set::avx2}) {
    if (!jit::refusal_of(set).empty()) continue;
    const target_scope scope(set);
    some_cases takes;
    int turn = static_cast<int>(random.number(0, step - 1));
    for (int family = 0; family < families; ++family)
      for (const convolution_shape& s : shapes)
        for (int layouts = takes() ? turn++ % step : 9; layouts < 9 && !testing::Test::HasFailure(); layouts += step) {
          convolution_case c;
          c.how.family = family;
          c.how.product = jit::default_configuration(set);
          c.how.block = layouts % 2 == 0 ? 1 : 5;
          c.how.slices = 4;
          c.shape = s;
          c.shape.window_height = c.how.algorithm().window_rows;
          c.shape.window_width = c.how.algorithm().window_columns;
          c.shape.enlargement = c.how.algorithm().enlargement;
          c.shape.from = static_cast<image_layout>(layouts % 3);
          c.shape.to = static_cast<image_layout>(layouts / 3);
          run_case(c, random, true);
        }
  }
}

TEST(jit_convolutions_in_depth, awkward_shapes) { run_awkward_shapes(9); }
TEST(jit_convolutions_in_depth_long, awkward_shapes) { run_awkward_shapes(1); }

convolution_configuration default_how(int family) {
  convolution_configuration how;
  how.family = family;
  how.product = jit::default_configuration(jit::refusal_of(instruction_set::avx512).empty() ? instruction_set::avx512
                                                                                            : instruction_set::avx2);
  return how;
}

convolution_shape with_window_of(const convolution_configuration& how, convolution_shape s) {
  s.window_height = how.algorithm().window_rows;
  s.window_width = how.algorithm().window_columns;
  s.enlargement = how.algorithm().enlargement;
  return s;
}

/// Neither threads, nor the partition, nor blocks change a bit.
TEST(jit_convolutions_in_depth, results_do_not_depend_on_threads) {
  for (int family = 0; family < families; ++family) {
    convolution_configuration how = default_how(family);
    simple_run one(with_window_of(how, {.batch = 2,
                                        .channels = 19,
                                        .outputs = 37,
                                        .height = 9,
                                        .width = 10,
                                        .pad_top = 1,
                                        .pad_left = 2,
                                        .depth = 5,
                                        .window_depth = 3,
                                        .pad_front = 1,
                                        .pad_back = 2}),
                   7);
    std::vector<float> expected;
    for (const work_partition partition : {work_partition::tiles, work_partition::phases})
      for (const int block : {2, 1000})
        for (const int slices : {2, 100})
          for (const int threads : {1, 2, 3}) {
            how.partition = partition;
            how.block = block;
            how.slices = slices;
            ASSERT_TRUE(one.run(how, threads));
            if (expected.empty()) expected = one.to;
            EXPECT_EQ(expected, one.to) << jit::to_text(how) << ", " << threads << " threads";
          }
  }
}

/// A window in the middle of pads is the two-dimensional convolution, bit by bit.
TEST(jit_convolutions_in_depth, one_slice_is_two_dimensional) {
  for (int family = 0; family < families; ++family) {
    const convolution_configuration how = default_how(family);
    const convolution_shape flat =
        with_window_of(how, {.channels = 21, .outputs = 35, .height = 10, .width = 13, .pad_top = 1, .pad_left = 1});
    convolution_shape deep = flat;
    deep.window_depth = 3;
    deep.pad_front = deep.pad_back = 1;
    EXPECT_EQ(jit::weight_bytes(how, deep), jit::weight_bytes(how, flat));
    EXPECT_EQ(jit::scratch_bytes(how, deep, 2), jit::scratch_bytes(how, flat, 2));
    simple_run one(deep, 3), other(flat, 3);
    const std::int64_t area = flat.window_height * flat.window_width;
    for (std::int64_t i = 0; i < flat.outputs * flat.channels; ++i)
      for (std::int64_t j = 0; j < area; ++j)
        other.weights[static_cast<std::size_t>(i * area + j)] =
            one.weights[static_cast<std::size_t>((3 * i + 1) * area + j)];
    other.from = one.from;
    ASSERT_TRUE(one.run(how, 1));
    ASSERT_TRUE(other.run(how, 1));
    EXPECT_EQ(one.to, other.to);
  }
}

/// The largest error over the root mean square of the outputs, as `expected_error` states it for all taps of the depth.
TEST(jit_convolutions_in_depth, errors_are_as_stated) {
  for (int family = 0; family < families; ++family) {
    convolution_configuration how = default_how(family);
    how.slices = 6;
    const convolution_shape shape = with_window_of(how, {.channels = 32,
                                                         .outputs = 16,
                                                         .height = 12,
                                                         .width = 12,
                                                         .pad_top = 1,
                                                         .pad_left = 1,
                                                         .pad_bottom = 1,
                                                         .pad_right = 1,
                                                         .depth = 6,
                                                         .window_depth = 3,
                                                         .pad_front = 1,
                                                         .pad_back = 1});
    simple_run one(shape, 11);
    ASSERT_TRUE(one.run(how, 1));
    const convolution_reference reference(shape, one.from.data(), one.weights.data());
    const image_order out = image_order::output_of(shape);
    double squares = 0, error = 0;
    for (std::int64_t o = 0; o < out.channels; ++o)
      for (std::int64_t z = 0; z < out.depth; ++z)
        for (std::int64_t y = 0; y < out.height; ++y)
          for (std::int64_t x = 0; x < out.width; ++x) {
            const double expected = reference.at(0, o, y, x, z);
            squares += expected * expected;
            error = std::max(
                error,
                std::abs(expected - static_cast<double>(one.to[static_cast<std::size_t>(out.at(0, o, y, x, z))])));
          }
    const double found = error / std::sqrt(squares / static_cast<double>(one.to.size()));
    const double stated = how.algorithm().expected_error(static_cast<std::size_t>(3 * shape.channels));
    EXPECT_LE(found, stated) << how.algorithm().name;
    EXPECT_GE(found, stated / 50) << how.algorithm().name << " states too much";
  }
}

/// NaN and infinity in any slice that a window reads are noticed.
TEST(jit_convolutions_in_depth, what_is_not_finite_is_noticed) {
  random_numbers random;
  for (int family = 0; family < families; ++family)
    for (int layout = 0; layout < 3; ++layout) {
      convolution_configuration how = default_how(family);
      how.block = layout == 0 ? 1 : 56;
      how.slices = 3;
      simple_run one(with_window_of(how, {.channels = 5,
                                          .outputs = 3,
                                          .height = 6,
                                          .width = 7,
                                          .pad_top = 1,
                                          .pad_left = 1,
                                          .pad_bottom = 2,
                                          .pad_right = 2,
                                          .depth = 4,
                                          .window_depth = 2,
                                          .pad_front = 1,
                                          .from = static_cast<image_layout>(layout)}),
                     13);
      const image_order in = image_order::input_of(one.shape);
      for (int i = 0; i < 20; ++i) {
        float& at = one.from[static_cast<std::size_t>(
            in.at(0, random.number(0, 4), random.number(0, 5), random.number(0, 6), random.number(0, 3)))];
        const float before = at;
        at = i % 2 == 0 ? not_a_number : std::numeric_limits<float>::infinity();
        EXPECT_FALSE(one.run(how, 1)) << how.algorithm().name;
        at = before;
      }
      ASSERT_TRUE(one.run(how, 1));
    }
}

/// An output may lie exactly where a whole operand lies.
TEST(jit_convolutions_in_depth, a_residual_in_place) {
  jit::epilogue_maker make;
  make.output(make(op::relu, {make(op::add, {make.product(), make.operand(operand_shape::whole)})}));
  for (int layout = 0; layout < 3; ++layout) {
    convolution_configuration how = default_how(1);
    how.slices = 2;
    simple_run one({.channels = 4,
                    .outputs = 21,
                    .height = 9,
                    .width = 7,
                    .depth = 5,
                    .window_depth = 2,
                    .to = static_cast<image_layout>(layout)},
                   17);
    ASSERT_TRUE(one.run(how, 1));
    std::vector<float> expected = one.to, residual(one.to.size());
    for (std::size_t i = 0; i < residual.size(); ++i) {
      residual[i] = static_cast<float>(i % 41) - 20;
      expected[i] = std::max(0.0F, expected[i] + residual[i]);
    }
    jit::bilinear_convolution made(how, one.shape, make.finish(), std::make_shared<jit::code_arena>());
    made.bind();
    const float* const operands[] = {residual.data()};
    float* const outputs[] = {residual.data()};
    ASSERT_TRUE(made.run({.from = one.from.data(),
                          .weights = one.packed.data(),
                          .operands = operands,
                          .to = outputs,
                          .scratch = one.scratch.data()}));
    const image_order out = image_order::output_of(one.shape);
    for (std::int64_t c = 0; c < out.channels; ++c)
      for (std::int64_t z = 0; z < out.depth; ++z)
        for (std::int64_t i = 0; i < out.height * out.width; ++i) {
          const auto at = static_cast<std::size_t>(out.at(0, c, i / out.width, i % out.width, z));
          EXPECT_EQ(residual[at], expected[at]);
        }
  }
}

}  // namespace jit_convolution_depth_test
