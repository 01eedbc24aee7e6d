// Kinds of a user's own in models: operands, attributes, outputs, precedence, and what is refused.
#ifdef COLLAGE_HAS_ONNX
#include <gtest/gtest.h>
#include <collage/backends/portable.hpp>
#include <collage/backends/reference.hpp>
#include <collage/graph/print.hpp>
#include <collage/io/onnx.hpp>
#include <collage/op/built_in.hpp>
#include <collage/pass/optimise.hpp>
#include <collage/place.hpp>
#include <collage/run/engine.hpp>
#include <collage/run/verify.hpp>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "support/messages.hpp"
#include "support/own_kind.hpp"
#include "writer.hpp"

namespace onnx_import_kinds_test {

namespace c = collage;
namespace op = collage::ops;
using namespace collage_test;
using proto::TensorProto;

constexpr auto all = c::onnx::kinds<own::snake, own::spread, own::pieces, own::sealed>;

/// The operator of ONNX's own, as the user would rather have it.
inline constexpr struct halving_relu : c::elementwise_kind<halving_relu, 1> {
  static constexpr char name[] = "halving_relu";
  static constexpr c::onnx_name onnx{"ai.onnx", "Relu"};
  static constexpr auto body(auto x) { return c::math::max(x, 0.0) * 0.5; }
} halving_relu{};

/// Named in ONNX as own::snake is.
inline constexpr struct serpent : c::elementwise_kind<serpent, 1> {
  static constexpr char name[] = "serpent";
  static constexpr c::onnx_name onnx{"com.example", "Snake"};
  static constexpr auto body(auto x) { return -x; }
} serpent{};

namespace other {
/// Another kind of the same name.
inline constexpr struct snake : c::elementwise_kind<snake, 1> {
  static constexpr char name[] = "snake";
  static constexpr c::onnx_name onnx{"org.example", "Snake"};
  static constexpr auto body(auto x) { return -x; }
} snake{};
/// And one named as one of the library's.
inline constexpr struct relu : c::elementwise_kind<relu, 1> {
  static constexpr char name[] = "relu";
  static constexpr c::onnx_name onnx{"org.example", "Relu"};
  static constexpr auto body(auto x) { return -x; }
} relu{};
/// Its shape follows from what nobody knows yet.
inline constexpr struct compress : c::kind<compress> {
  static constexpr char name[] = "compress";
  static constexpr c::onnx_name onnx{"org.example", "Compress"};
  static constexpr c::verdict infer(const attributes&, c::inference& io) {
    io.out[0] = {io.in[0].type, {c::unknown}};
    return {};
  }
} compress{};
}  // namespace other

/// A model that imports the domains com.example and org.example, with an input x of [2, 6].
proto::ModelProto model_of() {
  proto::ModelProto model = new_model();
  for (const char* domain : {"com.example", "org.example"}) {
    auto& import = *model.add_opset_import();
    import.set_domain(domain);
    import.set_version(1);
  }
  add_input(*model.mutable_graph(), "x", {2, 6});
  return model;
}

/// Adds a node of the domain com.example.
template <class Owner>
proto::NodeProto& add_own(Owner& owner, const std::string& type, const std::vector<std::string>& inputs,
                          const std::vector<std::string>& outputs,
                          const std::vector<proto::AttributeProto>& attributes = {}, const std::string& name = {}) {
  proto::NodeProto& node = add_node(owner, type, inputs, outputs, attributes, name);
  node.set_domain("com.example");
  return node;
}

class onnx_kind : public testing::Test {
 protected:
  c::graph load(const proto::ModelProto& model, const c::onnx::load_options& options = {.kinds = all}) {
    return c::onnx::load(folder.write(model), options);
  }
  /// What is said of the one node of a model, without the file's name.
  std::string refusal(const proto::ModelProto& model, const c::onnx::load_options& options = {.kinds = all}) {
    return message_about(folder.path("a.onnx"), [&] { (void)load(model, options); }, 2);
  }
  /// The same for a model of one node n.
  std::string refusal_of(const std::string& type, const std::vector<std::string>& inputs,
                         const std::vector<std::string>& outputs,
                         const std::vector<proto::AttributeProto>& attributes = {}) {
    proto::ModelProto model = model_of();
    proto::GraphProto& g = *model.mutable_graph();
    add_own(g, type, inputs, outputs, attributes, "n");
    for (const std::string& output : outputs) add_output(g, output, {2, 6});
    const std::string text = refusal(model);
    const std::string start = "node n (com.example." + type + ", opset 1, of ";
    EXPECT_EQ(text.find(start), 0U) << text;
    const std::size_t end = text.find("): ");
    return end == std::string::npos ? text : text.substr(end + 3);
  }
  static double first(const c::graph& g, float x) {
    c::tensor in(g.type_of(g.inputs()[0]));
    for (float& e : in.as<float>()) e = x;
    const c::const_tensor_view views[] = {in};
    return c::evaluate(g, views)[0].real[0];
  }
  static double wave(double x, double alpha = 1) { return x + std::sin(alpha * x) * std::sin(alpha * x) / alpha; }

