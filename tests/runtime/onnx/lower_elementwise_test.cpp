// How numbers become another type, and how their bits are read as one.
#ifdef COLLAGE_HAS_ONNX
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "live_node.hpp"
#include "support/reference_check.hpp"
#include "writer.hpp"

namespace onnx_lower_elementwise_test {

using namespace collage_test;
using namespace collage_test::reference;

TEST(onnx_bit_cast, keeps_bits) {
  live_node integers_only(26, {integers({3}, {-1, 0, 5})});
  integers_only.finish("BitCast", 1, {attribute("to", static_cast<int>(proto::TensorProto::UINT64))});
  const oracle_value y = integers_only.computed().at(0);
  EXPECT_EQ(y.type.type, dtype::u64);
  EXPECT_EQ(y.integer, (std::vector<std::int64_t>{-1, 0, 5}));  // as the oracle holds uint64

  proto::ModelProto model = new_model(26);
  proto::GraphProto& g = *model.mutable_graph();
  add_initializer(g, tensor_of<float>("x", {2}, {1, -2}));
  add_node(g, "BitCast", {"x"}, {"y"}, {attribute("to", static_cast<int>(proto::TensorProto::INT32))});
  add_output(g, "y", {});
  const model_folder folder;
  EXPECT_EQ(collage::evaluate(collage::onnx::load(folder.write(model)), {}).at(0).integer,
            (std::vector<std::int64_t>{0x3F800000, static_cast<std::int32_t>(0xC0000000)}));

  live_node running(26, {reals({2}, {1, 2})});
  running.finish("BitCast", 1, {attribute("to", static_cast<int>(proto::TensorProto::INT32))});
  EXPECT_NE(running.refusal().find("the number whose bits it reads as another type must be known"), std::string::npos);
  live_node sizes(26, {reals({2}, {1, 2})});
  sizes.finish("BitCast", 1, {attribute("to", static_cast<int>(proto::TensorProto::INT64))});
  EXPECT_NE(sizes.refusal().find("differ in size"), std::string::npos);
}

TEST(onnx_bit_cast, looks_at_the_bits_of_small_types) {
  constexpr int u4 = 21, i4 = 22, e2m1 = 23, e4m3fn = 17;
  const auto read_as = [&](int from, int to) {
    proto::ModelProto model = new_model(26);
    proto::GraphProto& g = *model.mutable_graph();
    proto::TensorProto x = tensor_header("x", from, {2});
    x.set_raw_data(from == e4m3fn ? "\x38\xC0" : "\x5F");
    add_initializer(g, x);
    add_node(g, "BitCast", {"x"}, {"y"}, {attribute("to", to)});
    add_output(g, "y", {});
    const model_folder folder;
    return collage::evaluate(collage::onnx::load(folder.write(model)), {}).at(0);
  };
  EXPECT_EQ(read_as(u4, i4).integer, (std::vector<std::int64_t>{-1, 5}));
  EXPECT_EQ(read_as(i4, e2m1).real, (std::vector<double>{-6, 3}));
  EXPECT_EQ(read_as(e2m1, u4).integer, (std::vector<std::int64_t>{15, 5}));
  EXPECT_EQ(read_as(e4m3fn, static_cast<int>(proto::TensorProto::INT8)).integer,
            (std::vector<std::int64_t>{0x38, -64}));
  live_node sizes(26, {integers({1}, {1})});
  sizes.finish("BitCast", 1, {attribute("to", i4)});
  EXPECT_NE(sizes.refusal().find("differ in size"), std::string::npos);
}

TEST(onnx_cast, obeys_its_attributes_for_small_floating_point_types) {
  constexpr int e4m3fn = 17, e8m0 = 24;
  const auto cast = [&](int to, const std::vector<proto::AttributeProto>& more) {
    live_node n(25, {reals({3}, {5, 6.5, 1e30})});
    std::vector<proto::AttributeProto> attributes = more;
    attributes.push_back(attribute("to", to));
    n.finish("Cast", 1, attributes);
    return n.computed().at(0).real;
  };
  const auto powers = [&](const char* how) { return cast(e8m0, {attribute("round_mode", how)}); };
  EXPECT_EQ(cast(e8m0, {}), (std::vector<double>{8, 8, 0x1p100}));
  EXPECT_EQ(powers("up"), (std::vector<double>{8, 8, 0x1p100}));
  EXPECT_EQ(powers("down"), (std::vector<double>{4, 4, 0x1p99}));
  EXPECT_EQ(powers("nearest"), (std::vector<double>{4, 8, 0x1p100}));
  EXPECT_EQ(cast(e4m3fn, {}), (std::vector<double>{5, 6.5, 448}));
  EXPECT_TRUE(std::isnan(cast(e4m3fn, {attribute("saturate", 0)})[2]));
  live_node wrong(25, {reals({1}, {1})});
  wrong.finish("Cast", 1, {attribute("to", e8m0), attribute("round_mode", "odd")});
  EXPECT_NE(wrong.refusal().find("its round_mode is \"odd\", and must be up, down or nearest"), std::string::npos);
}

TEST(onnx_small_types, operators_that_compute_refuse_them) {
  proto::ModelProto model = new_model(25);
  proto::GraphProto& g = *model.mutable_graph();
  add_input(g, "x", {2}, 17);
  add_node(g, "Transpose", {"x"}, {"t"});
  add_node(g, "Relu", {"t"}, {"y"});
  add_output(g, "y", {2}, 17);
  const model_folder folder;
  const std::string file = folder.write(model);
  EXPECT_NE(message_of([&] {
              (void)collage::onnx::load(file);
            }).find("numbers of its element type are only stored, moved and converted: cast it to a larger type first"),
            std::string::npos);
}

TEST(onnx_operator_sets, before_7_only_what_did_not_change_until_then) {
  live_node softplus(1, {reals({1}, {0})});
  softplus.finish("Softplus", 1, {});
  EXPECT_NEAR(softplus.computed().at(0).real[0], std::log(2.0), 1e-6);
  for (const std::int64_t opset : {5, 6}) {
    live_node relu(opset, {reals({2}, {-1, 2})});
    relu.finish("Relu", 1, {});
    if (opset == 6) EXPECT_EQ(relu.computed().at(0).real, (std::vector<double>{0, 2}));
    else
      EXPECT_NE(relu.refusal().find("its definition in operator set 5 is not supported, only that from 7 on"),
                std::string::npos);
  }
  live_node sum(6, {reals({2}, {-1, 2}), reals({2}, {-1, 2})});
  sum.finish("Add", 1, {});
  EXPECT_NE(sum.refusal().find("operator set 6 is not supported"), std::string::npos);
}

}  // namespace onnx_lower_elementwise_test
#endif
