// Texts of convolutions with layouts, and which of them are proposed.
#include "jit/convolution_point.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace jit_convolution_point_test {

namespace jit = collage::detail::jit;
using jit::convolution_point;
using jit::image_layout;

constexpr image_layout layouts[] = {image_layout::plain, image_layout::channels_last, image_layout::blocked_16};

TEST(jit_convolution_points, texts) {
  std::set<std::string> texts;
  for (int family = 0; family < static_cast<int>(jit::convolution_family_count); ++family)
    for (const image_layout from : layouts)
      for (const image_layout to : layouts) {
        const convolution_point p{{.family = family}, from, to};
        const convolution_point::reading read = convolution_point::read(p.text());
        ASSERT_TRUE(read.point.has_value()) << p.text() << ": " << read.fault;
        EXPECT_EQ(*read.point, p);
        EXPECT_LE(p.text().size(), 200U);
        texts.insert(p.text());
      }
  EXPECT_EQ(texts.size(), 9 * jit::convolution_family_count);
}

TEST(jit_convolution_points, wrong_texts) {
  const std::string text = convolution_point{}.text();
  const auto is_refused = [](const std::string& t) {
    const convolution_point::reading read = convolution_point::read(t);
    return !read.point && *read.fault != '\0';
  };
  EXPECT_FALSE(is_refused(text));
  for (std::size_t size = 0; size < text.size(); ++size) EXPECT_TRUE(is_refused(text.substr(0, size))) << size;
  for (const char* more : {" ", " to plain", "x"}) EXPECT_TRUE(is_refused(text + more));
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string other = text;
    other.replace(other.find(from), from.size(), to);
    return other;
  };
  EXPECT_TRUE(is_refused(with("from plain", "from blocked-8")));
  EXPECT_TRUE(is_refused(with("from plain", "by plain")));
  EXPECT_TRUE(is_refused(with("from plain", " from plain")));
  EXPECT_TRUE(is_refused(with("winograd1", "winograd2")));
}

int families_of(const std::vector<convolution_point>& list) {
  std::set<int> families;
  for (const convolution_point& p : list) families.insert(p.how.family);
  return static_cast<int>(families.size());
}

struct convolution_kind {
  std::int64_t window, enlargement;
  int algorithms;
};
constexpr convolution_kind kinds[] = {{3, 1, 4}, {5, 1, 2}, {3, 2, 3}, {5, 2, 3}};

TEST(jit_convolution_points, each_algorithm_is_proposed_in_each_layout) {
  for (const int threads : {1, 2, 16})
    for (const std::int64_t size : {3, 7, 14, 56, 224})
      for (const convolution_kind& kind : kinds) {
        if (kind.window > size) continue;
        const jit::convolution_shape s{.channels = 64,
                                       .outputs = 64,
                                       .height = size,
                                       .width = size,
                                       .window_height = kind.window,
                                       .window_width = kind.window,
                                       .enlargement = kind.enlargement};
        const std::vector<convolution_point> list = jit::promising_points(s, {.threads = threads});
        EXPECT_LE(list.size(), 12U);
        EXPECT_EQ(families_of(list), kind.algorithms);
        for (const image_layout order : layouts) {
          std::vector<convolution_point> of_order = list;
          std::erase_if(of_order, [&](const convolution_point& p) { return p.from != order || p.to != order; });
          EXPECT_EQ(families_of(of_order), families_of(list));
        }
        for (const convolution_point& p : list) EXPECT_TRUE(fault_of(p.how, s).empty());
      }
}

TEST(jit_convolution_points, depths_have_slices_in_their_blocks) {
  for (const int threads : {1, 2, 16})
    for (const std::int64_t depth : {2, 3, 8, 16, 100}) {
      const jit::convolution_shape s{.channels = 64,
                                     .outputs = 64,
                                     .height = 28,
                                     .width = 28,
                                     .depth = depth,
                                     .window_depth = 3,
                                     .pad_front = 1,
                                     .pad_back = 1};
      const std::vector<convolution_point> list = jit::promising_points(s, {.threads = threads});
      EXPECT_EQ(list.size(), 12U);
      EXPECT_EQ(families_of(list), 4);
      for (const convolution_point& p : list) {
        EXPECT_TRUE(fault_of(p.how, s).empty());
        EXPECT_GT(p.how.slices, 1) << p.text();
        EXPECT_EQ(*convolution_point::read(p.text()).point, p);
        // Many slices: products are of all slices of one tile.
        if (threads == 1) { EXPECT_EQ(jit::blocks_of(p.how, s).rows_are_slices, depth >= 16) << p.text(); }
      }
    }
}

/// Where transformed weights are most of what a run reads, they need not be kept.
TEST(jit_convolution_points, weights_on_the_fly_where_they_dominate) {
  const auto on_the_fly = [](std::int64_t channels, std::int64_t size, int threads) {
    std::vector<convolution_point> list = jit::promising_points({.channels = channels,
                                                                 .outputs = channels,
                                                                 .height = size,
                                                                 .width = size,
                                                                 .pad_top = 1,
                                                                 .pad_left = 1,
                                                                 .pad_bottom = 1,
                                                                 .pad_right = 1},
                                                                {.threads = threads});
    EXPECT_EQ(list.size(), 12U);
    std::erase_if(list, [](const convolution_point& p) { return p.how.weights == jit::weight_transform_time::once; });
    return list;
  };
  for (const int threads : {1, 2}) {
    const std::vector<convolution_point> small = on_the_fly(512, 7, threads), middle = on_the_fly(256, 14, threads);
    ASSERT_EQ(small.size(), 3U);
    ASSERT_EQ(middle.size(), 3U);
    EXPECT_STREQ(small[0].how.algorithm().name, "F(2,3)");
    EXPECT_STREQ(middle[0].how.algorithm().name, "F(4,3) accurate");
    for (const convolution_point& p : small) EXPECT_EQ(*convolution_point::read(p.text()).point, p);
    EXPECT_TRUE(on_the_fly(64, 56, threads).empty());
    EXPECT_TRUE(on_the_fly(512, 112, threads).empty());
  }
}

/// A configuration is for any number of threads, so that all of them must find work.
TEST(jit_convolution_points, threads_share_blocks_where_there_are_few) {
  const jit::convolution_shape few{.channels = 512, .outputs = 512, .height = 9, .width = 9};
  const jit::convolution_shape many{.channels = 64, .outputs = 64, .height = 226, .width = 226};
  const auto partition_of = [](const jit::convolution_shape& s, int threads) {
    return jit::promising_points(s, {.threads = threads}).front().how.partition;
  };
  EXPECT_EQ(partition_of(few, 1), jit::work_partition::tiles);
  EXPECT_EQ(partition_of(few, 2), jit::work_partition::phases);
  EXPECT_EQ(partition_of(many, 2), jit::work_partition::tiles);
}

TEST(jit_convolution_points, other_windows_have_none) {
  EXPECT_TRUE(jit::promising_points({.height = 9, .width = 9, .window_height = 7, .window_width = 7}, {}).empty());
  EXPECT_TRUE(jit::promising_points({.height = 9, .width = 9, .enlargement = 3}, {}).empty());
}

}  // namespace jit_convolution_point_test
