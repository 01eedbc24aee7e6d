// Programs compute their matrices, algorithms made of others compute their problems, and the page lists what is shipped.
#include <collage/bilinear/algorithm.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "algorithms.hpp"

namespace bilinear_algorithm_test {

namespace b = collage::bilinear;
using namespace collage_test;

TEST(bilinear_algorithm, programs_compute_matrices) {
  for (const tried_algorithm& a : tried_algorithms()) EXPECT_TRUE(a.programs_compute_matrices()) << a.name;
}

/// Schemes and Toom-Cook algorithms prove this to the compiler; those made of others rest on their parts.
TEST(bilinear_algorithm, made_of_others_still_computes_its_problem) {
  for (const tried_algorithm& a : tried_algorithms()) EXPECT_TRUE(a.computes_its_problem()) << a.name;
}

TEST(bilinear_algorithm, programs_take_no_more_than_the_matrices) {
  for (const tried_algorithm& a : tried_algorithms()) {
    EXPECT_LE(a.counts.additions(), a.plain_counts.additions()) << a.name;
    EXPECT_LE(a.counts.scalings(), a.plain_counts.scalings()) << a.name;
    EXPECT_EQ(a.counts.products, a.rank) << a.name;
  }
}

double sum_of_magnitudes(const std::vector<double>& row) {
  double sum = 0;
  for (const double x : row) sum += std::abs(x);
  return sum;
}

/// The bound follows the programs. None of these has terms that cancel within it, so it must be what the matrices say.
TEST(bilinear_algorithm, growth_is_that_of_the_matrices) {
  for (const tried_algorithm& a : tried_algorithms()) {
    double largest = 0;
    for (const std::vector<double>& row : a.w) {
      double growth = 0;
      for (std::size_t p = 0; p < a.rank; ++p)
        growth += std::abs(row[p]) * sum_of_magnitudes(a.u[p]) * sum_of_magnitudes(a.v[p]);
      largest = std::max(largest, growth);
    }
    EXPECT_NEAR(a.error.growth, largest, 1e-9 * largest) << a.name;
    EXPECT_NEAR(a.error.amplification, a.error.growth / double(a.terms), 1e-9 * largest) << a.name;
  }
}

/// A backend reads a program from front to back.
TEST(bilinear_algorithm, programs_read_values_that_exist) {
  for (const tried_algorithm& a : tried_algorithms()) {
    for (const b::program_view& program : {a.left, a.right, a.output}) {
      for (std::size_t k = 0; k < program.code.size(); ++k) {
        EXPECT_LT(program.code[k].a, program.inputs + k) << a.name;
        EXPECT_LT(program.code[k].b, program.inputs + k) << a.name;
      }
      for (const std::uint16_t value : program.output) EXPECT_LT(value, program.values()) << a.name;
    }
    EXPECT_EQ(a.left.inputs, a.left_size) << a.name;
    EXPECT_EQ(a.right.inputs, a.right_size) << a.name;
    EXPECT_EQ(a.left.output.size(), a.rank) << a.name;
    EXPECT_EQ(a.right.output.size(), a.rank) << a.name;
    EXPECT_EQ(a.output.inputs, a.rank) << a.name;
    EXPECT_EQ(a.output.output.size(), a.output_size) << a.name;
  }
}

// The page ------------------------------------------------------------------------------------------------------------

/// One decimal at most.
std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, value < 100 ? "%.1f" : "%.0f", value);
  std::string shown = text;
  if (shown.ends_with(".0")) shown.resize(shown.size() - 2);
  return shown;
}
std::string three(std::size_t left, std::size_t right, std::size_t output) {
  return std::to_string(left) + " + " + std::to_string(right) + " + " + std::to_string(output);
}

std::string row_of(const tried_algorithm& a) {
  return "| `" + a.name + "` | `" + a.problem + "` | " + std::to_string(a.rank) + " of " +
         std::to_string(a.direct_rank) + " | " +
         three(a.counts.left.additions, a.counts.right.additions, a.counts.output.additions) + " | " +
         three(a.counts.left.scalings, a.counts.right.scalings, a.counts.output.scalings) + " | " +
         number(a.error.growth) + " | " + number(a.error.amplification) + " | " + std::to_string(a.error.depth) +
         " |\n";
}

TEST(bilinear_page, lists_every_algorithm) {
  const auto page = std::filesystem::path(COLLAGE_TEST_DATA).parent_path().parent_path() / "docs" / "bilinear.md";
  std::stringstream text;
  text << std::ifstream(page).rdbuf();
  std::string rows;
  for (const tried_algorithm& a : tried_algorithms())
    if (a.is_listed) rows += row_of(a);
  EXPECT_NE(text.str().find(rows), std::string::npos) << "the table of docs/bilinear.md must have these rows:\n"
                                                      << rows;
}

}  // namespace bilinear_algorithm_test
