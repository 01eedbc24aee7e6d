// The matcher against one that tries everything: random patterns on random graphs.
#include <gtest/gtest.h>

#include <algorithm>
#include <collage/collage.hpp>
#include <collage/graph/graph.hpp>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "pattern_testing.hpp"

namespace {

using namespace collage_test;
using c::pattern_count, c::pattern_node, c::pattern_role;
constexpr std::uint32_t nothing = c::match_record::nothing;

const c::kind_info* const kinds[] = {&c::kind_of<decltype(op::relu)>, &c::kind_of<decltype(op::sigmoid)>,
                                     &c::kind_of<decltype(op::add)>,  &c::kind_of<decltype(op::sub)>,
                                     &c::kind_of<decltype(op::mul)>,  &c::kind_of<decltype(sum)>};

// Random graphs -------------------------------------------------------------------------------------------------------

c::graph make_graph(generator& random) {
  const c::tensor_type one{c::dtype::f32, {1}};
  c::graph_builder g;
  std::vector<c::value> values = {g.input("x", one), g.input("y", one), g.constant("w", one, c::uniform{0, 1}),
                                  g.scalar("two", 2)};
  const std::size_t count = 2 + pick(random, 9);
  for (std::size_t n = 0; n < count; ++n) {
    const c::kind_info& kind = *kinds[pick(random, std::size(kinds))];
    std::size_t operands = kind.inputs.least;
    if (kind.inputs.most == c::any_number) operands += pick(random, 4);
    std::vector<c::value> list;
    for (std::size_t i = 0; i < operands; ++i) {
      const std::size_t window = std::min<std::size_t>(values.size(), pick(random, 3) == 0 ? values.size() : 3);
      list.push_back(values[values.size() - 1 - pick(random, window)]);
    }
    values.push_back(g.add(kind, list, {}, c::label("n") + n));
  }
  g.output("last", values.back());
  if (pick(random, 3) == 0) g.output("other", values[4 + pick(random, count)]);
  return g.finish();
}

// Random patterns, grown from a place of the graph so that many of them match, and then disturbed ---------------------

class pattern_maker {
 public:
  pattern_maker(const c::graph& g, generator& random) : graph_(g), random_(random) {}

  std::vector<pattern_node> make(std::uint32_t root) {
    grow(graph_.view().output_of(root), 0);
    if (nodes_.back().role != pattern_role::apply) return {};
    for (pattern_node& p : nodes_) {
      if (p.role == pattern_role::apply && pick(random_, 4) == 0) p.may_escape = true;
      if (pick(random_, 12) == 0) disturb(p);
    }
    return nodes_;
  }

 private:
  std::uint16_t push(const pattern_node& p) {
    nodes_.push_back(p);
    return static_cast<std::uint16_t>(nodes_.size() - 1);
  }
  std::uint16_t grow(std::uint32_t value, int depth) {
    pattern_node p;
    const c::value_record& v = graph_.at(value);
    if (v.producer < 0 || depth > 3 || (depth > 0 && pick(random_, 3) == 0)) return push(leaf(value, v));
    const auto node = static_cast<std::uint32_t>(v.producer);
    p.role = pattern_role::apply;
    p.kind[p.kinds++] = graph_.node(node).kind;
    if (pick(random_, 5) == 0) p.kind[p.kinds++] = kinds[pick(random_, std::size(kinds))];
    std::vector<std::uint32_t> operands(graph_.view().inputs_of(node).begin(), graph_.view().inputs_of(node).end());
    if (graph_.node(node).kind->commutative && pick(random_, 2) == 0) std::swap(operands[0], operands[1]);
    const bool open = graph_.node(node).kind->id == c::kind_id<struct sum>;
    const std::size_t written = open ? 1 + pick(random_, operands.size()) : operands.size();
    for (std::size_t i = 0; i < written; ++i) {
      const bool last = i + 1 == written;
      const bool many = open && last && (written < operands.size() || pick(random_, 3) == 0);
      std::uint16_t child;
      if (many) {
        pattern_node rest;
        rest.role = pick(random_, 2) == 0 ? pattern_role::any : pattern_role::variable;
        rest.count = pattern_count::many;
        child = push(rest);
      } else {
        child = grow(operands[i], depth + 1);
        if (open && last && pick(random_, 3) == 0) nodes_[child].count = pattern_count::maybe;
      }
      p.child[p.children++] = child;
    }
    if (depth > 0 && pick(random_, 4) == 0) capture(p, value);
    return push(p);
  }
  pattern_node leaf(std::uint32_t value, const c::value_record& v) {
    pattern_node p;
    for (const auto& [name, captured] : captured_)
      if (captured == value && pick(random_, 2) == 0) {
        p.role = pattern_role::same;
        p.capture = name;
        return p;
      }
    const bool is_constant = v.role == c::value_role::constant;
    switch (pick(random_, 3)) {
      case 0: p.role = is_constant ? pattern_role::constant : pattern_role::variable; break;
      case 1:
        if (v.has_scalar) {
          p.role = pattern_role::scalar;
          p.scalar = v.scalar;
          p.tolerance = 1e-6;
        }
        break;
      default: break;
    }
    if (pick(random_, 2) == 0) capture(p, value);
    return p;
  }
  void capture(pattern_node& p, std::uint32_t value) {
    p.capture = captured_.size() + 1;
    captured_.emplace_back(p.capture, value);
  }
  void disturb(pattern_node& p) {
    if (p.role == pattern_role::apply) p.kind[0] = kinds[pick(random_, std::size(kinds))];
    else if (p.role != pattern_role::same)
      p.role = pick(random_, 2) == 0 ? pattern_role::constant : pattern_role::variable;
  }

