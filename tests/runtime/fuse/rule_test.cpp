// Rules and combinators: the cases of TVM's Collage with the true closures, validity, and closures against brute force.
#include <gtest/gtest.h>

#include <algorithm>
#include <collage/fuse/combine.hpp>
#include <collage/fuse/dataflow.hpp>
#include <collage/fuse/group.hpp>
#include <collage/fuse/rule.hpp>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "graphs.hpp"

namespace fuse_rule_test {

using namespace collage_test;
using fuse::group_list;
using fuse::limits;
using fuse::node_role;
using fuse::node_set;
using kind = fusion_kind;

/// A dataflow whose nodes stand at given numbers; what lies between are nodes of the host that nobody reads.
class numbered {
 public:
  numbered() { x_ = b_.given({4, 0}); }
  static constexpr std::uint32_t x = fuse::none;  ///< as operand: the input

  numbered& node(std::uint32_t number, kind k, const index_list& operands, node_role role = node_role::operation,
                 std::uint32_t outputs = 1) {
    while (b_.node_count() < number) add(kind::opaque, {}, node_role::host, 0);
    index_list values;
    for (const std::uint32_t o : operands) values.push_back(o == x ? x_ : value(o));
    add(k, values, role, outputs);
    return *this;
  }
  numbered& tuple(std::uint32_t number, const index_list& fields) {
    return node(number, kind::tuple, fields, node_role::tuple);
  }
  numbered& projection(std::uint32_t number, std::uint32_t of) {
    return node(number, kind::tuple, {of}, node_role::projection);
  }
  numbered& constant(std::uint32_t number) { return node(number, kind::opaque, {}, node_role::constant); }
  numbered& result(std::uint32_t number, std::uint32_t of) {
    return node(number, kind::opaque, {of}, node_role::host, 0);
  }
  numbered& output(std::uint32_t node) {
    b_.output(value(node));
    return *this;
  }
  fuse::dataflow flow() { return b_.finish(); }

