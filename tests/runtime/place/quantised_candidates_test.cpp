// Candidates for convolutions of quantised files: those that end before a quantisation are left out, and no plan gets worse.
#include "support/random_numbers.hpp"

#include <collage/backend_set.hpp>
#include <collage/backends/onednn_quantised_patterns.hpp>
#include <collage/backends/onednn_quantised_rules.hpp>
#include <collage/backends/portable_quantised.hpp>
#include <collage/detail/hash.hpp>
#include <collage/ops.hpp>
#include <collage/pattern/single.hpp>
#include <collage/place/candidates.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/space.hpp>
#include <collage/search/exact.hpp>
#include <collage/search/problem.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace place_quantised_candidates_test {

namespace c = collage;
namespace op = collage::ops;
using c::dtype;
using collage_test::random_numbers;

/// Weights of 1x1 convolutions of 4 channels. Their contents are not read.
c::value add_weights(c::graph_builder& g, const std::string& name) {
  const std::shared_ptr<std::byte> bytes = c::allocate_bytes(16);
  std::fill_n(bytes.get(), 16, std::byte{1});
  return g.constant(name.c_str(), {dtype::i8, {4, 4, 1, 1}}, bytes);
}

c::kernel no_kernel() {
  return {"none", [](const c::kernel_call&) {}};
}

/// Kernels on integers: with the matches that end before a quantisation, and without.
template <bool All>
struct integers : c::backend<"integers"> {
  using patterns = c::patterns<c::onednn_patterns::quantised_conv, c::onednn_patterns::quantised_conv_sum>;
  static constexpr c::verdict accepts(const c::detail::onednn::quantised_conv_match& m) {
    return All ? c::detail::onednn::has_kernels(m) : c::detail::onednn::accepts(m);
  }
  static c::kernel build(const c::detail::onednn::quantised_conv_match&, c::build_context&) { return no_kernel(); }
};
/// Each operator alone, and those of portable on integers.
struct others : c::backend<"others"> {
  using patterns = c::patterns<c::single<op::conv>, c::single<op::add>, c::single<op::relu>, c::single<op::clip>,
                               c::single<op::quantize_linear>, c::single<op::dequantize_linear>,
                               c::portable_patterns::quantised_function, c::portable_patterns::quantised_pair>;
  static constexpr c::verdict accepts(const c::any_match& m) { return c::detail::host::accepts_quantised(m); }
  static c::kernel build(const c::any_match&, c::build_context&) { return no_kernel(); }
};

/// Residual blocks as quantisers write them, with any part missing now and then.
c::graph random_network(random_numbers& random) {
  c::graph_builder g;
  int constants = 0;
  const auto number = [&](double of) { return g.scalar(("s" + std::to_string(constants++)).c_str(), of); };
  const auto dequantised = [&](c::value v) { return g(op::dequantize_linear, v, number(0.02)); };
  const auto weights = [&] { return dequantised(add_weights(g, "w" + std::to_string(constants++))); };
  c::value last = g.input("x", {dtype::u8, {1, 4, 3, 3}});
  for (std::int64_t block = random.number(1, 3); block > 0; --block) {
    c::value y = g(op::conv, dequantised(last), weights());
    if (random.chance(0.5)) {
      if (random.chance(0.6)) y = dequantised(g(op::quantize_linear, y, number(0.1), {.type = dtype::u8}));
      y = random.chance(0.5) ? g(op::add, y, dequantised(last)) : g(op::add, dequantised(last), y);
    }
    const std::int64_t activation = random.number(0, 3);
    if (activation == 1) y = g(op::relu, y);
    if (activation == 2) y = g(op::clip, y, number(0), number(6));
    if (activation == 3 && random.chance(0.3)) y = g(op::relu, g(op::relu, y));
    if (random.chance(0.1)) g.output(("y" + std::to_string(block)).c_str(), y);
    last = g(op::quantize_linear, y, number(0.1), {.type = dtype::u8});
  }
  g.output("z", last);
  return g.finish();
}

/// A random number from 0 to 1 for some numbers.
double unit(std::uint64_t seed, std::uint64_t a, std::uint64_t b) {
  return static_cast<double>(c::detail::combine(c::detail::combine(seed, a), b) >> 11) * 0x1p-53;
}