  const c::graph& graph_;
  generator& random_;
  std::vector<pattern_node> nodes_;
  std::vector<std::pair<std::uint64_t, std::uint32_t>> captured_;
};

// The other matcher: for each way to swap operands there is one assignment, which fits or does not --------------------

class exhaustive {
 public:
  exhaustive(const c::graph& g, const std::vector<pattern_node>& p) : graph_(g.view()), pattern_(p) {}

  /// All assignments that fit, as values by pattern node.
  std::set<std::vector<std::uint32_t>> all(std::uint32_t root) {
    std::vector<std::size_t> operators;
    for (std::size_t i = 0; i < pattern_.size(); ++i)
      if (pattern_[i].role == pattern_role::apply) operators.push_back(i);
    std::set<std::vector<std::uint32_t>> found;
    for (std::uint32_t choice = 0; choice < (1U << operators.size()); ++choice) {
      std::vector<bool> swapped(pattern_.size());
      for (std::size_t i = 0; i < operators.size(); ++i) swapped[operators[i]] = (choice >> i & 1U) != 0;
      std::vector<std::uint32_t> bound(pattern_.size(), nothing);
      if (assign(pattern_.size() - 1, graph_.output_of(root), swapped, bound) && consistent(bound)) found.insert(bound);
    }
    return found;
  }
  bool inside(const std::vector<std::uint32_t>& bound, std::uint32_t value) const {
    for (std::size_t i = 0; i < pattern_.size(); ++i)
      if (pattern_[i].role == pattern_role::apply && bound[i] != nothing &&
          graph_.values[bound[i]].producer == graph_.values[value].producer)
        return true;
    return false;
  }

 private:
  bool fits(const pattern_node& p, std::uint32_t value) const {
    const c::value_record& v = graph_.values[value];
    if (p.role == pattern_role::constant) return v.role == c::value_role::constant;
    if (p.role == pattern_role::variable) return v.role != c::value_role::constant;
    if (p.role == pattern_role::scalar) return v.has_scalar && v.scalar == p.scalar;
    return true;
  }
  bool assign(std::size_t at, std::uint32_t value, const std::vector<bool>& swapped,
              std::vector<std::uint32_t>& bound) const {
    const pattern_node& p = pattern_[at];
    bound[at] = value;
    if (p.role != pattern_role::apply) return fits(p, value);
    if (graph_.values[value].producer < 0) return false;
    const auto node = static_cast<std::uint32_t>(graph_.values[value].producer);
    const c::kind_info* kind = graph_.nodes[node].kind;
    if (std::none_of(p.kind, p.kind + p.kinds, [&](const c::kind_info* k) { return k->id == kind->id; })) return false;
    std::vector<std::uint32_t> operands(graph_.inputs_of(node).begin(), graph_.inputs_of(node).end());
    if (swapped[at]) {
      if (!kind->commutative) return false;
      std::swap(operands[0], operands[1]);
    }
    for (std::size_t i = 0; i < std::max<std::size_t>(operands.size(), p.children); ++i) {
      const std::size_t slot = std::min<std::size_t>(i, p.children - 1U);
      const pattern_node& child = pattern_[p.child[slot]];
      if (i >= operands.size()) {
        if (child.count == pattern_count::once) return false;
      } else if (i < p.children) {
        if (!assign(p.child[slot], operands[i], swapped, bound)) return false;
      } else if (child.count != pattern_count::many || !fits(child, operands[i])) {
        return false;
      }
    }
    return true;
  }

