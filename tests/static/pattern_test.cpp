// Patterns as values and types, and the matcher in constant evaluation.
#include <collage/collage.hpp>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "small_graph.hpp"

namespace {

using namespace collage_test;
namespace op = collage::ops;
using c::any, c::constant, c::variable;

// What an expression is -----------------------------------------------------------------------------------------------

constexpr auto chain = op::relu(op::add(op::conv(any, constant), constant.as<"bias">()));
static_assert(chain.size == 6);
static_assert(chain.node[5].role == c::pattern_role::apply && chain.node[5].kind[0]->id == c::kind_id<struct op::relu>,
              "the root is last");
static_assert(chain.node[4].children == 2 && chain.node[4].child[0] == 2 && chain.node[4].child[1] == 3);
static_assert(chain.node[2].child[0] == 0 && chain.node[2].child[1] == 1);
static_assert(chain.node[3].capture == c::detail::hash("bias"));
static_assert(any.size == 1 && any.node[0].capture == 0 && any.as<"x">().node[0].capture != 0 &&
              any.node[0].capture == 0);
static_assert(!chain.node[5].may_escape && chain.escaping().node[5].may_escape);
static_assert(c::scalar(2).node[0].scalar == 2 && c::scalar(2, 0.5).node[0].tolerance == 0.5);
static_assert(c::maybe(chain).node[5].count == c::pattern_count::maybe);
static_assert(c::many(any).node[0].count == c::pattern_count::many);
static_assert(c::one_of(op::relu, op::tanh)(any).node[1].kinds == 2);
static_assert(c::same<"x">().node[0].role == c::pattern_role::same);

// Patterns describe themselves ----------------------------------------------------------------------------------------

template <std::size_t N>
constexpr bool reads(const c::expression<N>& e, std::string_view text) {
  return std::string_view(c::describe(e.node).text) == text;
}
static_assert(reads(chain, "relu(add(conv(any, constant), constant 'bias'))"));
static_assert(reads(op::conv(variable.as<"x">(), constant, c::maybe(constant.as<"b">())),
                    "conv(variable 'x', constant, maybe constant 'b')"));
static_assert(reads(op::concat(c::many(any)), "concat(any...)"));
static_assert(reads(c::one_of(op::relu, op::sigmoid)(op::neg(any)).as<"act">(), "relu|sigmoid(neg(any)) 'act'"));
static_assert(reads(op::mul(any.as<"x">(), op::sigmoid(c::same<"x">())), "mul(any 'x', sigmoid(same 'x'))"));
static_assert(reads(op::mul(any, c::scalar(0.5)), "mul(any, scalar)"));

constexpr auto long_chain = [] {
  constexpr auto two = op::concat(op::average_pool(any), op::average_pool(any));
  constexpr auto four = op::concat(two, two);
  return op::concat(four, four, four, four);
}();
static_assert(c::describe(long_chain.node).size == sizeof(c::pattern_text::text) - 1, "what is too long is cut");

// single<> ------------------------------------------------------------------------------------------------------------

static_assert(reads(c::single<op::relu>::expr, "relu(any)"));
static_assert(reads(c::single<op::add>::expr, "add(any, any)"));
static_assert(reads(c::single<op::clip>::expr, "clip(any, any, any)"));
static_assert(reads(c::single<op::conv>::expr, "conv(any, any, maybe any)"));
static_assert(reads(c::single<op::reshape>::expr, "reshape(any, maybe any)"));
static_assert(reads(c::single<op::concat>::expr, "concat(any...)"));
static_assert(std::string_view(c::single<op::conv>::name) == "conv");
static_assert(c::pattern_type<c::single<op::conv>>);

inline constexpr struct cell : c::kind<cell> {
  static constexpr char name[] = "cell";
  static constexpr c::arity inputs{3, 8};
  static constexpr c::verdict infer(const attributes&, c::inference&) { return {}; }
} cell{};
static_assert(reads(c::single<cell>::expr, "cell(any, any, any, any...)"));

struct not_a_pattern {};
static_assert(!c::pattern_type<not_a_pattern> && !c::pattern_type<int>);

// Matching in constant evaluation -------------------------------------------------------------------------------------

struct conv_bias_relu : c::pattern<"conv_bias_relu"> {
  static constexpr auto expr =
      op::relu(op::add(op::conv(any.as<"x">(), constant.as<"weights">()), constant.as<"bias">()));
};
static_assert(c::pattern_type<conv_bias_relu>);
static_assert(std::string_view(conv_bias_relu::name) == "conv_bias_relu");

constexpr c::tensor_type image{c::dtype::f32, {1, 3, 8, 8}};

/// The bias stands in front of the convolution.
constexpr small_graph network = write_graph([](auto& g) {
  const c::value x = g.input("x", image);
  const c::value w = g.constant("w", {c::dtype::f32, {4, 3, 3, 3}}, c::uniform{-1, 1});
  const c::value b = g.constant("b", {c::dtype::f32, {4, 1, 1}}, c::uniform{-1, 1});
  const c::value y = g(op::relu, g(op::add, b, g(op::conv, x, w, {.pads_begin = {1, 1}, .pads_end = {1, 1}})));
  g.output("y", g(op::concat, {y, y}, {.axis = 1}));
});
static_assert(network.view().node_count() == 4);
static_assert(network.view().values[6].type.dims == c::shape{1, 8, 8, 8});
static_assert(network.view().uses_of(5).size() == 2);

constexpr c::match_record found = [] {
  c::match_record record;
  if (!c::match_at(network.view(), conv_bias_relu::expr.node, 2, record)) throw "no match";
  return record;
}();
static_assert(found.nodes == 3 && found.node[0] == 0 && found.node[1] == 1 && found.node[2] == 2);
static_assert(found.arguments == 3 && found.argument[0] == 0 && found.argument[1] == 1 && found.argument[2] == 2);
static_assert(found.contains(1) && !found.contains(3));

constexpr c::match<conv_bias_relu> m(network.view(), found);
static_assert(m[op::conv].pads_begin == c::shape{1, 1} && m[op::conv].groups == 1);
static_assert(m.get<"bias">().out == c::shape{4, 1, 1} && m.get<"bias">().is_constant);
static_assert(m.index_of(m.get<"bias">()) == 2 && m.argument(0).out == image.dims);
static_assert(m.output().value == 5 && m.is(m.output(), op::relu));

constexpr c::verdict why(std::span<const c::pattern_node> pattern, std::uint32_t node) {
  c::match_record record;
  c::verdict reason;
  (void)c::match_at(network.view(), pattern, node, record, &reason);
  return reason;
}
static_assert(!why(chain.node, 1) && why(chain.node, 1).pattern_node == 5);
static_assert(std::string_view(why(op::relu(op::add(op::conv(constant, constant), any)).node, 2).rule) ==
              "a constant is wanted here");
static_assert(why(op::relu(op::add(op::conv(constant, constant), any)).node, 2).graph_node == 0);
static_assert(bool(why(c::single<op::concat>::expr.node, 3)));

}  // namespace
