// How the types of quantised operators are lowered: the precision of quotients, and the types of results.
#ifdef COLLAGE_HAS_ONNX
#include <cstdint>
#include <string>
#include <vector>

#include <collage/backend_set.hpp>
#include <collage/backends/portable.hpp>
#include <collage/pass/optimise.hpp>
#include <collage/pattern/match.hpp>
#include <collage/run/backend_table.hpp>

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

/// A MatMulNBits of ONNX Runtime: x [2, 20] by weights of 3 columns in blocks of 16, the last of which is not full.
proto::ModelProto packed_product(const std::vector<std::uint8_t>& weights, const std::vector<std::uint8_t>& zero_points,
                                 std::int64_t bits) {
  proto::ModelProto model = new_model(21);
  auto& import = *model.add_opset_import();
  import.set_domain("com.microsoft");
  import.set_version(1);
  proto::GraphProto& g = *model.mutable_graph();
  add_input(g, "x", {2, 20});
  add_initializer(g, tensor_of<std::uint8_t>("w", {3, 2, 2 * bits}, weights));
  add_initializer(g, tensor_of<float>("scale", {6}, {0.5F, 1, 2, 0.25F, 1, 4}));
  std::vector<std::string> operands{"x", "w", "scale"};
  if (!zero_points.empty()) {
    add_initializer(g, tensor_of<std::uint8_t>("zero", {static_cast<std::int64_t>(zero_points.size())}, zero_points));
    operands.emplace_back("zero");
  }
  auto& node = add_node(g, "MatMulNBits", operands, {"y"},
                        {attribute("K", 20), attribute("N", 3), attribute("bits", bits), attribute("block_size", 16)});
  node.set_domain("com.microsoft");
  add_output(g, "y", {});
  return model;
}

TEST(onnx_matmul_n_bits, unpacks_weights_of_few_bits) {
  random_source random;
  for (const std::int64_t bits : {2, 4, 8})
    for (const bool has_zero_points : {false, true}) {
      std::vector<std::uint8_t> weights, zero_points;
      for (int i = 0; i < 3 * 2 * 2 * bits; ++i) weights.push_back(static_cast<std::uint8_t>(random.number(0, 255)));
      const std::int64_t zero_bytes = (2 * bits + 7) / 8;
      for (int i = 0; has_zero_points && i < 3 * zero_bytes; ++i)
        zero_points.push_back(static_cast<std::uint8_t>(random.number(0, 255)));
      oracle_value x({dtype::f32, {2, 20}});
      for (double& number : x.real) number = static_cast<double>(random.number(-4, 4));
      const model_folder folder;
      const collage::graph network = collage::onnx::load(folder.write(packed_product(weights, zero_points, bits)));
      const std::shared_ptr<const std::byte> bytes = bytes_of(x);
      const std::vector<collage::const_tensor_view> views{{bytes.get(), x.type}};
      const oracle_value y = collage::evaluate(network, views).at(0);
      const double scales[3][2] = {{0.5, 1}, {2, 0.25}, {1, 4}};
      const auto number = [&](const std::vector<std::uint8_t>& list, std::int64_t row_bytes, std::int64_t row,
                              std::int64_t at) {
        const unsigned whole = list[static_cast<std::size_t>(row * row_bytes + at * bits / 8)];
        return static_cast<double>(whole >> (at * bits % 8) & ((1U << bits) - 1U));
      };
      for (std::int64_t row = 0; row < 2; ++row)
        for (std::int64_t n = 0; n < 3; ++n) {
          double sum = 0;
          for (std::int64_t k = 0; k < 20; ++k) {
            const double zero =
                has_zero_points ? number(zero_points, zero_bytes, n, k / 16) : static_cast<double>(1 << (bits - 1));
            sum += x.real[static_cast<std::size_t>(row * 20 + k)] * (number(weights, 4 * bits, n, k) - zero) *
                   scales[n][k / 16];
          }
          EXPECT_EQ(y.real[static_cast<std::size_t>(row * 3 + n)], sum) << bits;
        }
    }
}

/// Weights that bind a product stay integers of 4 bits, so that a kernel can read them as they are.
TEST(onnx_matmul_n_bits, keeps_few_bits_where_rows_are_few) {
  proto::ModelProto model = new_model(21);
  auto& import = *model.add_opset_import();
  import.set_domain("com.microsoft");
  import.set_version(1);
  proto::GraphProto& g = *model.mutable_graph();
  constexpr std::int64_t depth = 1024, columns = 512, block = 32;
  add_input(g, "x", {1, depth});
  add_initializer(g, tensor_of<std::uint8_t>("w", {columns, depth / block, block / 2},
                                             std::vector<std::uint8_t>(columns * depth / 2, 0x5A)));
  add_initializer(
      g, tensor_of<float>("scale", {columns * depth / block}, std::vector<float>(columns * depth / block, 0.5F)));
  auto& node =
      add_node(g, "MatMulNBits", {"x", "w", "scale"}, {"y"},
               {attribute("K", depth), attribute("N", columns), attribute("bits", 4), attribute("block_size", block)});
  node.set_domain("com.microsoft");
  add_output(g, "y", {});
  const model_folder folder;
  const collage::graph network = collage::optimise(collage::onnx::load(folder.write(model)));
  ASSERT_EQ(network.nodes().size(), 2U);
  EXPECT_EQ(network.type_of(network.view().inputs_of(0)[0]).type, dtype::u4);
  const collage::pattern_entry* its = nullptr;
  for (const collage::pattern_entry& p : collage::table_of<collage::backend_set<collage::portable>>[0].patterns)
    if (std::string(p.name) == collage::portable_patterns::product_by_integers::name) its = &p;
  ASSERT_NE(its, nullptr);
  collage::match_record record;
  EXPECT_TRUE(collage::match_at(network.view(), its->nodes, 1, record));
  EXPECT_TRUE(its->accepts(network.view(), record));
}

TEST(onnx_matmul_n_bits, refuses_weights_of_another_size) {
  const model_folder folder;
  const std::string path = folder.write(packed_product(std::vector<std::uint8_t>(48, 1), {7}, 4));
  EXPECT_NE(message_of([&] { (void)collage::onnx::load(path); }).find("its zero points have 1 bytes"),
            std::string::npos);
}

}  // namespace onnx_lower_quantise_test
#endif