/// What kernels cost: a fused operator takes up to 0.1 ms, and a pass over the data takes more than that.
double cost_of(const c::graph& network, const c::place_candidate& candidate, const std::vector<std::uint32_t>& nodes,
               bool on_integers, std::uint64_t seed) {
  double sum = 0;
  if (!on_integers) return 0.1 + unit(seed, nodes.back(), nodes.size() * 100 + candidate.pattern);
  for (const std::uint32_t n : nodes) {
    const bool is_conv = network.node(n).kind->id == c::kind_id<struct op::conv>;
    sum += (is_conv ? 1 : 0.1) * unit(seed, n, 1);
  }
  return sum;
}

struct listing {
  c::place_candidates candidates;
  c::search::problem problem;
  /// By convolution: its candidates on integers.
  std::map<std::uint32_t, std::size_t> of_conv;
};

template <class Set>
listing list(const c::graph& network, std::uint64_t seed) {
  const c::backend_table table = c::table_of<Set>;
  listing made{c::find_candidates(network, table, std::vector<bool>(table.size(), true)), {}, {}};
  made.problem.nodes = network.nodes().size();
  for (std::uint32_t n = 0; n < network.nodes().size(); ++n)
    for (const std::uint32_t v : network.view().inputs_of(n))
      if (network.at(v).producer >= 0) made.problem.edges.emplace_back(network.at(v).producer, n);
  for (const std::uint32_t v : network.outputs())
    made.problem.outputs.push_back(static_cast<std::uint32_t>(network.at(v).producer));
  for (const c::place_candidate& candidate : made.candidates.list) {
    const std::vector<std::uint32_t>& nodes = made.candidates.groups[candidate.group].nodes;
    const bool on_integers = std::string(table[candidate.backend].name) == "integers";
    made.problem.candidates.push_back(
        {c::search::node_set(nodes), cost_of(network, candidate, nodes, on_integers, seed)});
    for (const std::uint32_t n : nodes)
      if (on_integers && network.node(n).kind->id == c::kind_id<struct op::conv>) ++made.of_conv[n];
  }
  return made;
}

TEST(quantised_candidates, those_that_end_before_a_quantisation_are_in_no_best_plan) {
  random_numbers random;
  std::size_t left_out = 0, taken = 0;
  for (std::uint64_t round = 0; round < 60; ++round) {
    const c::graph network = random_network(random);
    const std::uint64_t seed = random.engine()();
    const listing all = list<c::backend_set<integers<true>, others>>(network, seed);
    const listing kept = list<c::backend_set<integers<false>, others>>(network, seed);
    ASSERT_LE(kept.candidates.list.size(), all.candidates.list.size());
    left_out += all.candidates.list.size() - kept.candidates.list.size();
    const c::search::placement best = c::search::exact(all.problem), found = c::search::exact(kept.problem);
    ASSERT_TRUE(best.optimal && found.optimal);
    EXPECT_NEAR(found.cost_ms, best.cost_ms, 1e-9) << "COLLAGE_SEED=" << random.seed() << ", round " << round;
    for (const std::uint32_t which : found.chosen) {
      const c::place_candidate& candidate = kept.candidates.list[which];
      taken += kept.candidates.groups[candidate.group].nodes.size() > 3 ? 1 : 0;
    }
  }
  EXPECT_GT(left_out, 60U);
  EXPECT_GT(taken, 60U);
}

/// A block of a residual network, whose convolutions have relu, a rounded sum with relu, and nothing after them.
TEST(quantised_candidates, a_convolution_has_few) {
  c::graph_builder g;
  const c::value s = g.scalar("s", 0.02);
  const auto back = [&](c::value v) { return g(op::dequantize_linear, v, s); };
  const auto rounded = [&](c::value v) { return g(op::quantize_linear, v, s, {.type = dtype::u8}); };
  const auto conv = [&](c::value v, const char* w) { return g(op::conv, back(v), back(add_weights(g, w))); };
  const c::value x = g.input("x", {dtype::u8, {1, 4, 3, 3}});
  const c::value a = rounded(g(op::relu, conv(x, "a")));
  const c::value b = rounded(conv(a, "b"));
  g.output("y", rounded(g(op::relu, g(op::add, back(b), back(x)))));
  const c::graph network = g.finish();
  const auto counts = [](const listing& of) {
    std::vector<std::size_t> list;
    for (const auto& [node, count] : of.of_conv) list.push_back(count);
    return list;
  };
  EXPECT_EQ(counts(list<c::backend_set<integers<true>, others>>(network, 1)), (std::vector<std::size_t>{3, 5}));
  EXPECT_EQ(counts(list<c::backend_set<integers<false>, others>>(network, 1)), (std::vector<std::size_t>{1, 2}));
}

}  // namespace place_quantised_candidates_test
