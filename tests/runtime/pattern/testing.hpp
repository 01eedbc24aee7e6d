// What the tests of the matcher share: a graph to sketch on, and an outcome to ask.
#pragma once

#include <gtest/gtest.h>

#include <collage/collage.hpp>
#include <collage/graph/graph.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "support/pattern_kinds.hpp"
#include "support/random_graph.hpp"

namespace collage_test {

inline const c::tensor_type vec{c::dtype::f32, {4}};

/// A graph being written down in a test; `match` matches at the last node.
struct sketch : c::graph_builder {
  c::value x = input("x", vec), y = input("y", vec);
  c::value w = constant("w", vec, c::uniform{-1, 1}), b = constant("b", vec, c::uniform{-1, 1});
};

struct outcome {
  bool matched = false;
  c::match_record record;
  c::verdict why;
  std::string rule() const { return why.rule == nullptr ? "" : why.rule; }
};

template <std::size_t N>
outcome match(const c::graph& g, const c::expression<N>& pattern, std::uint32_t node) {
  outcome o;
  o.matched = match_at(g.view(), pattern, node, o.record, &o.why);
  EXPECT_EQ(o.matched, o.why.rule == nullptr) << "a miss has a reason";
  c::match_record silent;
  EXPECT_EQ(match_at(g.view(), pattern, node, silent), o.matched) << "asking for the reason changes nothing";
  return o;
}
template <std::size_t N>
outcome match(sketch& s, const c::expression<N>& pattern, c::value last) {
  s.output("out", last);
  const c::graph g = s.finish();
  return match(g, pattern, static_cast<std::uint32_t>(g.nodes().size() - 1));
}

using list = std::vector<std::uint32_t>;
inline list nodes(const outcome& o) { return {o.record.node_list().begin(), o.record.node_list().end()}; }
inline list arguments(const outcome& o) { return {o.record.argument_list().begin(), o.record.argument_list().end()}; }

}  // namespace collage_test
