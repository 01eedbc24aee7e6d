// The candidates that the compiler finds in static graphs are those that `place` finds at run time, one by one.
#include <collage/backends/eigen.hpp>
#include <collage/backends/onednn.hpp>
#include <collage/backends/openblas.hpp>
#include <collage/backends/portable.hpp>
#include <collage/collage.hpp>
#include <collage/graph/graph.hpp>
#include <collage/place/candidates.hpp>
#include <collage/set/candidates.hpp>
#include <collage/set/coverage.hpp>
#include <collage/set/covers.hpp>
#include <collage/zoo/all.hpp>
#include <collage/zoo/statics.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "support/loops_backend.hpp"

namespace set_candidates_test {

namespace c = collage;
namespace op = collage::ops;
namespace statics = collage::zoo::statics;

/// The table of a set whose kernels are only declared: this program may lack the libraries.
class declared_table {
 public:
  template <class... B>
  explicit declared_table(c::backend_set<B...>) {
    (add(c::declaration_of<B>), ...);
  }
  c::backend_table table() const { return backends_; }

 private:
  void add(const c::declared_backend& declared) {
    patterns_.emplace_back();
    for (std::uint32_t p = 0; p < declared.patterns.size(); ++p) {
      c::pattern_entry entry{declared.patterns[p]};
      entry.choices = [](const c::graph_view&, const c::match_record&) -> std::size_t { return 1; };
      patterns_.back().push_back(entry);
    }
    c::backend_entry entry;
    entry.name = declared.name;
    entry.patterns = patterns_.back();
    backends_.push_back(entry);
  }

