#include <collage/detail/host_memory.hpp>
#include <collage/run/memory_plan.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <vector>

#include "support/own_memory.hpp"
#include "support/random_numbers.hpp"

namespace run_memory_plan_test {

using collage::memory_plan;
using collage::memory_request;
using collage_test::keeps_memory;
using collage_test::own_memory;

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

/// Greedy by size in its plainest form, which no plan may be worse than.
std::size_t greedy_by_size(const std::vector<memory_request>& requests) {
  const auto rounded = [](std::size_t bytes) { return (bytes + 63) / 64 * 64; };
  std::vector<std::size_t> order(requests.size()), offset(requests.size()), placed;
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater(), [&](std::size_t i) { return requests[i].bytes; });
  std::size_t whole = 0;
  for (const std::size_t i : order) {
    std::size_t at = 0;
    const auto hit = [&](std::size_t j) {
      return requests[j].first_step <= requests[i].last_step && requests[i].first_step <= requests[j].last_step &&
             offset[j] < at + rounded(requests[i].bytes) && at < offset[j] + rounded(requests[j].bytes);
    };
    for (auto other = placed.begin(); other != placed.end();) {
      other = std::ranges::find_if(placed, hit);
      if (other != placed.end()) at = offset[*other] + rounded(requests[*other].bytes);
    }
    // The lowest place of all: begin at each end of a block, and take the least that is free.
    std::size_t best = at;
    for (const std::size_t j : placed) {
      at = offset[j] + rounded(requests[j].bytes);
      if (at < best && std::ranges::none_of(placed, hit)) best = at;
    }
    offset[i] = best;
    whole = std::max(whole, best + rounded(requests[i].bytes));
    placed.push_back(i);
  }
  return whole;
}

/// The least that any order of placing into the lowest gap needs, which is the least of all: blocks that lie as low as
/// they can in a best plan are placed so in the order of its offsets. For a few requests.
std::size_t least_of_all(const std::vector<memory_request>& requests) {
  std::vector<std::uint32_t> order(requests.size());
  std::iota(order.begin(), order.end(), 0U);
  collage::detail::block_placer placer(requests, 64);
  std::vector<std::size_t> offset;
  std::size_t least = std::numeric_limits<std::size_t>::max();
  do least = std::min(least, placer.place(order, collage::detail::memory_gap::lowest, offset));
  while (std::ranges::next_permutation(order).found);
  return least;
}

TEST(memory_plan, reaches_the_bound_where_the_largest_first_does_not) {
  // Greedy by size puts both large blocks to the bottom, and the long one that meets the second on top.
  const std::vector<memory_request> requests{{640, 0, 1}, {448, 1, 2}, {512, 2, 3}, {128, 3, 4}, {576, 3, 3}};
  const memory_plan plan = collage::plan_memory(requests);
  expect_sound(requests, plan);
  EXPECT_GT(greedy_by_size(requests), plan.bytes);
  EXPECT_EQ(plan.bytes, plan.lower_bound);
}

TEST(memory_plan, a_residual_network_reaches_the_bound) {
  // Each block of three steps reads what the one before wrote, and adds it at its end.
  std::vector<memory_request> requests;
  for (std::uint32_t b = 0; b < 20; ++b) {
    const std::size_t bytes = std::size_t{1} << (20 - b / 4);
    requests.push_back({bytes, 3 * b, 3 * b + 3});
    requests.push_back({bytes / 4, 3 * b + 1, 3 * b + 2});
    requests.push_back({bytes / 4, 3 * b + 2, 3 * b + 3});
  }
  const memory_plan plan = collage::plan_memory(requests);
  expect_sound(requests, plan);
  EXPECT_EQ(plan.bytes, plan.lower_bound);
}

