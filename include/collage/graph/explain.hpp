// Explains why a pattern does not match the run-time graph, with the names of its nodes and values.
#pragma once

#include <collage/graph/graph.hpp>
#include <collage/pattern/explain.hpp>
#include <cstdint>

namespace collage::inline v0 {

namespace detail {

struct run_time_names {
  const graph* owner;
  const char* node_name(std::uint32_t node) const { return owner->node_name(node).c_str(); }
  const char* value_name(std::uint32_t value) const { return owner->value_name(value).c_str(); }
};

}  // namespace detail

/// The same as for static graphs (pattern/explain.hpp).
template <pattern_operand P>
pattern_text explain_match(const P& pattern, const graph& network, std::uint32_t node) {
  const graph_view view = network.view();
  return detail::match_explainer(detail::name_pattern(pattern), view, detail::run_time_names{&network}).say(node);
}
template <pattern_operand P>
pattern_text explain_match(const P& pattern, const graph& network) {
  const graph_view view = network.view();
  return detail::match_explainer(detail::name_pattern(pattern), view, detail::run_time_names{&network}).say_nearest();
}

/// For a pattern that is given by name and nodes instead of a type, as in the table of a backend set.
inline pattern_text explain_match(const char* name, pattern_view pattern, const graph& network, std::uint32_t node) {
  const graph_view view = network.view();
  return detail::match_explainer(detail::named_pattern{name, pattern}, view, detail::run_time_names{&network})
      .say(node);
}

}  // namespace collage::inline v0
