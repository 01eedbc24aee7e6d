// How the types of quantised operators are lowered: the precision of quotients, and the types of results.
#ifdef COLLAGE_HAS_ONNX
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "live_node.hpp"
#include "support/reference_check.hpp"
#include "writer.hpp"

namespace onnx_lower_quantise_test {

using namespace collage_test;
using namespace collage_test::reference;

/// The nearest number of float16.
double narrowed(double x) {
  oracle_value one(collage::tensor_type{dtype::f16, {}});
  one.real[0] = x;
  return collage::to_oracle({bytes_of(one).get(), one.type}).real[0];
}

TEST(onnx_quantize_linear, refuses_precisions_that_are_none) {
  live_node n(23, {reals({2}, {1, 2}), reals({}, {1})});
  n.finish("QuantizeLinear", 1, {attribute("precision", 7)});
  EXPECT_NE(n.refusal().find("precision must be a floating-point type"), std::string::npos);
  // The quotient is 7.498 in float32, and 7.5 in float16, which rounds to 8.
  live_node ties(23, {reals({1}, {static_cast<double>(2.9991F)}), reals({}, {static_cast<double>(0.4F)})});
  ties.finish("QuantizeLinear", 1, {attribute("precision", 10), attribute("output_dtype", 3)});
  const oracle_value y = ties.computed().at(0);
  EXPECT_EQ(y.type.type, dtype::i8);
  EXPECT_EQ(y.integer[0], 7);
}

TEST(onnx_dequantize_linear, gives_the_type_that_is_asked_for) {
  for (const int wanted : {0, 1, 10, 11}) {
    proto::ModelProto model = new_model(23);
    proto::GraphProto& g = *model.mutable_graph();
    add_initializer(g, tensor_of<std::int8_t>("x", {3}, {-7, 0, 100}));
    add_initializer(g, tensor_of<float>("scale", {}, {0.1F}));
    std::vector<proto::AttributeProto> attributes;
    if (wanted != 0) attributes.push_back(attribute("output_dtype", wanted));
    add_node(g, "DequantizeLinear", {"x", "scale"}, {"y"}, attributes);
    add_output(g, "y", {});
    const model_folder folder;
    const collage::graph network = collage::onnx::load(folder.write(model));
    const oracle_value y = collage::evaluate(network, {}).at(0);
    EXPECT_EQ(y.type.type, wanted == 10 ? dtype::f16 : wanted == 11 ? dtype::f64 : dtype::f32);
    const double product = 100 * static_cast<double>(0.1F);
    const double exact = wanted == 10   ? narrowed(product)
                         : wanted == 11 ? product
                                        : static_cast<double>(static_cast<float>(product));
    EXPECT_EQ(y.real[2], exact);
  }
}

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
  EXPECT_NE(running.refusal().find("bits of numbers as another type while running"), std::string::npos);
  live_node sizes(26, {reals({2}, {1, 2})});
  sizes.finish("BitCast", 1, {attribute("to", static_cast<int>(proto::TensorProto::INT64))});
  EXPECT_NE(sizes.refusal().find("differ in size"), std::string::npos);
}

TEST(onnx_rms_normalization, refuses_scales_that_enlarge_its_input) {
  live_node n(23, {reals({2, 1}, {1, 2}), reals({3}, {1, 2, 3})});
  n.finish("RMSNormalization", 1, {});
  EXPECT_NE(n.refusal().find("its scale must broadcast"), std::string::npos);
}

}  // namespace onnx_lower_quantise_test
#endif
