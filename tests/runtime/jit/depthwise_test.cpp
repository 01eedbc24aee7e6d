// Depthwise convolutions, alone and with the pointwise one after them, against the definition in double precision, in memory
// between guard pages. Then texts, faults and proposals of their configurations.
#include "testing.hpp"

#include "support/effort.hpp"
#include "support/random_numbers.hpp"

#include "jit/depthwise.hpp"
#include "jit/depthwise_product.hpp"

#include <collage/error.hpp>

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <set>
#include <string>
#include <vector>

namespace jit_depthwise_test {

namespace jit = collage::detail::jit;
using collage_test::cases;
using collage_test::random_numbers;
using collage_test::jit_testing::not_a_number;
using collage_test::jit_testing::walled_floats;
using jit::depthwise_configuration;
using jit::depthwise_partition;
using jit::depthwise_shape;

constexpr const char* example =
    "depthwise1 avx512 tile 14x2 unroll 4 prefetch 0 broadcast memory rows 4 threads blocks";

constexpr depthwise_configuration wrong_rows{.rows = 0};
static_assert(jit::fault_of(wrong_rows) == "the number of rows of a block is 0, and must be from 1 to 65536");
static_assert(jit::fault_of(depthwise_shape{.height = 9, .width = 9, .window = 4}) ==
              "the window has 4 rows, and windows of 3, 5 and 7 are known");
static_assert(jit::fault_of(depthwise_shape{.height = 9, .width = 9, .stride = 3}) ==
              "the stride is 3, and must be 1 or 2");
static_assert(jit::fault_of(depthwise_shape{.height = 9, .width = 2}) ==
              "the window is larger than the image with its pads");
static_assert(jit::fault_of(depthwise_shape{.height = 9, .width = 9, .pad_left = -1}) ==
              "the pad at the left is -1, and must be from 0 to 2147483647");
static_assert(jit::fault_of(depthwise_shape{.height = 1, .width = 1, .pad_top = 2, .pad_left = 2}).empty());

/// Parts of about 64 channels cover all of them once, and none is smaller than a vector.
constexpr bool parts_cover(std::int64_t channels) {
  const jit::depthwise_parts parts = {channels};
  std::int64_t next = 0;
  for (std::int64_t i = 0; i < parts.count(); ++i) {
    if (parts.first(i) != next || (parts.count() > 1 && parts.last(i) - next < 64)) return false;
    next = parts.last(i);
  }
  return next == channels;
}
static_assert(parts_cover(1) && parts_cover(64) && parts_cover(127) && parts_cover(128) && parts_cover(129) &&
              parts_cover(960));

std::string text_of(const depthwise_shape& s) {
  const auto n = [](std::int64_t x) { return std::to_string(x); };
  return "batch " + n(s.batch) + ", " + n(s.channels) + " channels, image " + n(s.height) + "x" + n(s.width) +
         ", window " + n(s.window) + ", stride " + n(s.stride) + ", pads " + n(s.pad_top) + " " + n(s.pad_left) + " " +
         n(s.pad_bottom) + " " + n(s.pad_right);
}

/// Any shape without a fault. Channels are often not a multiple of a vector, and images often smaller than a tile.
depthwise_shape random_shape(random_numbers& random) {
  for (;;) {
    depthwise_shape s;
    s.batch = random.number(1, 2);
    s.channels = random.chance(0.3)   ? random.number(1, 20)
                 : random.chance(0.2) ? random.number(128, 150)
                                      : random.number(16, 60);
    s.height = random.number(1, 17);
    s.width = random.number(1, 17);
    s.window = 3 + 2 * random.number(0, 2);
    s.stride = random.number(1, 2);
    for (std::int64_t* pad : {&s.pad_top, &s.pad_left, &s.pad_bottom, &s.pad_right})
      *pad = random.number(0, random.chance(0.1) ? s.window + 2 : s.window / 2);
    if (jit::fault_of(s).empty()) return s;
  }
}

walled_floats filled(std::int64_t count, bool at_end, random_numbers& random) {
  walled_floats made(static_cast<std::size_t>(count), at_end);
  for (std::int64_t i = 0; i < count; ++i) made[i] = static_cast<float>(random.real(-1, 1));
  return made;
}

/// An image, weights and bias of a shape.
struct operands {
  depthwise_shape shape;
  walled_floats from, weights, bias, window;
  float least = -std::numeric_limits<float>::infinity(), most = std::numeric_limits<float>::infinity();

