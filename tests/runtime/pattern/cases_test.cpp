// Every case of tests/support/pattern_cases.hpp while the program runs: on the graph that the compiler lowered, on the run-time
// graph made of that, and on the run-time graph that the same function writes.
#include <gtest/gtest.h>

#include <collage/collage.hpp>
#include <collage/detail/type_name.hpp>
#include <collage/graph/explain.hpp>
#include <collage/graph/graph.hpp>
#include <cstdint>
#include <string>

#include "support/pattern_cases.hpp"

namespace pattern_cases_test {

using namespace collage_test;

template <class Case>
c::graph write_case() {
  c::graph_builder g;
  Case::write(g);
  return g.finish();
}

/// What a match binds, or the sentence of its miss.
template <class Case, class Graph, class Names>
std::string tell(const c::graph_view& view, const Graph& graph, const Names& names, std::uint32_t node) {
  c::match_record record;
  const bool in_range = node < view.node_count();
  if (in_range && c::match_at(view, c::nodes_of<Case>, node, record)) {
    c::verdict why;
    EXPECT_TRUE(c::match_at(view, c::nodes_of<Case>, node, record, &why)) << "asking for the reason changes nothing";
    EXPECT_EQ(why.rule, nullptr);
    return tell_match(record, names).text;
  }
  c::match_record untouched;
  c::verdict why;
  EXPECT_FALSE(in_range && c::match_at(view, c::nodes_of<Case>, node, untouched, &why));
  EXPECT_EQ(in_range, why.rule != nullptr) << "a miss has a reason";
  EXPECT_TRUE(untouched.nodes == 0 && untouched.outputs == 0) << "a miss leaves nothing behind";
  return c::explain_match(Case{}, graph, node).text;
}

template <class Case>
void try_case() {
  SCOPED_TRACE(c::detail::type_name<Case>().text);
  using static_graph = static_case<Case>;
  const c::detail::static_names<static_graph> static_names;
  const c::graph made = static_graph{}, written = write_case<Case>();
  for (const expectation& e : Case::expected) {
    EXPECT_EQ((tell<Case>(static_graph::graph.view(), static_graph{}, static_names, e.node)), e.text);
    EXPECT_EQ((tell<Case>(made.view(), made, c::detail::run_time_names{&made}, e.node)), e.text);
    EXPECT_EQ((tell<Case>(written.view(), written, c::detail::run_time_names{&written}, e.node)), e.text);
  }
}

template <class... Case>
void try_list(case_list<Case...>) {
  (try_case<Case>(), ...);
}

TEST(pattern_cases, run_time_graphs_agree_with_the_compiler) { try_list(all_cases{}); }

}  // namespace pattern_cases_test
