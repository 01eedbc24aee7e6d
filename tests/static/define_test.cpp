// Graphs defined at compile time: records, names, several outputs, known integers, refusals, and their size.
#include <collage/graph/define.hpp>
#include <collage/ops.hpp>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace {

namespace c = collage;
namespace op = collage::ops;

// A network in a few words ------------------------------------------------------------------------------------------

struct lenet {
  static constexpr auto graph = c::define([](auto& g) {
    auto x = g.input("x", {1, 1, 28, 28});
    auto w = g.constant("w", {6, 1, 5, 5});
    g.output(g(op::relu, g(op::conv, x, w, {.groups = 1})));
  });
};
constexpr c::graph_view view = lenet::graph.view();

static_assert(c::static_graph<lenet> && c::static_graph<const lenet>);
static_assert(!c::static_graph<int> && !c::static_graph<decltype(lenet::graph)>);
static_assert(view.node_count() == 2 && view.values.size() == 4 && view.operands.size() == 3 && view.uses.size() == 3);
static_assert(view.kind_id_of(0) == c::kind_id<struct op::conv> && view.nodes[1].kind == &c::kind_of<struct op::relu>);
static_assert(view.values[0].role == c::value_role::input && view.values[0].producer == -1);
static_assert(view.values[1].role == c::value_role::constant && view.values[1].type.type == c::dtype::f32);
static_assert(view.values[3].type.dims == c::shape{1, 6, 24, 24} && view.values[3].producer == 1);
static_assert(view.values[3].is_output && !view.values[2].is_output);
static_assert(view.inputs_of(0).size() == 2 && view.inputs_of(0)[1] == 1 && view.inputs_of(1)[0] == 2);
static_assert(view.uses_of(2).size() == 1 && view.uses_of(2)[0].node == 1 && view.uses_of(3).empty());
static_assert(lenet::graph.inputs().size() == 1 && lenet::graph.inputs()[0] == 0);
static_assert(lenet::graph.outputs().size() == 1 && lenet::graph.outputs()[0] == 3);
static_assert(lenet::graph.source_of(1) == c::contents_source::unbound);

// Attributes are those that a builder stores: what was left out is filled in.
constexpr auto attributes = c::from_words<op::conv_attributes>(view.words_of(0));
static_assert(attributes.groups == 1 && attributes.strides == c::shape{1, 1} && attributes.pads_end == c::shape{0, 0});

static_assert(std::string_view(lenet::graph.value_name(1)) == "w");
static_assert(std::string_view(lenet::graph.node_name(0)) == "conv_0");
static_assert(std::string_view(lenet::graph.value_name(3)) == "relu_1");
static_assert(std::string_view(lenet::graph.output_name(0)) == "relu_1");

// Names, several outputs, constants of every sort -------------------------------------------------------------------

struct sorted {
  static constexpr auto graph = c::define([](auto& g) {
    const auto x = g.input("x", {c::dtype::f32, {4, 8}});
    const auto top = g.named("best")(op::top_k, x, {.k = 3, .axis = -1});
    const auto shift = g.constant("shift", {3}, {-1, 2});
    const auto third = g.scalar("third", 1.0 / 3);
    g.output("places", top[1]);
    g.output("values", g(op::mul, g(op::add, top, shift), third));
    g.output(g(op::reshape, top[0], g.integers("target", {2, -1})));
  });
};
static_assert(sorted::graph.outputs()[0] == 2 && std::string_view(sorted::graph.value_name(2)) == "best:1");
static_assert(sorted::graph.view().values[2].type == c::tensor_type{c::dtype::i64, {4, 3}});
static_assert(std::string_view(sorted::graph.node_name(0)) == "best");
static_assert(std::string_view(sorted::graph.node_name(1)) == "add_0", "a named node takes no number");
static_assert(std::string_view(sorted::graph.output_name(0)) == "places");
static_assert(std::string_view(sorted::graph.output_name(2)) == "reshape_2");
static_assert(c::from_words<op::top_k_attributes>(sorted::graph.view().words_of(0)).axis == 1);
static_assert(sorted::graph.source_of(3) == c::contents_source::rule && sorted::graph.fill_of(3).low == -1 &&
              sorted::graph.fill_of(3).high == 2 && sorted::graph.integers_of(3).empty());
static_assert(sorted::graph.view().values[4].has_scalar &&
              sorted::graph.view().values[4].scalar == static_cast<double>(static_cast<float>(1.0 / 3)));
// The shape rule has read the target.
static_assert(sorted::graph.integers_of(7).size() == 2 && sorted::graph.integers_of(7)[1] == -1);
static_assert(sorted::graph.view().values[8].type.dims == c::shape{2, 6});
// Asked of what is no constant, nothing.
static_assert(sorted::graph.integers_of(8).empty() && sorted::graph.integers_of(0).empty());