  operands(const depthwise_shape& s, bool at_end, random_numbers& random)
      : shape(s),
        from(filled(s.batch * s.height * s.width * s.channels, at_end, random)),
        weights(filled(s.channels * s.window * s.window, at_end, random)),
        bias(filled(s.channels, at_end, random)),
        window(static_cast<std::size_t>(s.weight_floats()), at_end) {
    std::fill_n(window.data(), window.size(), not_a_number);
    jit::pack_depthwise(s, weights.data(), window.data());
  }
  /// By the definition, with the bounds applied.
  double at(std::int64_t image, std::int64_t c, std::int64_t y, std::int64_t x) const {
    double sum = static_cast<double>(bias[c]);
    for (std::int64_t i = 0; i < shape.window; ++i)
      for (std::int64_t j = 0; j < shape.window; ++j) {
        const std::int64_t row = y * shape.stride - shape.pad_top + i, column = x * shape.stride - shape.pad_left + j;
        if (row < 0 || row >= shape.height || column < 0 || column >= shape.width) continue;
        sum += static_cast<double>(from[((image * shape.height + row) * shape.width + column) * shape.channels + c]) *
               static_cast<double>(weights[(c * shape.window + i) * shape.window + j]);
      }
    return std::min(std::max(sum, static_cast<double>(least)), static_cast<double>(most));
  }
};

constexpr double room = 64 * 0x1p-23;  // 49 products of numbers up to 1, added one after the other

void check_rows(random_numbers& random) {
  const depthwise_shape s = random_shape(random);
  const bool at_end = random.chance(0.5);
  operands o(s, at_end, random);
  if (random.chance(0.5)) {
    o.least = 0;
    o.most = random.chance(0.5) ? 1 : o.most;
  }
  jit::depthwise_part part{0, s.output_height(), 0, s.channels};
  part.first_row = random.number(0, s.output_height() - 1);
  part.last_row = random.number(part.first_row + 1, s.output_height());
  if (const jit::depthwise_parts parts = {s.channels}; random.chance(0.5)) {
    const std::int64_t i = random.number(0, parts.count() - 1);
    part.first_channel = parts.first(i);
    part.last_channel = parts.last(i);
  }
  const std::int64_t step = s.channels + random.number(0, 3), image = random.number(0, s.batch - 1);
  const std::int64_t pixels = (part.last_row - part.first_row) * s.output_width();
  const walled_floats to(static_cast<std::size_t>((pixels - 1) * step + s.channels), at_end);
  std::fill_n(to.data(), to.size(), not_a_number);
  jit::depthwise_rows(s.window, s.stride)({.shape = s,
                                           .from = o.from.data() + image * s.height * s.width * s.channels,
                                           .weights = o.window.data(),
                                           .bias = o.bias.data(),
                                           .least = o.least,
                                           .most = o.most,
                                           .to = to.data(),
                                           .to_step = step},
                                          part);
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(to.size()); ++i) {
    const std::int64_t pixel = i / step, c = i % step;
    if (c < part.first_channel || c >= part.last_channel) {
      ASSERT_TRUE(std::isnan(to[i])) << text_of(s) << ": something else was written, COLLAGE_SEED=" << random.seed();
      continue;
    }
    ASSERT_NEAR(static_cast<double>(to[i]),
                o.at(image, c, part.first_row + pixel / s.output_width(), pixel % s.output_width()), room)
        << text_of(s) << ", channel " << c << " of pixel " << pixel << ", COLLAGE_SEED=" << random.seed();
  }
}

/// With each target that this processor has.
template <class F>
void for_each_target(const F& f) {
  const std::int64_t all = hwy::SupportedTargets();
  for (std::int64_t rest = all; rest != 0; rest &= rest - 1) {
    hwy::SetSupportedTargetsForTest(rest & -rest);
    f();
  }
  hwy::SetSupportedTargetsForTest(0);
}

void check_rows_of_all(int count) {
  random_numbers random;
  for_each_target([&] {
    for (int i = 0; i < count && !testing::Test::HasFatalFailure(); ++i) check_rows(random);
  });
}

TEST(jit_depthwise, rows_are_those_of_the_definition) { check_rows_of_all(cases(60)); }
TEST(jit_depthwise_long, rows_are_those_of_the_definition) { check_rows_of_all(500); }