  model_folder folder;
};

TEST_F(onnx_kind, attributes_of_every_type_are_read_by_their_names) {
  proto::ModelProto model = model_of();
  proto::GraphProto& g = *model.mutable_graph();
  add_own(g, "Spread", {"x"}, {"y"},
          {attribute("axis", -2), attribute("scale", 0.25F), attribute("centred", 0), attribute("mode", 2),
           attribute("lag", std::vector<std::int64_t>{0, 1, 3}), attribute("weights", std::vector<float>{1, 0.5F, -2}),
           attribute("unit", "km")});
  add_output(g, "y", {2, 6});
  const c::graph made = load(model);
  ASSERT_EQ(made.nodes().size(), 1U);
  EXPECT_EQ(made.node(0).kind->id, c::kind_id<struct own::spread>);
  const auto a = c::from_words<own::spread_attributes>(made.view().words_of(0));
  EXPECT_EQ(a.axis, 0);  // normalised
  EXPECT_EQ(a.scale, 0.25);
  EXPECT_FALSE(a.centred);
  EXPECT_EQ(a.mode, own::rounding::up);
  EXPECT_EQ(a.lag, (c::shape{0, 1, 3}));
  ASSERT_EQ(a.weights.size(), 3U);
  EXPECT_EQ(a.weights[1], 0.5);
  EXPECT_EQ(a.weights[2], -2);
  EXPECT_STREQ(a.unit.text, "km");
}

TEST_F(onnx_kind, attributes_that_are_left_out_have_the_kinds_defaults) {
  proto::ModelProto model = model_of();
  proto::GraphProto& g = *model.mutable_graph();
  add_own(g, "Spread", {"x"}, {"y"});
  add_own(g, "Spread", {"x"}, {"z"},
          {attribute("lag", std::vector<std::int64_t>{}), attribute("weights", std::vector<float>{})});
  add_output(g, "y", {2, 6});
  add_output(g, "z", {2, 6});
  const c::graph made = load(model);
  EXPECT_EQ(c::to_string(made, 0), "y, y:1 = spread(x) -> float32[2x6], int64[2x1]");
  EXPECT_TRUE(c::from_words<own::spread_attributes>(made.view().words_of(1)).lag.empty());
}

TEST_F(onnx_kind, optional_operands_may_be_left_out_and_outputs_unread) {
  proto::ModelProto model = model_of();
  proto::GraphProto& g = *model.mutable_graph();
  add_own(g, "Spread", {"x", "x"}, {"both"});
  add_own(g, "Spread", {"x", ""}, {"", "counts"});
  add_own(g, "Pieces", {"x"}, {"", "second"});
  for (const char* name : {"both", "counts", "second"}) add_output(g, name, {2, 6});
  const c::graph made = load(model);
  EXPECT_EQ(made.node(0).inputs, 2U);
  EXPECT_EQ(made.node(1).inputs, 1U);
  EXPECT_EQ(made.type_of(made.outputs()[1]), (c::tensor_type{c::dtype::i64, {2, 1}}));
  EXPECT_EQ(made.outputs()[1], made.view().output_of(1, 1));
  EXPECT_EQ(made.type_of(made.outputs()[2]).dims, (c::shape{1, 6}));
}

TEST_F(onnx_kind, nodes_of_constants_are_computed_at_once) {
  proto::ModelProto model = model_of();
  proto::GraphProto& g = *model.mutable_graph();
  add_initializer(g, tensor_of<float>("w", {2, 2}, {1, 2, 3, 5}));
  add_own(g, "Snake", {"w"}, {"s"}, {attribute("alpha", 2.0F)});
  add_own(g, "Spread", {"s"}, {"t", "counts"});
  add_own(g, "Pieces", {"s"}, {"p", "q"});
  add_own(g, "Sealed", {"w"}, {"kept"});  // nobody knows how it is computed
  add_node(g, "Add", {"p", "q"}, {"sum"});
  for (const char* name : {"sum", "counts", "kept"}) add_output(g, name, {1, 2});
  const c::graph made = load(model);
  ASSERT_EQ(made.nodes().size(), 1U);
  EXPECT_STREQ(made.node(0).kind->name, "sealed");
  const auto* sum = reinterpret_cast<const float*>(made.bytes_of(made.outputs()[0]).data());
  EXPECT_NEAR(sum[0], wave(1, 2) + wave(3, 2), 1e-5);
  EXPECT_NEAR(sum[1], wave(2, 2) + wave(5, 2), 1e-5);
  const auto* counts = reinterpret_cast<const std::int64_t*>(made.bytes_of(made.outputs()[1]).data());
  EXPECT_EQ(counts[0], 1);
}

TEST_F(onnx_kind, works_within_branches_and_functions) {
  proto::ModelProto model = model_of();
  proto::FunctionProto& f = *model.add_functions();
  f.set_name("Twice");
  f.set_domain("org.example");
  f.add_input("a");
  f.add_output("b");
  f.add_attribute("by");
  for (const auto& import : model.opset_import()) *f.add_opset_import() = import;
  proto::AttributeProto alpha = attribute_header("alpha", proto::AttributeProto::FLOAT);
  alpha.set_ref_attr_name("by");
  add_own(f, "Snake", {"a"}, {"t"}, {alpha});
  add_own(f, "Snake", {"t"}, {"b"});
  proto::GraphProto& g = *model.mutable_graph();
  add_input(g, "flag", {}, TensorProto::BOOL);
  proto::GraphProto yes, no;
  add_own(yes, "Snake", {"y"}, {"z1"}, {attribute("alpha", 3.0F)});
  add_node(no, "Neg", {"y"}, {"z2"});
  add_output(yes, "z1", {2, 6});
  add_output(no, "z2", {2, 6});
  add_node(g, "Twice", {"x"}, {"y"}, {attribute("by", 2.0F)}).set_domain("org.example");
  add_node(g, "If", {"flag"}, {"z"}, {attribute("then_branch", yes), attribute("else_branch", no)});
  add_output(g, "z", {2, 6});
  const c::graph kept = load(model);
  EXPECT_EQ(kept.bodies_of(2).size(), 2U);
  c::tensor condition(c::tensor_type{c::dtype::boolean, {}});
  condition.as<std::uint8_t>()[0] = 1;
  const c::graph inlined = load(model, {.values = {{"flag", condition}}, .kinds = all});
  EXPECT_EQ(inlined.nodes().size(), 3U);
  EXPECT_NEAR(first(inlined, 0.7F), wave(wave(wave(0.7F, 2)), 3), 1e-12);
}

TEST_F(onnx_kind, stands_behind_rules_and_before_the_models_functions_and_built_in_rules) {
  proto::ModelProto model = model_of();
  proto::FunctionProto& f = *model.add_functions();  // the model's own way to do without the operator
  f.set_name("Snake");
  f.set_domain("com.example");
  f.add_input("a");
  f.add_output("b");
  for (const auto& import : model.opset_import()) *f.add_opset_import() = import;
  add_node(f, "Neg", {"a"}, {"b"});
  proto::GraphProto& g = *model.mutable_graph();
  add_own(g, "Snake", {"x"}, {"y"});
  add_node(g, "Relu", {"y"}, {"z"});
  add_output(g, "z", {2, 6});
  static constexpr auto both = c::onnx::kinds<own::snake, halving_relu>;
  static constexpr c::onnx::lowering_rule rules[] = {
      {"com.example", "Snake", [](c::onnx::lowering& n) { n.result(0, n(op::exp, n.operand(0))); }}};
  EXPECT_NEAR(first(load(model, {}), -0.5F), 0.5, 1e-12);
  EXPECT_NEAR(first(load(model, {.kinds = all}), 0.5F), wave(0.5), 1e-12);
  EXPECT_NEAR(first(load(model, {.kinds = both}), 0.5F), wave(0.5) / 2, 1e-12);
  EXPECT_NEAR(first(load(model, {.kinds = both, .rules = rules}), 0.5F), std::exp(0.5) / 2, 1e-12);
}

TEST_F(onnx_kind, is_loaded_optimised_placed_run_and_verified) {
  proto::ModelProto model = model_of();
  proto::GraphProto& g = *model.mutable_graph();
  add_initializer(g, tensor_of<float>("bias", {2, 6}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}));
  add_own(g, "Snake", {"bias"}, {"b"});
  add_own(g, "Snake", {"x"}, {"s"}, {attribute("alpha", 0.5F)});
  add_own(g, "Spread", {"s", "b"}, {"t", "counts"}, {attribute("axis", 1)});
  add_own(g, "Pieces", {"t"}, {"p", "q"}, {attribute("count", 2)});
  add_node(g, "Sub", {"p", "q"}, {"y"});
  add_output(g, "y", {1, 6});
  add_output(g, "counts", {2, 1}, TensorProto::INT64);
  const c::graph network = c::optimise(load(model));
  EXPECT_EQ(network.nodes().size(), 4U) << c::to_string(network);
  for (const bool measure : {false, true}) {
    const c::plan p = c::place<c::backend_set<c::portable>>(
        network, {.threads = 1,
                  .costs = measure ? c::placing_costs::measured : c::placing_costs::none,
                  .comparing = {.seconds = 0.02}});
    const c::verification found = c::verify<c::backend_set<c::portable>>(network, p);
    EXPECT_TRUE(found) << found.why();
    EXPECT_LT(found.placements[0].worst_relative(), 1e-6);
  }
}

