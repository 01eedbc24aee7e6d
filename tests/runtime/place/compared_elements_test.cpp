// The elements of large results that are compared with the reference.
#include <collage/shape.hpp>
#include <place/compared_elements.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <set>
#include <vector>

namespace place_compared_elements_test {

namespace c = collage;

std::vector<std::int64_t> selected(const c::shape& dims, std::size_t most, std::uint64_t seed = 1) {
  std::mt19937_64 random(seed);
  return c::detail::select_elements(dims, most, random);
}

TEST(compared_elements, are_all_where_there_are_few) {
  EXPECT_EQ(selected({2, 3}, 6), (std::vector<std::int64_t>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(selected({}, 6), std::vector<std::int64_t>{0});
  EXPECT_EQ(selected({4, 0}, 6), std::vector<std::int64_t>{});
}

TEST(compared_elements, are_at_corners_near_borders_and_everywhere) {
  for (const c::shape& dims :
       {c::shape{1, 64, 112, 113}, c::shape{2, 512, 14, 14}, c::shape{1 << 20}, c::shape{7, 70000}}) {
    constexpr std::size_t most = 4096;
    const std::vector<std::int64_t> at = selected(dims, most);
    EXPECT_TRUE(std::ranges::is_sorted(at));
    EXPECT_EQ(std::ranges::adjacent_find(at), at.end());
    EXPECT_GE(at.front(), 0);
    EXPECT_LT(at.back(), dims.elements());
    EXPECT_LE(at.size(), most + (std::size_t{1} << dims.size()));
    EXPECT_GT(at.size(), most * 3 / 4);
    EXPECT_EQ(at.front(), 0);
    EXPECT_EQ(at.back(), dims.elements() - 1);
    std::int64_t step = dims.elements();
    for (const std::int64_t extent : dims) {
      step /= extent;
      std::set<std::int64_t> indices;
      for (const std::int64_t element : at) indices.insert(element / step % extent);
      if (extent <= static_cast<std::int64_t>(most) / 2) {
        EXPECT_EQ(indices.size(), static_cast<std::size_t>(extent)) << extent;
      }
      for (std::int64_t near = 0; near < std::min<std::int64_t>(extent, 16); ++near) {
        EXPECT_EQ(indices.count(near), 1U);
        EXPECT_EQ(indices.count(extent - 1 - near), 1U);
      }
    }
  }
}

TEST(compared_elements, depend_on_the_seed) {
  const c::shape dims{64, 64, 64};
  EXPECT_EQ(selected(dims, 1000, 7), selected(dims, 1000, 7));
  EXPECT_NE(selected(dims, 1000, 7), selected(dims, 1000, 8));
}

}  // namespace place_compared_elements_test