// A value that is an output twice, and one read twice.
struct twice {
  static constexpr auto graph = c::define([](auto& g) {
    const auto x = g.input("x", {2});
    const auto y = g(op::add, x, x);
    g.output("a", y);
    g.output("b", y);
  });
};
static_assert(twice::graph.outputs()[0] == 1 && twice::graph.outputs()[1] == 1);
static_assert(twice::graph.view().uses_of(0).size() == 2 && twice::graph.view().uses_of(0)[1].operand == 1);

// The smallest graph has no node; unknown extents stay unknown.
struct nothing {
  static constexpr auto graph = c::define([](auto& g) { g.output(g.input("x", {c::unknown, 3})); });
};
static_assert(nothing::graph.view().node_count() == 0 && nothing::graph.view().values[0].type.dims[0] < 0);

// A kind of a user's own, in a function that any builder can call ---------------------------------------------------

inline constexpr struct scaled_exp : c::kind<scaled_exp> {
  static constexpr char name[] = "scaled_exp";
  static constexpr c::verdict infer(const attributes&, c::inference& io) {
    if (io.in[0].rank() != 2) return {false, "its input must be a matrix", 0};
    io.out[0] = io.in[0];
    return {};
  }
} scaled_exp{};

constexpr auto tower = [](auto& g) {
  auto x = g.input("x", {3, 3});
  for (int i = 0; i < 3; ++i) x = g(scaled_exp, x);
  g.output(x);
};
struct own {
  static constexpr auto graph = c::define(tower);
};
static_assert(own::graph.view().node_count() == 3 && own::graph.view().nodes[2].kind == &c::kind_of<struct scaled_exp>);

// A kind whose attributes say how many outputs it has.
struct pieces_attributes {
  std::int64_t count = 1;
  template <class Self, class Visitor>
  static constexpr void visit(Self& self, Visitor&& visitor) {
    visitor("count", self.count);
  }
};
inline constexpr struct pieces : c::kind<pieces> {
  static constexpr char name[] = "pieces";
  static constexpr std::uint32_t outputs = c::any_number;
  using attributes = pieces_attributes;
  // Attributes left at -1 follow from the input.
  static constexpr void normalise(attributes& a, c::list_view<const c::tensor_type> in) {
    if (a.count < 0) a.count = in[0].dims[0];
  }
  static constexpr std::size_t count_outputs(const attributes& a, c::list_view<const c::body_signature>) {
    return a.count < 0 ? 1 : static_cast<std::size_t>(a.count);
  }
  static constexpr c::verdict infer(const attributes& a, c::inference& io) {
    if (io.in[0].dims[0] % a.count != 0) return {false, "its input must divide into pieces", 0};
    for (std::size_t i = 0; i < io.out.size(); ++i) io.out[i] = {io.in[0].type, {io.in[0].dims[0] / a.count}};
    return {};
  }
} pieces{};
struct three {
  static constexpr auto graph = c::define([](auto& g) {
    const auto part = g(pieces, g.input("x", {6}), {.count = 3});
    g.output(g(op::add, part[0], part[2]));
  });
};
static_assert(three::graph.view().nodes[0].outputs == 3 && three::graph.view().values[3].type.dims == c::shape{2});
static_assert(std::string_view(three::graph.value_name(3)) == "pieces_0:2");

// What is refused, and how it is said. (tests/fail shows that the compilers print it.) -------------------------------

template <class Function>
constexpr std::string_view said(Function) {
  const c::detail::sentence& why = c::detail::refusal_of<Function>();
  return {why.text, why.size};
}

static_assert(said([](auto& g) {
                auto x = g.input("x", {1, 3, 8, 8});
                auto w = g.constant("w", {4, 2, 3, 3});
                g.output(g(op::conv, x, w));
              }) ==
              "node 0 (conv of x [1, 3, 8, 8] and w [4, 2, 3, 3]): its weights must have shape [M, C / groups, "
              "window...] for an input of C channels (operand 1); change that operand or the attributes of the "
              "node");
static_assert(said([](auto& g) {
                auto x = g.input("x", {c::dtype::i64, {4}});
                g.output(g(op::add, g.input("y", {4}), x));
              }) ==
              "node 0 (add of y [4] and x int64 [4]): its operands must have the same element type (operand 1); "
              "change that operand or the attributes of the node");
static_assert(said([](auto& g) {
                auto x = g.input("x", {2});
                g.output(g(op::concat, {x, x, x, x, x, x}, {.axis = 3}));
              }).starts_with("node 0 (concat of x [2], x [2], x [2], x [2] and 2 more): "));
static_assert(said([](auto& g) { g.output(g(op::add, g.input("x", {2}))); }) ==
              "node 0 (add): takes 2 operands, not 1; give it as many values as that");
static_assert(
    said([](auto& g) { g.output(g(op::add, g.input("x", {2}), c::value{9})); }) ==
    "node 0 (add): operand 1 names value 9, which does not exist yet; a graph has no cycles: add values before "
    "the nodes that read them, and use only values of this graph");
static_assert(said([](auto& g) {
                auto x = g.input("x", {4});
                g.output(g(op::neg, g(op::top_k, x)[2]));
              }) ==
              "node 1 (neg): operand 0 asks for output 2 of node 0 (top_k), which has 2 outputs; they are counted "
              "from 0");