TEST_F(onnx_kind, what_does_not_fit_the_kind_is_refused_in_one_sentence) {
  const std::vector<std::int64_t> nine(9, 0);
  EXPECT_EQ(refusal_of("Snake", {"x"}, {"y"}, {attribute("beta", 1.0F)}),
            "the kind snake has no attribute beta; it has alpha");
  EXPECT_EQ(refusal_of("Sealed", {"x"}, {"y"}, {attribute("beta", 1.0F)}),
            "the kind sealed has no attribute beta; it has none at all");
  EXPECT_EQ(refusal_of("Snake", {"x"}, {"y"}, {attribute("alpha", 1)}),
            "its attribute alpha is an integer, and must be a number");
  EXPECT_EQ(refusal_of("Spread", {"x"}, {"y"}, {attribute("axis", "last")}),
            "its attribute axis is a text, and must be an integer");
  EXPECT_EQ(refusal_of("Spread", {"x"}, {"y"}, {attribute("lag", 1)}),
            "its attribute lag is an integer, and must be a list of integers");
  EXPECT_EQ(refusal_of("Spread", {"x"}, {"y"}, {attribute("weights", std::vector<std::int64_t>{1})}),
            "its attribute weights is a list of integers, and must be a list of numbers");
  EXPECT_EQ(refusal_of("Spread", {"x"}, {"y"}, {attribute("lag", nine)}),
            "its attribute lag has 9 entries, and the kind's field holds at most 8");
  EXPECT_EQ(refusal_of("Spread", {"x"}, {"y"}, {attribute("weights", std::vector<float>(10, 1.0F))}),
            "its attribute weights has 10 entries, and the kind's field holds at most 8");
  EXPECT_EQ(refusal_of("Spread", {"x"}, {"y"}, {attribute("unit", std::string(56, 'm').c_str())}),
            "its attribute unit has 56 characters, and the kind's field holds at most 55");
  EXPECT_EQ(refusal_of("Spread", {"x"}, {"y"}, {attribute("mode", 258)}),
            "its attribute mode is 258, which is outside the range of this attribute of kind spread");
  EXPECT_EQ(refusal_of("Spread", {"x"}, {"y"}, {attribute("centred", 2)}),
            "its attribute centred is 2, and must be 0 or 1");
  EXPECT_EQ(refusal_of("Spread", {"x"}, {"y"}, {attribute("mode", 3)}),
            "its mode must be 0, 1 or 2; its operands are float32[2x6]");
  EXPECT_EQ(refusal_of("Spread", {"x"}, {"y"}, {attribute("axis", 2)}),
            "its axis must be within the rank of its input; its operands are float32[2x6]");
  EXPECT_EQ(refusal_of("Spread", {"", "x"}, {"y"}),
            "its operand 0 is left out but a later one is not, which kind spread does not allow; write a rule for it "
            "(load_options::rules)");
  EXPECT_EQ(refusal_of("Spread", {"x", "x", "x"}, {"y"}), "takes 1 to 2 operands, not 3");
  EXPECT_EQ(refusal_of("Spread", {"x"}, {"a", "b", "c"}), "it has 3 outputs, and the kind spread has 2");
  EXPECT_EQ(refusal_of("Pieces", {"x"}, {"a", "b"}, {attribute("count", 1)}),
            "it has 2 outputs, and the kind pieces has 1");
}

