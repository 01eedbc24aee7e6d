// Depthwise convolutions of bytes, by generated code and by the replica, against the definition in whole numbers. Memory is between
// guard pages. Then texts, faults and proposals of their configurations.
#include "testing.hpp"

#include "support/effort.hpp"
#include "support/random_numbers.hpp"

#include "jit/byte_depthwise.hpp"
#include "jit/byte_quads.hpp"
#include "jit/byte_tile.hpp"

#include <collage/error.hpp>

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace jit_byte_depthwise_test {

namespace jit = collage::detail::jit;
using collage::dtype;
using collage_test::cases;
using collage_test::random_numbers;
using collage_test::jit_testing::walled_floats;
using jit::byte_depthwise_configuration;
using jit::byte_depthwise_shape;
using jit::byte_depthwise_terms;

constexpr const char* example = "bytes1 avx512-vnni tile 3x4 order channels";
constexpr byte_depthwise_configuration replica = {.rows = 0, .columns = 0};

static_assert(jit::fault_of(byte_depthwise_configuration{.rows = 5}) == "the tile is 5x4, and must be from 1x1 to 4x8");
static_assert(jit::fault_of(byte_depthwise_shape{.height = 9, .width = 9, .window_rows = 23, .window_columns = 23}) ==
              "the window has 529 elements, and may have 512");
static_assert(jit::fault_of(byte_depthwise_shape{.height = 9, .width = 4, .dilation_columns = 2}) ==
              "the window is larger than the image with its pads");
static_assert(jit::fault_of(byte_depthwise_shape{.height = 9, .width = 9, .stride_rows = 0}) ==
              "the stride over rows is 0, and must be from 1 to 2147483647");

/// The groups of each output have each of its taps once, in the byte of its pixel.
constexpr bool groups_have_all_taps(int taps, int stride) {
  const jit::byte_quads quads(taps, stride);
  for (int output = 0; output < 9; ++output) {
    int next = 0;
    const int shift = quads.shift(output);
    if (!quads.has(shift) || quads.index(shift) + quads.groups(shift) > quads.count()) return false;
    for (int group = 0; group < quads.groups(shift); ++group)
      for (int byte = 0; byte < 4; ++byte) {
        const int tap = jit::byte_quads::tap(shift, group, byte);
        if (tap < 0 || tap >= taps) continue;
        if (tap != next++ || quads.begin(output) + 4 * group + byte != output * stride + tap) return false;
      }
    if (next != taps) return false;
  }
  return true;
}
constexpr bool all_groups_have_all_taps() {
  for (int taps = 1; taps <= 11; ++taps)
    for (int stride = 1; stride <= 4; ++stride)
      if (!groups_have_all_taps(taps, stride)) return false;
  return true;
}
static_assert(all_groups_have_all_taps());
static_assert(jit::byte_quads(3, 1).count() == 2 && jit::byte_quads(3, 2).count() == 1,
              "three taps are one group, and an odd output's is shifted");

/// Bytes that end at a guard page, or begin behind one.
class walled_bytes {
 public:
  walled_bytes(std::int64_t count, bool at_end)
      : memory_(std::make_shared<walled_floats>(static_cast<std::size_t>(count + 3) / 4, at_end)),
        count_(count),
        at_end_(at_end) {}
  std::uint8_t* data() const {
    auto* const begin = reinterpret_cast<std::uint8_t*>(memory_->data());
    return at_end_ ? begin + 4 * memory_->size() - count_ : begin;
  }
  std::int64_t size() const { return count_; }

 private:
  std::shared_ptr<walled_floats> memory_;
  std::int64_t count_;
  bool at_end_;
};

int least_of(dtype type) { return type == dtype::i8 ? -128 : 0; }

struct byte_case {
  byte_depthwise_shape shape;
  byte_depthwise_terms terms;
  std::vector<std::int8_t> weights;
  bool at_end = false;
  walled_bytes from{0, false};

  std::int64_t outputs() const { return shape.batch * shape.output_height() * shape.output_width() * shape.channels; }
  std::string text() const {
    const auto n = [](std::int64_t x) { return std::to_string(x) + " "; };
    return "batch " + n(shape.batch) + "channels " + n(shape.channels) + "image " + n(shape.height) + n(shape.width) +
           "window " + n(shape.window_rows) + n(shape.window_columns) + "strides " + n(shape.stride_rows) +
           n(shape.stride_columns) + "dilations " + n(shape.dilation_rows) + n(shape.dilation_columns) + "pads " +
           n(shape.pad_top) + n(shape.pad_left) + n(shape.pad_bottom) + n(shape.pad_right) + name_of(terms.source) +
           " to " + name_of(terms.result);
  }

  std::int64_t sum(std::int64_t image, std::int64_t y, std::int64_t x, std::int64_t c) const {
    const byte_depthwise_shape& s = shape;
    std::int64_t sum = 0;
    for (std::int64_t i = 0; i < s.window_rows; ++i)
      for (std::int64_t j = 0; j < s.window_columns; ++j) {
        const std::int64_t row = y * s.stride_rows - s.pad_top + i * s.dilation_rows;
        const std::int64_t column = x * s.stride_columns - s.pad_left + j * s.dilation_columns;
        if (row < 0 || row >= s.height || column < 0 || column >= s.width) continue;
        const std::uint8_t byte = from.data()[((image * s.height + row) * s.width + column) * s.channels + c];
        const int number = terms.source == dtype::i8 ? static_cast<std::int8_t>(byte) : byte;
        sum += std::int64_t{number - terms.source_zero} *
               weights[static_cast<std::size_t>((c * s.window_rows + i) * s.window_columns + j)];
      }
    return sum;
  }
};

byte_depthwise_shape random_shape(random_numbers& random) {
  for (;;) {
    byte_depthwise_shape s;
    s.batch = random.number(1, 2);
    s.channels = random.chance(0.3) ? random.number(1, 20) : random.number(1, random.chance(0.3) ? 200 : 90);
    s.height = random.number(1, 17);
    s.width = random.number(1, 17);
    s.window_rows = random.number(1, 7);
    s.window_columns = random.number(1, 7);
    if (random.chance(0.5)) s.window_rows = s.window_columns = 3 + 2 * random.number(0, 1);
    s.stride_rows = random.number(1, random.chance(0.1) ? 5 : 2);
    s.stride_columns = random.chance(0.7) ? s.stride_rows : random.number(1, 3);
    s.dilation_rows = random.chance(0.7) ? 1 : random.number(1, 3);
    s.dilation_columns = random.chance(0.7) ? 1 : random.number(1, 3);
    for (std::int64_t* pad : {&s.pad_top, &s.pad_left, &s.pad_bottom, &s.pad_right})
      *pad = random.number(0, random.chance(0.1) ? 9 : 3);
    if (jit::fault_of(s).empty()) return s;
  }
}

/// With zero points at the ends of their types, and with the largest sums, more often than by chance.
byte_case random_case(random_numbers& random) {
  byte_case c{.shape = random_shape(random), .terms = {}, .weights = {}};
  const bool is_extreme = random.chance(0.2);
  byte_depthwise_terms& t = c.terms;
  t.source = random.chance(0.5) ? dtype::u8 : dtype::i8;
  t.source_zero =
      least_of(t.source) + static_cast<int>(random.chance(0.5) ? random.number(0, 255) : 255 * random.number(0, 1));
  constexpr dtype results[] = {dtype::u8, dtype::i8, dtype::f32};
  t.result = results[random.number(0, 2)];
  t.zero = random.chance(0.3) ? 0 : least_of(t.result) + static_cast<int>(random.number(0, 255));
  for (std::int64_t i = 0; i < c.shape.channels; ++i) {
    t.factor.push_back(
        std::ldexp(static_cast<float>(random.real(-2, 2)), static_cast<int>(random.number(-16, is_extreme ? 40 : -4))));
    t.offset.push_back(static_cast<float>(random.real(-100, 100)));
  }
  if (random.chance(0.5)) t.least = static_cast<float>(random.real(-3, 0));
  if (random.chance(0.5)) t.most = static_cast<float>(random.real(0, 90));
  for (std::int64_t i = 0; i < c.shape.channels * c.shape.taps(); ++i)
    c.weights.push_back(
        static_cast<std::int8_t>(is_extreme ? (random.chance(0.9) ? -128 : 127) : random.number(-128, 127)));
  c.at_end = random.chance(0.5);
  c.from = walled_bytes(c.shape.batch * c.shape.height * c.shape.width * c.shape.channels, c.at_end);
  for (std::int64_t i = 0; i < c.from.size(); ++i)
    c.from.data()[i] = static_cast<std::uint8_t>(is_extreme ? 255 * random.number(0, 1) : random.number(0, 255));
  return c;
}

std::vector<std::uint8_t> run(const byte_case& c, const byte_depthwise_configuration& how, int threads) {
  const jit::byte_depthwise made(how, c.shape, c.terms, c.weights.data(), threads);
  EXPECT_EQ(made.refusal().empty(), !how.is_replica());
  const walled_bytes packed(static_cast<std::int64_t>(jit::byte_depthwise::packed_size(how, c.shape)), true);
  std::fill_n(packed.data(), packed.size(), std::uint8_t{0xA5});
  jit::byte_depthwise::pack(how, c.shape, c.weights.data(), reinterpret_cast<std::byte*>(packed.data()));
  const walled_bytes to(c.outputs() * static_cast<std::int64_t>(size_of(c.terms.result)), c.at_end);
  std::fill_n(to.data(), to.size(), std::uint8_t{0xA5});
  made.run({c.from.data(), reinterpret_cast<const std::byte*>(packed.data()), to.data()});
  return {to.data(), to.data() + to.size()};
}

/// What one result must be. Only its rounding to float32 is not of whole numbers.
float limited(const byte_case& c, std::int64_t sum, std::size_t channel) {
  const float y = std::fma(static_cast<float>(sum), c.terms.factor[channel], c.terms.offset[channel]);
  return std::min(std::max(y, c.terms.least), c.terms.most);
}
void check_definition(const byte_case& c, const std::vector<std::uint8_t>& found, const std::string& text) {
  const byte_depthwise_shape& s = c.shape;
  for (std::int64_t i = 0; i < c.outputs(); ++i) {
    const std::int64_t channel = i % s.channels, pixel = i / s.channels, x = pixel % s.output_width(),
                       y = pixel / s.output_width() % s.output_height(),
                       image = pixel / s.output_width() / s.output_height();
    const std::int64_t sum = c.sum(image, y, x, channel);
    ASSERT_LT(std::abs(sum), std::int64_t{1} << 24U);  // a whole number of float32
    const float wanted = limited(c, sum, static_cast<std::size_t>(channel));
    const auto at = static_cast<std::size_t>(i);
    if (c.terms.result == dtype::f32) {
      float number = 0;
      std::memcpy(&number, found.data() + 4 * at, 4);
      ASSERT_EQ(number, wanted) << text << " at " << i;
      continue;
    }
    const double least = least_of(c.terms.result);
    const double rounded = std::nearbyint(static_cast<double>(wanted)) + c.terms.zero;
    const int number = c.terms.result == dtype::i8 ? static_cast<std::int8_t>(found[at]) : found[at];
    ASSERT_EQ(number, std::clamp(rounded, least, least + 255)) << text << " at " << i;
  }
}

void check_one(random_numbers& random) {
  const byte_case c = random_case(random);
  const std::string text = c.text() + ", COLLAGE_SEED=" + std::to_string(random.seed());
  const std::vector<std::uint8_t> found = run(c, replica, static_cast<int>(random.number(1, 3)));
  check_definition(c, found, text);
  for (const byte_depthwise_configuration& how : jit::promising_configurations(c.shape))
    ASSERT_EQ(run(c, how, static_cast<int>(random.number(1, 3))), found) << text << ", " << jit::to_text(how);
}

TEST(jit_byte_depthwise, results_are_those_of_the_definition) {
  random_numbers random;
  for (int i = 0; i < cases(250) && !testing::Test::HasFatalFailure(); ++i) check_one(random);
}
class jit_byte_depthwise_long : public testing::Test {};
TEST_F(jit_byte_depthwise_long, results_are_those_of_the_definition) {
  random_numbers random;
  for (int i = 0; i < 4000 && !testing::Test::HasFatalFailure(); ++i) check_one(random);
}

/// Processors with no fused multiplication have the same results.
TEST(jit_byte_depthwise, results_are_the_same_on_every_processor) {
  random_numbers random;
  for (int i = 0; i < cases(20); ++i) {
    const byte_case c = random_case(random);
    const std::vector<std::uint8_t> found = run(c, replica, 1);
    const std::int64_t all = hwy::SupportedTargets();
    for (std::int64_t rest = all; rest != 0; rest &= rest - 1) {
      hwy::SetSupportedTargetsForTest(rest & -rest);
      EXPECT_EQ(run(c, replica, 1), found) << c.text() << " " << hwy::TargetName(rest & -rest);
    }
    hwy::SetSupportedTargetsForTest(0);
  }
}

/// Halves, of which the even neighbour is taken before the zero point is added.
TEST(jit_byte_depthwise, ties_are_rounded_to_even) {
  byte_case c{.shape = {.channels = 40, .height = 1, .width = 1, .window_rows = 1, .window_columns = 1},
              .terms = {},
              .weights = std::vector<std::int8_t>(40, 1)};
  c.terms.zero = 7;
  c.terms.factor.assign(40, 0.5F);
  c.terms.offset.assign(40, 0);
  c.from = walled_bytes(40, true);
  for (int i = 0; i < 40; ++i) c.from.data()[i] = static_cast<std::uint8_t>(i);
  for (const byte_depthwise_configuration& how : {replica, jit::promising_configurations(c.shape).front()}) {
    const std::vector<std::uint8_t> found = run(c, how, 1);
    EXPECT_EQ(found[1], 7);
    EXPECT_EQ(found[3], 9);
    EXPECT_EQ(found[5], 9);
    EXPECT_EQ(found[7], 11);
  }
}

/// Registers of the largest tile that is proposed, and windows of which one column of outputs fits alone.
TEST(jit_byte_depthwise, tiles_fit_the_registers) {
  const auto can = [](int rows, int columns, std::int64_t window, std::int64_t stride) {
    return jit::can_generate({.rows = rows, .columns = columns}, {.height = 99,
                                                                  .width = 99,
                                                                  .window_rows = window,
                                                                  .window_columns = window,
                                                                  .stride_rows = stride,
                                                                  .stride_columns = stride});
  };
  EXPECT_TRUE(can(3, 4, 3, 1));
  EXPECT_FALSE(can(4, 4, 3, 1));
  EXPECT_FALSE(can(3, 4, 7, 2));
  EXPECT_TRUE(can(1, 4, 11, 1));
  EXPECT_FALSE(can(1, 1, 12, 1));
  EXPECT_FALSE(can(1, 1, 3, 5));
}

std::string refusal_of_case(const byte_case& c, const byte_depthwise_configuration& how = replica) {
  try {
    const jit::byte_depthwise made(how, c.shape, c.terms, c.weights.data(), 1);
  } catch (const collage::error& e) { return e.what(); }
  return "";
}
TEST(jit_byte_depthwise, terms_that_do_not_fit_are_refused) {
  byte_case right{
      .shape = {.channels = 2, .height = 9, .width = 9}, .terms = {}, .weights = std::vector<std::int8_t>(18, 1)};
  right.terms.factor = right.terms.offset = {1, 1};
  EXPECT_EQ(refusal_of_case(right), "");
  const auto refusal_with = [&](const auto& change) {
    byte_case c = right;
    change(c);
    return refusal_of_case(c);
  };
  EXPECT_NE(refusal_with([](byte_case& c) { c.terms.source = dtype::f32; }).find("reads int8 or uint8"),
            std::string::npos);
  EXPECT_NE(refusal_with([](byte_case& c) { c.terms.zero = -1; }).find("a zero point is not a number of its type"),
            std::string::npos);
  EXPECT_NE(refusal_with([](byte_case& c) { c.terms.offset.pop_back(); }).find("one offset for each channel"),
            std::string::npos);
  EXPECT_NE(refusal_with([](byte_case& c) {
              c.terms.factor[1] = std::numeric_limits<float>::infinity();
            }).find("is not finite"),
            std::string::npos);
  EXPECT_NE(refusal_with([](byte_case& c) {
              c.terms.most = std::numeric_limits<float>::quiet_NaN();
            }).find("the bounds of a clip are not in order"),
            std::string::npos);
  right.shape.stride_rows = 5;
  EXPECT_NE(refusal_of_case(right, {}).find("a window is too large for the tile"), std::string::npos);
}

std::string fault_of_text(const std::string& text) {
  try {
    jit::parse_byte_depthwise_configuration(text);
  } catch (const collage::error& e) { return e.what(); }
  return "";
}
TEST(jit_byte_depthwise, texts_of_configurations) {
  EXPECT_EQ(jit::to_text(byte_depthwise_configuration{}), example);
  EXPECT_EQ(jit::parse_byte_depthwise_configuration(example), byte_depthwise_configuration{});
  EXPECT_EQ(jit::parse_byte_depthwise_configuration("bytes1 replica"), replica);
  EXPECT_EQ(jit::to_text(replica), "bytes1 replica");
  const auto has = [](const std::string& text, const char* part) {
    return fault_of_text(text).find(part) != std::string::npos;
  };
  EXPECT_TRUE(has("bytes1 avx512-vnni tile 0x4 order channels", "a tile has at least one row"));
  EXPECT_TRUE(has("bytes1 avx512-vnni tile 9x4 order channels", "the tile is 9x4"));
  EXPECT_TRUE(has("bytes1 avx512-vnni tile 34 order channels", "is not as in 3x4"));
  EXPECT_TRUE(has("bytes1 avx512-vnni tile 3x4 order rows", "the order is 'rows'"));
  EXPECT_TRUE(has("bytes1 avx512-vnni tile 3x04 order rows", "the order is 'rows'"));
  EXPECT_TRUE(has("bytes1 replica 1", "it is written as 'bytes1 replica'"));
  EXPECT_TRUE(has("product1 classical", "it is for the generator 'product1'"));
}

TEST(jit_byte_depthwise, proposals_are_few_and_sound) {
  random_numbers random;
  for (int i = 0; i < 200; ++i) {
    const byte_depthwise_shape s = random_shape(random);
    EXPECT_EQ(jit::promising_configurations(s, false), std::vector{replica});
    const std::vector<byte_depthwise_configuration> list = jit::promising_configurations(s, true);
    ASSERT_GE(list.size(), 1U);
    ASSERT_LE(list.size(), 6U);
    for (const byte_depthwise_configuration& c : list) {
      EXPECT_EQ(jit::parse_byte_depthwise_configuration(jit::to_text(c)), c);
      EXPECT_TRUE(c.is_replica() || jit::can_generate(c, s));
    }
  }
}

}  // namespace jit_byte_depthwise_test
