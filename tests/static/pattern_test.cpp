// Patterns as values and types: what they are made of, what they say of themselves, and what a match answers.
#include <collage/collage.hpp>
#include <collage/pattern/explain.hpp>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "rows.hpp"
#include "support/pattern_kinds.hpp"

namespace {

namespace c = collage;
namespace op = collage::ops;
using c::any, c::constant, c::variable, c::previous, c::same, c::either, c::repeat, c::optional, c::outputs;
using collage_test::fan, collage_test::split, collage_test::sum;
using collage_test::match_record_of, collage_test::two_rows, collage_test::rows_found, collage_test::rows_match;

// What an expression is -----------------------------------------------------------------------------------------------

constexpr auto chain = op::relu(op::add(op::conv(any, constant), constant.as<"bias">()));
static_assert(chain.size() == 6);
static_assert(chain.root().role == c::pattern_role::apply && chain.root().kind[0]->id == c::kind_id<struct op::relu>,
              "the root is last");
static_assert(chain.node[4].children == 2 && chain.node[4].child[0] == 2 && chain.node[4].child[1] == 3);
static_assert(chain.node[2].child[0] == 0 && chain.node[2].child[1] == 1);
static_assert(chain.node[2].first == 0 && chain.node[3].first == 3 && chain.node[4].first == 0);
static_assert(chain.node[3].capture == c::detail::hash("bias"));
static_assert(any.size() == 1 && any.root().capture == 0 && any.as<"x">().root().capture != 0);
static_assert(!chain.root().may_escape && chain.escaping().root().may_escape);
static_assert(c::scalar(2).root().scalar == 2 && c::scalar(2, 0.5).root().tolerance == 0.5);
static_assert(c::maybe(chain).root().count == c::pattern_count::maybe);
static_assert(c::many(any).root().count == c::pattern_count::many);
static_assert(c::one_of(op::relu, op::tanh)(any).root().kinds == 2);
static_assert(same<"x">().root().role == c::pattern_role::same);
static_assert(any.of(c::dtype::f32, c::dtype::i8).root().types == ((1U << 1) | (1U << 5)));
static_assert(any.rank(4).root().rank == 4);
static_assert(split(any).output<1>().root().output == 1);

// Repetitions are unrolled: the start, three nodes for each iteration, the choice of a length.
constexpr auto repeated = repeat<0, 3>(op::relu(op::conv(previous, constant.as<"w">())), op::neg(any));
static_assert(repeated.size() == 2 + 3 * 3 + 1);
static_assert(repeated.root().alternatives() == 4 && repeated.root().alternative(0) == 10 &&
              repeated.root().alternative(3) == 1);
static_assert(repeated.node[3].child[0] == 1 && repeated.node[6].child[0] == 4, "each reads the iteration before");
static_assert(repeated.node[2].capture == repeated.node[5].capture && repeated.node[2].scope != repeated.node[5].scope);
static_assert(optional(op::relu(previous), op::neg(any).as<"n">()).size() == 4);
static_assert(either(chain, op::neg(any)).size() == 9);

// Most kinds are told apart at a glance.
static_assert((chain.root().kind_bits & c::pattern_node::bit_of(c::kind_of<struct op::relu>)) != 0);
static_assert(repeated.root().kind_bits == (c::pattern_node::bit_of(c::kind_of<struct op::relu>) |
                                            c::pattern_node::bit_of(c::kind_of<struct op::neg>)));
static_assert(either(op::relu(any), any).root().kind_bits == c::pattern_node::all_kinds);

// Patterns describe themselves ----------------------------------------------------------------------------------------

template <c::pattern_operand P>
constexpr bool reads(const P& e, std::string_view text) {
  return std::string_view(c::describe(e).text) == text;
}
static_assert(reads(chain, "relu(add(conv(any, constant), constant as bias))"));
static_assert(reads(op::conv(variable.as<"x">(), constant, c::maybe(constant.as<"b">())),
                    "conv(variable as x, constant, maybe constant as b)"));
static_assert(reads(op::concat(c::many(any)), "concat(any...)"));
static_assert(reads(c::one_of(op::relu, op::sigmoid)(op::neg(any)).as<"act">(), "relu|sigmoid(neg(any)) as act"));
static_assert(reads(op::mul(any.as<"x">(), op::sigmoid(same<"x">())), "mul(any as x, sigmoid(same x))"));
static_assert(reads(op::mul(c::input, c::scalar(0.5)), "mul(input, scalar 0.5)"));
static_assert(reads(op::add(c::scalar(1.4142135623730951), c::scalar(-3, 0.01)),
                    "add(scalar 1.414214, scalar -3 within 0.01)"));
static_assert(reads(op::add(c::scalar(1e-12), c::scalar(6.02214076e23)), "add(scalar 1e-12, scalar 6.022141e23)"));
static_assert(reads(op::add(c::scalar(100), c::scalar(0.00123)), "add(scalar 100, scalar 0.00123)"));
static_assert(reads(op::add(c::scalar(0), c::scalar(999999.96)), "add(scalar 0, scalar 1000000)"));
static_assert(reads(op::neg(op::relu(any).escaping().as<"r">()), "neg(escaping relu(any) as r)"));
static_assert(reads(op::mul(split(any).as<"s">(), op::sigmoid(same<"s">().output<1>())),
                    "mul(split(any) as s, sigmoid(output 1 of same s))"));
static_assert(reads(op::relu(split(any).output<1>()), "relu(output 1 of split(any))"));
static_assert(reads(op::relu(any.of(c::dtype::f32, c::dtype::bf16).rank(4)),
                    "relu(any of float32 or bfloat16 of rank 4)"));
constexpr auto is_depthwise = [](const op::conv_attributes& a) { return a.groups > 1; };
static_assert(reads(op::conv(any, constant).where(is_depthwise), "conv(any, constant) where a condition holds"));
static_assert(reads(op::conv(any, constant).where(is_depthwise, "groups must be more than 1").as<"d">(),
                    "conv(any, constant) where groups must be more than 1 as d"));
static_assert(reads(either(op::relu(any), op::neg(any)).as<"e">(), "either(relu(any) or neg(any)) as e"));
static_assert(reads(repeated, "repeat(relu(conv(previous, constant as w)), 0 to 3 times, from neg(any))"));
static_assert(reads(repeat<2, 2>(op::relu(previous), any), "repeat(relu(previous), 2 times, from any)"));
static_assert(reads(repeat<1, 1>(op::relu(previous), any), "repeat(relu(previous), 1 time, from any)"));
static_assert(reads(optional(op::relu(previous), op::neg(any)), "optional(relu(previous), from neg(any))"));
static_assert(reads(repeat<1, 2>(optional(op::relu(previous), op::neg(previous)), any),
                    "repeat(optional(relu(previous), from neg(previous)), 1 to 2 times, from any)"));
static_assert(reads(outputs(op::relu(any.as<"x">()), op::neg(same<"x">())), "outputs(relu(any as x) and neg(same x))"));
static_assert(reads(c::any_operator, "any operator(any...)"));
/// An iteration by itself still says where the one before goes.
static_assert([] {
  c::pattern_text out;
  c::detail::describe_node(c::pattern_view(repeated), 6, out);
  return std::string_view(out.text) == "conv(previous, constant as w)";
}());

constexpr auto long_chain = [] {
  constexpr auto pool = op::average_pool(op::average_pool(op::average_pool(op::average_pool(any))));
  constexpr auto two = op::concat(pool, pool);
  return op::concat(op::concat(two, two), op::concat(two, two), op::concat(two, two), op::concat(two, two));
}();
static_assert(c::describe(long_chain).size == 1023, "what is too long is cut");

// single<> ------------------------------------------------------------------------------------------------------------

static_assert(reads(c::single<op::relu>{}, "relu(any)"));
static_assert(reads(c::single<op::add>{}, "add(any, any)"));
static_assert(reads(c::single<op::clip>{}, "clip(any, any, any)"));
static_assert(reads(c::single<op::conv>{}, "conv(any, any, maybe any)"));
static_assert(reads(c::single<op::reshape>{}, "reshape(any, maybe any)"));
static_assert(reads(c::single<op::concat>{}, "concat(any...)"));
static_assert(std::string_view(c::single<op::conv>::name) == "conv");
static_assert(c::pattern_type<c::single<op::conv>>);
static_assert(c::single<op::conv>::expr.root().least_operands == 2 && !c::single<op::conv>::expr.root().is_open);
static_assert(c::single<op::concat>::expr.root().least_operands == 0 && c::single<op::concat>::expr.root().is_open);

inline constexpr struct cell : c::kind<cell> {
  static constexpr char name[] = "cell";
  static constexpr c::arity inputs{3, 8};
  static constexpr c::verdict infer(const attributes&, c::inference&) { return {}; }
} cell{};
static_assert(reads(c::single<cell>{}, "cell(any, any, any, any...)"));

struct not_a_pattern {};
static_assert(!c::pattern_type<not_a_pattern> && !c::pattern_type<int>);

// Pattern types -------------------------------------------------------------------------------------------------------

struct conv_bias : c::pattern<"conv_bias"> {
  static constexpr auto expr = op::add(op::conv(any.as<"x">(), constant.as<"weights">()), constant.as<"bias">());
};
struct conv_bias_relu : c::pattern<"conv_bias_relu"> {
  static constexpr auto expr = op::relu(conv_bias{});
};
static_assert(c::pattern_type<conv_bias_relu> && std::string_view(conv_bias_relu::name) == "conv_bias_relu");
static_assert(reads(conv_bias_relu{}, "relu(add(conv(any as x, constant as weights), constant as bias))"));
static_assert(reads(either(conv_bias{}, c::single<op::relu>{}),
                    "either(add(conv(any as x, constant as weights), constant as bias) or relu(any))"));
static_assert(c::nodes_of<conv_bias>.size == 5 && c::nodes_of<conv_bias>.root().children == 2);

// Anchors.
struct two_convs : c::pattern<"two_convs"> {
  static constexpr auto expr = op::conv(op::relu(op::conv(any, any)), any);
};
struct conv_or_matmul : c::pattern<"conv_or_matmul"> {
  static constexpr auto expr = op::relu(either(op::conv(any, any), op::matmul(any, any)));
  static constexpr bool one_anchor = true;
};
struct conv_twice : c::pattern<"conv_twice"> {
  static constexpr auto expr = repeat<1, 2>(op::conv(previous, any), any);
};
struct conv_behind_anything : c::pattern<"conv_behind_anything"> {
  static constexpr auto expr = op::conv(c::any_operator, any);
};
static_assert(c::at_most_one_anchor<conv_bias> && c::at_most_one_anchor<c::single<op::relu>>);
static_assert(c::at_most_one_anchor<conv_or_matmul>, "only one of them is taken");
static_assert(!c::at_most_one_anchor<two_convs> && !c::at_most_one_anchor<conv_twice>);
static_assert(!c::at_most_one_anchor<conv_behind_anything>, "an operator of whichever kind may be one");
static_assert(c::nodes_of<conv_or_matmul>.size == 8, "what says one_anchor is held to it");

// What a match answers ------------------------------------------------------------------------------------------------

/// The bias stands in front of the convolution.
struct network {
  static constexpr auto graph = c::define([](auto& g) {
    const auto x = g.input("x", {1, 3, 8, 8});
    const auto w = g.constant("w", {4, 3, 3, 3});
    const auto b = g.constant("b", {4, 1, 1});
    const auto conv = g.named("stem")(op::conv, x, w, {.pads_begin = {1, 1}, .pads_end = {1, 1}});
    const auto y = g(op::relu, g(op::add, b, conv));
    g.output("y", g(op::concat, {y, y}, {.axis = 1}));
  });
};
constexpr c::graph_view view = network::graph.view();

constexpr c::match_record found = match_record_of<conv_bias_relu>(view, 2);
static_assert(found.nodes == 3 && found.node[0] == 0 && found.node[1] == 1 && found.node[2] == 2);
static_assert(found.arguments == 3 && found.argument[0] == 0 && found.argument[1] == 1 && found.argument[2] == 2);
static_assert(found.outputs == 1 && found.contains(1) && !found.contains(3) && c::has_one_exit(view, found));

constexpr c::match<conv_bias_relu> m(view, found);
static_assert(m[op::conv].pads_begin == c::shape{1, 1} && m[op::conv].groups == 1);
static_assert(m.get<"bias">().out == c::shape{4, 1, 1} && m.get<"bias">().is_constant && m.count<"bias">() == 1);
static_assert(m.index_of(m.get<"bias">()) == 2 && m.argument(0).out == c::shape{1, 3, 8, 8});
static_assert(m.outputs() == 1 && m.output().value == 5 && m.is(m.output(), op::relu));
static_assert(m.operand(m.output(), 0).is_constant == false && !m.operand(m.output(), 1).present(),
              "there is no operand 1");
static_assert(!m.operand(c::bound_value{}, 0).present() && !m.operand(m.get<"bias">(), 0).present(),
              "nothing computes these");
static_assert(!m.output(1).present());

/// Of alternatives that exclude each other, the one that was taken answers.
struct any_activation : c::pattern<"any_activation"> {
  static constexpr auto expr = either(op::leaky_relu(op::conv(any.as<"x">(), any)).as<"a">(),
                                      op::elu(op::conv(any.as<"x">(), any).as<"c">()).as<"a">());
};
struct activations {
  static constexpr auto graph = c::define([](auto& g) {
    const auto x = g.input("x", {1, 4, 8, 8});
    const auto w = g.constant("w", {4, 2, 1, 1});
    g.output(g(op::elu, g(op::conv, x, w, {.groups = 2}), {.alpha = 0.5}));
  });
};
constexpr c::match_record elu_found = match_record_of<any_activation>(activations::graph.view(), 1);
constexpr c::match<any_activation> elu_match(activations::graph.view(), elu_found);
static_assert(elu_match[op::conv].groups == 2 && elu_match[op::elu].alpha == 0.5);
static_assert(elu_match.get<"a">().kind->id == c::kind_id<struct op::elu> && elu_match.get<"x">().value == 0);
static_assert(elu_match[op::leaky_relu].alpha == op::alpha_attributes{}.alpha, "it is not there");

// Names in repetitions, one within another.
static_assert(rows_found.nodes == 7 && rows_match.get<"x">().value == 0);
static_assert(rows_match.count<"start">() == 2 && rows_match.count<"w">(0) == 1 && rows_match.count<"w">(1) == 3 &&
              rows_match.count<"w">(2) == 0);
constexpr std::string_view name_of_weight(std::size_t row, std::size_t column) {
  return two_rows::graph.value_name(rows_match.get<"w">(row, column).value);
}
static_assert(name_of_weight(0, 0) == "w0" && name_of_weight(1, 0) == "w1" && name_of_weight(1, 2) == "w3");
static_assert(!rows_match.get<"w">(0, 1).present() && !rows_match.get<"w">(1, 3).present() &&
              !rows_match.get<"w">(7, 0).present());
static_assert(rows_match.is(rows_match.get<"start">(1), op::relu) && !rows_match.get<"start">(2).present());

/// Several outputs.
struct both_halves : c::pattern<"both_halves"> {
  static constexpr auto expr = outputs(op::relu(split(any).as<"s">()), op::neg(same<"s">().output<1>()).as<"n">());
};
struct halves {
  static constexpr auto graph = c::define([](auto& g) {
    const auto s = g(split, g.input("x", {4}));
    g.output(g(op::neg, s[1]));
    g.output(g(op::relu, s));
  });
};
constexpr c::match_record halves_found = match_record_of<both_halves>(halves::graph.view(), 2);
constexpr c::match<both_halves> halves_match(halves::graph.view(), halves_found);
static_assert(halves_match.outputs() == 2 && halves_match.output().value == 4 && halves_match.output(1).value == 3);
static_assert(halves_match.out<float>().index() == 0 && halves_match.out<float>(1).index() == 1);
static_assert(halves_match.get<"n">().value == 3 && !c::has_one_exit(halves::graph.view(), halves_found));

/// Of many outputs the record lists some, and the match answers all.
struct fanned : c::pattern<"fanned"> {
  static constexpr auto expr = fan(any).output<3>();
};
struct fans {
  static constexpr auto graph = c::define([](auto& g) {
    const auto f = g(fan, g.input("x", {4}));
    for (std::uint32_t i = 0; i < 20; ++i)
      if (i != 17) g.output(c::label("y") + i, g(op::relu, f[i]));
    g.output("y", f[2]);
  });
};
constexpr c::match_record fan_found = match_record_of<fanned>(fans::graph.view(), 0);
constexpr c::match<fanned> fan_match(fans::graph.view(), fan_found);
static_assert(fan_found.outputs == 16 && fan_found.more_outputs == 3 && fan_match.outputs() == 19);
static_assert(fan_match.output().value == 4 && fan_match.output(1).value == 1 && fan_match.output(15).value == 16);
static_assert(fan_match.output(16).value == 17 && fan_match.output(17).value == 19 && fan_match.output(18).value == 20);
static_assert(fan_match.out<float>().index() == 3 && fan_match.out<float>(1).index() == 0,
              "a kernel is given all outputs of the root's operator, in the operator's order");
static_assert(fan_match.out<float>(16).index() == 16 && fan_match.out<float>(17).index() == 18);
static_assert(!fan_match.output(19).present() && c::has_one_exit(fans::graph.view(), fan_found));

/// As many repetitions within each other as a pattern has room for; what the innermost captures has a number for each.
constexpr auto twice(const auto& step) { return repeat<1, 2>(step, previous); }
struct nested : c::pattern<"nested"> {
  static constexpr auto expr = repeat<1, 2>(twice(twice(twice(twice(op::relu(previous).as<"x">())))), any);
};
struct relu_chain {
  static constexpr auto graph = c::define([](auto& g) {
    auto x = g.input("x", {4});
    for (int i = 0; i < 32; ++i) x = g(op::relu, x);
    g.output(x);
  });
};
static_assert(c::nodes_of<nested>.size == c::match_record::max_pattern);
static_assert(c::detail::find_capture(c::nodes_of<nested>, c::detail::hash("x")).depth == 5);
constexpr c::match_record nested_found = match_record_of<nested>(relu_chain::graph.view(), 31);
constexpr c::match<nested> nested_match(relu_chain::graph.view(), nested_found);
static_assert(nested_match.get<"x">(0, 0, 0, 0, 0).value == 1 && nested_match.get<"x">(0, 0, 0, 0, 1).value == 2);
static_assert(nested_match.get<"x">(0, 0, 0, 1, 0).value == 3 && nested_match.get<"x">(1, 1, 1, 1, 1).value == 32);
static_assert(nested_match.count<"x">(1, 1, 1, 1) == 2);
static_assert(nested_match.iterations<"x">(1, 1, 1, 1)[1].get<"x">().value == 32);

/// The largest pattern, as deep as it can be: within the compilers' default limits.
struct deep : c::pattern<"deep"> {
  static constexpr auto expr = repeat<31, 31>(op::relu(op::neg(previous)), any);
};
struct deep_chain {
  static constexpr auto graph = c::define([](auto& g) {
    auto x = g.input("x", {4});
    for (int i = 0; i < 31; ++i) x = g(op::relu, g(op::neg, x));
    g.output(x);
  });
};
static_assert(c::nodes_of<deep>.size == c::match_record::max_pattern);
static_assert(match_record_of<deep>(deep_chain::graph.view(), 61).nodes == 62);

// Why not -------------------------------------------------------------------------------------------------------------

static_assert(c::matches<conv_bias_relu, network, 2> && !c::matches<conv_bias_relu, network, 1> &&
              !c::matches<conv_bias_relu, network, 9>);
static_assert(c::occurs_in<conv_bias_relu, network> && !c::occurs_in<both_halves, network>);
static_assert(!c::matches<conv_bias_relu, int, 2> && !c::matches<int, network, 2>);

template <class... Arguments>
constexpr bool explains(std::string_view text, const Arguments&... arguments) {
  return std::string_view(c::explain_match(arguments...).text) == text;
}
static_assert(explains("pattern conv_bias_relu matches at node 2 (relu), of nodes 0, 1 and 2", conv_bias_relu{},
                       network{}, 2U));
static_assert(
    explains("pattern conv_bias_relu does not match at node 1 (add): there is node 1 (add) where the pattern "
             "has relu(add(conv(any as x, constant as weights), constant as bias)): it is another operator",
             conv_bias_relu{}, network{}, 1U));
static_assert(
    explains("the pattern does not match at node 2 (relu): operand 1 of node 1 (add) is the output of node 0 "
             "(conv, stem) where the pattern has conv(any, constant) of rank 3: it has another number of "
             "dimensions",
             op::relu(op::add(op::conv(any, constant).rank(3), constant)), network{}, 2U));
static_assert(
    explains("the pattern does not match at node 2 (relu): operand 0 of node 1 (add) is a constant where the "
             "pattern has conv(any, any): an operator must compute this, and none does",
             op::relu(op::add(op::conv(any, any), op::conv(any, any))), view, 2U));
// Where it comes nearest.
static_assert(explains("pattern conv_bias_relu matches at node 2 (relu), of nodes 0, 1 and 2", conv_bias_relu{},
                       network{}));
static_assert(
    explains("pattern both_halves does not match anywhere; it comes nearest at node 2 (relu): operand 0 of "
             "node 2 (relu) is the output of node 1 (add) where the pattern has split(any) as s: it is another "
             "operator",
             both_halves{}, network{}));
static_assert(
    explains("the pattern does not match anywhere: the graph has no operator for its root, "
             "softmax(conv(any, any))",
             op::softmax(op::conv(any, any)), network{}));
/// The second of these comes nearer.
struct near_and_nearer {
  static constexpr auto graph = c::define([](auto& g) {
    const auto x = g.input("x", {4});
    g.output(g(op::relu, x));
    g.output(g(op::relu, g(op::neg, x)));
    g.output(g(op::relu, g(op::exp, x)));
  });
};
static_assert(
    explains("the pattern does not match anywhere; it comes nearest at node 2 (relu): operand 0 of node 1 (neg) "
             "is the input x where the pattern has neg(any): an operator must compute this, and none does",
             op::relu(op::neg(op::neg(any))), near_and_nearer{}));

constexpr c::verdict why(c::pattern_view pattern, std::uint32_t node) {
  c::match_record record;
  c::verdict reason;
  (void)c::match_at(view, pattern, node, record, &reason);
  return reason;
}
static_assert(!why(chain, 1) && why(chain, 1).pattern_node == 5);
static_assert(std::string_view(why(op::relu(op::add(op::conv(constant, constant), any)), 2).rule) ==
              "it must be a constant");
static_assert(why(op::relu(op::add(op::conv(constant, constant), any)), 2).graph_node == 0);
static_assert(bool(why(c::single<op::concat>::expr, 3)));

}  // namespace