  bool consistent(const std::vector<std::uint32_t>& bound) const {
    std::set<std::int32_t> matched;
    for (std::size_t i = 0; i < pattern_.size(); ++i)
      if (pattern_[i].role == pattern_role::apply && bound[i] != nothing &&
          !matched.insert(graph_.values[bound[i]].producer).second)
        return false;
    for (std::size_t i = 0; i < pattern_.size(); ++i) {
      const pattern_node& p = pattern_[i];
      if (bound[i] == nothing) continue;
      if ((p.role == pattern_role::any || p.role == pattern_role::variable) && inside(bound, bound[i])) return false;
      if (p.role == pattern_role::same)
        for (std::size_t j = 0; j < pattern_.size(); ++j)
          if (pattern_[j].capture == p.capture && bound[j] != bound[i]) return false;
      if (p.role != pattern_role::apply) continue;
      const auto node = static_cast<std::uint32_t>(graph_.values[bound[i]].producer);
      if (p.children > 0 && pattern_[p.child[p.children - 1U]].count == pattern_count::many)
        for (std::size_t o = p.children - 1U; o < graph_.inputs_of(node).size(); ++o)
          if (inside(bound, graph_.inputs_of(node)[o])) return false;
      if (i + 1 == pattern_.size() || p.may_escape) continue;
      if (graph_.values[bound[i]].is_output) return false;
      for (const c::use& u : graph_.uses_of(bound[i]))
        if (!matched.contains(static_cast<std::int32_t>(u.node))) return false;
    }
    return true;
  }

  c::graph_view graph_;
  const std::vector<pattern_node>& pattern_;
};

TEST(pattern_random, agrees_with_trying_everything) {
  const std::uint64_t seed = seed_or(7);
  generator random(seed);
  std::size_t matches = 0, misses = 0;
  for (int round = 0; round < 600; ++round) {
    SCOPED_TRACE("COLLAGE_SEED=" + std::to_string(seed) + ", round " + std::to_string(round));
    const c::graph g = make_graph(random);
    const auto count = static_cast<std::uint32_t>(g.nodes().size());
    for (int i = 0; i < 6; ++i) {
      const std::vector<pattern_node> pattern =
          pattern_maker(g, random).make(static_cast<std::uint32_t>(pick(random, count)));
      if (pattern.empty() || pattern.size() > 24) continue;
      SCOPED_TRACE(c::describe(pattern).text);
      for (std::uint32_t root = 0; root < count; ++root) {
        exhaustive other(g, pattern);
        const auto expected = other.all(root);
        c::match_record record;
        c::verdict why;
        const bool matched = match_at(g.view(), pattern, root, record, &why);
        ASSERT_EQ(matched, !expected.empty()) << "at node " << root << ": " << (why.rule == nullptr ? "" : why.rule);
        if (!matched) {
          ++misses;
          ASSERT_NE(why.rule, nullptr);
          ASSERT_LT(why.pattern_node, static_cast<std::int32_t>(pattern.size()));
          ASSERT_LT(why.graph_node, static_cast<std::int32_t>(count));
          continue;
        }
        ++matches;
        const std::vector<std::uint32_t> bound(record.bound, record.bound + pattern.size());
        ASSERT_TRUE(expected.contains(bound)) << "at node " << root;
        // Nodes are those of the bound operators in pattern order; arguments what they read from elsewhere.
        std::vector<std::uint32_t> nodes, arguments;
        for (std::size_t p = 0; p < pattern.size(); ++p)
          if (pattern[p].role == pattern_role::apply && bound[p] != nothing)
            nodes.push_back(static_cast<std::uint32_t>(g.at(bound[p]).producer));
        for (const std::uint32_t n : nodes)
          for (const std::uint32_t v : g.view().inputs_of(n))
            if (!other.inside(bound, v) && std::find(arguments.begin(), arguments.end(), v) == arguments.end())
              arguments.push_back(v);
        ASSERT_EQ(nodes, std::vector<std::uint32_t>(record.node_list().begin(), record.node_list().end()));
        ASSERT_EQ(arguments, std::vector<std::uint32_t>(record.argument_list().begin(), record.argument_list().end()));
      }
    }
  }
  EXPECT_GT(matches, 1000U);
  EXPECT_GT(misses, 1000U);
}

}  // namespace
