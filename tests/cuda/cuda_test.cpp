// The backends of CUDA: on a device where there is one, and everywhere on a simulated driver and library.
#include <collage/backend_set.hpp>
#include <collage/backends/cublas.hpp>
#include <collage/backends/cuda.hpp>
#include <collage/backends/portable.hpp>
#include <collage/error.hpp>
#include <collage/graph/graph.hpp>
#include <collage/graph/print.hpp>
#include <collage/ops.hpp>
#include <collage/place.hpp>
#include <collage/place/candidates.hpp>
#include <collage/place/measuring.hpp>
#include <collage/run/buffers.hpp>
#include <collage/run/engine.hpp>
#include <collage/run/verify.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "support/engine_check.hpp"
#include "support/random_numbers.hpp"

namespace {

namespace c = collage;
namespace op = collage::ops;

using set = c::backend_set<c::cublas, c::cuda, c::portable>;

/// Tests that need a device, or one that is simulated.
class cuda : public testing::Test {
 protected:
  void SetUp() override {
    const c::probe_result found = c::probe_of<c::cublas>();
    if (found.available) return;
    if (std::getenv("COLLAGE_TEST_MUST_RUN") != nullptr) FAIL() << found.reason;
    GTEST_SKIP() << found.reason;
  }
};

c::value constant(c::graph_builder& g, const c::tensor_type& type, std::mt19937_64& random) {
  const c::tensor numbers(type);
  c::fill_random(numbers, random);
  const auto copy = std::make_shared<c::buffer>(type.bytes());
  if (type.bytes() != 0) std::memcpy(copy->data(), numbers.data(), type.bytes());
  return g.constant("c" + std::to_string(random() % 1000000), type,
                    std::shared_ptr<const std::byte>(copy, copy->data()));
}

std::vector<bool> everyone() { return std::vector<bool>(c::table_of<set>.size(), true); }

TEST_F(cuda, says_what_it_is) {
  const c::probe_result found = c::probe_of<c::cuda>();
  std::cout << "driver " << found.version << ", " << found.details << "; cuBLAS " << c::probe_of<c::cublas>().version
            << "\n";
  EXPECT_NE(std::string(found.details).find("compute capability"), std::string::npos);
}

TEST_F(cuda, bytes_are_copied) {
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{64}, std::size_t{1000003}}) {
    std::vector<std::byte> there(bytes), back(bytes);
    for (std::size_t i = 0; i < bytes; ++i) there[i] = static_cast<std::byte>(i * 7);
    const c::buffer a(bytes, c::cuda_space), b(bytes, c::cuda_space);
    c::copy_bytes(c::cuda_space, a.data(), c::host_space, there.data(), bytes);
    const std::vector<std::byte> before = there;
    std::fill(there.begin(), there.end(), std::byte{0});  // may be changed as soon as the call returns
    c::copy_bytes(c::cuda_space, b.data(), c::cuda_space, a.data(), bytes);
    c::copy_bytes(c::host_space, back.data(), c::cuda_space, b.data(), bytes);
    EXPECT_EQ(back, before);
  }
}

TEST_F(cuda, says_what_is_free_when_there_is_not_enough) {
  try {
    const c::buffer much(std::size_t{1} << 45, c::cuda_space);
    FAIL() << "was allocated";
  } catch (const c::error& e) {
    const std::string text = e.what();
    EXPECT_NE(text.find("out of memory: 33554432 MB are needed in one block; "), std::string::npos) << text;
    EXPECT_NE(text.find(" MB of the device's "), std::string::npos) << text;
  }
}

