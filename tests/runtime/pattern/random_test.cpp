// The matcher against one that tries everything: random patterns with all that the language has, on random graphs.
#include <gtest/gtest.h>

#include <algorithm>
#include <collage/collage.hpp>
#include <collage/graph/explain.hpp>
#include <collage/graph/graph.hpp>
#include <cstdint>
#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "random.hpp"
#include "support/random_numbers.hpp"

namespace pattern_random_test {

using namespace collage_test;

struct tally {
  std::size_t patterns = 0, matches = 0, misses = 0, repeated = 0, alternative = 0, several = 0, given_up = 0,
              unsound = 0;
};

/// What the pattern nodes with names bound.
std::map<way::key, std::uint32_t> bindings(const unrolled& pattern, const c::match_record& record) {
  std::map<way::key, std::uint32_t> bound;
  for (std::size_t i = 0; i < pattern.count; ++i) {
    const c::pattern_node& p = pattern.node[i];
    if (p.capture != 0 && p.role != c::pattern_role::same && record.bound[i] != c::match_record::nothing)
      bound[{p.capture, p.scope}] = record.bound[i];
  }
  return bound;
}

void check_match(const pattern_oracle& oracle, const unrolled& pattern, const c::match_record& record,
                 const std::vector<way>& ways, bool is_ordered) {
  const auto bound = bindings(pattern, record);
  const std::vector<std::uint32_t> nodes(record.node_list().begin(), record.node_list().end());
  const std::vector<std::uint32_t> arguments(record.argument_list().begin(), record.argument_list().end());
  const std::set<std::uint32_t> outputs(record.output_list().begin(), record.output_list().end());
  const auto is_found = [&](const way& w) {
    return w.bound == bound && pattern_oracle::nodes_of(w) == nodes && oracle.arguments_of(w) == arguments &&
           oracle.outputs_of(w) == outputs && w.roots[0] == record.output[0] && outputs.size() == record.outputs;
  };
  ASSERT_TRUE(std::any_of(ways.begin(), ways.end(), is_found)) << "the match is none of the " << ways.size();
  if (!is_ordered) return;
  const auto first =
      std::min_element(ways.begin(), ways.end(), [](const way& a, const way& b) { return a.decisions < b.decisions; });
  ASSERT_TRUE(is_found(*first)) << "another match comes first";
}

bool has_role(const tree& t, c::pattern_role role) {
  return t->role == role ||
         std::any_of(t->children.begin(), t->children.end(), [&](const tree& child) { return has_role(child, role); });
}

void try_pattern(const c::graph& g, const tree& t, const unrolled& pattern, bool is_ordered, tally& count) {
  pattern_oracle oracle(g);
  const auto node_count = static_cast<std::uint32_t>(g.nodes().size());
  ++count.patterns;
  for (std::uint32_t node = 0; node < node_count; ++node) {
    const std::optional<std::vector<way>> ways = oracle.ways_at(t, node);
    if (!ways) continue;
    SCOPED_TRACE("at node " + std::to_string(node));
    c::match_record record;
    c::verdict why;
    const bool matched = c::match_at(g.view(), pattern, node, record, &why);
    c::match_record silent;
    ASSERT_EQ(c::match_at(g.view(), pattern, node, silent), matched) << "asking for the reason changes nothing";
    if (!matched && std::string(why.rule).find("given up") != std::string::npos) {
      ++count.given_up;
      continue;
    }
    ASSERT_EQ(matched, !ways->empty()) << (why.rule == nullptr ? "" : why.rule);
    if (!matched) {
      ++count.misses;
      ASSERT_NE(why.rule, nullptr);
      ASSERT_TRUE(why.pattern_node >= 0 && why.pattern_node < static_cast<std::int32_t>(pattern.count));
      ASSERT_TRUE(why.graph_node >= 0 && why.graph_node < static_cast<std::int32_t>(node_count)) << why.rule;
      ASSERT_LT(why.operand, static_cast<std::int32_t>(g.node(static_cast<std::uint32_t>(why.graph_node)).inputs));
      ASSERT_NE(c::explain_match("random", pattern, g, node).size, 0U);
      continue;
    }
    ++count.matches;
    count.repeated += has_role(t, c::pattern_role::repeat) ? 1 : 0;
    count.alternative += has_role(t, c::pattern_role::either) ? 1 : 0;
    count.several += t->role == c::pattern_role::outputs ? 1 : 0;
    ASSERT_NO_FATAL_FAILURE(check_match(oracle, pattern, record, *ways, is_ordered));
  }
}

tally try_many(std::uint64_t seed, int rounds) {
  generator random(seed);
  tally count;
  for (int round = 0; round < rounds && !testing::Test::HasFatalFailure(); ++round) {
    SCOPED_TRACE("COLLAGE_SEED=" + std::to_string(seed) + ", round " + std::to_string(round));
    const c::graph g = make_random_graph(random);
    for (int i = 0; i < 6; ++i) {
      tree_maker maker(g, random);
      const tree t = maker.make(static_cast<std::uint32_t>(pick(random, g.nodes().size())));
      if (unrolled_size(t) > 64) continue;
      const unrolled pattern = unroll(t);
      using checker = c::detail::pattern_checker<c::pattern_view, c::pattern_node>;
      if (checker(pattern).run(false).rule != nullptr) {
        ++count.unsound;
        continue;
      }
      SCOPED_TRACE(c::describe(c::pattern_view(pattern)).text);
      const bool is_ordered = t->role != c::pattern_role::outputs && !maker.has_previous_twice();
      try_pattern(g, t, pattern, is_ordered, count);
      if (testing::Test::HasFatalFailure()) break;
    }
  }
  return count;
}

void expect_variety(const tally& count, std::size_t least) {
  std::printf(
      "%zu patterns (%zu not sound): %zu matches (%zu with repetitions, %zu with alternatives, %zu with several "
      "outputs), %zu misses, %zu given up\n",
      count.patterns, count.unsound, count.matches, count.repeated, count.alternative, count.several, count.misses,
      count.given_up);
  EXPECT_GT(count.matches, 5 * least);
  EXPECT_GT(count.misses, 5 * least);
  EXPECT_GT(count.repeated, least);
  EXPECT_GT(count.alternative, least);
  EXPECT_GT(count.several, least / 4);
  EXPECT_LT(count.given_up * 100, count.matches) << "giving up is for what nobody writes";
}

/// A new seed for every run; what fails says how to repeat it.
TEST(pattern_random, agrees_with_trying_everything) {
  const std::uint64_t seed = fresh_seed();
  expect_variety(try_many(seed, 2000), 100);
}

TEST(pattern_random_long, agrees_with_trying_everything) { expect_variety(try_many(seed_or(7), 20000), 1000); }

}  // namespace pattern_random_test