TEST_F(onnx_kind, missing_operands_are_refused) {
  proto::ModelProto model = model_of();
  proto::GraphProto& g = *model.mutable_graph();
  add_own(g, "Spread", {}, {"y"}, {}, "n");
  add_output(g, "y", {2, 6});
  EXPECT_EQ(refusal(model), "node n (com.example.Spread, opset 1): takes 1 to 2 operands, not 0");
}

TEST_F(onnx_kind, another_domain_is_another_operator) {
  proto::ModelProto model = model_of();
  proto::GraphProto& g = *model.mutable_graph();
  add_node(g, "Snake", {"x"}, {"y"}, {}, "n").set_domain("org.example");
  add_output(g, "y", {2, 6});
  EXPECT_EQ(
      refusal(model),
      "node n (org.example.Snake, opset 1, of float32[2x6]): this operator is not known; kind snake has this name in "
      "domain com.example");
  proto::ModelProto undeclared = new_model();
  add_input(*undeclared.mutable_graph(), "x", {2, 6});
  add_own(*undeclared.mutable_graph(), "Snake", {"x"}, {"y"}, {}, "n");
  add_output(*undeclared.mutable_graph(), "y", {2, 6});
  EXPECT_EQ(
      refusal(undeclared),
      "node n (com.example.Snake, opset 1, of float32[2x6]): the model imports no version of its domain, and must "
      "list it under opset_import");
}

