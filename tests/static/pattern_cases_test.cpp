// Every case of tests/support/pattern_cases.hpp in constant evaluation.
#include <collage/collage.hpp>
#include <collage/pattern/explain.hpp>
#include <cstddef>

#include "support/pattern_cases.hpp"

namespace {

using namespace collage_test;

/// What comes of one expectation, if it is something else: printed by the compiler.
template <class Case, std::size_t Index>
struct try_case {
  static constexpr c::detail::sentence why() {
    constexpr expectation wanted = Case::expected[Index];
    constexpr c::graph_view view = static_case<Case>::graph.view();
    constexpr c::detail::static_names<static_case<Case>> names;
    c::detail::match_explainer explainer(c::detail::name_pattern(Case{}), view, names);
    const c::pattern_text said = explainer.say(wanted.node);
    const c::pattern_text found = explainer.matched() ? tell_match(explainer.record(), names) : said;
    return same_text(found.text, wanted.text) ? c::detail::sentence{} : found;
  }
};

template <class Case, std::size_t Index = 0>
consteval bool try_all() {
  static_assert(c::detail::holds<c::detail::conclusion<try_case<Case, Index>>>);
  if constexpr (Index + 1 < sizeof(Case::expected) / sizeof(expectation)) return try_all<Case, Index + 1>();
  else return true;
}

template <class... Case>
consteval bool try_list(case_list<Case...>) {
  return (try_all<Case>() && ...);
}
static_assert(try_list(all_cases{}));

}  // namespace