TEST(memory_plan, few_requests_are_planned_as_well_as_they_can_be) {
  std::mt19937 engine(static_cast<std::uint32_t>(collage_test::fresh_seed()));
  const auto random = [&] { return static_cast<std::uint32_t>(engine()); };
  std::size_t best = 0;
  constexpr std::size_t trials = 200;
  for (std::size_t trial = 0; trial < trials; ++trial) {
    std::vector<memory_request> requests(2 + random() % 6);
    for (memory_request& r : requests) {
      r.first_step = random() % 6;
      r.last_step = r.first_step + random() % 4;
      r.bytes = 64 * (random() % 12);
    }
    const memory_plan plan = collage::plan_memory(requests);
    const std::size_t least = least_of_all(requests);
    EXPECT_GE(plan.bytes, least);
    best += plan.bytes == least ? 1U : 0U;
  }
  EXPECT_GE(best, trials * 98 / 100);
}

/// The processor time of this thread, to which other programs add nothing.
double own_ms() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

TEST(memory_plan, ten_thousand_values_are_planned_at_once) {
  std::mt19937 engine(1);
  const auto random = [&] { return static_cast<std::uint32_t>(engine()); };
  const auto plan_within = [&](const char* what, const std::vector<memory_request>& requests, double most_ms) {
    double least_ms = std::numeric_limits<double>::infinity();
    for (int i = 0; i < 3; ++i) {
      const double start_ms = own_ms();
      const memory_plan plan = collage::plan_memory(requests);
      least_ms = std::min(least_ms, own_ms() - start_ms);
      EXPECT_GE(plan.bytes, plan.lower_bound);
    }
    std::cout << what << ": " << least_ms << " ms\n";
    EXPECT_LT(least_ms, most_ms);  // far from what it takes, since sanitizers may run
  };
  std::vector<memory_request> chain, network, crowd;
  for (std::uint32_t s = 0; s < 10000; ++s) {
    chain.push_back({64 + random() % 5000, s, s + 1});
    network.push_back({64 + random() % 5000, s, s + 1 + (random() % 8 == 0 ? random() % 100 : random() % 4)});
    crowd.push_back({64 + random() % 5000, s % 100, 9900 + s % 100});
  }
  plan_within("a chain", chain, 1000);
  plan_within("a network", network, 2000);
  plan_within("all at the same time", crowd, 5000);
}

/// As `expect_sound`, for many requests: along the steps, each block must fit between those that are alive.
void expect_sound_along_steps(const std::vector<memory_request>& requests, const memory_plan& plan) {
  ASSERT_EQ(plan.offset.size(), requests.size());
  std::vector<std::size_t> starts(requests.size()), ends(requests.size());
  std::iota(starts.begin(), starts.end(), std::size_t{0});
  std::iota(ends.begin(), ends.end(), std::size_t{0});
  std::ranges::sort(starts, {}, [&](std::size_t i) { return requests[i].first_step; });
  std::ranges::sort(ends, {}, [&](std::size_t i) { return requests[i].last_step; });
  std::map<std::size_t, std::size_t> alive;  // ends by begins
  auto ended = ends.begin();
  for (const std::size_t i : starts) {
    for (; requests[*ended].last_step < requests[i].first_step; ++ended) alive.erase(plan.offset[*ended]);
    const std::size_t begin = plan.offset[i], end = begin + requests[i].bytes;
    ASSERT_EQ(begin % 64, 0U);
    ASSERT_LE(end, plan.bytes);
    const auto next = alive.lower_bound(begin);
    ASSERT_TRUE(next == alive.end() || end <= next->first);
    ASSERT_TRUE(next == alive.begin() || std::prev(next)->second <= begin);
    alive.emplace(begin, end);
  }
}

