// The importer: scopes, control flow, functions, bound inputs, a user's own rules; what the nodes become and what they compute.
#ifdef COLLAGE_HAS_ONNX
#include <gtest/gtest.h>
#include <collage/backends/reference.hpp>
#include <collage/graph/print.hpp>
#include <collage/io/onnx.hpp>
#include <collage/op/control.hpp>
#include <collage/ops.hpp>
#include <collage/pattern/match.hpp>
#include <collage/run/tensor.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "writer.hpp"

namespace onnx_import_test {

namespace c = collage;
using namespace collage_test;
using proto::TensorProto;
using reals = std::vector<double>;

/// A model written, loaded and computed by the reference. Inputs are float32 lists in the graph's order.
class onnx_import : public testing::Test {
 protected:
  c::graph load(const proto::ModelProto& model, const c::onnx::load_options& options = {}) {
    return c::onnx::load(folder.write(model), options, &report);
  }
  static c::tensor tensor_of_floats(const c::tensor_type& type, const std::vector<float>& list) {
    c::tensor t(type);
    std::copy(list.begin(), list.end(), t.as<float>().begin());
    return t;
  }
  static reals compute(const c::graph& g, const std::vector<std::vector<float>>& given, std::size_t output = 0) {
    std::vector<c::tensor> tensors;
    std::vector<c::const_tensor_view> in;
    for (std::size_t i = 0; i < given.size(); ++i)
      tensors.push_back(tensor_of_floats(g.type_of(g.inputs()[i]), given[i]));
    for (const c::tensor& t : tensors) in.emplace_back(t);
    const c::oracle_value result = c::evaluate(g, in)[output];
    return c::is_floating(result.type.type) ? result.real : reals(result.integer.begin(), result.integer.end());
  }
  std::string refusal(const proto::ModelProto& model, const c::onnx::load_options& options = {}) {
    try {
      (void)load(model, options);
    } catch (const c::error& e) {
      EXPECT_EQ(e.exit_code(), 2) << e.what();
      EXPECT_EQ(std::string(e.what()).find(folder.path("a.onnx")), 0U) << e.what();
      return e.what();
    }
    return "no error";
  }
  static std::size_t count(const c::graph& g, const std::string& kind) {
    return static_cast<std::size_t>(
        std::count_if(g.nodes().begin(), g.nodes().end(), [&](const auto& n) { return n.kind->name == kind; }));
  }

