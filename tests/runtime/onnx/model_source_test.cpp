// Models whose shapes are known late: symbols, values that decide shapes, stages where data decides, and what is refused.
#ifdef COLLAGE_HAS_ONNX
#include <gtest/gtest.h>
#include <collage/backends/reference.hpp>
#include <collage/io/onnx.hpp>
#include <collage/io/onnx/model_source.hpp>
#include <collage/run/buffers.hpp>
#include <collage/run/session.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "running.hpp"
#include "support/effort.hpp"
#include "support/messages.hpp"
#include "support/random_numbers.hpp"
#include "support/sessions.hpp"
#include "writer.hpp"

namespace onnx_model_source_test {

namespace c = collage;
using namespace collage_test;
using proto::TensorProto;

/// y = x + x, with x float32[N x T].
proto::ModelProto twice() {
  proto::ModelProto model = new_model();
  auto& g = *model.mutable_graph();
  add_input(g, "x", {"N", "T"});
  add_node(g, "Add", {"x", "x"}, {"y"});
  add_output(g, "y", {"N", "T"});
  return model;
}

TEST(model_source, declares_symbols_and_runs_at_any_shape) {
  running run(twice());
  ASSERT_EQ(run.session.inputs().size(), 1U);
  EXPECT_EQ(run.session.inputs()[0].symbols, (std::vector<std::string>{"N", "T"}));
  EXPECT_EQ(run.session.outputs()[0].name, "y");
  EXPECT_EQ(list_of<float>(run({tensor_with<float>({1, 2}, {1, 2})})[0]), (std::vector<float>{2, 4}));
  EXPECT_EQ(list_of<float>(run({tensor_with<float>({2, 1}, {3, 4})})[0]), (std::vector<float>{6, 8}));
  EXPECT_EQ(run({tensor_with<float>({0, 4}, {})})[0].contents.type.dims, (c::shape{0, 4}));
  EXPECT_EQ(run.session.state().made, 3U);
}

TEST(model_source, shape_arithmetic_follows_the_shapes) {
  // y = x reshaped to [N, T * 2], computed from Shape as exporters write it.
  proto::ModelProto model = new_model();
  auto& g = *model.mutable_graph();
  add_input(g, "x", {"N", "T", 2});
  add_initializer(g, tensor_of<std::int64_t>("last", {1}, {-1}));
  add_initializer(g, tensor_of<std::int64_t>("first", {1}, {0}));
  add_node(g, "Shape", {"x"}, {"dims"});
  add_node(g, "Gather", {"dims", "first"}, {"rows"});
  add_node(g, "Concat", {"rows", "last"}, {"target"}, {attribute("axis", 0)});
  add_node(g, "Reshape", {"x", "target"}, {"y"});
  add_output(g, "y", {"N", "M"});
  running run(model);
  EXPECT_EQ(run({tensor_with<float>({1, 2, 2}, {1, 2, 3, 4})})[0].contents.type.dims, (c::shape{1, 4}));
  EXPECT_EQ(run({tensor_with<float>({2, 1, 2}, {1, 2, 3, 4})})[0].contents.type.dims, (c::shape{2, 2}));
}

TEST(model_source, values_that_decide_shapes_are_inputs) {
  // y = x reshaped to an input's contents, of which one extent is computed.
  proto::ModelProto model = new_model();
  auto& g = *model.mutable_graph();
  add_input(g, "x", {"N"});
  add_input(g, "rows", {1}, TensorProto::INT64);
  add_initializer(g, tensor_of<std::int64_t>("rest", {1}, {-1}));
  add_node(g, "Concat", {"rows", "rest"}, {"target"}, {attribute("axis", 0)});
  add_node(g, "Reshape", {"x", "target"}, {"y"});
  add_output(g, "y", {"A", "B"});
  running run(model);
  const c::tensor x = tensor_with<float>({6}, {1, 2, 3, 4, 5, 6});
  const auto dims = [&](std::int64_t rows) {
    return run({x, tensor_with<std::int64_t>({1}, {rows})})[0].contents.type.dims;
  };
  EXPECT_EQ(dims(2), (c::shape{2, 3}));
  EXPECT_EQ(dims(3), (c::shape{3, 2}));
  EXPECT_EQ(dims(2), (c::shape{2, 3}));
  EXPECT_EQ(run.session.state().made, 2U);  // the contents are part of what an engine was made for
  const std::string why = run.refusal({x, tensor_with<std::int64_t>({1}, {4})});
  EXPECT_TRUE(contains(why, "node y (Reshape")) << why;
}

/// y = the positive elements of x + 1, doubled; and how many there are.
proto::ModelProto positive_elements() {
  proto::ModelProto model = new_model();
  auto& g = *model.mutable_graph();
  add_input(g, "x", {"N"});
  add_initializer(g, tensor_of<float>("one", {}, {1}));
  add_initializer(g, tensor_of<float>("zero", {}, {0}));
  add_node(g, "Add", {"x", "one"}, {"more"});
  add_node(g, "Greater", {"more", "zero"}, {"is"});
  add_node(g, "NonZero", {"is"}, {"at"});
  add_node(g, "Squeeze", {"at"}, {"list"});
  add_node(g, "Gather", {"more", "list"}, {"kept"});
  add_node(g, "Add", {"kept", "kept"}, {"y"});
  add_node(g, "Size", {"kept"}, {"count"});
  add_node(g, "Neg", {"more"}, {"early"});
  add_output(g, "y", {"M"});
  add_output(g, "count", {}, TensorProto::INT64);
  add_output(g, "early", {"N"});
  return model;
}

TEST(model_source, data_that_decides_shapes_ends_a_stage) {
  running run(positive_elements());
  const auto check = [&](const std::vector<float>& x) {
    const auto outputs = run({tensor_with<float>({static_cast<std::int64_t>(x.size())}, x)});
    std::vector<float> kept, early;
    for (const float e : x) {
      if (e + 1 > 0) kept.push_back(2 * (e + 1));
      early.push_back(-(e + 1));
    }
    EXPECT_EQ(list_of<float>(outputs[0]), kept);
    EXPECT_EQ(list_of<std::int64_t>(outputs[1]), std::vector<std::int64_t>{std::ssize(kept)});
    EXPECT_EQ(list_of<float>(outputs[2]), early);
  };
  check({1, -2, 3});
  check({-5, 4, -6});
  check({-5, -5, -5});
  check({1, 1});
  check({7, -2, 8});  // as many as the first: nothing new is made
  EXPECT_EQ(run.session.state().made, 6U);
}

TEST(model_source, random_data_ends_stages_rightly_within_few_engines) {
  running run(positive_elements(), {.most_engines = 3});
  random_numbers random;
  for (int i = 0; i < cases(40); ++i) {
    std::vector<float> x(static_cast<std::size_t>(random.number(2, 6)));
    for (float& e : x) e = static_cast<float>(random.number(-3, 3));
    const auto outputs = run({tensor_with<float>({std::ssize(x)}, x)});
    std::vector<float> kept;
    for (const float e : x)
      if (e + 1 > 0) kept.push_back(2 * (e + 1));
    ASSERT_EQ(list_of<float>(outputs[0]), kept) << random.seed();
    ASSERT_LE(run.session.state().engines, 3U);
  }
}

TEST(model_source, a_computed_value_that_decides_a_shape_ends_a_stage) {
  // The number of rows to take is the largest element of a long input: too long to be part of what an engine is made for.
  proto::ModelProto model = new_model();
  auto& g = *model.mutable_graph();
  add_input(g, "x", {"N"});
  add_initializer(g, tensor_of<std::int64_t>("start", {1}, {0}));
  add_initializer(g, tensor_of<std::int64_t>("one", {1}, {1}));
  add_node(g, "ReduceMax", {"x"}, {"largest"}, {attribute("keepdims", 0)});
  add_node(g, "Cast", {"largest"}, {"whole"}, {attribute("to", 7)});
  add_node(g, "Reshape", {"whole", "one"}, {"end"});
  add_node(g, "Slice", {"x", "start", "end"}, {"y"});
  add_output(g, "y", {"M"});
  running run(model);
  std::vector<float> x(100, 1.0F);
  for (const int end : {3, 5, 3}) {
    x[7] = static_cast<float>(end);
    EXPECT_EQ(list_of<float>(run({tensor_with<float>({100}, x)})[0]),
              std::vector<float>(static_cast<std::size_t>(end), 1.0F));
  }
  EXPECT_EQ(run.session.state().made, 3U);  // one for the maximum, and two for the slices
}

TEST(model_source, branches_of_different_shapes_are_chosen_while_running) {
  proto::ModelProto model = new_model();
  auto& g = *model.mutable_graph();
  add_input(g, "x", {100});
  add_initializer(g, tensor_of<float>("zero", {}, {0}));
  add_node(g, "ReduceMax", {"x"}, {"largest"}, {attribute("keepdims", 0)});
  add_node(g, "Greater", {"largest", "zero"}, {"is"});
  const auto branch = [](const std::string& operator_type, const std::string& output) {
    proto::GraphProto body;
    body.set_name(output);
    add_node(body, operator_type, {"x"}, {output});
    add_output(body, output, {"K"});
    return body;
  };
  add_node(g, "If", {"is"}, {"y"},
           {attribute("then_branch", branch("Neg", "negative")), attribute("else_branch", branch("ReduceSum", "sum"))});
  add_output(g, "y", {"K"});
  running run(model);
  EXPECT_EQ(list_of<float>(run({tensor_with<float>({100}, std::vector<float>(100, 2.0F))})[0]),
            std::vector<float>(100, -2.0F));
  EXPECT_EQ(list_of<float>(run({tensor_with<float>({100}, std::vector<float>(100, -1.0F))})[0]),
            std::vector<float>{-100.0F});
}

TEST(model_source, the_same_as_a_network_with_fixed_shapes) {
  // Random shapes of a small convolution with shape arithmetic behind it.
  proto::ModelProto model = new_model();
  auto& g = *model.mutable_graph();
  add_input(g, "x", {"N", 2, "H", "W"});
  add_initializer(g, tensor_of<float>("w", {3, 2, 3, 3}, std::vector<float>(54, 0.1F)));
  add_initializer(g, tensor_of<std::int64_t>("target", {3}, {0, 3, -1}));
  add_node(g, "Conv", {"x", "w"}, {"made"}, {attribute("pads", std::vector<std::int64_t>{1, 1, 1, 1})});
  add_node(g, "Reshape", {"made", "target"}, {"flat"});
  add_node(g, "Softmax", {"flat"}, {"y"}, {attribute("axis", -1)});
  add_output(g, "y", {"N", 3, "M"});
  running run(model);
  random_numbers random;
  for (int i = 0; i < cases(12); ++i) {
    const c::shape dims{random.number(1, 2), 2, random.number(1, 9), random.number(1, 9)};
    c::tensor x(c::tensor_type{c::dtype::f32, dims});
    c::fill_random(x, random.engine());
    const std::vector<c::const_tensor_view> in{x};
    const c::graph fixed = c::onnx::load(run.folder.path("a.onnx"), {.shapes = {{"x", dims}}});
    const c::oracle_value expected = c::evaluate(fixed, in)[0];
    const c::session_output y = run.context.run(in)[0];
    ASSERT_EQ(y.contents.type.dims, expected.type.dims);
    for (std::size_t k = 0; k < expected.real.size(); ++k)
      ASSERT_NEAR(y.contents.as<float>()[k], expected.real[k], 1e-5) << "seed " << random.seed();
  }
}

TEST(model_source, constants_share_their_memory_at_all_shapes) {
  proto::ModelProto model = new_model();
  auto& g = *model.mutable_graph();
  add_input(g, "x", {"N", 64});
  add_initializer(g, tensor_of<float>("w", {64, 64}, std::vector<float>(4096, 0.5F)));
  add_node(g, "MatMul", {"x", "w"}, {"y"});
  add_output(g, "y", {"N", 64});
  model_folder folder;
  const c::onnx::model_source source(folder.write(model));
  const auto weights_of = [&](std::int64_t rows) {
    const c::tensor x(c::tensor_type{c::dtype::f32, {rows, 64}});
    const std::vector<c::given_value> given{{"x", x}};
    const c::graph network = source.make(nullptr, given).network;
    for (std::uint32_t v = 0; v < network.values().size(); ++v)
      if (network.value_name(v) == "w") return network.constant(v).bytes;
    return std::shared_ptr<const std::byte>();
  };
  ASSERT_NE(weights_of(1), nullptr);
  EXPECT_EQ(weights_of(1), weights_of(5));
}

TEST(model_source, says_which_symbols_contradict) {
  proto::ModelProto model = new_model();
  auto& g = *model.mutable_graph();
  add_input(g, "a", {"N", 2});
  add_input(g, "b", {"N", 2});
  add_node(g, "Add", {"a", "b"}, {"y"});
  add_output(g, "y", {"N", 2});
  running run(model);
  const std::string why =
      run.refusal({tensor_with<float>({2, 2}, {1, 2, 3, 4}), tensor_with<float>({3, 2}, {1, 2, 3, 4, 5, 6})});
  EXPECT_TRUE(contains(why, "The extent N is 2 in input a and 3 in input b.")) << why;
  // Where the network can be made all the same, the names do not matter.
  EXPECT_EQ(run({tensor_with<float>({1, 2}, {1, 2}), tensor_with<float>({2, 2}, {1, 2, 3, 4})})[0].contents.type.dims,
            (c::shape{2, 2}));
}

TEST(model_source, refuses_what_it_does_not_support_at_once) {
  proto::ModelProto model = new_model();
  auto& g = *model.mutable_graph();
  add_input(g, "x", {"N"}, TensorProto::STRING);
  add_node(g, "Identity", {"x"}, {"y"});
  add_output(g, "y", {"N"}, TensorProto::STRING);
  model_folder folder;
  const std::string why = message_of([&] { (void)c::onnx::model_source(folder.write(model)); }, 2);
  EXPECT_TRUE(contains(why, "input x: its element type string is not supported")) << why;
}

/// Open shapes do not hide operators that nothing can import. What no output needs, or only a branch has, may be unknown.
TEST(model_source, refuses_unknown_operators_at_once) {
  const auto refusal = [](const char* read) {
    proto::ModelProto model = twice();
    auto& g = *model.mutable_graph();
    add_node(g, "Frobnicate", {"x"}, {"f"});
    add_node(g, "Add", {"x", read}, {"sum"});
    add_output(g, "sum", {"N", "T"});
    model_folder folder;
    return message_of([&] { (void)c::onnx::model_source(folder.write(model)); }, 2);
  };
  EXPECT_TRUE(contains(refusal("f"), "Frobnicate")) << refusal("f");
  EXPECT_TRUE(contains(refusal("f"), "this operator is not known")) << refusal("f");
  EXPECT_EQ(refusal("x"), "no error");

  // A branch that is never taken.
  proto::ModelProto model = new_model();
  auto& g = *model.mutable_graph();
  add_input(g, "x", {"N"});
  add_initializer(g, tensor_of<bool>("always", {}, {true}));
  const auto branch = [](const std::string& operator_type) {
    proto::GraphProto body;
    add_node(body, operator_type, {"x"}, {operator_type});
    add_output(body, operator_type, {"N"});
    return body;
  };
  add_node(g, "If", {"always"}, {"y"},
           {attribute("then_branch", branch("Neg")), attribute("else_branch", branch("Frobnicate"))});
  add_output(g, "y", {"N"});
  running run(model);
  EXPECT_EQ(list_of<float>(run({tensor_with<float>({1}, {2})})[0]), (std::vector<float>{-2}));
}

TEST(model_source, bound_inputs_and_fixed_shapes) {
  model_folder folder;
  proto::ModelProto model = twice();
  add_input(*model.mutable_graph(), "z", {"N"});
  add_node(*model.mutable_graph(), "Neg", {"z"}, {"n"});
  add_output(*model.mutable_graph(), "n", {"N"});
  std::shared_ptr<const c::onnx::model_source> source;
  {
    const c::tensor z = tensor_with<float>({2}, {5, 6});  // need not live as long as the source
    source = std::make_shared<const c::onnx::model_source>(
        folder.write(model), c::onnx::load_options{.shapes = {{"x", {2, 3}}}, .values = {{"z", z}}});
  }
  ASSERT_EQ(source->inputs().size(), 1U);
  EXPECT_EQ(source->inputs()[0].dims, (c::shape{2, 3}));
  const c::session session = unmeasured_session(source);
  c::session_context context = session.context();
  const c::tensor x = tensor_with<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(list_of<float>(context.run({x})[1]), (std::vector<float>{-5, -6}));
  const c::tensor other = tensor_with<float>({1, 3}, {1, 2, 3});
  EXPECT_NE(message_of([&] { (void)context.run({other}); }, 2), "no error");
}

}  // namespace onnx_model_source_test
#endif
