#include <collage/run/memory_plan.hpp>

#include <gtest/gtest.h>

#include <iostream>
#include <random>

namespace {

using collage::memory_plan;
using collage::memory_request;

void expect_sound(const std::vector<memory_request>& requests, const memory_plan& plan) {
  ASSERT_EQ(plan.offset.size(), requests.size());
  EXPECT_GE(plan.bytes, plan.lower_bound);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    EXPECT_EQ(plan.offset[i] % 64, 0U);
    EXPECT_LE(plan.offset[i] + requests[i].bytes, plan.bytes);
    for (std::size_t j = 0; j < i; ++j) {
      const bool together =
          requests[i].first_step <= requests[j].last_step && requests[j].first_step <= requests[i].last_step;
      const bool apart =
          plan.offset[i] + requests[i].bytes <= plan.offset[j] || plan.offset[j] + requests[j].bytes <= plan.offset[i];
      EXPECT_TRUE(!together || apart) << "blocks " << i << " and " << j << " live together and overlap";
    }
  }
}

TEST(memory_plan, nothing_needs_nothing) {
  const memory_plan plan = collage::plan_memory({});
  EXPECT_EQ(plan.bytes, 0U);
  EXPECT_EQ(plan.lower_bound, 0U);
}

TEST(memory_plan, a_chain_needs_two_blocks) {
  std::vector<memory_request> chain;
  for (std::uint32_t s = 0; s < 10; ++s) chain.push_back({1000, s, s + 1});
  const memory_plan plan = collage::plan_memory(chain);
  expect_sound(chain, plan);
  EXPECT_EQ(plan.bytes, 2048U);
  EXPECT_EQ(plan.lower_bound, 2048U);
}

TEST(memory_plan, empty_values_and_values_never_read) {
  const std::vector<memory_request> requests{{0, 0, 3}, {1, 1, 1}, {64, 1, 2}, {65, 2, 2}};
  expect_sound(requests, collage::plan_memory(requests));
}

TEST(memory_plan, random_requests_never_overlap) {
  const auto seed = std::random_device{}();
  std::mt19937 engine(seed);
  const auto random = [&] { return static_cast<std::uint32_t>(engine()); };
  std::cout << "seed " << seed << "\n";
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<memory_request> requests(random() % 40);
    for (memory_request& r : requests) {
      r.first_step = random() % 30;
      r.last_step = r.first_step + random() % 8;
      r.bytes = random() % 5000;
    }
    expect_sound(requests, collage::plan_memory(requests));
  }
}

}  // namespace