static_assert(said([](auto& g) { g.output(g(op::neg, g.input("x", {4}))[1]); }) ==
              "output 0 of the graph asks for output 1 of node 0 (neg), which has 1 output; they are counted from 0");
static_assert(
    said([](auto& g) { g.output(g(op::neg, g.input("x", {4})[1])); }) ==
    "node 0 (neg): operand 0 asks for output 1 of x, which no node computes; only nodes have further outputs");
static_assert(said([](auto& g) { g(op::neg, g.input("x", {4})); }) ==
              "the graph has no output; name its outputs with g.output(y)");
static_assert(said([](auto& g) { g.output("y", c::value{3}); }) ==
              "output 0 names value 3, which does not exist; use only values of this graph");
static_assert(said([](auto& g) {
                auto x = g.input("x", {4});
                g.output(g(op::add, x, g.constant("x", {4})));
              }) == "value x: the name is used twice; give every input, constant and node a name of its own");
static_assert(said([](auto& g) {
                auto x = g.input("neg_0", {4});
                g.output(g(op::neg, x));
              }) == "value neg_0: the name is used twice; give every input, constant and node a name of its own");
static_assert(said([](auto& g) {
                auto x = g.input("x", {4});
                g.output("y", x);
                g.output("y", g(op::neg, x));
              }) == "output y: the name is used twice; give every output a name of its own");
static_assert(said([](auto& g) { g.output(g.constant("w", {4, -1})); }) ==
              "constant w: every extent of a constant must be known, and it is [4, ?]; give it extents of 0 or more");
static_assert(
    said([](auto& g) { g.output(g.constant("w", {c::dtype::i8, {4}}, {0, 1})); }) ==
    "constant w: only float32 constants can be filled by the generator, and it is int8; bind the contents instead");
static_assert(said([](auto& g) { g.output(g.scalar("s", 300, c::dtype::i8)); }) ==
              "constant s: its value cannot be stored as int8; choose an element type that holds it");
static_assert(said([](auto& g) { g.output(g.scalar("s", 1, c::dtype::bf16)); }) ==
              "constant s: its value cannot be stored as bfloat16; choose an element type that holds it");
static_assert(said([](auto& g) { g.output(g(op::branch, g.input("c", {c::dtype::boolean, {}}))); }) ==
              "node 0 (branch): it owns subgraphs, which static graphs do not have; build this network with "
              "graph_builder");
static_assert(
    said([](auto& g) { g.output(g.input("x", {std::int64_t{1} << 30, std::int64_t{1} << 30})); }) ==
    "value x: a tensor of [1073741824, 1073741824] is too large; its extents and their product must be at most 2^48");

static_assert(
    said([](auto& g) { g.output(g(pieces, g.input("x", {6}), {.count = -1})); }) ==
    "node 0 (pieces of x [6]): how many outputs it has depends on its operands, so only graph_builder can build "
    "it; change its operands or its attributes");
static_assert(said([](auto& g) { g.output(g(pieces, g.input("x", {6}), {.count = 0})); }) ==
              "node 0 (pieces): its attributes must give it 1 to 65535 outputs");
static_assert(said([](auto& g) {
                auto x = g.input("x", {std::int64_t{1} << 30, 1});
                g.output(g(op::add, x, g.input("y", {1, std::int64_t{1} << 30})));
              }) ==
              "node 0 (add of x [1073741824, 1] and y [1, 1073741824]): its output would be too large; change its "
              "operands or its attributes");

// Two kinds of one id: names are made alike.
inline constexpr struct impostor : c::kind<impostor> {
  static constexpr char name[] = "neg";
  static constexpr c::verdict infer(const attributes&, c::inference& io) {
    io.out[0] = io.in[0];
    return {};
  }
} impostor{};
static_assert(
    said([](auto& g) { g.output(g(impostor, g(op::neg, g.input("x", {4})))); }) ==
    "node 1 (neg): its kind has the id of another, neg of node 0; ids are hashes of names, so give one of the "
    "two kinds another name");

// 2,000 nodes stay within the default limits. -----------------------------------------------------------------------

struct tall {
  static constexpr auto graph = c::define([](auto& g) {
    auto x = g.input("x", {1, 8, 28, 28});
    for (int i = 0; i < 667; ++i) {
      const c::label name = c::label("layers.") + i;
      auto w = g.constant(name + ".conv.weight", {8, 8, 3, 3}, {-1, 1});
      x = g(op::conv, x, w, {.pads_begin = {1, 1}, .pads_end = {1, 1}});
      x = g(op::add, x, g.constant(name + ".conv.bias", {8, 1, 1}));
      x = g(op::relu, x);
    }
    g.output(x);
  });
};
static_assert(tall::graph.view().node_count() == 2001 && tall::graph.view().values.size() == 3336);
static_assert(std::string_view(tall::graph.value_name(3331)) == "layers.666.conv.weight");
static_assert(std::string_view(tall::graph.output_name(0)) == "relu_2000");

}  // namespace
