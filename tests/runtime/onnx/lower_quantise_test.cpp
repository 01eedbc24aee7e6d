// How the types of quantised operators are lowered: the precision of quotients, and the types of results.
#ifdef COLLAGE_HAS_ONNX
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

TEST(onnx_dequantize_linear, takes_scales_that_are_powers_of_two) {
  proto::ModelProto model = new_model(25);
  proto::GraphProto& g = *model.mutable_graph();
  proto::TensorProto x = tensor_header("x", 23, {4}), scale = tensor_header("scale", 24, {2});  // e2m1, e8m0
  x.set_raw_data("\x71\xF2");
  scale.set_raw_data("\x80\x7D");
  add_initializer(g, x);
  add_initializer(g, scale);
  add_node(g, "DequantizeLinear", {"x", "scale"}, {"y"},
           {attribute("output_dtype", 1), attribute("axis", 0), attribute("block_size", 2)});
  add_output(g, "y", {});
  const model_folder folder;
  const oracle_value y = collage::evaluate(collage::onnx::load(folder.write(model)), {}).at(0);
  EXPECT_EQ(y.type.type, dtype::f32);
  EXPECT_EQ(y.real, (std::vector<double>{1, 12, 0.25, -1.5}));

  live_node beyond(21, {reals({2}, {1e6, -3}), reals({}, {1})});
  beyond.finish("QuantizeLinear", 1, {attribute("output_dtype", 19), attribute("saturate", 0)});
  EXPECT_EQ(beyond.computed().at(0).real, (std::vector<double>{infinity, -3}));
}

}  // namespace onnx_lower_quantise_test
#endif