/// Each of cublas's candidates for a network of one match, checked against the reference. Answers how many were right.
std::size_t check_candidates(const c::graph& network, std::vector<std::string>& refused) {
  const c::place_candidates candidates = c::find_candidates(network, c::table_of<set>, everyone());
  std::size_t right = 0;
  for (std::uint32_t s = 0; s < candidates.structures.size(); ++s) {
    std::vector<std::uint32_t> asked;
    for (std::uint32_t i = 0; i < candidates.list.size(); ++i)
      if (candidates.list[i].group == candidates.structures[s].example && candidates.list[i].backend == 0)
        asked.push_back(i);
    c::packed_weights packed;
    c::measuring_setup how;
    how.packed = &packed;
    how.timing.rounds = 1;
    how.timing.sample_ms = 0.01;
    for (const c::measured_candidate& m : c::measure_candidates(network, c::table_of<set>, candidates, asked, how)) {
      right += m.refusal.empty() ? 1U : 0U;
      if (!m.refusal.empty()) refused.push_back(m.refusal);
    }
  }
  return right;
}

TEST_F(cuda, products_agree_with_the_reference) {
  std::mt19937_64 random(collage_test::fresh_seed());
  std::size_t right = 0;
  for (int trial = 0; trial < 60; ++trial) {
    const auto extent = [&] { return static_cast<std::int64_t>(1 + random() % 40); };
    const std::int64_t m = extent(), n = extent(), k = extent(), batch = static_cast<std::int64_t>(1 + random() % 3);
    const c::ops::matmul_attributes how{random() % 2 == 0, random() % 2 == 0};
    c::shape a = how.transpose_a ? c::shape{k, m} : c::shape{m, k},
             b = how.transpose_b ? c::shape{n, k} : c::shape{k, n};
    const auto with_batch = [&](const c::shape& s) { return c::shape{batch, s[0], s[1]}; };
    if (random() % 3 == 0) a = with_batch(a);
    if (random() % 3 == 0) b = with_batch(b);
    c::graph_builder g;
    const c::value x = g.input("x", {c::dtype::f32, a});
    const c::value y = random() % 2 == 0 ? constant(g, {c::dtype::f32, b}, random) : g.input("y", {c::dtype::f32, b});
    c::value z = g(op::matmul, x, y, how);
    if (random() % 2 == 0) {
      const c::value bias = constant(g, {c::dtype::f32, {n}}, random);
      z = random() % 2 == 0 ? g(op::add, z, bias) : g(op::add, bias, z);
    }
    if (const auto last = random() % 3; last != 0) z = last == 1 ? g(op::relu, z) : g(op::gelu_tanh, z);
    g.output("z", z);
    const c::graph network = g.finish();
    std::vector<std::string> refused;
    const std::size_t found = check_candidates(network, refused);
    EXPECT_GT(found, 0U) << c::to_string(network);
    right += found;
    for (const std::string& why : refused)
      EXPECT_NE(why.find("algorithms for this product"), std::string::npos) << why << "\n" << c::to_string(network);
  }
  EXPECT_GT(right, 200U);
}

TEST_F(cuda, what_is_added_may_be_an_operand_as_well) {
  std::mt19937_64 random(3);
  for (const bool is_first : {false, true}) {
    c::graph_builder g;
    const c::value twice = constant(g, {c::dtype::f32, {1, 6}}, random);
    const c::value other = g.input("x", {c::dtype::f32, is_first ? c::shape{6, 6} : c::shape{4, 1}});
    g.output("z", g(op::add, is_first ? g(op::matmul, twice, other) : g(op::matmul, other, twice), twice));
    std::vector<std::string> refused;
    EXPECT_GT(check_candidates(g.finish(), refused), 3U);
    for (const std::string& why : refused) EXPECT_NE(why.find("algorithms for this product"), std::string::npos) << why;
  }
}