  std::deque<std::vector<c::pattern_entry>> patterns_;
  std::vector<c::backend_entry> backends_;
};

c::graph network_called(const char* name) {
  c::graph_builder g;
  EXPECT_TRUE(c::zoo::build(name, g)) << name;
  return g.finish();
}

/// `choices` candidates at run time for each of the compiler's.
template <class Candidates>
void expect_equal(const Candidates& compiled, const c::graph& network, c::backend_table backends,
                  const c::place_candidates& placed, std::size_t choices = 1) {
  ASSERT_EQ(compiled.size() * choices, placed.list.size());
  for (std::size_t i = 0; i < placed.list.size(); ++i) {
    const c::static_candidate& ours = compiled[i / choices];
    const c::place_candidate& theirs = placed.list[i];
    ASSERT_EQ(ours.backend, theirs.backend) << i;
    ASSERT_EQ(ours.pattern, theirs.pattern) << i;
    ASSERT_EQ(std::to_string(i % choices), theirs.configuration.text()) << i;
    const c::node_group values = c::values_of(network, backends, placed, theirs);
    const std::vector<std::uint32_t>&nodes = values.nodes, &arguments = values.arguments;
    ASSERT_EQ(ours.node, nodes.back()) << i;
    ASSERT_EQ(std::vector(ours.nodes.begin(), ours.nodes.end()), nodes) << i;
    ASSERT_EQ(std::vector(ours.arguments.begin(), ours.arguments.end()), arguments) << i;
  }
}

/// The nodes of each kind that a backend has a candidate for, counted at run time.
template <class Coverage>
void expect_coverage(const Coverage& coverage, const c::graph& network, const c::place_candidates& placed) {
  std::set<std::pair<std::string, std::uint32_t>> taken;  // backend, node
  for (const c::place_candidate& candidate : placed.list)
    for (const std::uint32_t n : placed.groups[candidate.group].nodes)
      taken.emplace(coverage.backend[candidate.backend], n);
  for (std::size_t row = 0; row < coverage.rows(); ++row) {
    std::uint32_t nodes = 0;
    for (const c::node_record& node : network.nodes())
      nodes += node.kind->name == std::string(coverage.kind[row]) ? 1U : 0U;
    EXPECT_EQ(nodes, coverage.nodes[row]) << coverage.kind[row];
    for (std::size_t b = 0; b < coverage.backends(); ++b) {
      std::uint32_t count = 0;
      for (const auto& [backend, node] : taken)
        count += backend == coverage.backend[b] && network.node(node).kind->name == std::string(coverage.kind[row])
                     ? 1U
                     : 0U;
      EXPECT_EQ(count, coverage.taken[row][b]) << coverage.kind[row] << " " << coverage.backend[b];
    }
  }
}

using adapters = c::backend_set<c::onednn, c::openblas, c::eigen, c::portable>;

template <class Static>
void check(const char* name) {
  static_assert(c::covers<adapters, Static>);
  const c::graph network = network_called(name);
  const declared_table declared(adapters{});
  const c::place_candidates placed = c::find_candidates(network, declared.table(), std::vector<bool>(4, true));
  EXPECT_GT(placed.list.size(), network.nodes().size()) << name;
  expect_equal(c::candidates_of<adapters, Static>, network, declared.table(), placed);
  expect_coverage(c::coverage_in<adapters, Static>, network, placed);
}

TEST(candidates, are_those_of_run_time_in_bert_paper) { check<statics::bert_paper>("bert-paper"); }
TEST(candidates, are_those_of_run_time_in_dcgan_paper) { check<statics::dcgan_paper>("dcgan-paper"); }
TEST(candidates, are_those_of_run_time_in_mobilenet_v2) { check<statics::mobilenet_v2>("mobilenet-v2"); }
#ifdef COLLAGE_TEST_LONG  // compilers evaluate these for half a minute
TEST(candidates, are_those_of_run_time_in_nasnet_a_paper) { check<statics::nasnet_a_paper>("nasnet-a-paper"); }
TEST(candidates, are_those_of_run_time_in_resnet50_3d_paper) { check<statics::resnet50_3d_paper>("resnet50-3d-paper"); }
TEST(candidates, are_those_of_run_time_in_resnext50_paper) { check<statics::resnext50_paper>("resnext50-paper"); }
TEST(candidates, are_those_of_run_time_in_resnet50) { check<statics::resnet50>("resnet50"); }
TEST(candidates, are_those_of_run_time_in_bert_base_128) { check<statics::bert_base_128>("bert-base-128"); }
#endif

/// Each match can be built in three ways.
struct threefold : c::backend<"threefold"> {
  using patterns = c::patterns<collage_test::add_relu, c::single<op::relu>>;
  template <class P>
  static std::size_t choices(const c::match<P>&) {
    return 3;
  }
  template <class P>
  static c::kernel build(const c::match<P>& m, c::build_context& context) {
    return collage_test::loops::build(m, context);
  }
};
/// relu(x + y), a reshape, and the sum of two of different shapes.
struct block {
  static constexpr auto graph = c::define([](auto& g) {
    const auto x = g.input("x", {2, 8}), y = g.input("y", {2, 8}), z = g.input("z", {16});
    const auto r = g(op::relu, g(op::add, x, y));
    const auto s = g(op::relu, g(op::reshape, r, {.dims = {16}}));
    g.output("s", s);
    g.output("t", g(op::neg, g(op::add, s, z)));
    g.output("b", g(op::add, r, g.input("row", {8})));
  });
};

TEST(candidates, are_found_once_for_each_way_to_build_them) {
  using set = c::backend_set<threefold>;
  const c::place_candidates placed = c::find_candidates(block{}, c::table_of<set>, {true});
  EXPECT_EQ(placed.list.size(), 9U);
  expect_equal(c::candidates_of<set, block>, block{}, c::table_of<set>, placed, 3);
}

TEST(candidates, of_backends_that_are_not_used_are_not_found) {
  using set = c::backend_set<threefold, collage_test::loops>;
  const c::place_candidates placed = c::find_candidates(block{}, c::table_of<set>, {false, true});
  for (const c::place_candidate& candidate : placed.list) EXPECT_EQ(candidate.backend, 1U);
  EXPECT_EQ(placed.list.size(), (c::candidates_of<c::backend_set<collage_test::loops>, block>.size()));
}

TEST(candidates, what_is_refused_is_told_alike) {
  using set = c::backend_set<collage_test::loops>;
  static_assert(c::holes_of<set, block>.size == 1);
  const c::hole& hole = c::holes_of<set, block>[0];
  EXPECT_STREQ(hole.kind, "add");
  EXPECT_EQ(hole.count, 1U);
  EXPECT_STREQ(hole.why.text, "loops refuses it: its operands must have one shape");
  const c::place_candidates placed = c::find_candidates(block{}, c::table_of<set>, {true});
  ASSERT_EQ(placed.refusals.size(), 1U);
  EXPECT_EQ(placed.refusals[0].backend, "loops");
  EXPECT_EQ(placed.refusals[0].pattern, "add");
  EXPECT_EQ(placed.refusals[0].reason, "its operands must have one shape");
}

TEST(coverage, prints_a_line_for_each_kind) {
  const std::string text = c::coverage_text<adapters>.c_str();
  EXPECT_EQ(text.rfind("operator ", 0), 0U);
  std::size_t lines = 0;
  for (const char character : text) lines += character == '\n' ? 1U : 0U;
  EXPECT_EQ(lines, c::coverage_of<adapters>.rows() + 1);
  EXPECT_NE(text.find("any other"), std::string::npos);
}

}  // namespace set_candidates_test