  model_folder folder;
  c::onnx::load_report report;
};

/// x -> x OPERATOR k, with k an initializer of the subgraph itself and x read from around it.
proto::GraphProto branch_of(const char* operator_type, float k, const std::string& result) {
  proto::GraphProto g;
  g.set_name(result);
  add_initializer(g, tensor_of<float>("k", {}, {k}));
  add_node(g, operator_type, {"x", "k"}, {result});
  add_output(g, result, {2});
  return g;
}

proto::ModelProto branching() {
  proto::ModelProto model = new_model();
  proto::GraphProto& g = *model.mutable_graph();
  add_input(g, "flag", {}, TensorProto::BOOL);
  add_input(g, "x", {2});
  add_node(g, "If", {"flag"}, {"y"},
           {attribute("then_branch", branch_of("Add", 10, "a")), attribute("else_branch", branch_of("Mul", 3, "b"))},
           "choice");
  add_output(g, "y", {2});
  return model;
}

TEST_F(onnx_import, a_branch_is_inlined_where_its_condition_is_known_and_kept_where_it_is_not) {
  const c::graph kept = load(branching());
  EXPECT_EQ(count(kept, "branch"), 1U);
  for (const bool flag : {true, false}) {
    c::tensor condition(c::tensor_type{c::dtype::boolean, {}});
    condition.as<std::uint8_t>()[0] = flag ? 1 : 0;
    const c::graph inlined = load(branching(), {.values = {{"flag", condition}}});
    EXPECT_EQ(count(inlined, "branch"), 0U);
    EXPECT_EQ(inlined.inputs().size(), 1U);
    EXPECT_EQ(compute(inlined, {{1, 2}}), flag ? (reals{11, 12}) : (reals{3, 6}));
    const c::tensor x = tensor_of_floats({c::dtype::f32, {2}}, {1, 2});
    const c::const_tensor_view in[] = {condition, x};
    EXPECT_EQ(c::evaluate(kept, in)[0].real, flag ? (reals{11, 12}) : (reals{3, 6}));
  }
}

TEST_F(onnx_import, names_inside_hide_nothing_outside) {
  // Both subgraphs and the graph itself have a constant k; what follows reads the outer one.
  proto::ModelProto model = branching();
  proto::GraphProto& g = *model.mutable_graph();
  add_initializer(g, tensor_of<float>("k", {}, {100}));
  add_node(g, "Add", {"y", "k"}, {"z"});
  add_output(g, "z", {2});
  c::tensor yes(c::tensor_type{c::dtype::boolean, {}});
  yes.as<std::uint8_t>()[0] = 1;
  EXPECT_EQ(compute(load(model, {.values = {{"flag", yes}}}), {{1, 2}}, 1), (reals{111, 112}));
}

/// Loop over `rounds`: carries x (doubled each round), stacks it, and reads `step` from around it.
proto::ModelProto looping(bool constant_rounds) {
  proto::ModelProto model = new_model();
  proto::GraphProto& g = *model.mutable_graph();
  proto::GraphProto body;
  body.set_name("body");
  declare(*body.add_input(), "i", {}, TensorProto::INT64);
  declare(*body.add_input(), "on", {}, TensorProto::BOOL);
  declare(*body.add_input(), "value", {1});
  add_node(body, "Identity", {"on"}, {"still"});
  add_node(body, "Add", {"value", "value"}, {"twice"});
  add_node(body, "Add", {"twice", "step"}, {"next"});
  add_output(body, "still", {}, TensorProto::BOOL);
  add_output(body, "next", {1});
  if (constant_rounds) add_output(body, "twice", {1});
  add_input(g, "x", {1});
  add_input(g, "step", {1});
  if (constant_rounds) add_initializer(g, tensor_of<std::int64_t>("rounds", {}, {3}));
  else add_input(g, "rounds", {}, TensorProto::INT64);
  add_node(g, "Loop", {"rounds", "", "x"},
           constant_rounds ? std::vector<std::string>{"last", "all"} : std::vector<std::string>{"last"},
           {attribute("body", body)}, "loop");
  add_output(g, "last", {1});
  if (constant_rounds) add_output(g, "all", {3, 1});
  return model;
}

TEST_F(onnx_import, a_short_loop_is_unrolled_and_another_runs) {
  const c::graph unrolled = load(looping(true));
  EXPECT_EQ(count(unrolled, "loop"), 0U);
  EXPECT_EQ(compute(unrolled, {{1}, {1}}), (reals{15}));
  EXPECT_EQ(compute(unrolled, {{1}, {1}}, 1), (reals{2, 6, 14}));
  const c::graph running = load(looping(false));
  EXPECT_EQ(count(running, "loop"), 1U);
  const c::tensor x = tensor_of_floats({c::dtype::f32, {1}}, {1}), step = tensor_of_floats({c::dtype::f32, {1}}, {1});
  c::tensor rounds(c::tensor_type{c::dtype::i64, {}});
  for (const std::int64_t n : {0, 1, 5}) {
    rounds.as<std::int64_t>()[0] = n;
    const c::const_tensor_view in[] = {x, step, rounds};
    EXPECT_EQ(c::evaluate(running, in)[0].real, (reals{static_cast<double>((2 << n) - 1)}));
  }
}

TEST_F(onnx_import, loops_at_the_edges) {
  // Many rounds: what they stack is joined by more kernels than one, or the loop stays a loop.
  for (const std::int64_t rounds : {0, 1, 73, 100, 1000}) {
    proto::ModelProto model = looping(true);
    proto::GraphProto& g = *model.mutable_graph();
    *g.mutable_initializer(0) = tensor_of<std::int64_t>("rounds", {}, {rounds});
    const c::graph made = load(model);
    EXPECT_EQ(made.type_of(made.outputs()[1]).dims, (c::shape{rounds, 1}));
    for (const c::node_record& n : made.nodes()) EXPECT_LE(n.inputs, c::match_record::max_arguments);
    EXPECT_EQ(compute(made, {{0}, {0}}, 1), reals(static_cast<std::size_t>(rounds), 0.0));
  }
  // Whether it starts at all is only known while it runs: then nobody knows how much it stacks.
  proto::ModelProto model = looping(true);
  proto::GraphProto& g = *model.mutable_graph();
  add_input(g, "starts", {}, TensorProto::BOOL);
  g.mutable_node(0)->set_input(1, "starts");
  EXPECT_NE(refusal(model).find("the number of its stacked iterations is not known"), std::string::npos)
      << refusal(model);
}

TEST_F(onnx_import, loops_within_loops_share_what_they_may_become) {
  // 300 rounds of 300 rounds: unrolled they would be 90,000 nodes.
  proto::ModelProto model = new_model();
  proto::GraphProto& g = *model.mutable_graph();
  const auto body_of = [](const char* name, bool nested, const proto::GraphProto* inner) {
    proto::GraphProto body;
    const std::string n = name;
    body.set_name(n);
    declare(*body.add_input(), n + "i", {}, TensorProto::INT64);
    declare(*body.add_input(), n + "on", {}, TensorProto::BOOL);
    declare(*body.add_input(), n + "x", {1});
    add_node(body, "Identity", {n + "on"}, {n + "still"});
    if (nested) add_node(body, "Loop", {"rounds", "", n + "x"}, {n + "next"}, {attribute("body", *inner)});
    else add_node(body, "Add", {n + "x", "one"}, {n + "next"});
    add_output(body, n + "still", {}, TensorProto::BOOL);
    add_output(body, n + "next", {1});
    return body;
  };
  const proto::GraphProto inner = body_of("b", false, nullptr), outer = body_of("a", true, &inner);
  add_input(g, "x", {1});
  add_initializer(g, tensor_of<std::int64_t>("rounds", {}, {300}));
  add_initializer(g, tensor_of<float>("one", {1}, {1}));
  add_node(g, "Loop", {"rounds", "", "x"}, {"y"}, {attribute("body", outer)});
  add_output(g, "y", {1});
  const c::graph made = load(model, {.most_nodes = 20000});
  EXPECT_EQ(count(made, "loop"), 1U);
  EXPECT_EQ(compute(made, {{0}}), (reals{90000}));
}

TEST_F(onnx_import, what_no_output_needs_is_left_out) {
  proto::ModelProto model = new_model();
  proto::GraphProto& g = *model.mutable_graph();
  add_input(g, "x", {2});
  add_node(g, "NoSuchOperator", {"x"}, {"nobody_reads_this"});
  add_node(g, "Relu", {"x"}, {"y"});
  add_output(g, "y", {2});
  EXPECT_EQ(compute(load(model), {{-1, 1}}), (reals{0, 1}));
}

TEST_F(onnx_import, limits_that_clip_leaves_out_are_finite) {
  proto::ModelProto model = new_model();
  proto::GraphProto& g = *model.mutable_graph();
  add_input(g, "x", {4});
  add_initializer(g, tensor_of<float>("one", {}, {1}));
  add_node(g, "Clip", {"x"}, {"none"});
  add_node(g, "Clip", {"x", "one"}, {"low"});
  add_node(g, "Clip", {"x", "", "one"}, {"high"});
  for (const char* y : {"none", "low", "high"}) add_output(g, y, {4});
  constexpr float infinity = std::numeric_limits<float>::infinity(), most = std::numeric_limits<float>::max();
  const std::vector<float> x = {-infinity, -2, 2, infinity};
  EXPECT_EQ(compute(load(model), {x}, 0), (reals{-most, -2, 2, most}));
  EXPECT_EQ(compute(load(model), {x}, 1), (reals{1, 1, 2, most}));
  EXPECT_EQ(compute(load(model), {x}, 2), (reals{-most, -2, 1, 1}));
}

TEST_F(onnx_import, sparse_constants_are_dense) {
  proto::ModelProto model = new_model();
  proto::GraphProto& g = *model.mutable_graph();
  add_input(g, "x", {4});
  proto::AttributeProto sparse;
  sparse.set_name("sparse_value");
  sparse.set_type(proto::AttributeProto::SPARSE_TENSOR);
  sparse.mutable_sparse_tensor()->add_dims(4);
  *sparse.mutable_sparse_tensor()->mutable_values() = tensor_of<float>("", {2}, {5, 7});
  *sparse.mutable_sparse_tensor()->mutable_indices() = tensor_of<std::int64_t>("", {2}, {1, 2});
  add_node(g, "Constant", {}, {"k"}, {sparse});
  add_node(g, "Add", {"x", "k"}, {"y"});
  add_output(g, "y", {4});
  EXPECT_EQ(compute(load(model), {{1, 1, 1, 1}}), (reals{1, 6, 8, 1}));
}

TEST_F(onnx_import, functions_are_inlined_with_their_attributes) {
  proto::ModelProto model = new_model();
  auto& import = *model.add_opset_import();
  import.set_domain("mine");
  import.set_version(1);
  proto::FunctionProto& f = *model.add_functions();
  f.set_name("Leaky");
  f.set_domain("mine");
  f.add_input("x");
  f.add_input("bias");
  f.add_output("y");
  f.add_attribute("slope");
  *f.add_opset_import() = model.opset_import(0);
  proto::AttributeProto slope;
  slope.set_name("alpha");
  slope.set_ref_attr_name("slope");
  slope.set_type(proto::AttributeProto::FLOAT);
  add_node(f, "LeakyRelu", {"x"}, {"t"}, {slope});
  add_node(f, "Clip", {"t", "bias"}, {"y"});  // where the call leaves the bias out, there is no lower bound
  proto::GraphProto& g = *model.mutable_graph();
  add_input(g, "x", {2});
  add_node(g, "Leaky", {"x"}, {"y"}, {attribute("slope", 0.5F)}, "first").set_domain("mine");
  add_node(g, "Leaky", {"y"}, {"z"}, {attribute("slope", 0.25F)}, "second").set_domain("mine");
  add_output(g, "z", {2});
  EXPECT_EQ(compute(load(model), {{-8, 4}}), (reals{-1, 4}));

  proto::FunctionProto& loops = *model.add_functions();
  loops.set_name("Endless");
  loops.set_domain("mine");
  loops.add_input("x");
  loops.add_output("y");
  *loops.add_opset_import() = model.opset_import(0);
  add_node(loops, "Endless", {"x"}, {"y"}).set_domain("mine");
  add_node(g, "Endless", {"x"}, {"w"}).set_domain("mine");
  add_output(g, "w", {2});
  EXPECT_NE(refusal(model).find("nested more than 64 deep"), std::string::npos) << refusal(model);
}

TEST_F(onnx_import, shape_arithmetic_disappears) {
  proto::ModelProto model = new_model();
  proto::GraphProto& g = *model.mutable_graph();
  add_input(g, "x", {"batch", 6});
  add_initializer(g, tensor_of<std::int64_t>("zero", {1}, {0}));
  add_initializer(g, tensor_of<std::int64_t>("rest", {1}, {-1}));
  add_initializer(g, tensor_of<std::int64_t>("three", {1}, {3}));
  add_node(g, "Shape", {"x"}, {"dims"});
  add_node(g, "Gather", {"dims", "zero"}, {"batch"}, {attribute("axis", 0)});
  add_node(g, "Concat", {"batch", "three", "rest"}, {"target"}, {attribute("axis", 0)});
  add_node(g, "Reshape", {"x", "target"}, {"y"});
  add_output(g, "y", {"batch", 3, 2});
  const c::graph made = load(model, {.shapes = {{"x", {5, 6}}}});
  EXPECT_EQ(made.nodes().size(), 1U);
  EXPECT_EQ(made.type_of(made.outputs()[0]).dims, (c::shape{5, 3, 2}));
}

TEST_F(onnx_import, a_symbol_is_bound_by_another_input_unless_it_stands_for_several_sizes) {
  proto::ModelProto model = new_model();
  proto::GraphProto& g = *model.mutable_graph();
  for (const char* name : {"a", "b", "c"}) add_input(g, name, {"n", 2});
  add_node(g, "Concat", {"a", "b", "c"}, {"y"}, {attribute("axis", 0)});
  add_output(g, "y", {"m", 2});
  const c::graph made = load(model, {.shapes = {{"a", {3, 2}}}});
  EXPECT_EQ(made.type_of(made.outputs()[0]).dims, (c::shape{9, 2}));
  EXPECT_EQ(report.notes.size(), 2U);
  const std::string text = refusal(model, {.shapes = {{"a", {3, 2}}, {"b", {4, 2}}}});
  EXPECT_NE(text.find("--shape c=Nx2"), std::string::npos) << text;
  const c::graph all = load(model, {.shapes = {{"a", {3, 2}}, {"b", {4, 2}}, {"c", {1, 2}}}});
  EXPECT_EQ(all.type_of(all.outputs()[0]).dims, (c::shape{8, 2}));
}

TEST_F(onnx_import, initializers_listed_as_inputs_and_outputs_that_are_inputs_or_constants) {
  proto::ModelProto model = new_model();
  proto::GraphProto& g = *model.mutable_graph();
  add_input(g, "x", {2});
  add_input(g, "w", {2});
  add_initializer(g, tensor_of<float>("w", {2}, {5, 7}));
  add_node(g, "Identity", {"x"}, {"same"});
  for (const char* name : {"same", "w", "x"}) add_output(g, name, {2});
  const c::graph made = load(model);
  EXPECT_EQ(made.inputs().size(), 1U);
  EXPECT_EQ(compute(made, {{1, 2}}, 0), (reals{1, 2}));
  EXPECT_EQ(compute(made, {{1, 2}}, 1), (reals{5, 7}));
  EXPECT_EQ(compute(made, {{1, 2}}, 2), (reals{1, 2}));
}

TEST_F(onnx_import, nodes_in_any_order_and_imported_domains_that_nobody_uses) {
  proto::ModelProto model = new_model();
  auto& import = *model.add_opset_import();
  import.set_domain("nobody.uses.it");
  import.set_version(3);
  proto::GraphProto& g = *model.mutable_graph();
  add_input(g, "in:0", {1});
  add_node(g, "Neg", {"a/b:1"}, {"y"});
  add_node(g, "Exp", {"in:0"}, {"a/b:1"});
  add_output(g, "y", {1});
  EXPECT_EQ(compute(load(model), {{0}}), (reals{-1}));
}

TEST_F(onnx_import, a_rule_of_the_users_own_comes_first) {
  proto::ModelProto model = new_model();
  proto::GraphProto& g = *model.mutable_graph();
  add_input(g, "x", {2});
  add_node(g, "Relu", {"x"}, {"a"});
  add_node(g, "Halve", {"a"}, {"y"}, {attribute("times", 2)}).set_domain("mine");
  add_output(g, "y", {2});
  EXPECT_NE(refusal(model).find("mine.Halve"), std::string::npos);
  static constexpr c::onnx::lowering_rule rules[] = {
      {"mine", "Halve",
       [](c::onnx::lowering& n) {
         c::value y = n.operand(0);
         for (std::int64_t i = 0; i < n.integer("times", 1); ++i)
           y = n(c::ops::mul, y, n.scalar(0.5, n.element_type_of(y)));
         n.result(0, y);
       }},
      {"", "Relu", [](c::onnx::lowering& n) { n.result(0, n(c::ops::abs, n.operand(0))); }},
  };
  EXPECT_EQ(compute(load(model, {.rules = rules}), {{-8, 4}}), (reals{2, 1}));
}

TEST_F(onnx_import, limits_hold) {
  proto::ModelProto model = new_model();
  proto::GraphProto& g = *model.mutable_graph();
  add_initializer(g, tensor_of<std::int64_t>("dims", {2}, {1 << 20, 1 << 12}));
  add_node(g, "ConstantOfShape", {"dims"}, {"y"});
  add_output(g, "y", {1, 1});
  EXPECT_NE(refusal(model, {.most_bytes = std::size_t{1} << 30}).find("more than 1024 MiB of constants"),
            std::string::npos);
  EXPECT_NE(refusal(looping(true), {.most_nodes = 5}).find("becomes more than 5 nodes"), std::string::npos);
}

TEST_F(onnx_import, weightless_tensors_are_filled_by_their_rule) {
  proto::ModelProto model = new_model();
  proto::GraphProto& g = *model.mutable_graph();
  add_input(g, "x", {4});
  TensorProto w = tensor_header("w", TensorProto::FLOAT, {4});
  w.set_doc_string("uniform -1 1");
  add_initializer(g, w);
  add_node(g, "Add", {"x", "w"}, {"y"});
  add_output(g, "y", {4});
  c::graph made = load(model);
  c::fill_constants(made);
  std::vector<float> expected(4);
  c::fill_uniform(expected, "w", {-1, 1});
  EXPECT_EQ(compute(made, {{0, 0, 0, 0}}), reals(expected.begin(), expected.end()));
}

}  // namespace onnx_import_test
#endif