/// Too many pairs of them to visit each.
TEST(memory_plan, blocks_that_live_at_the_same_time) {
  std::vector<memory_request> wide;
  for (std::uint32_t s = 0; s < 50'000; ++s) wide.push_back({64 * (1 + s % 7), s, 50'000});
  const memory_plan all = collage::plan_memory(wide);
  expect_sound_along_steps(wide, all);
  EXPECT_EQ(all.bytes, all.lower_bound);

  collage_test::random_numbers random;
  std::vector<memory_request> some;
  for (int i = 0; i < 40'000; ++i) {
    const auto first = static_cast<std::uint32_t>(random.number(0, 40'000));
    some.push_back({static_cast<std::size_t>(random.number(1, 5000)), first,
                    first + static_cast<std::uint32_t>(random.number(0, 20'000))});
  }
  const memory_plan plan = collage::plan_memory(some);
  expect_sound_along_steps(some, plan);
  EXPECT_LE(static_cast<double>(plan.bytes), 1.3 * static_cast<double>(plan.lower_bound));
  std::cout << static_cast<double>(plan.bytes) / static_cast<double>(plan.lower_bound) << " of the lower bound\n";
}

TEST(memory_plan, random_requests_never_overlap_and_are_never_worse_than_greedy) {
  std::mt19937 engine(static_cast<std::uint32_t>(collage_test::fresh_seed()));
  const auto random = [&] { return static_cast<std::uint32_t>(engine()); };
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<memory_request> requests(random() % 40);
    for (memory_request& r : requests) {
      r.first_step = random() % 30;
      r.last_step = r.first_step + random() % 8;
      r.bytes = random() % 5000;
    }
    const memory_plan plan = collage::plan_memory(requests);
    expect_sound(requests, plan);
    EXPECT_LE(plan.bytes, greedy_by_size(requests));
    EXPECT_EQ(plan.offset, collage::plan_memory(requests).offset);
    // The bound by its definition.
    std::size_t most = 0;
    for (std::uint32_t step = 0; step < 40; ++step) {
      std::size_t alive = 0;
      for (const memory_request& r : requests)
        if (r.first_step <= step && step <= r.last_step) alive += (r.bytes + 63) / 64 * 64;
      most = std::max(most, alive);
    }
    EXPECT_EQ(plan.lower_bound, most);
  }
}

constexpr std::size_t kib = 1024, mib = 1024 * kib;

TEST(host_memory, is_aligned_and_reaches_64_bytes_further) {
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{64}, 128 * kib - 128, 128 * kib - 64,
                                  128 * kib, 2 * mib - 64, 2 * mib, 3 * mib + 5, 33 * mib}) {
    void* const memory = collage::detail::allocate_host(bytes);
    ASSERT_NE(memory, nullptr) << bytes;
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % (bytes >= 2 * mib ? 2 * mib : 64), 0U) << bytes;
    std::memset(memory, 1, bytes + 64);
    collage::detail::release_host(memory, bytes);
  }
  collage::detail::release_host(nullptr, 0);
  collage::detail::release_host(nullptr, mib);
  if (collage::detail::is_watched) return;  // the address sanitizer ends who asks for that much
  constexpr auto all = static_cast<std::size_t>(-1);
  for (const std::size_t less : {std::size_t{0}, std::size_t{64}, std::size_t{128}, 4 * kib, 2 * mib, 3 * mib})
    EXPECT_EQ(collage::detail::allocate_host(all - less), nullptr) << less;
}

#ifdef __linux__
/// Also where the C library would keep blocks of this size for itself, as it does once one has been freed.
TEST(host_memory, is_given_back_to_the_system) {
  if (keeps_memory) GTEST_SKIP() << "the address sanitizer keeps what is freed";
  void* volatile freed = std::malloc(8 * mib);
  std::free(freed);
  std::vector<void*> blocks;
  for (int i = 0; i < 64; ++i) std::memset(blocks.emplace_back(collage::detail::allocate_host(mib)), 1, mib);
  const std::size_t before = own_memory("VmRSS");
  void* const last = blocks.back();
  blocks.pop_back();
  for (void* const block : blocks) collage::detail::release_host(block, mib);
  EXPECT_LE(own_memory("VmRSS") + 60 * mib, before);
  collage::detail::release_host(last, mib);
}
#endif

}  // namespace run_memory_plan_test
