// Texts, faults, memory and proposals of convolutions' configurations.
#include "jit/convolution_configuration.hpp"

#include "support/random_numbers.hpp"

#include <collage/error.hpp>

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace jit_convolution_configuration_test {

namespace jit = collage::detail::jit;
using jit::convolution_configuration;
using jit::convolution_shape;

constexpr const char* example =
    "winograd1 F(4,3) accurate avx512 tile 14x2 unroll 4 prefetch 0 broadcast memory block 56 threads tiles";

constexpr convolution_configuration wrong_block{.block = 0};
static_assert(jit::fault_of(wrong_block) == "the number of tiles of a block is 0, and must be from 1 to 65536");
static_assert(jit::fault_of(convolution_configuration{}, convolution_shape{.height = 2, .width = 2}) ==
              "the output's height is 0, and must be from 1 to 2147483647");
static_assert(jit::fault_of(convolution_configuration{},
                            convolution_shape{.height = 9, .width = 9, .window_height = 5, .window_width = 3}) ==
              "F(2,3) computes windows of 3x3, and not of 5x3");
static_assert(jit::fault_of(convolution_configuration{}, convolution_shape{.height = 3, .width = 3, .pad_left = -1}) ==
              "the pad at the left is -1, and must be from 0 to 2147483647");
constexpr convolution_configuration wrong_slices{.slices = 65537};
static_assert(jit::fault_of(wrong_slices) == "the number of slices of a block is 65537, and must be from 1 to 65536");
static_assert(jit::fault_of(convolution_configuration{},
                            convolution_shape{.height = 3, .width = 3, .depth = 2, .window_depth = 3}) ==
              "the output's depth is 0, and must be from 1 to 2147483647");

constexpr jit::depth_taps taps(std::int64_t depth, std::int64_t window, std::int64_t front, std::int64_t back) {
  return jit::taps_of({.depth = depth, .window_depth = window, .pad_front = front, .pad_back = back});
}
static_assert(taps(1, 1, 0, 0).first == 0 && taps(1, 1, 0, 0).last == 1);
static_assert(taps(9, 3, 1, 1).first == 0 && taps(9, 3, 1, 1).last == 3);
static_assert(taps(2, 3, 1, 1).first == 0 && taps(2, 3, 1, 1).last == 3);
static_assert(taps(1, 3, 1, 1).first == 1 && taps(1, 3, 1, 1).last == 2);  // the others meet pads alone
static_assert(taps(2, 7, 5, 1).first == 4 && taps(2, 7, 5, 1).last == 7);
static_assert(taps(1, 3, 9, 9).first == 0 && taps(1, 3, 9, 9).last == 3);

constexpr convolution_configuration enlarging{.family = 7};
static_assert(std::string_view(enlarging.algorithm().name) == "up2 F(3,2)");
static_assert(jit::fault_of(enlarging, convolution_shape{.height = 9, .width = 9}) ==
              "up2 F(3,2) enlarges images by 2, and not by 1");
static_assert(jit::fault_of(convolution_configuration{},
                            convolution_shape{.height = 9, .width = 9, .enlargement = 2}) ==
              "F(2,3) enlarges images by 1, and not by 2");
static_assert(jit::fault_of(enlarging, convolution_shape{.height = 1, .width = 1, .enlargement = 0}) ==
              "the enlargement is 0, and must be from 1 to 2147483647");
static_assert(jit::fault_of(enlarging, convolution_shape{.height = 1, .width = 2, .pad_left = 1, .enlargement = 2}) ==
              "the output's height is 0, and must be from 1 to 2147483647");

// A pad of 3 is two elements of the small image, of which the first one's upper half is none of the pad's.
constexpr jit::convolution_blocks enlarged_blocks = jit::blocks_of(
    enlarging, {.batch = 2, .height = 5, .width = 8, .pad_top = 3, .pad_bottom = 2, .pad_right = 1, .enlargement = 2});
static_assert(enlarged_blocks.pad_top == 2 && enlarged_blocks.skip_top == 1 && enlarged_blocks.pad_left == 0 &&
              enlarged_blocks.skip_left == 0);
// 13 and 15 outputs, in tiles of 6.
static_assert(enlarged_blocks.down == 3 && enlarged_blocks.across == 3 && enlarged_blocks.tiles == 18);

std::string fault_of_text(const std::string& text) {
  try {
    jit::parse_convolution_configuration(text);
  } catch (const collage::error& e) { return e.what(); }
  return "";
}

TEST(jit_convolution_configurations, texts) {
  const convolution_configuration c = jit::parse_convolution_configuration(example);
  EXPECT_EQ(std::string(c.algorithm().name), "F(4,3) accurate");
  EXPECT_EQ(c.block, 56);
  EXPECT_EQ(jit::to_text(c), example);
  std::set<std::string> texts;
  for (int family = 0; family < static_cast<int>(jit::convolution_family_count); ++family)
    for (const jit::work_partition p : {jit::work_partition::tiles, jit::work_partition::phases})
      for (const int slices : {1, 7})
        for (const auto weights : {jit::weight_transform_time::once, jit::weight_transform_time::on_the_fly}) {
          convolution_configuration x = c;
          x.family = family;
          x.partition = p;
          x.slices = slices;
          x.weights = weights;
          EXPECT_EQ(jit::parse_convolution_configuration(jit::to_text(x)), x);
          texts.insert(jit::to_text(x));
        }
  EXPECT_EQ(texts.size(), 8 * jit::convolution_family_count);
  EXPECT_EQ(*texts.lower_bound(std::string(example) + ' '), std::string(example) + " weights on-the-fly");
  convolution_configuration deep = c;
  deep.slices = 3;
  EXPECT_NE(jit::to_text(deep).find(" block 56 slices 3 threads tiles"), std::string::npos) << jit::to_text(deep);
}

TEST(jit_convolution_configurations, wrong_texts) {
  const auto expect = [](const std::string& from, const std::string& to, const std::string& why) {
    std::string text = example;
    text.replace(text.find(from), from.size(), to);
    EXPECT_NE(fault_of_text(text).find(why), std::string::npos) << fault_of_text(text);
  };
  expect("winograd1", "winograd9", "it is for the generator 'winograd9', and this one is 'winograd1'");
  expect("F(4,3) accurate", "up3 F(4,3)", "there is no algorithm 'up3'");
  expect("F(4,3) accurate", "F(9,3)", "there is no algorithm 'F(9,3)'");
  expect("F(4,3) accurate", "F(4,3)accurate", "there is no algorithm 'F(4,3)accurate'");
  expect("accurate", "exact", "there is no instruction set 'exact'");
  expect("14x2", "30x2", "needs 62 vector registers");
  expect("block 56", "block 0", "the number of tiles of a block is 0");
  expect("block 56", "block 056", "it is written as");
  expect("block 56", "block 56 slices 1", "it is written as");
  expect("block 56", "block 56 slices 0", "the number of slices of a block is 0");
  expect("block 56", "block 56 slices", "the number of slices of a block is 'threads', which is not a number");
  expect("threads tiles", "threads rows", "threads share 'rows', and tiles and phases are known");
  expect("threads tiles", "threads tiles ", "it is written as");
  expect(" threads tiles", "", "it ends where threads is expected");
  expect("threads tiles", "threads tiles weights", "it ends where on-the-fly is expected");
  expect("threads tiles", "threads tiles weights kept", "on-the-fly");
  EXPECT_NE(fault_of_text(""), "");
}

TEST(jit_convolution_configurations, memory) {
  const convolution_configuration c = jit::parse_convolution_configuration(example);
  const convolution_shape s = {.channels = 20, .outputs = 40, .height = 30, .width = 30};
  // 36 products; 40 columns are 32 and a last panel of one vector of 16.
  EXPECT_EQ(jit::weight_bytes(c, s), 4 * 36 * 20 * 48);
  // 7 x 7 tiles, fewer than the block has, with 32 and 48 channels.
  EXPECT_EQ(jit::scratch_bytes(c, s, 1), 4 * 36 * (49 * 32 + 16 + 49 * 48 + 16));
  EXPECT_EQ(jit::scratch_bytes(c, s, 3), 3 * jit::scratch_bytes(c, s, 1));
  convolution_configuration shared = c;
  shared.partition = jit::work_partition::phases;
  EXPECT_EQ(jit::scratch_bytes(shared, s, 3), jit::scratch_bytes(c, s, 1));
  // Nine taps are kept. Each thread transforms a panel of 32 output channels.
  for (const convolution_configuration& once : {c, shared}) {
    convolution_configuration x = once;
    x.weights = jit::weight_transform_time::on_the_fly;
    EXPECT_EQ(jit::weight_bytes(x, s), 4 * 9 * 20 * 48);
    EXPECT_EQ(jit::scratch_bytes(x, s, 3), jit::scratch_bytes(once, s, 3) + 3 * 4 * 36 * (20 * 32 + 16));
  }
}

TEST(jit_convolution_configurations, memory_of_a_depth) {
  convolution_configuration c = jit::parse_convolution_configuration(example);
  c.block = 10;
  c.slices = 4;
  convolution_shape s = {.channels = 20,
                         .outputs = 40,
                         .height = 30,
                         .width = 30,
                         .depth = 9,
                         .window_depth = 3,
                         .pad_front = 1,
                         .pad_back = 1};
  EXPECT_EQ(jit::weight_bytes(c, s), 4 * 36 * 3 * 20 * 48);
  // Four slices of an output read six, and their channels lie without a gap: none is stored for each tap.
  EXPECT_EQ(jit::scratch_bytes(c, s, 1), 4 * 36 * (10 * 6 * 20 + 16 + 10 * 4 * 48 + 16));
  EXPECT_EQ(jit::blocks_of(c, s).blocks(), 5 * 3);
  EXPECT_FALSE(jit::blocks_of(c, s).rows_are_slices);
  // One tile, and more slices than the output has.
  c.block = 1;
  c.slices = 100;
  EXPECT_TRUE(jit::blocks_of(c, s).rows_are_slices);
  EXPECT_EQ(jit::scratch_bytes(c, s, 1), 4 * 36 * ((11 * 20 + 15) / 16 * 16 + 16 + 9 * 48 + 16));
  EXPECT_EQ(jit::blocks_of(c, s).blocks(), 49);
  // A slice alone: the other taps meet pads.
  s.depth = 1;
  EXPECT_EQ(jit::weight_bytes(c, s), 4 * 36 * 20 * 48);
}

TEST(jit_convolution_configurations, proposals) {
  collage_test::random_numbers random;
  for (int i = 0; i < 2000; ++i) {
    convolution_shape s = {.channels = random.number(1, 600),
                           .outputs = random.number(1, 600),
                           .height = random.number(1, 230),
                           .width = random.number(1, 230),
                           .pad_top = 2,
                           .pad_left = 2,
                           .pad_bottom = 2,
                           .pad_right = 2};
    s.window_height = s.window_width = random.chance(0.7) ? 3 : random.number(1, 5);
    if (random.chance(0.5)) {
      s.depth = random.number(1, random.chance(0.5) ? 4 : 70);
      s.window_depth = random.number(1, 5);
      s.pad_front = s.pad_back = 2;
    }
    s.enlargement = random.number(1, 2);
    jit::convolution_machine machine;
    machine.set = random.chance(0.5) ? jit::instruction_set::avx512 : jit::instruction_set::avx2;
    machine.threads = static_cast<int>(random.number(1, 16));
    const std::vector<convolution_configuration> list = jit::propose_configurations(s, machine);
    EXPECT_EQ(list.empty(), s.window_height != 3 && s.window_height != 5) << s.window_height;
    EXPECT_LE(list.size(), jit::most_proposals);
    std::set<std::string> texts;
    for (const convolution_configuration& c : list) {
      EXPECT_TRUE(jit::fault_of(c, s).empty()) << jit::to_text(c) << ": " << jit::fault_of(c, s).text;
      EXPECT_EQ(c.product.set, machine.set);
      EXPECT_TRUE(texts.insert(jit::to_text(c)).second) << "twice: " << jit::to_text(c);
      if (s.output_depth() == 1) { EXPECT_EQ(c.slices, 1); }
    }
  }
}

}  // namespace jit_convolution_configuration_test