TEST(jit_depthwise, nan_reaches_only_the_outputs_that_read_it) {
  random_numbers random;
  const depthwise_shape s{
      .channels = 40, .height = 9, .width = 9, .pad_top = 1, .pad_left = 1, .pad_bottom = 1, .pad_right = 1};
  for_each_target([&] {
    operands o(s, true, random);
    o.least = 0;
    o.most = 6;
    o.from[(4 * 9 + 4) * 40 + 39] = not_a_number;
    o.from[(0 * 9 + 8) * 40 + 3] = -std::numeric_limits<float>::infinity();
    std::vector<float> to(9 * 9 * 40);
    jit::depthwise_rows(3, 1)({.shape = s,
                               .from = o.from.data(),
                               .weights = o.window.data(),
                               .least = 0,
                               .most = 6,
                               .to = to.data(),
                               .to_step = 40},
                              {0, 9, 0, 40});
    for (std::int64_t y = 0; y < 9; ++y)
      for (std::int64_t x = 0; x < 9; ++x)
        for (std::int64_t c = 0; c < 40; ++c) {
          const float found = to[static_cast<std::size_t>((y * 9 + x) * 40 + c)];
          ASSERT_EQ(std::isnan(found), c == 39 && std::abs(y - 4) <= 1 && std::abs(x - 4) <= 1) << y << " " << x;
          if (c == 3 && y <= 1 && x >= 7) { ASSERT_TRUE(found == 0 || found == 6) << found; }
        }
  });
}

/// Both convolutions, with all that may vary.
struct both_case {
  depthwise_configuration how;
  depthwise_shape shape;
  std::int64_t outputs = 1;
  int threads = 1;
  unsigned features = jit::processor_features();
};

/// Relu of the sum of the product and a residual.
jit::epilogue with_residual() {
  jit::epilogue_maker maker;
  const auto sum = maker(collage::ops::add, {maker.product(), maker.operand(jit::operand_shape::whole)});
  maker.output(maker(collage::ops::relu, {sum}));
  return maker.finish();
}

std::vector<float> run_both(const both_case& c, const operands& o, const walled_floats& right,
                            const walled_floats& residual, bool is_residual) {
  const jit::depthwise_product made(c.how, c.shape, c.outputs, {o.least, o.most},
                                    is_residual ? with_residual() : jit::epilogue{}, c.threads, c.features);
  EXPECT_EQ(made.refusal().empty(), c.features != 0);
  const walled_floats packed(made.packed_size(), true), scratch(made.workspace() / 4, true);
  std::fill_n(packed.data(), packed.size(), not_a_number);
  std::fill_n(scratch.data(), scratch.size(), not_a_number);
  made.pack(right.data(), packed.data());
  const walled_floats to(residual.size(), true);
  std::fill_n(to.data(), to.size(), not_a_number);
  jit::depthwise_product_call call;
  call.from = o.from.data();
  call.window = o.window.data();
  call.bias = o.bias.data();
  call.packed = packed.data();
  call.operands[0] = residual.data();
  call.to = to.data();
  call.scratch = scratch.data();
  made.run(call);
  return {to.data(), to.data() + to.size()};
}

void check_both(random_numbers& random, jit::instruction_set set, bool with_code) {
  both_case c;
  c.shape = random_shape(random);
  c.outputs = random.number(1, 70);
  c.how = {collage_test::jit_testing::random_configuration(random, set), static_cast<int>(random.number(1, 20))};
  c.how.product.rows = std::min(c.how.product.rows, 8);  // the residual needs registers, too
  if (!with_code) c.features = 0;
  const bool is_residual = random.chance(0.5);
  operands o(c.shape, true, random);
  if (random.chance(0.5)) o.least = 0;
  const walled_floats right = filled(c.outputs * c.shape.channels, true, random);
  const std::int64_t pixels = c.shape.batch * c.shape.output_height() * c.shape.output_width();
  const walled_floats residual = filled(pixels * c.outputs, true, random);
  const std::string text = jit::to_text(c.how) + ", " + text_of(c.shape) + ", outputs " + std::to_string(c.outputs) +
                           ", COLLAGE_SEED=" + std::to_string(random.seed());
  const std::vector<float> found = run_both(c, o, right, residual, is_residual);
  const std::int64_t width = c.shape.output_width(), area = width * c.shape.output_height();
  for (std::int64_t p = 0; p < pixels; ++p) {
    std::vector<double> left;
    double size = 0;
    for (std::int64_t k = 0; k < c.shape.channels; ++k) {
      left.push_back(o.at(p / area, k, p % area / width, p % width));
      size += std::abs(left.back()) + 1;
    }
    for (std::int64_t n = 0; n < c.outputs; ++n) {
      double sum = 0;
      for (std::int64_t k = 0; k < c.shape.channels; ++k)
        sum += left[static_cast<std::size_t>(k)] * static_cast<double>(right[n * c.shape.channels + k]);
      const std::int64_t i = p * c.outputs + n;
      if (is_residual) sum = std::max(sum + static_cast<double>(residual[i]), 0.0);
      ASSERT_NEAR(static_cast<double>(found[static_cast<std::size_t>(i)]), sum, room * size) << text << " at " << i;
    }
  }
  // Bit by bit the same for every number of threads and both partitions.
  for (const depthwise_partition partition : {depthwise_partition::blocks, depthwise_partition::shared})
    for (int threads = 1; threads <= 3; ++threads) {
      c.how.partition = partition;
      c.threads = threads;
      const std::vector<float> other = run_both(c, o, right, residual, is_residual);
      ASSERT_EQ(std::memcmp(other.data(), found.data(), found.size() * sizeof(float)), 0)
          << text << ", " << threads << " threads, " << jit::to_text(c.how);
    }
}