 private:
  std::uint32_t value(std::uint32_t node) const { return first_[node]; }
  void add(kind k, const index_list& operands, node_role role, std::uint32_t outputs) {
    first_.push_back(b_.node(k, operands, std::vector<fuse::value_facts>(outputs, {4, 0}), role));
  }
  fuse::flow_builder b_;
  std::uint32_t x_;
  index_list first_;
};
constexpr std::uint32_t x = numbered::x;

/// abs(x), relu, relu.
fuse::dataflow fixture_s() {
  return numbered()
      .node(3, kind::elementwise, {x})
      .node(4, kind::elementwise, {3})
      .node(5, kind::elementwise, {4})
      .result(6, 5)
      .flow();
}
/// abs, add, and the shape of it.
fuse::dataflow fixture_v() {
  return numbered()
      .node(4, kind::elementwise, {x})
      .node(5, kind::broadcast, {4, x})
      .node(6, kind::opaque, {5})
      .output(6)
      .flow();
}
/// Part of GPT-2's perceptron.
fuse::dataflow fixture_g() {
  return numbered()
      .constant(5)
      .node(6, kind::anchor, {x, 5})
      .constant(7)
      .node(8, kind::broadcast, {6, 7})
      .node(9, kind::injective, {8})
      .node(11, kind::broadcast, {9})
      .node(15, kind::broadcast, {9})
      .node(17, kind::broadcast, {15})
      .node(18, kind::broadcast, {9, 17})
      .node(20, kind::broadcast, {18})
      .node(21, kind::elementwise, {20})
      .node(23, kind::broadcast, {21})
      .node(24, kind::broadcast, {11, 23})
      .result(25, 24)
      .flow();
}
/// A split whose halves are moved about and put together again.
fuse::dataflow fixture_u() {
  return numbered()
      .node(6, kind::injective, {x})
      .projection(7, 6)
      .node(8, kind::injective, {7})
      .node(9, kind::injective, {8})
      .node(10, kind::injective, {9})
      .projection(11, 6)
      .node(12, kind::injective, {11})
      .node(13, kind::injective, {12})
      .node(14, kind::injective, {13})
      .tuple(15, {10, 14})
      .node(16, kind::injective, {15})
      .result(17, 16)
      .flow();
}

template <class... Sets>
sets join(const Sets&... parts) {
  sets all;
  (all.insert(parts.begin(), parts.end()), ...);
  return all;
}

// Rules as a backend declares them: constants of literal types.
constexpr auto to_broadcast = fuse::join_kinds{kind::anchor, kind::broadcast};
constexpr auto to_reduction = fuse::join_kinds{kind::broadcast, kind::reduction};
constexpr auto movers = fuse::join_kinds{kind::injective, kind::injective};
constexpr auto anchors = fuse::by_kind{kind::anchor};
constexpr auto relus = fuse::found_by{[](const fuse::dataflow& flow, group_list& to) {
  to.add(flow, {4});
  to.add(flow, {5});
}};
constexpr auto pairs = fuse::found_by{[](const fuse::dataflow& flow, group_list& to) {
  to.add(flow, {3, 4});
  to.add(flow, {4, 5});
}};
constexpr auto singles_to_broadcast = fuse::combine(anchors, fuse::closure_limits{.depth = 3}, to_broadcast);
constexpr auto tvm_mimic = fuse::combine(anchors, fuse::closure_limits{.depth = 3}, to_broadcast, to_reduction, movers,
                                         fuse::join_constants{});

TEST(fuse_conformance, patterns_on_a_chain) {
  const fuse::dataflow s = fixture_s();
  EXPECT_EQ(sets_of(fuse::list(relus, s)), (sets{{4}, {5}}));
  EXPECT_EQ(sets_of(fuse::list(pairs, s)), (sets{{3, 4}, {4, 5}}));
  constexpr auto abs = fuse::found_by{[](const fuse::dataflow& flow, group_list& to) { to.add(flow, {3}); }};
  EXPECT_EQ(sets_of(fuse::list(fuse::either(abs, relus), s)), (sets{{3}, {4}, {5}}));
}

TEST(fuse_conformance, names_stay_with_groups) {
  const fuse::dataflow s = fixture_s();
  constexpr auto named = fuse::composite("primitive", fuse::composite("relu", relus));
  const group_list found = fuse::list(named, s);
  ASSERT_EQ(sets_of(found), (sets{{4}, {5}}));
  EXPECT_EQ(found[1].parts, (std::vector<fuse::named_part>{{"relu", {5}}, {"primitive", {5}}}));
  const group_list joined = fuse::list(fuse::combine(named, fuse::closure_limits{}, to_broadcast), s);
  ASSERT_EQ(sets_of(joined), (sets{{4}, {5}, {4, 5}}));
  EXPECT_EQ(joined[2].parts.size(), 4u);
  EXPECT_EQ(joined[2].parts[0], (fuse::named_part{"relu", {4}}));
  EXPECT_EQ(fuse::why_invalid(s, joined[2], {}), "");
}

TEST(fuse_conformance, operators_by_kind) {
  EXPECT_EQ(sets_of(fuse::list(anchors, fixture_v())), (sets{{4}, {5}}));
  EXPECT_EQ(sets_of(fuse::list(fuse::host{}, fixture_u())),
            (sets{{0}, {1}, {2}, {3}, {4}, {5}, {7}, {11}, {15}, {17}}));
}

const sets g_singles = {{6}, {8}, {9}, {11}, {15}, {17}, {18}, {20}, {21}, {23}, {24}};
const sets g_pairs = {{11, 24}, {15, 17}, {17, 18}, {18, 20}, {20, 21}, {21, 23}, {23, 24}};
const sets g_joined = join(sets{{6, 8}, {9, 11}, {9, 15}, {9, 11, 15}, {9, 15, 17}, {9, 11, 15, 17}}, g_pairs,
                           sets{{15, 17, 18}, {17, 18, 20}, {18, 20, 21}, {20, 21, 23}, {21, 23, 24}});
const sets g_missed_by_tvm = {{11, 23, 24}, {11, 21, 23, 24}};

TEST(fuse_conformance, gpt2_joined_to_broadcasts) {
  const sets expected = join(g_singles, g_joined, g_missed_by_tvm);
  EXPECT_EQ(expected.size(), 31u);
  EXPECT_EQ(sets_of(fuse::list(singles_to_broadcast, fixture_g())), expected);
}

TEST(fuse_conformance, gpt2_with_constants) {
  constexpr auto rule = fuse::combine(anchors, fuse::closure_limits{}, fuse::join_constants{});
  EXPECT_EQ(sets_of(fuse::list(rule, fixture_g())), join(g_singles, sets{{5, 6}, {7, 8}}));
}

TEST(fuse_conformance, gpt2_with_all_joins) {
  const sets by_tvm = {{5, 6},    {7, 8},       {8, 9},    {8, 9, 11},    {8, 9, 15},
                       {5, 6, 8}, {5, 6, 7, 8}, {7, 8, 9}, {7, 8, 9, 11}, {7, 8, 9, 15}};
  const sets more = {{6, 7, 8}, {8, 9, 11, 15}, {7, 8, 9, 11, 15}};
  const sets expected = join(g_singles, g_joined, g_missed_by_tvm, by_tvm, more);
  EXPECT_EQ(expected.size(), 44u);
  EXPECT_EQ(sets_of(fuse::list(tvm_mimic, fixture_g())), expected);
}

TEST(fuse_conformance, gpt2_only_valid) {
  constexpr auto rule = fuse::only_valid(limits{.exits = 1, .depth = 2}, singles_to_broadcast);
  const sets expected = join(g_singles, g_pairs, sets{{6, 8}, {11, 23, 24}});
  EXPECT_EQ(expected.size(), 20u);
  EXPECT_EQ(sets_of(fuse::list(rule, fixture_g())), expected);
}

TEST(fuse_conformance, tuples) {
  const sets singles = {{6}, {8}, {9}, {10}, {12}, {13}, {14}, {16}};
  constexpr auto fields = fuse::combine(anchors, fuse::closure_limits{}, fuse::join_tuple_fields{});
  EXPECT_EQ(sets_of(fuse::list(fields, fixture_u())), join(singles, sets{{10, 14, 15, 16}}));
  constexpr auto projections = fuse::combine(anchors, fuse::closure_limits{}, fuse::join_projections{});
  EXPECT_EQ(sets_of(fuse::list(projections, fixture_u())), join(singles, sets{{6, 7}, {6, 11}, {6, 7, 11}}));
  // Together with movers: every group for either field meets every group for the other.
  constexpr auto all = fuse::combine(anchors, fuse::closure_limits{}, movers, fuse::join_tuple_fields{});
  sets expected = join(singles, sets{{8, 9}, {9, 10}, {8, 9, 10}, {12, 13}, {13, 14}, {12, 13, 14}});
  for (std::uint32_t left = 8; left <= 10; ++left) {
    for (std::uint32_t right = 12; right <= 14; ++right) {
      std::vector<std::uint32_t> group;
      for (std::uint32_t n = left; n <= 10; ++n) group.push_back(n);
      for (std::uint32_t n = right; n <= 14; ++n) group.push_back(n);
      group.push_back(15);
      group.push_back(16);
      expected.insert(group);
    }
  }
  EXPECT_EQ(sets_of(fuse::list(all, fixture_u())), expected);
}

std::string judge(const fuse::dataflow& flow, const node_set& nodes, const limits& allowed) {
  return fuse::why_invalid(flow, {nodes, fuse::kind_of_group(flow, nodes), {}}, allowed);
}

TEST(fuse_valid, one_operator_and_two_apart) {
  const fuse::dataflow flow = numbered()
                                  .node(6, kind::broadcast, {x})
                                  .node(7, kind::broadcast, {x})
                                  .node(8, kind::broadcast, {6, 7})
                                  .output(8)
                                  .flow();
  EXPECT_EQ(judge(flow, {6}, {.exits = 1, .depth = 1}), "");
  EXPECT_EQ(judge(flow, {6, 7}, {.exits = 1}), "has 2 exits, and the limit is 1");
  EXPECT_EQ(judge(flow, {6, 7}, {.exits = 2}), "");
}

TEST(fuse_valid, convolution_and_what_follows) {
  const fuse::dataflow flow = numbered()
                                  .node(8, kind::anchor, {x})
                                  .node(9, kind::broadcast, {8, x})
                                  .node(10, kind::elementwise, {9})
                                  .output(10)
                                  .flow();
  EXPECT_EQ(judge(flow, {8, 9, 10}, {.exits = 1, .depth = 3}), "");
  EXPECT_EQ(judge(flow, {8, 9, 10}, {.exits = 1, .depth = 2}), "has a path of 3 nodes, and the limit is 2");
  EXPECT_EQ(judge(flow, {8, 9, 10}, {.nodes = 2}), "has 3 nodes, and the limit is 2");
  EXPECT_EQ(judge(flow, {8, 9, 10}, {.arguments = 1}), "");  // the input, read twice
  const fuse::dataflow v = fixture_v();
  EXPECT_EQ(judge(v, {5}, {.arguments = 1}), "reads 2 values, and the limit is 1");
}

TEST(fuse_valid, diamond) {
  const fuse::dataflow flow = numbered()
                                  .node(5, kind::anchor, {x})
                                  .node(6, kind::elementwise, {5})
                                  .node(7, kind::elementwise, {6})
                                  .node(9, kind::elementwise, {6})
                                  .node(10, kind::broadcast, {7, 9})
                                  .output(10)
                                  .flow();
  EXPECT_EQ(judge(flow, {5, 6, 7, 9, 10}, {.exits = 1}), "");
  EXPECT_EQ(judge(flow, {5, 6, 7, 9}, {.exits = 1}), "has 2 exits, and the limit is 1");
  EXPECT_EQ(judge(flow, {5, 6, 7, 9}, {.exits = 2}), "");
}

TEST(fuse_valid, taps) {
  const fuse::dataflow flow = numbered()
                                  .node(5, kind::anchor, {x})
                                  .node(6, kind::elementwise, {5})
                                  .node(7, kind::broadcast, {5, 6})
                                  .output(7)
                                  .flow();
  EXPECT_EQ(judge(flow, {5, 6}, {.exits = 1}), "has 2 exits, and the limit is 1");
  EXPECT_EQ(judge(flow, {5, 6}, {.exits = 2}), "returns a value that it also reads itself");
  EXPECT_EQ(judge(flow, {5, 6}, {.exits = 2, .taps = true}), "");
}

TEST(fuse_valid, the_ends_of_a_chain) {
  const fuse::dataflow s = fixture_s();
  EXPECT_EQ(judge(s, {3, 5}, {.exits = 2}), "is not convex: a path leaves it and comes back");
  EXPECT_EQ(judge(s, {3, 4, 5}, {.exits = 1}), "");
}

TEST(fuse_valid, composites_inside) {
  numbered n;
  for (std::uint32_t i = 3; i <= 11; ++i) n.node(i, kind::elementwise, {i == 3 ? x : i - 1});
  const fuse::dataflow flow = n.output(11).flow();
  const node_set all = {3, 4, 5, 6, 7, 8, 9, 10, 11};
  const auto with = [&](std::vector<fuse::named_part> parts) {
    return fuse::why_invalid(flow, {all, kind::elementwise, std::move(parts)}, {});
  };
  EXPECT_EQ(with({{"a", {4, 5, 6, 7}}, {"b", {8, 9, 10}}}), "");
  EXPECT_EQ(with({{"a", {4, 5, 6, 7}}, {"b", {7, 8, 9}}}), "has parts that overlap");
  EXPECT_EQ(with({{"a", {4, 6}}}), "has a part that is not convex: a path leaves the part and comes back");
  EXPECT_EQ(with({{"a", {2, 3}}}), "does not contain its part a");

  const fuse::dataflow tapped = numbered()
                                    .node(3, kind::anchor, {x})
                                    .node(4, kind::elementwise, {3})
                                    .node(5, kind::elementwise, {4})
                                    .output(4)
                                    .output(5)
                                    .flow();
  const fuse::group g{{3, 4, 5}, kind::anchor, {{"a", {3, 4}}}};
  EXPECT_EQ(fuse::why_invalid(tapped, g, {.exits = 2, .taps = true}), "");
  EXPECT_EQ(fuse::why_invalid(tapped, g, {.exits = 2}), "returns a value that it also reads itself");
}

/// Every connected convex set of operators, by trying all sets.
sets connected_convex(const fuse::dataflow& flow, std::size_t most_depth, std::size_t most_nodes) {
  const auto edges = flow.edges();
  sets all;
  for (std::uint32_t bits = 1; bits < (1u << flow.size()); ++bits) {
    // Reached from the lowest member over edges either way.
    std::uint32_t reached = bits & (~bits + 1);
    for (bool grows = true; grows;) {
      grows = false;
      for (const auto& [from, to] : edges) {
        const std::uint32_t both = (1u << from) | (1u << to);
        if ((both & bits) != both || (reached & both) == 0 || (reached & both) == both) continue;
        reached |= both;
        grows = true;
      }
    }
    if (reached != bits) continue;
    // Left by one edge, what lies outside is walked on over all edges; it must not come back.
    std::uint32_t outside = 0;
    bool returns = false;
    for (const auto& [from, to] : edges) {  // ascending, so that one pass follows all paths
      const bool leaves = (bits >> from & 1u) != 0 || (outside >> from & 1u) != 0;
      if (!leaves) continue;
      if ((bits >> to & 1u) == 0) outside |= 1u << to;
      else returns = returns || (bits >> from & 1u) == 0;
    }
    if (returns) continue;
    std::vector<std::uint32_t> members;
    for (std::uint32_t n = 0; n < flow.size(); ++n)
      if ((bits >> n & 1u) != 0) members.push_back(n);
    // Without constants among the nodes, the longest path of all begins at an entry; that it ends at an exit needs a
    // reader.
    std::vector<std::size_t> length(flow.size(), 0);
    std::size_t longest = 0;
    for (const std::uint32_t n : members) {
      length[n] = 1;
      for (const auto& [from, to] : edges)
        if (to == n && (bits >> from & 1u) != 0) length[n] = std::max(length[n], length[from] + 1);
      longest = std::max(longest, length[n]);
    }
    if (longest <= most_depth && members.size() <= most_nodes) all.insert(members);
  }
  return all;
}

void compare_closures(std::uint32_t graphs) {
  fuse_random random;
  std::size_t total = 0;
  for (std::uint32_t i = 0; i < graphs; ++i) {
    fuse::flow_builder b;
    std::vector<std::uint32_t> values = {b.given({4, 0})};
    const std::uint32_t nodes = random.number(1, 10);
    std::vector<bool> is_read(nodes + 1, false);
    for (std::uint32_t n = 0; n < nodes; ++n) {
      index_list operands;
      for (std::uint32_t k = random.number(1, 2); k > 0; --k) {
        const std::uint32_t at = random.number(random.chance(60) && n > 2 ? n - 2 : 0, n);
        operands.push_back(values[at]);
        is_read[at] = true;
      }
      const fuse::value_facts facts{4, 0};
      values.push_back(b.node(kind::broadcast, operands, std::span(&facts, 1)));
    }
    for (std::uint32_t n = 1; n <= nodes; ++n)
      if (!is_read[n]) b.output(values[n]);
    const fuse::dataflow flow = b.finish();
    const std::size_t most_depth = random.number(1, 6), most_nodes = random.number(1, 10);
    const fuse::combine rule(fuse::by_kind{}, {.depth = most_depth, .nodes = most_nodes},
                             fuse::join_kinds{kind::opaque, kind::opaque});
    const group_list found = fuse::list(rule, flow);
    ASSERT_TRUE(found.complete);
    ASSERT_EQ(sets_of(found), connected_convex(flow, most_depth, most_nodes)) << describe(flow);
    total += found.size();
  }
  std::cout << total << " groups\n";
  EXPECT_GT(total, 10u * graphs);
}

TEST(fuse_closure, is_every_connected_convex_group) { compare_closures(300); }
TEST(fuse_closure_long, is_every_connected_convex_group) { compare_closures(3000); }

/// All unions of two groups that a join of kinds allows, again and again, without any index.
sets naive_closure(const fuse::dataflow& flow, const std::vector<fuse::join_kinds>& joins) {
  std::vector<node_set> groups;
  std::set<std::vector<std::uint32_t>> known;
  const auto add = [&](const node_set& nodes) {
    if (known.insert({nodes.begin(), nodes.end()}).second) groups.push_back(nodes);
  };
  for (const fuse::group& g : fuse::list(anchors, flow)) add(g.nodes);
  for (bool grows = true; grows;) {
    const std::size_t before = groups.size();
    for (std::size_t a = 0; a < before; ++a) {
      for (std::size_t b = 0; b < before; ++b) {
        if (groups[a].intersects(groups[b])) continue;
        bool feeds = false;
        for (const auto& [from, to] : flow.edges())
          feeds = feeds || (groups[a].contains(from) && groups[b].contains(to));
        for (const fuse::join_kinds& j : joins) {
          const bool kinds =
              fuse::kind_of_group(flow, groups[a]) <= j.up && fuse::kind_of_group(flow, groups[b]) <= j.down;
          const node_set both = groups[a] | groups[b];
          if (feeds && kinds && fuse::is_convex(flow, both) && fuse::depth(flow, both) <= 3) add(both);
        }
      }
    }
    grows = groups.size() > before;
  }
  return known;
}

TEST(fuse_closure, by_index_is_the_naive_one) {
  fuse_random random;
  for (int i = 0; i < 100; ++i) {
    const fuse::dataflow flow = random_flow(random, {.nodes = random.number(1, 9), .outputs = 4});
    const fuse::combine rule(anchors, fuse::closure_limits{.depth = 3}, to_broadcast, to_reduction, movers);
    ASSERT_EQ(sets_of(fuse::list(rule, flow)), naive_closure(flow, {to_broadcast, to_reduction, movers}))
        << describe(flow);
  }
}

TEST(fuse_closure, says_when_it_was_ended) {
  numbered n;
  for (std::uint32_t i = 0; i < 40; ++i) n.node(i, kind::elementwise, {i == 0 ? x : i - 1});
  const fuse::dataflow flow = n.output(39).flow();
  const group_list ended = fuse::list(fuse::combine(anchors, fuse::closure_limits{.groups = 100}, to_broadcast), flow);
  EXPECT_EQ(ended.size(), 100u);
  EXPECT_FALSE(ended.complete);
  EXPECT_FALSE(
      fuse::list(fuse::only_valid(limits{}, fuse::combine(anchors, fuse::closure_limits{.groups = 100}, to_broadcast)),
                 flow)
          .complete);
  const group_list whole = fuse::list(fuse::combine(anchors, fuse::closure_limits{}, to_broadcast), flow);
  EXPECT_EQ(whole.size(), 40u * 41 / 2);
  EXPECT_TRUE(whole.complete);
}

}  // namespace fuse_rule_test
