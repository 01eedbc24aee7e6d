// The picture of the curve of time over error budgets.
#include <gtest/gtest.h>
#include <collage/place/error_curve.hpp>
#include <report/curve_chart.hpp>

#include <cstddef>
#include <string>

namespace report_curve_chart_test {
namespace {

namespace c = collage;

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t times = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++times;
  return times;
}

c::error_curve falling() {
  c::error_curve curve;
  curve.exact.cost_ms = 8;
  for (int i = 1; i <= 4; ++i) {
    c::error_point p;
    p.most_error = 0.001 * i;
    p.predicted = 0.0009 * i;
    p.cost_ms = 8 - i;
    p.lower_bound_ms = 7.5 - i;
    p.rounded_share = 0.2 * i;
    curve.points.push_back(p);
  }
  return curve;
}

TEST(report_curve_chart, marks_each_budget) {
  const std::string picture = c::report::curve_picture(falling(), "a network");
  EXPECT_TRUE(picture.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""));
  EXPECT_EQ(count(picture, "<circle"), 4U);
  EXPECT_NE(
      picture.find("0.2 % allowed, 0.18 % predicted: 6.000 ms, 40.0 % of the time in lower precision, gap 8.33 %"),
      std::string::npos);
  EXPECT_NE(picture.find(">2.00</text>"), std::string::npos);  // times as fast as float32
  EXPECT_NE(picture.find("float32, 8.000 ms"), std::string::npos);
  EXPECT_EQ(picture.find("nan"), std::string::npos);
  EXPECT_EQ(picture.find("inf"), std::string::npos);
}

TEST(report_curve_chart, names_are_texts) {
  const std::string picture = c::report::curve_picture(falling(), "<script>alert(1)</script>");
  EXPECT_EQ(picture.find("<script"), std::string::npos);
}

TEST(report_curve_chart, may_have_one_point_or_none) {
  c::error_curve curve = falling();
  curve.points.resize(1);
  EXPECT_EQ(count(c::report::curve_picture(curve, "n"), "<circle"), 1U);
  curve.points.clear();
  const std::string picture = c::report::curve_picture(curve, "n");
  EXPECT_EQ(count(picture, "<circle"), 0U);
  EXPECT_NE(picture.find("float32, 8.000 ms"), std::string::npos);
  EXPECT_EQ(picture.find("nan"), std::string::npos);
}

}  // namespace
}  // namespace report_curve_chart_test