TEST_F(onnx_kind, every_node_that_does_not_fit_is_told_at_once) {
  proto::ModelProto model = model_of();
  proto::GraphProto& g = *model.mutable_graph();
  add_own(g, "Snake", {"x"}, {"y"}, {attribute("beta", 1.0F)}, "first");
  add_own(g, "Snake", {"y"}, {"z"}, {}, "behind it");
  add_own(g, "Spread", {"x"}, {"w"}, {attribute("axis", 5)}, "second");
  add_output(g, "z", {2, 6});
  add_output(g, "w", {2, 6});
  const std::string text = refusal(model);
  EXPECT_EQ(text.find("2 nodes cannot be imported:\n  first (com.example.Snake"), 0U) << text;
  EXPECT_NE(text.find("\n  second (com.example.Spread"), std::string::npos) << text;
}

TEST_F(onnx_kind, shapes_that_are_not_known_are_refused) {
  proto::ModelProto model = model_of();
  proto::GraphProto& g = *model.mutable_graph();
  add_node(g, "Compress", {"x"}, {"y"}, {}, "n").set_domain("org.example");
  add_output(g, "y", {"m"});
  EXPECT_EQ(refusal(model, {.kinds = c::onnx::kinds<other::compress>}),
            "node n (org.example.Compress, opset 1, of float32[2x6]): the shape of its output 0 is ?, and every extent "
            "must be known before it is run");
}

