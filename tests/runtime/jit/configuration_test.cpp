// Configurations: their texts, their faults.
#include "testing.hpp"

#include <collage/error.hpp>

#include <gtest/gtest.h>

#include <string>

namespace jit_configuration_test {

using namespace collage_test;
using namespace collage_test::jit_testing;

TEST(jit_configurations, texts) {
  const char* const text = "jit1 avx512 tile 14x2 unroll 4 prefetch 8 broadcast memory";
  const configuration c = jit::parse_configuration(text);
  EXPECT_EQ(c.set, instruction_set::avx512);
  EXPECT_EQ(c.rows, 14);
  EXPECT_EQ(c.vectors, 2);
  EXPECT_EQ(c.unroll, 4);
  EXPECT_EQ(c.prefetch, 8);
  EXPECT_EQ(c.broadcast, jit::broadcast_from::memory);
  EXPECT_EQ(jit::to_text(c), text);
  random_numbers random;
  for (int i = 0; i < 200; ++i) {
    const configuration made =
        random_configuration(random, random.chance(0.5) ? instruction_set::avx512 : instruction_set::avx2);
    EXPECT_EQ(jit::parse_configuration(jit::to_text(made)), made);
  }
}

std::string refusal(const std::string& text) {
  try {
    jit::parse_configuration(text);
  } catch (const collage::error& e) {
    EXPECT_EQ(e.exit_code(), 2);
    const std::string start = "the configuration '" + text + "': ", said = e.what();
    EXPECT_TRUE(said.starts_with(start)) << said;
    return said.substr(start.size(), said.find("; a configuration looks like 'jit1 ") - start.size());
  }
  return "no refusal";
}

TEST(jit_configurations, refusals) {
  EXPECT_EQ(refusal(""), "it ends where the generator's version is expected");
  EXPECT_EQ(refusal("jit2 avx512"), "it is for the generator 'jit2', and this one is 'jit1'");
  EXPECT_EQ(refusal("jit1 sse"), "there is no instruction set 'sse': avx512 and avx2 are known");
  EXPECT_EQ(refusal("jit1 avx2 tiles"), "it has 'tiles' where 'tile' is expected");
  EXPECT_EQ(refusal("jit1 avx2 tile 6"), "the tile is '6', and not like '14x2'");
  EXPECT_EQ(refusal("jit1 avx2 tile 6xtwo"), "the number of vectors is 'two', which is not a number");
  EXPECT_EQ(refusal("jit1 avx2 tile 6x-2"), "the number of vectors is '-2', which is not a number");
  EXPECT_EQ(refusal("jit1 avx2 tile 6x99999999999"), "the number of vectors is '99999999999', which is not a number");
  EXPECT_EQ(refusal("jit1 avx2 tile 6x2 unroll"), "it ends where the unrolling is expected");
  EXPECT_EQ(refusal("jit1 avx2 tile 6x2 unroll 4 prefetch 0 broadcast disk"),
            "the broadcast is 'disk', and memory and register are known");
  EXPECT_EQ(refusal("jit1 avx2 tile 6x2 unroll 4 prefetch 0 broadcast memory"),
            "avx2 cannot broadcast from memory within a multiply-add: choose broadcast register");
  EXPECT_EQ(refusal("jit1 avx2 tile 7x2 unroll 4 prefetch 0 broadcast register"),
            "a tile of 7x2 vectors needs 17 vector registers, and avx2 has 16");
  EXPECT_EQ(refusal("jit1 avx512 tile 16x2 unroll 4 prefetch 0 broadcast memory"),
            "a tile of 16x2 vectors needs 34 vector registers, and avx512 has 32");
  EXPECT_EQ(refusal("jit1 avx512 tile 0x2 unroll 4 prefetch 0 broadcast memory"),
            "the number of rows of a tile is 0, and must be from 1 to 30");
  EXPECT_EQ(refusal("jit1 avx512 tile 14x2 unroll 0 prefetch 0 broadcast memory"),
            "the unrolling is 0, and must be from 1 to 64");
  EXPECT_EQ(refusal("jit1 avx512 tile 14x2 unroll 4 prefetch 513 broadcast memory"),
            "the prefetch distance is 513, and must be from 0 to 512");
  EXPECT_NE(refusal("jit1 avx512 tile 14x2 unroll 64 prefetch 0 broadcast register").find("unroll less"),
            std::string::npos);
  for (const char* const text : {"jit1 avx2 tile 06x2 unroll 4 prefetch 0 broadcast register",
                                 "jit1 avx2 tile 6x2 unroll 4 prefetch 0 broadcast register more",
                                 "jit1 avx2 tile 6x2 unroll 4 prefetch 0 broadcast register "})
    EXPECT_EQ(refusal(text), "it is written as 'jit1 avx2 tile 6x2 unroll 4 prefetch 0 broadcast register'");
}

/// A fault is known in constant evaluation.
static_assert(jit::fault_of(jit::configuration{.rows = 16}) ==
              "a tile of 16x2 vectors needs 34 vector registers, and avx512 has 32");

TEST(jit_configurations, plans_are_within_their_bounds) {
  const configuration how = jit::default_configuration(instruction_set::avx2);
  const std::vector one = {store_mode::set};
  const auto refusal_of_plan = [&](int rows, int columns, const std::vector<store_mode>& modes) {
    try {
      jit::make_plan(how, rows, columns, modes);
    } catch (const collage::error& e) { return std::string(e.what()); }
    return std::string("none");
  };
  EXPECT_EQ(refusal_of_plan(6, 16, one), "none");
  EXPECT_EQ(refusal_of_plan(7, 16, one), "jit: a tile of 7 rows and 16 columns is not within 6 rows and 16 columns");
  EXPECT_EQ(refusal_of_plan(6, 0, one), "jit: a tile of 6 rows and 0 columns is not within 6 rows and 16 columns");
  EXPECT_EQ(refusal_of_plan(6, 16, {}), "jit: a kernel has from 1 to 16 destinations, and not 0");
}

}  // namespace jit_configuration_test
