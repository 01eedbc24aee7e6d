// The layered layout: boxes that do not overlap, ways that lead down, the same drawing each time.
#include <gtest/gtest.h>
#include <report/layout.hpp>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

namespace report_layout_test {
namespace {

namespace r = collage::report;

/// A chain with shortcuts: each box reads the one before it, and some boxes read others far above.
r::layered_graph chain(std::uint32_t boxes) {
  r::layered_graph g;
  for (std::uint32_t i = 0; i < boxes; ++i) g.boxes.push_back({60.0 + i * 37 % 120, 24.0 + i * 11 % 90});
  for (std::uint32_t i = 0; i + 1 < boxes; ++i) {
    g.nets.push_back({i, {i + 1}});
    if (i % 5 == 0 && i + 7 < boxes) g.nets.back().to.push_back(i + 7);
    if (i % 9 == 0 && i + 20 < boxes) g.nets.push_back({i, {i + 13, i + 20}});
  }
  return g;
}

void expect_sound(const r::layered_graph& g, const r::layered_drawing& d) {
  ASSERT_EQ(d.boxes.size(), g.boxes.size());
  ASSERT_EQ(d.ways.size(), g.nets.size());
  for (std::size_t a = 0; a < g.boxes.size(); ++a) {
    EXPECT_GE(d.boxes[a].x, 0);
    EXPECT_LE(d.boxes[a].x + g.boxes[a].width, d.width);
    EXPECT_LE(d.boxes[a].y + g.boxes[a].height, d.height);
    for (std::size_t b = a + 1; b < g.boxes.size(); ++b) {
      const bool beside =
          d.boxes[a].x + g.boxes[a].width <= d.boxes[b].x || d.boxes[b].x + g.boxes[b].width <= d.boxes[a].x;
      const bool below =
          d.boxes[a].y + g.boxes[a].height <= d.boxes[b].y || d.boxes[b].y + g.boxes[b].height <= d.boxes[a].y;
      EXPECT_TRUE(beside || below) << "boxes " << a << " and " << b << " overlap";
    }
  }
  for (std::size_t n = 0; n < g.nets.size(); ++n) {
    for (const std::uint32_t to : g.nets[n].to) EXPECT_LT(d.boxes[g.nets[n].from].rank, d.boxes[to].rank);
    for (const r::layered_piece& p : d.ways[n]) EXPECT_LE(p.y1, p.y2);
    EXPECT_EQ(d.ways[n].front().y1, d.boxes[g.nets[n].from].y + g.boxes[g.nets[n].from].height);
  }
}

TEST(report_layout, boxes_do_not_overlap_and_ways_lead_down) {
  const r::layered_graph g = chain(120);
  expect_sound(g, r::lay_out(g));
}

TEST(report_layout, an_empty_graph_has_an_empty_drawing) {
  const r::layered_drawing d = r::lay_out({});
  EXPECT_TRUE(d.boxes.empty());
  EXPECT_GT(d.width, 0);
}

TEST(report_layout, a_tree_has_no_crossings) {
  r::layered_graph g;
  for (std::uint32_t i = 0; i < 31; ++i) g.boxes.push_back({50, 30});
  // Readers are numbered against the order of their parents, so that the order of numbers would cross.
  for (std::uint32_t i = 0; i < 15; ++i) g.nets.push_back({i, {2 * i + 2, 2 * i + 1}});
  const r::layered_drawing d = r::lay_out(g);
  EXPECT_EQ(d.crossings, 0U);
  expect_sound(g, d);
}

TEST(report_layout, boxes_in_a_line_stand_below_each_other) {
  r::layered_graph g;
  for (std::uint32_t i = 0; i < 5; ++i) g.boxes.push_back({40.0 + 20 * i, 30});
  for (std::uint32_t i = 0; i < 4; ++i) g.nets.push_back({i, {i + 1}});
  const r::layered_drawing d = r::lay_out(g);
  for (std::size_t i = 1; i < 5; ++i)
    EXPECT_NEAR(d.boxes[i].x + g.boxes[i].width / 2, d.boxes[0].x + g.boxes[0].width / 2, 0.5);
}

TEST(report_layout, the_same_graph_has_the_same_drawing) {
  const r::layered_graph g = chain(200);
  const r::layered_drawing a = r::lay_out(g), b = r::lay_out(g);
  for (std::size_t i = 0; i < g.boxes.size(); ++i) {
    EXPECT_EQ(a.boxes[i].x, b.boxes[i].x);
    EXPECT_EQ(a.boxes[i].y, b.boxes[i].y);
  }
}

TEST(report_layout, too_many_bends_become_straight_ways) {
  const r::layered_graph g = chain(100);
  const r::layered_drawing d = r::lay_out(g, {.most_bends = 10});
  std::size_t straight = 0;
  for (std::size_t n = 0; n < g.nets.size(); ++n) straight += d.is_straight[n];
  EXPECT_GT(straight, 0U);
  EXPECT_LT(straight, g.nets.size());
  EXPECT_EQ(d.boxes.size(), g.boxes.size());
}

TEST(report_layout, two_thousand_boxes_are_drawn_well) {
  const r::layered_graph g = chain(2000);
  expect_sound(g, r::lay_out(g));
}

TEST(report_layout, a_net_that_leads_upwards_is_refused) {
  r::layered_graph g;
  g.boxes = {{10, 10}, {10, 10}};
  g.nets = {{1, {0}}};
  EXPECT_THROW((void)r::lay_out(g), std::invalid_argument);
}

}  // namespace
}  // namespace report_layout_test
