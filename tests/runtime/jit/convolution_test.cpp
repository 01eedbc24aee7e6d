// Convolutions by bilinear algorithms: random and awkward shapes, errors, threads, and what is not finite.
#include "convolution_testing.hpp"

#include "support/effort.hpp"

#include <collage/error.hpp>

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace jit_convolution_test {

using namespace collage_test;
using namespace collage_test::jit_testing;

constexpr int all_shapes = 500;
constexpr int families = static_cast<int>(jit::convolution_family_count);

int family_named(std::string_view name) {
  for (int family = 0; family < families; ++family)
    if (jit::convolution_families[static_cast<std::size_t>(family)].name == name) return family;
  ADD_FAILURE() << "there is no algorithm " << name;
  return 0;
}

convolution_case random_case(random_numbers& random, int family, instruction_set set) {
  convolution_case c;
  c.how.family = family;
  c.how.product = random_configuration(random, set);
  c.how.block = static_cast<int>(random.number(1, random.chance(0.5) ? 8 : 60));
  c.how.partition = random.chance(0.5) ? work_partition::tiles : work_partition::phases;
  if (random.chance(0.3)) c.how.weights = weight_transform_time::on_the_fly;
  c.threads = random.chance(0.75) ? 1 : static_cast<int>(random.number(2, 4));
  const jit::convolution_family& f = c.how.algorithm();
  convolution_shape& s = c.shape;
  s.window_height = f.window_rows;
  s.window_width = f.window_columns;
  s.from = random_layout(random);
  s.to = random_layout(random);
  s.enlargement = f.enlargement;
  const auto pad = [&] { return random.chance(0.4) ? 0 : random.number(0, random.chance(0.8) ? 2 : 9); };
  double work = 0;
  do {
    s.batch = random.chance(0.7) ? 1 : random.number(2, 3);
    s.channels = awkward(random, 50);
    s.outputs = awkward(random, 70);
    s.height = awkward(random, 30);
    s.width = awkward(random, 30);
    s.pad_top = pad();
    s.pad_left = pad();
    s.pad_bottom = pad();
    s.pad_right = pad();
    work = static_cast<double>(s.batch * s.channels * s.outputs * s.output_height() * s.output_width()) *
           static_cast<double>(s.window_height * s.window_width);
  } while (!jit::fault_of(c.how, s).empty() || work > 5e5);
  if (random.chance(0.5)) c.finish = random_finish(random);
  return c;
}

TEST(jit_convolutions, random_shapes) { run_random_cases(cases(all_shapes / 10), random_case); }
TEST(jit_convolutions_long, random_shapes) { run_random_cases(all_shapes, random_case); }

TEST(jit_convolutions, random_shapes_of_the_replica) { run_cases_of_replica(cases(8), random_case); }

/// One pixel, few channels, pads beyond the window, odd sizes: each family, by turns in every `step`th of the nine pairs of layouts.
void run_awkward_shapes(int step) {
  random_numbers random;
  const convolution_shape shapes[] = {
      {.channels = 1,
       .outputs = 1,
       .height = 1,
       .width = 1,
       .pad_top = 9,
       .pad_left = 8,
       .pad_bottom = 7,
       .pad_right = 6},
      {.channels = 3,
       .outputs = 17,
       .height = 1,
       .width = 1,
       .pad_top = 2,
       .pad_left = 2,
       .pad_bottom = 2,
       .pad_right = 2},
      {.channels = 17, .outputs = 3, .height = 13, .width = 7, .pad_top = 0, .pad_left = 9},
      {.channels = 16, .outputs = 33, .height = 11, .width = 9, .pad_bottom = 12},
      {.batch = 3, .channels = 5, .outputs = 31, .height = 5, .width = 15, .pad_top = 1, .pad_right = 1}};
  for (const instruction_set set : {instruction_set::avx512, instruction_set::avx2}) {
    if (!jit::refusal_of(set).empty()) continue;
    const target_scope scope(set);
    int turn = static_cast<int>(random.number(0, step - 1));
    for (int family = 0; family < families; ++family)
      for (const convolution_shape& s : shapes)
        for (int layouts = turn++ % step; layouts < 9 && !testing::Test::HasFailure(); layouts += step) {
          convolution_case c;
          c.how.family = family;
          c.how.product = jit::default_configuration(set);
          c.how.block = 7;
          c.shape = s;
          c.shape.window_height = c.how.algorithm().window_rows;
          c.shape.window_width = c.how.algorithm().window_columns;
          c.shape.from = static_cast<image_layout>(layouts % 3);
          c.shape.to = static_cast<image_layout>(layouts / 3);
          c.shape.enlargement = c.how.algorithm().enlargement;
          run_case(c, random, true);
        }
  }
}

TEST(jit_convolutions, awkward_shapes) { run_awkward_shapes(9 / cases(3)); }
TEST(jit_convolutions_long, awkward_shapes) { run_awkward_shapes(1); }

TEST(jit_convolutions, results_do_not_depend_on_threads) {
  for (int family = 0; family < families; ++family) {
    convolution_configuration how;
    how.family = family;
    how.product = jit::default_configuration(jit::refusal_of(instruction_set::avx512).empty() ? instruction_set::avx512
                                                                                              : instruction_set::avx2);
    const jit::convolution_family& f = how.algorithm();
    simple_run one({.batch = 2,
                    .channels = 19,
                    .outputs = 70,
                    .height = 23,
                    .width = 18,
                    .window_height = f.window_rows,
                    .window_width = f.window_columns,
                    .pad_top = 1,
                    .pad_left = 2,
                    .pad_bottom = 1,
                    .pad_right = 0,
                    .enlargement = f.enlargement},
                   7);
    for (const weight_transform_time weights : {weight_transform_time::once, weight_transform_time::on_the_fly}) {
      how.weights = weights;
      std::vector<float> expected;
      for (const work_partition partition : {work_partition::tiles, work_partition::phases})
        for (const int block : {14, 1000})
          for (int threads = 1; threads <= 4; ++threads) {
            how.partition = partition;
            how.block = block;
            ASSERT_TRUE(one.run(how, threads));
            if (expected.empty()) expected = one.to;
            EXPECT_EQ(expected, one.to) << jit::to_text(how) << ", " << threads << " threads";
          }
    }
  }
}

/// The largest error over the root mean square of the outputs.
double error_of(const convolution_configuration& how, std::int64_t channels) {
  const jit::convolution_family& f = how.algorithm();
  const convolution_shape shape = {.channels = channels,
                                   .outputs = 16,
                                   .height = 16,
                                   .width = 16,
                                   .window_height = f.window_rows,
                                   .window_width = f.window_columns,
                                   .pad_top = 1,
                                   .pad_left = 1,
                                   .pad_bottom = 1,
                                   .pad_right = 1,
                                   .enlargement = f.enlargement};
  simple_run one(shape, 11);
  EXPECT_TRUE(one.run(how, 1));
  const convolution_reference reference(shape, one.from.data(), one.weights.data());
  const image_order out = {shape.to, shape.outputs, shape.output_height(), shape.output_width()};
  double squares = 0, error = 0;
  for (std::int64_t o = 0; o < shape.outputs; ++o)
    for (std::int64_t y = 0; y < out.height; ++y)
      for (std::int64_t x = 0; x < out.width; ++x) {
        const double expected = reference.at(0, o, y, x);
        squares += expected * expected;
        error = std::max(
            error, std::abs(expected - static_cast<double>(one.to[static_cast<std::size_t>(out.at(0, o, y, x))])));
      }
  return error / std::sqrt(squares / static_cast<double>(one.to.size()));
}

/// As `expected_error` states it.
TEST(jit_convolutions, errors_are_as_stated) {
  for (int family = 0; family < families; ++family)
    for (const weight_transform_time weights : {weight_transform_time::once, weight_transform_time::on_the_fly})
      for (const std::int64_t channels : {16, 128}) {
        convolution_configuration how;
        how.family = family;
        how.product = jit::default_configuration(instruction_set::avx512);
        how.weights = weights;
        const jit::convolution_family& f = how.algorithm();
        const double found = error_of(how, channels), stated = f.expected_error(static_cast<std::size_t>(channels));
        std::cout << jit::to_text(how) << ", " << channels << " channels: " << found << " of " << stated << "\n";
        EXPECT_LE(found, stated) << jit::to_text(how) << " with " << channels << " channels";
        EXPECT_GE(found, stated / 50) << jit::to_text(how) << " with " << channels << " channels states too much";
      }
}

/// NaN and infinity anywhere in what a window reads are noticed.
TEST(jit_convolutions, what_is_not_finite_is_noticed) {
  random_numbers random;
  for (int family = 0; family < families; ++family)
    for (int layout = 0; layout < 3; ++layout) {
      convolution_configuration how;
      how.family = family;
      how.product = jit::default_configuration(instruction_set::avx512);
      const jit::convolution_family& f = how.algorithm();
      simple_run one({.channels = 5,
                      .outputs = 3,
                      .height = 9,
                      .width = 10,
                      .window_height = f.window_rows,
                      .window_width = f.window_columns,
                      .pad_top = 1,
                      .pad_left = 1,
                      .pad_bottom = 2,
                      .pad_right = 2,
                      .from = static_cast<image_layout>(layout),
                      .enlargement = f.enlargement},
                     13);
      const image_order in = {one.shape.from, 5, 9, 10};
      ASSERT_TRUE(one.run(how, 1));
      for (int i = 0; i < 20; ++i) {
        float& at =
            one.from[static_cast<std::size_t>(in.at(0, random.number(0, 4), random.number(0, 8), random.number(0, 9)))];
        const float before = at;
        at = i % 2 == 0 ? not_a_number : std::numeric_limits<float>::infinity();
        EXPECT_FALSE(one.run(how, 1)) << f.name;
        at = before;
      }
      ASSERT_TRUE(one.run(how, 1));
    }
}

/// An output may lie exactly where a whole operand lies.
TEST(jit_convolutions, a_residual_in_place) {
  jit::epilogue_maker make;
  const auto biased = make(op::add, {make.product(), make.operand(operand_shape::per_column)});
  make.output(make(op::relu, {make(op::add, {biased, make.operand(operand_shape::whole)})}));
  for (int kind = 0; kind < 6; ++kind) {
    const bool is_enlarged = kind >= 3;
    convolution_configuration how;
    how.family = family_named(is_enlarged ? "up2 F(2,2)" : "F(4,3)");
    how.product = jit::default_configuration(instruction_set::avx512);
    convolution_shape shape = {
        .channels = 4, .outputs = 21, .height = 9, .width = 7, .to = static_cast<image_layout>(kind % 3)};
    if (is_enlarged) {
      shape.height = 4;
      shape.width = 3;
      shape.pad_top = shape.pad_left = 1;
      shape.enlargement = 2;
    }
    simple_run one(shape, 17);
    ASSERT_TRUE(one.run(how, 1));
    std::vector<float> expected = one.to, residual(one.to.size()), bias(21);
    for (std::size_t i = 0; i < residual.size(); ++i) residual[i] = static_cast<float>(i % 41) - 20;
    const image_order out = {shape.to, 21, 7, 5};
    for (std::int64_t c = 0; c < 21; ++c) {
      bias[static_cast<std::size_t>(c)] = static_cast<float>(c);
      for (std::int64_t y = 0; y < 7; ++y)
        for (std::int64_t x = 0; x < 5; ++x) {
          const auto at = static_cast<std::size_t>(out.at(0, c, y, x));
          expected[at] = std::max(0.0F, expected[at] + static_cast<float>(c) + residual[at]);
        }
    }
    auto arena = std::make_shared<jit::code_arena>();
    jit::bilinear_convolution made(how, shape, make.finish(), arena);
    made.bind();
    const float* const operands[] = {bias.data(), residual.data()};
    float* const outputs[] = {residual.data()};
    ASSERT_TRUE(made.run({.from = one.from.data(),
                          .weights = one.packed.data(),
                          .operands = operands,
                          .to = outputs,
                          .scratch = one.scratch.data()}));
    for (std::int64_t c = 0; c < 21; ++c)
      for (std::int64_t i = 0; i < 35; ++i) {
        const auto at = static_cast<std::size_t>(out.at(0, c, i / 5, i % 5));
        EXPECT_EQ(residual[at], expected[at]);
      }
  }
}

/// The enlarged image itself, convolved by another algorithm of the same window.
TEST(jit_convolutions, enlarged_images_are_as_if_they_were_in_memory) {
  random_numbers random;
  for (int family = 0; family < families; ++family) {
    convolution_configuration how;
    how.family = family;
    how.product = jit::default_configuration(instruction_set::avx2);
    const jit::convolution_family& f = how.algorithm();
    if (f.enlargement == 1) continue;
    convolution_shape small = {.channels = 6,
                               .outputs = 9,
                               .height = 5,
                               .width = 8,
                               .window_height = f.window_rows,
                               .window_width = f.window_columns,
                               .enlargement = 2};
    for (int i = 0; i < 10; ++i) {
      small.pad_top = random.number(0, 5);
      small.pad_left = random.number(0, 5);
      small.pad_bottom = random.number(0, 5);
      small.pad_right = random.number(0, 5);
      convolution_shape large = small;
      large.height *= 2;
      large.width *= 2;
      large.enlargement = 1;
      simple_run one(small, 19), other(large, 19);
      other.weights = one.weights;
      const image_order in = {small.from, 6, 5, 8}, out = {large.from, 6, 10, 16};
      for (std::int64_t c = 0; c < 6; ++c)
        for (std::int64_t y = 0; y < 10; ++y)
          for (std::int64_t x = 0; x < 16; ++x)
            other.from[static_cast<std::size_t>(out.at(0, c, y, x))] =
                one.from[static_cast<std::size_t>(in.at(0, c, y / 2, x / 2))];
      convolution_configuration plain = how;
      plain.family = family_named(f.window_rows == 3 ? "F(2,3)" : "F(2,5)");
      ASSERT_TRUE(one.run(how, 1));
      ASSERT_TRUE(other.run(plain, 1));
      ASSERT_EQ(one.to.size(), other.to.size());
      for (std::size_t k = 0; k < one.to.size(); ++k)
        ASSERT_NEAR(static_cast<double>(one.to[k]), static_cast<double>(other.to[k]), 2e-3)
            << f.name << ", pads " << small.pad_top << " " << small.pad_left << ", COLLAGE_SEED=" << random.seed();
    }
  }
}

TEST(jit_convolutions, operands_for_rows_are_refused) {
  jit::epilogue_maker make;
  make.output(make(op::add, {make.product(), make.operand(operand_shape::per_row)}));
  try {
    jit::bilinear_convolution({}, {.height = 3, .width = 3}, make.finish(), nullptr);
    FAIL() << "nothing was refused";
  } catch (const collage::error& e) {
    EXPECT_NE(std::string(e.what()).find("one number for each row of a product"), std::string::npos) << e.what();
  }
}

}  // namespace jit_convolution_test
