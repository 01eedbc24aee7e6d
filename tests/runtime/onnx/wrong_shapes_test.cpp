// Shapes, and values that decide shapes, with which a session cannot run: each is refused in words, and the session goes on.
#ifdef COLLAGE_HAS_ONNX
#include <gtest/gtest.h>

#include <collage/error.hpp>
#include <collage/place/session.hpp>
#include <collage/run/session.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <string>
#include <vector>

#include "running.hpp"
#include "support/effort.hpp"
#include "support/messages.hpp"
#include "support/own_memory.hpp"
#include "support/random_numbers.hpp"
#include "support/sessions.hpp"
#include "writer.hpp"

namespace onnx_wrong_shapes_test {

namespace c = collage;
using namespace collage_test;
using proto::TensorProto;
using integers = std::vector<std::int64_t>;

constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max(),
                       least = std::numeric_limits<std::int64_t>::min();
/// More elements than any machine has memory for.
constexpr std::int64_t huge = std::int64_t{1} << 43;

c::tensor list_with(const integers& list) { return tensor_with<std::int64_t>({std::ssize(list)}, list); }

/// A model of one operator over x and the list "wanted", whose contents decide the shape of y.
proto::ModelProto deciding(const std::string& operator_type, const std::vector<declared_extent>& x,
                           const std::vector<std::string>& operands, std::int64_t count,
                           const std::vector<proto::AttributeProto>& attributes = {}) {
  proto::ModelProto model = new_model();
  auto& g = *model.mutable_graph();
  add_input(g, "x", x);
  add_input(g, "wanted", {count}, TensorProto::INT64);
  add_initializer(g, tensor_of<std::int64_t>("none", {1}, {0}));
  add_initializer(g, tensor_of<std::int64_t>("one", {}, {1}));
  add_node(g, operator_type, operands, {"made"}, attributes);
  if (operator_type == "TopK") g.mutable_node(g.node_size() - 1)->add_output("at");
  add_node(g, "Cast", {"made"}, {"y"}, {attribute("to", 1)});
  add_output(g, "y", {});
  return model;
}
proto::ModelProto reshaping() { return deciding("Reshape", {"N"}, {"x", "wanted"}, 2); }
proto::ModelProto expanding() { return deciding("Expand", {"N"}, {"x", "wanted"}, 2); }
proto::ModelProto taking_the_largest() { return deciding("TopK", {"N"}, {"x", "wanted"}, 1); }
proto::ModelProto ranging() {
  proto::ModelProto model = deciding("Range", {"N"}, {"none_0", "wanted_0", "one"}, 1);
  auto& g = *model.mutable_graph();
  add_node(g, "Squeeze", {"wanted", "none"}, {"wanted_0"});
  add_node(g, "Squeeze", {"none", "none"}, {"none_0"});
  return model;
}

c::tensor ones(std::int64_t count) {
  return tensor_with<float>({count}, std::vector<float>(static_cast<std::size_t>(count), 1.0F));
}

TEST(onnx_wrong_shapes, values_that_fit_no_shape) {
  running reshape(reshaping());
  const auto refused = [](running& run, const integers& wanted) { return run.refusal({ones(6), list_with(wanted)}); };
  EXPECT_TRUE(contains(refused(reshape, {4, 2}), "node made (Reshape"));
  EXPECT_TRUE(contains(refused(reshape, {-1, -1}), "node made (Reshape"));
  EXPECT_TRUE(contains(refused(reshape, {-3, -2}), "an extent of its target shape is -3"));
  EXPECT_TRUE(contains(refused(reshape, {huge, huge}), "its target shape is too large"));
  EXPECT_EQ(reshape({ones(6), list_with({3, 2})})[0].contents.type.dims, (c::shape{3, 2}));
  running top(taking_the_largest());
  EXPECT_TRUE(contains(refused(top, {7}), "node made (TopK")) << refused(top, {7});
  EXPECT_TRUE(contains(refused(top, {-1}), "node made (TopK")) << refused(top, {-1});
  EXPECT_EQ(top({ones(6), list_with({6})})[0].contents.type.dims, (c::shape{6}));
  running expand(expanding());
  EXPECT_TRUE(contains(refused(expand, {2, 5}), "node made (Expand")) << refused(expand, {2, 5});
  EXPECT_TRUE(contains(refused(expand, {-2, 6}), "node made (Expand")) << refused(expand, {-2, 6});
}

TEST(onnx_wrong_shapes, inputs_whose_extents_overflow) {
  proto::ModelProto model = new_model();
  auto& g = *model.mutable_graph();
  add_input(g, "x", {"A", "B"});
  add_node(g, "Neg", {"x"}, {"y"});
  add_output(g, "y", {"A", "B"});
  running run(model);
  const float element = 1;
  for (const c::shape& dims : {c::shape{huge, huge}, {std::int64_t{1} << 62, 4}, {most, most}, {most, 1}}) {
    const c::const_tensor_view x(&element, {c::dtype::f32, dims});
    EXPECT_TRUE(contains(run.refusal({x}), ", which no memory holds")) << run.refusal({x});
    const c::tensor_view y{nullptr, {c::dtype::f32, dims}};
    const std::vector<c::const_tensor_view> in{ones(1)};
    const std::vector<c::tensor_view> out{y};
    EXPECT_NE(message_of([&] { run.context.run(in, out); }, 2), "no error");
  }
  const c::const_tensor_view x(&element, {c::dtype::f32, {-2, 2}});
  EXPECT_TRUE(contains(run.refusal({x}), "input x: is given with an extent that is not known")) << run.refusal({x});
  EXPECT_EQ(run({tensor_with<float>({1, 1}, {2})})[0].contents.as<float>()[0], -2);
}

/// The message of a run that needs more memory than there is.
std::string refusal_of_size(running& run, std::initializer_list<c::const_tensor_view> inputs) {
  std::string text = "no error";
  try {
    (void)run.context.run(inputs);
  } catch (const c::error& e) { text = e.what(); }
  return text;
}

TEST(onnx_wrong_shapes, results_that_no_memory_holds) {
  const std::size_t before = own_memory("VmHWM");
  running expand(expanding()), tile(deciding("Tile", {"N"}, {"x", "wanted"}, 1)),
      filled(deciding("ConstantOfShape", {"N"}, {"wanted"}, 2)), range(ranging());
  const auto text = [](running& run, const integers& wanted) {
    return refusal_of_size(run, {ones(1), list_with(wanted)});
  };
  for (int again = 0; again < 2; ++again) {
    EXPECT_TRUE(contains(text(expand, {huge, 2}), "value made, float32[8796093022208x2]: needs 70368744.2 MB, but "))
        << text(expand, {huge, 2});
    EXPECT_TRUE(contains(text(tile, {huge}), "value made, float32[8796093022208]: needs 35184372.1 MB, but "))
        << text(tile, {huge});
    EXPECT_TRUE(contains(text(filled, {huge, 2}), "a constant of it would be too large")) << text(filled, {huge, 2});
    EXPECT_TRUE(contains(text(filled, {1 << 20, 1 << 18}), "loading it would make more than"))
        << text(filled, {1 << 20, 1 << 18});
    EXPECT_TRUE(contains(text(filled, {-2, 2}), "an extent of its shape is -2")) << text(filled, {-2, 2});
    EXPECT_TRUE(contains(text(range, {huge}), "it has too many elements")) << text(range, {huge});
    EXPECT_TRUE(contains(text(range, {std::int64_t{1} << 38}), "loading it would make more than"))
        << text(range, {std::int64_t{1} << 38});
  }
  EXPECT_EQ(expand({ones(1), list_with({2, 3})})[0].contents.type.dims, (c::shape{2, 3}));
  EXPECT_EQ(range({ones(1), list_with({3})})[0].contents.type.dims, (c::shape{3}));
  if (!keeps_memory) EXPECT_LT(own_memory("VmHWM") - before, std::size_t{64} << 20);
}

TEST(onnx_wrong_shapes, an_empty_result_may_have_a_long_side) {
  proto::ModelProto model = deciding("CenterCropPad", {"A", "B"}, {"x", "wanted"}, 2);
  model.mutable_opset_import(0)->set_version(18);
  running run(model);
  const c::tensor x = tensor_with<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  const std::size_t before = own_memory("VmHWM");
  EXPECT_EQ(run({x, list_with({0, huge})})[0].contents.type.dims, (c::shape{0, huge}));
  if (!keeps_memory) EXPECT_LT(own_memory("VmHWM") - before, std::size_t{64} << 20);
  EXPECT_EQ(run({x, list_with({1, 4})})[0].contents.type.dims, (c::shape{1, 4}));
}

TEST(onnx_wrong_shapes, a_product_that_no_memory_holds) {
  // Small inputs, and all pairs of their elements.
  proto::ModelProto model = new_model();
  auto& g = *model.mutable_graph();
  add_input(g, "a", {"A", 1});
  add_input(g, "b", {1, "B"});
  add_node(g, "MatMul", {"a", "b"}, {"product"});
  add_node(g, "Relu", {"product"}, {"inside"});
  add_node(g, "ReduceMax", {"inside"}, {"y"}, {attribute("keepdims", 0)});
  add_output(g, "y", {});
  running run(model);
  const std::int64_t side = std::int64_t{1} << 21;
  const c::tensor a(c::tensor_type{c::dtype::f32, {side, 1}}), b(c::tensor_type{c::dtype::f32, {1, side}});
  EXPECT_TRUE(contains(refusal_of_size(run, {a, b}), "value product, float32[2097152x2097152]: needs"))
      << refusal_of_size(run, {a, b});
  EXPECT_EQ(run({tensor_with<float>({2, 1}, {1, 2}), tensor_with<float>({1, 2}, {3, 4})})[0].contents.as<float>()[0],
            8);
}

TEST(onnx_wrong_shapes, a_loop_that_grows_too_often) {
  proto::ModelProto model = new_model();
  auto& g = *model.mutable_graph();
  add_input(g, "x", {"N"});
  add_input(g, "rounds", {}, TensorProto::INT64);
  add_initializer(g, tensor_of<bool>("yes", {}, {true}));
  proto::GraphProto body;
  body.set_name("body");
  add_input(body, "i", {}, TensorProto::INT64);
  add_input(body, "c", {}, TensorProto::BOOL);
  add_input(body, "v", {"K"});
  add_node(body, "Concat", {"v", "x"}, {"longer"}, {attribute("axis", 0)});
  add_node(body, "Identity", {"c"}, {"goes_on"});
  add_output(body, "goes_on", {}, TensorProto::BOOL);
  add_output(body, "longer", {"K"});
  add_node(g, "Loop", {"rounds", "yes", "x"}, {"y"}, {attribute("body", body)});
  add_output(g, "y", {"K"});
  running run(model);
  const auto rounds = [](std::int64_t n) { return tensor_with<std::int64_t>({}, {n}); };
  EXPECT_EQ(run({ones(2), rounds(3)})[0].contents.type.dims, (c::shape{8}));
  for (const std::int64_t n : {std::int64_t{100000}, most}) {
    const std::string why = run.refusal({ones(2), rounds(n)});
    EXPECT_TRUE(contains(why, "(Loop")) << why;
    EXPECT_TRUE(
        contains(why, "a carried value changes its type or shape, and its iterations become more than 1000 nodes"))
        << why;
  }
}

TEST(onnx_wrong_shapes, symbols_that_contradict_in_a_later_stage) {
  // b is read in the stage after NonZero.
  proto::ModelProto model = new_model();
  auto& g = *model.mutable_graph();
  add_input(g, "a", {"N"});
  add_input(g, "b", {"N"});
  add_node(g, "Neg", {"a"}, {"n"});
  add_node(g, "NonZero", {"n"}, {"at"});
  add_node(g, "Size", {"at"}, {"count"});
  add_node(g, "Cast", {"count"}, {"real"}, {attribute("to", 1)});
  add_node(g, "Add", {"n", "real"}, {"more"});
  add_node(g, "Add", {"more", "b"}, {"y"});
  add_output(g, "y", {"N"});
  running run(model);
  const std::string why = run.refusal({ones(2), ones(3)});
  EXPECT_TRUE(contains(why, "The extent N is 2 in input a and 3 in input b.")) << why;
}

// Values from end to end of int64 --------------------------------------------------------------------------------------------

struct decided_model {
  proto::ModelProto model;
  c::shape x;
  std::int64_t count;
  integers works;
};

std::vector<decided_model> decided_models() {
  std::vector<decided_model> all;
  const auto add = [&](const proto::ModelProto& model, const c::shape& x, const integers& works) {
    all.push_back({model, x, std::ssize(works), works});
  };
  add(reshaping(), {6}, {3, 2});
  add(expanding(), {1}, {3, 2});
  add(taking_the_largest(), {6}, {3});
  add(ranging(), {6}, {3});
  add(deciding("Tile", {"A", "B"}, {"x", "wanted"}, 2), {2, 3}, {2, 1});
  add(deciding("ConstantOfShape", {"N"}, {"wanted"}, 2), {1}, {2, 3});
  add(deciding("Slice", {"N"}, {"x", "wanted", "none"}, 1), {6}, {-2});
  add(deciding("Slice", {"N"}, {"x", "none", "wanted"}, 1), {6}, {2});
  add(deciding("Slice", {"N"}, {"x", "none", "five", "none", "wanted"}, 1), {6}, {2});
  add_initializer(*all.back().model.mutable_graph(), tensor_of<std::int64_t>("five", {1}, {5}));
  add(deciding("Pad", {"N"}, {"x", "wanted"}, 2), {6}, {1, 2});
  add(deciding("Pad", {"N"}, {"x", "wanted"}, 2, {attribute("mode", "reflect")}), {6}, {1, 2});
  add(deciding("Unsqueeze", {"N"}, {"x", "wanted"}, 1), {6}, {1});
  add(deciding("Resize", {1, 1, "H", "W"}, {"x", "", "", "wanted"}, 4), {1, 1, 2, 2}, {1, 1, 3, 4});
  add(deciding("CenterCropPad", {"A", "B"}, {"x", "wanted"}, 2), {2, 3}, {3, 2});
  all.back().model.mutable_opset_import(0)->set_version(18);
  add(deciding("OneHot", {"N"}, {"x", "wanted_0", "pair"}, 1), {2}, {4});
  add_node(*all.back().model.mutable_graph(), "Squeeze", {"wanted", "none"}, {"wanted_0"});
  add_initializer(*all.back().model.mutable_graph(), tensor_of<float>("pair", {2}, {0, 1}));
  add(deciding("Split", {"N"}, {"x", "wanted"}, 2), {6}, {2, 4});
  all.back().model.mutable_graph()->mutable_node(0)->add_output("rest");
  // Arithmetic over shapes.
  add(deciding("Reshape", {"N"}, {"x", "product"}, 1), {6}, {1});
  auto& g = *all.back().model.mutable_graph();
  add_node(g, "Shape", {"x"}, {"dims"});
  add_node(g, "Mul", {"dims", "wanted"}, {"product"});
  return all;
}

void run_with_any_values(int rounds, bool compares) {
  random_numbers random;
  // Such that a result is small or does not fit into any memory.
  const integers numbers{
      least,    least + 1, -huge, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, huge, std::int64_t{1} << 59, std::int64_t{1} << 62,
      most - 1, most};
  c::onnx::load_options options;
  options.most_bytes = std::size_t{16} << 20;
  const std::size_t before = own_memory("VmHWM");
  std::size_t ran = 0, refused = 0;
  for (const decided_model& m : decided_models()) {
    running run(m.model, {.most_engines = 4}, options);
    if (compares) {
      run.session = c::make_session<session_backends>(run.source);
      run.context = run.session.context();
    }
    const std::string where = m.model.graph().node(0).op_type();
    const c::tensor x(c::tensor_type{c::dtype::f32, m.x});
    for (int i = 0; i < rounds; ++i) {
      integers wanted = m.works;
      for (std::int64_t& n : wanted)
        if (random.chance(0.7)) n = numbers[static_cast<std::size_t>(random.number(0, std::ssize(numbers) - 1))];
      const auto start = std::chrono::steady_clock::now();
      std::string text = where + " of";
      for (const std::int64_t n : wanted) text += " " + std::to_string(n);
      text += ", seed " + std::to_string(random.seed());
      try {
        (void)run({x, list_with(wanted)});
        ++ran;
      } catch (const c::error& e) {
        ++refused;
        EXPECT_FALSE(contains(e.what(), "please report it")) << text << ": " << e.what();
      } catch (const std::exception& e) { ADD_FAILURE() << text << " threw something else: " << e.what(); }
      EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), 60)
          << text;  // it hangs nowhere
    }
    EXPECT_NO_THROW((void)run({x, list_with(m.works)})) << where;
  }
  std::cout << ran << " ran, " << refused << " were refused\n";
  EXPECT_GT(ran, refused / 20);
  EXPECT_GT(refused, ran / 20);
  if (!keeps_memory) EXPECT_LT(own_memory("VmHWM") - before, std::size_t{512} << 20);
}

TEST(onnx_wrong_shapes, any_values_that_decide_shapes) { run_with_any_values(cases(30), false); }
TEST(onnx_wrong_shapes, any_values_where_kernels_are_compared) { run_with_any_values(cases(10), true); }
TEST(onnx_wrong_shapes_long, any_values_that_decide_shapes) { run_with_any_values(300, false); }
TEST(onnx_wrong_shapes_long, any_values_where_kernels_are_compared) { run_with_any_values(100, true); }

}  // namespace onnx_wrong_shapes_test
#endif