TEST_F(onnx_kind, lists_of_kinds_are_checked) {
  const std::string file = folder.write(model_of());
  const auto refused = [&](std::span<const c::kind_info* const> kinds) {
    return message_of([&] { (void)c::onnx::load(file, {.kinds = kinds}); }, 2);
  };
  EXPECT_EQ(
      refused(c::onnx::kinds<own::snake, serpent>),
      "load_options::kinds: kind serpent and kind snake are both ONNX's com.example.Snake; give each a name of its "
      "own");
  EXPECT_EQ(refused(c::onnx::kinds<own::snake, other::snake>),
            "load_options::kinds: kind snake and kind snake have the same name or id; rename one of them");
  EXPECT_EQ(refused(c::onnx::kinds<other::relu>),
            "load_options::kinds: the kind relu has the name or the id of the built-in kind relu; rename it");
  const c::kind_info* const without_name[] = {&c::kind_of<decltype(op::relu)>};
  EXPECT_EQ(
      refused(without_name),
      "load_options::kinds: the kind relu has no name in ONNX; declare it in the kind: static constexpr onnx_name "
      "onnx{domain, operator}");
  const c::kind_info* const nothing[] = {nullptr};
  EXPECT_EQ(refused(nothing), "load_options::kinds: entry 0 is null; set load_options::kinds to onnx::kinds<...>");
  c::kind_info owner = c::kind_of<struct own::snake>;
  owner.bodies = 1;
  const c::kind_info* const owners[] = {&owner};
  EXPECT_EQ(refused(owners),
            "load_options::kinds: the kind snake owns subgraphs, which onnx::kinds cannot import; give "
            "load_options::rules a rule that imports this kind");
  // The same kind twice is one kind, also where its description exists twice.
  const c::kind_info* const twice[] = {&c::kind_of<struct own::snake>, &c::kind_of<decltype(own::snake)>};
  EXPECT_EQ(refused(twice), file + ": the graph has no output");
}

TEST_F(onnx_kind, the_examples_model_is_what_the_example_says) {
  proto::ModelProto model = new_model();
  auto& import = *model.add_opset_import();
  import.set_domain("com.example");
  import.set_version(1);
  proto::GraphProto& g = *model.mutable_graph();
  add_input(g, "x", {1, 2, 32});
  add_initializer(g, tensor_of<float>("offset", {1, 2, 1}, {-0.25F, 0.75F}));
  add_own(g, "Snake", {"offset"}, {"bent"}, {attribute("alpha", 4.0F)});
  add_node(g, "Add", {"x", "bent"}, {"moved"});
  add_own(g, "Snake", {"moved"}, {"waves"}, {attribute("alpha", 0.5F)});
  add_own(g, "Energy", {"waves"}, {"y"}, {attribute("frame", 8)});
  add_output(g, "y", {1, 2, 4});
  EXPECT_EQ(bytes_of(COLLAGE_TEST_DATA "/../../examples/own_operator.onnx"), model.SerializeAsString());
}

}  // namespace onnx_import_kinds_test
#endif