TEST_F(cuda, refuses_what_the_library_cannot_do) {
  const auto refused = [](const c::shape& a, const c::shape& b, const c::shape& bias) {
    std::mt19937_64 random(1);
    c::graph_builder g;
    c::value z = g(op::matmul, g.input("x", {c::dtype::f32, a}), g.input("y", {c::dtype::f32, b}));
    if (bias.rank != 0) z = g(op::add, z, constant(g, {c::dtype::f32, bias}, random));
    g.output("z", z);
    const c::place_candidates found = c::find_candidates(g.finish(), c::table_of<set>, everyone());
    std::string reasons;
    for (const c::place_refusal& r : found.refusals)
      if (r.backend == "cublas") reasons += r.reason + "; ";
    return reasons;
  };
  EXPECT_EQ(refused({3, 4}, {4, 5}, {5}), "");
  EXPECT_NE(refused({3, 4}, {4, 5}, {3, 5}).find("one number per column"), std::string::npos);
  EXPECT_NE(refused({3, 4}, {4, 5}, {1}).find("one number per column"), std::string::npos);
  EXPECT_NE(refused({2, 1, 3, 4}, {3, 4, 5}, {}).find("equal distances"), std::string::npos);
  EXPECT_NE(refused({0, 4}, {4, 5}, {}).find("no elements"), std::string::npos);
  EXPECT_EQ(refused({4}, {4, 5}, {}), "");
  EXPECT_EQ(refused({3, 4}, {4}, {}), "");
}

/// Two layers with a view between them, the first of which has weights of its own.
c::graph two_layers() {
  std::mt19937_64 random(7);
  c::graph_builder g;
  const c::value x = g.input("x", {c::dtype::f32, {4, 32}});
  c::value y = g(op::relu, g(op::add, g(op::matmul, x, constant(g, {c::dtype::f32, {32, 48}}, random)),
                             constant(g, {c::dtype::f32, {48}}, random)));
  y = g(op::reshape, y, {.dims = {8, 24}});
  g.output("z", g(op::matmul, y, constant(g, {c::dtype::f32, {24, 16}}, random)));
  return g.finish();
}

TEST_F(cuda, networks_are_placed_and_run) {
  const c::graph network = two_layers();
  c::place_options o;
  o.threads = 1;
  o.comparing.seconds = 0.05;
  o.measuring.workers = false;
  for (const bool only : {false, true}) {
    if (only)
      for (std::uint32_t n = 0; n < network.nodes().size(); ++n)
        if (network.node(n).kind->id != c::kind_id<struct op::reshape>)
          o.rules.push_back({c::place_rule::action::pin, "cublas", network.node_name(n)});
    const c::plan made = c::place<set>(network, o);
    EXPECT_EQ(c::verify<set>(network, made).why(), "");
    ASSERT_EQ(made.singles.size(), 2U);  // of cublas and portable: cuda runs no operator
    if (!only) continue;
    const c::dynamic_engine engine = c::engine<set>(network, made);
    ASSERT_EQ(made.chosen.conversions.size(), 2U);
    EXPECT_GT(engine.arena_bytes(c::cuda_space), 0U);
    // In several threads, each with a stream of its own.
    collage_test::expect_agreement_in_threads(network, engine, 3, 20);
  }
}

/// Where there is no device, or not all that it takes: a sentence, from whoever lacks it.
TEST(cuda_missing, is_told_in_one_sentence) {
  const char* const expected = std::getenv("COLLAGE_TEST_EXPECTED");
  if (expected == nullptr) GTEST_SKIP() << "asks for an environment that says what is missing";
  const c::probe_result found = c::probe_of<c::cublas>();
  EXPECT_FALSE(found.available);
  EXPECT_NE(std::string(found.reason).find(expected), std::string::npos) << found.reason;
  // Placing goes on without, and says why.
  c::place_report report;
  c::place_options o;
  o.threads = 1;
  o.comparing.seconds = 0.02;
  o.measuring.workers = false;
  const c::placed_plan made = c::place<set>(two_layers(), o);
  report = made.report;
  EXPECT_EQ(c::verify<set>(two_layers(), made).why(), "");
  EXPECT_TRUE(std::ranges::any_of(report.refusals, [&](const c::place_refusal& r) {
    return r.backend == "cublas" && r.reason.find(expected) != std::string::npos;
  }));
  o.backends = {"cublas", "cuda"};
  try {
    report = c::place<set>(two_layers(), o).report;
    FAIL() << "was placed";
  } catch (const c::error& e) { EXPECT_NE(std::string(e.what()).find(expected), std::string::npos) << e.what(); }
}

}  // namespace