/// So many cases of each instruction set by generated code, and a third as many by the replica.
void check_both_of_all(int count) {
  random_numbers random;
  for (const auto set : {jit::instruction_set::avx2, jit::instruction_set::avx512})
    for (int i = 0; i < count + count / 3 && !testing::Test::HasFatalFailure(); ++i)
      check_both(random, set, jit::refusal_of(set).empty() && i < count);
}

TEST(jit_depthwise, both_convolutions_are_those_of_the_definition) { check_both_of_all(cases(30)); }
TEST(jit_depthwise_long, both_convolutions_are_those_of_the_definition) { check_both_of_all(500); }

std::string fault_of_text(const std::string& text) {
  try {
    jit::parse_depthwise_configuration(text);
  } catch (const collage::error& e) { return e.what(); }
  return "";
}

TEST(jit_depthwise_configurations, texts) {
  const depthwise_configuration c = jit::parse_depthwise_configuration(example);
  EXPECT_EQ(c.rows, 4);
  EXPECT_EQ(c.partition, depthwise_partition::blocks);
  EXPECT_EQ(jit::to_text(c), example);
  const std::string tile = "depthwise1 avx512 tile 14x2 unroll 4 prefetch 0 broadcast memory rows ";
  EXPECT_EQ(jit::parse_depthwise_configuration(tile + "9 threads shared").partition, depthwise_partition::shared);
  EXPECT_NE(fault_of_text(tile + "0 threads blocks").find("the number of rows of a block is 0"), std::string::npos);
  EXPECT_NE(fault_of_text(tile + "4 threads phases").find("threads have 'phases'"), std::string::npos);
  EXPECT_NE(fault_of_text(tile + "04 threads blocks").find("it is written as '"), std::string::npos);
  EXPECT_NE(fault_of_text(std::string(example) + " 1").find("it is written as '"), std::string::npos);
  EXPECT_NE(fault_of_text("product1 classical avx512").find("it is for the generator 'product1'"), std::string::npos);
}

TEST(jit_depthwise_configurations, proposals_are_few_and_sound) {
  random_numbers random;
  for (int i = 0; i < 200; ++i) {
    depthwise_shape s = random_shape(random);
    if (i % 3 == 0) s.channels = random.number(1, 2000);
    if (i % 4 == 0) s.height = s.width = random.number(20, 300);
    const int threads = static_cast<int>(random.number(1, 8));
    const auto list = jit::promising_configurations(s, random.number(1, 600), random.chance(0.5), threads);
    ASSERT_FALSE(list.empty()) << text_of(s);
    ASSERT_LE(list.size(), 12U) << text_of(s);
    std::set<std::string> texts;
    for (const depthwise_configuration& c : list) {
      EXPECT_TRUE(jit::fault_of(c).empty());
      EXPECT_EQ(jit::parse_depthwise_configuration(jit::to_text(c)), c);
      EXPECT_TRUE(texts.insert(jit::to_text(c)).second) << jit::to_text(c);
      EXPECT_LE(c.rows, s.output_height());
      EXPECT_TRUE(threads > 1 || c.partition == depthwise_partition::blocks);
    }
  }
}

}  // namespace jit_depthwise_test
