// Kinds of a user's own header, as the compiler sees them: their descriptions, static graphs, patterns, coverage.
#include <collage/collage.hpp>
#include <collage/graph/define.hpp>
#include <collage/pattern/describe.hpp>
#include <collage/pattern/explain.hpp>
#include <collage/set/coverage.hpp>
#include <collage/set/covers.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "support/own_kind.hpp"

namespace {

namespace c = collage;
namespace op = collage::ops;
using text = std::string_view;

// The description -------------------------------------------------------------------------------------------------------

constexpr const c::kind_info& spread = c::kind_of<struct own::spread>;
static_assert(text(spread.name) == "spread" && spread.id == c::detail::hash("spread"));
static_assert(text(spread.onnx.domain) == "com.example" && text(spread.onnx.op_type) == "Spread");
static_assert(spread.inputs.least == 1 && spread.inputs.most == 2 && spread.outputs == 2);
constexpr bool given(auto* function) { return function != nullptr; }  // compilers warn of functions compared with null
static_assert(given(spread.normalise) && given(spread.count) && given(spread.reference) && !given(spread.body));
static_assert(c::kind_of<struct own::snake>.body->inputs == 1);
static_assert(given(c::kind_of<struct own::pieces>.count_outputs) && !given(spread.count_outputs));
static_assert(!given(c::kind_of<struct own::sealed>.reference) && !given(c::kind_of<struct own::sealed>.count));
static_assert(!given(c::kind_of<struct op::relu>.onnx.op_type), "the importer's rules know what is a relu");

// In a static graph -----------------------------------------------------------------------------------------------------

struct network {
  static constexpr auto graph = c::define([](auto& g) {
    const auto x = g.input("x", {2, 6});
    const auto s = g(own::spread, g(own::snake, x, {.alpha = 2}), {.scale = 0.5, .unit = "km"});
    g.output("spread", s);
    g.output("above", s[1]);
    const auto p = g(own::pieces, g(own::sealed, x), {.count = 2});
    g.output("second", p[1]);
  });
};
constexpr c::graph_view view = network::graph.view();
static_assert(view.node_count() == 4);
static_assert(view.values[network::graph.outputs()[0]].type == c::tensor_type{c::dtype::f32, {2, 6}});
static_assert(view.values[network::graph.outputs()[1]].type == c::tensor_type{c::dtype::i64, {2, 1}});
static_assert(view.values[network::graph.outputs()[2]].type == c::tensor_type{c::dtype::f32, {1, 6}});
constexpr auto stored = c::from_words<own::spread_attributes>(view.words_of(1));
static_assert(stored.axis == 1, "normalised");
static_assert(stored.scale == 0.5 && stored.lag == c::shape{0} && stored.weights[0] == 1);
static_assert(text(stored.unit.text) == "km");

// In patterns -----------------------------------------------------------------------------------------------------------

struct spread_of_snake : c::pattern<"spread_of_snake"> {
  static constexpr auto expr = own::spread(own::snake(c::any.as<"x">()));
};
constexpr bool matches(std::uint32_t node) {
  c::match_record found;
  return c::match_at(view, spread_of_snake::expr, node, found);
}
static_assert(matches(1) && !matches(0) && !matches(2));
constexpr double alpha_of_match() {
  c::match_record found;
  if (!c::match_at(view, spread_of_snake::expr, 1, found)) return 0;
  const c::match<spread_of_snake> m(view, found);
  return m[own::spread].scale * m[own::snake].alpha;
}
static_assert(alpha_of_match() == 1);

static_assert(text(c::describe(spread_of_snake{}).text) == "spread(snake(any as x))");

/// A condition on its attributes.
struct wide_spread : c::pattern<"wide_spread"> {
  static constexpr auto expr = own::spread(c::any).where([](const own::spread_attributes& a) { return a.scale > 1; },
                                                         "its scale must be above 1");
};
constexpr c::pattern_text why = c::explain_match(wide_spread{}, network{}, 1);
static_assert(text(why.text).find("its scale must be above 1") != text::npos);

// In backend sets -------------------------------------------------------------------------------------------------------

struct mine : c::backend<"mine"> {
  using patterns = c::patterns<spread_of_snake, c::single<own::snake>, c::single<own::pieces>>;
  static constexpr c::verdict accepts(const c::match<spread_of_snake>& m) {
    return {m[own::spread].mode == own::rounding::none, "it does not round"};
  }
  template <class P>
  static c::kernel build(const c::match<P>&, c::build_context&);
};
struct opener : c::backend<"opener"> {
  using patterns = c::patterns<c::single<own::sealed>>;
  static c::kernel build(const c::match<c::single<own::sealed>>&, c::build_context&);
};
static_assert(c::covers<c::backend_set<mine, opener>, network>);
static_assert(!c::covers<c::backend_set<mine>, network>);

constexpr const auto& coverage = c::coverage_of<c::backend_set<mine, opener>>;
constexpr c::coverage_cell cell_of(text kind, std::size_t backend) {
  for (std::size_t r = 0; r < coverage.rows(); ++r)
    if (kind == coverage.kind[r]) return coverage.cell[r][backend];
  return {};
}
static_assert(cell_of("snake", 0) == c::coverage_cell{true, 1});
static_assert(cell_of("spread", 0) == c::coverage_cell{false, 1});
static_assert(cell_of("sealed", 1) == c::coverage_cell{true, 0});

}  // namespace
