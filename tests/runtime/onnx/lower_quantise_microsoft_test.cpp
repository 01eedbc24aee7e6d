// Quantised operators of files in the format QOperator: what they compute, and the nodes that kernels on integers look for.
#ifdef COLLAGE_HAS_ONNX
#include <gtest/gtest.h>

#include <collage/backends/reference.hpp>
#include <collage/graph/graph.hpp>
#include <collage/io/onnx.hpp>
#include <collage/pass/optimise.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "support/messages.hpp"
#include "writer.hpp"

namespace onnx_lower_quantise_microsoft_test {

using namespace collage_test;
using list = std::vector<std::int64_t>;

/// A model of one quantised node, whose operands are constants.
struct quantised_node {
  proto::ModelProto model = new_model(18);
  std::vector<std::string> operands;

  quantised_node() {
    proto::OperatorSetIdProto& import = *model.add_opset_import();
    import.set_domain("com.microsoft");
    import.set_version(1);
  }
  proto::GraphProto& graph() { return *model.mutable_graph(); }
  std::string name() { return operands.emplace_back("x" + std::to_string(operands.size())); }
  void bytes(const list& dims, const std::vector<std::uint8_t>& numbers) {
    add_initializer(graph(), tensor_of<std::uint8_t>(name(), dims, numbers));
  }
  void signed_bytes(const list& dims, const std::vector<std::int8_t>& numbers) {
    add_initializer(graph(), tensor_of<std::int8_t>(name(), dims, numbers));
  }
  void bias(const std::vector<std::int32_t>& numbers) {
    add_initializer(graph(), tensor_of<std::int32_t>(name(), {static_cast<std::int64_t>(numbers.size())}, numbers));
  }
  void scale(float number, std::uint8_t zero) {
    add_initializer(graph(), tensor_of<float>(name(), {}, {number}));
    bytes({}, {zero});
  }
  collage::graph load(const std::string& type, const std::string& domain,
                      const std::vector<proto::AttributeProto>& attributes = {}) {
    add_node(graph(), type, operands, {"y"}, attributes).set_domain(domain);
    add_output(graph(), "y", {});
    const model_folder folder;
    return collage::onnx::load(folder.write(model));
  }
  list computed(const std::string& type, const std::vector<proto::AttributeProto>& attributes = {},
                const std::string& domain = "com.microsoft") {
    return collage::evaluate(load(type, domain, attributes), {}).at(0).integer;
  }
};

TEST(onnx_qlinear, sums_and_products) {
  for (const bool adds : {true, false}) {
    quantised_node n;
    n.bytes({3}, {10, 20, 255});
    n.scale(0.5F, 2);  // 4, 9, 126.5
    n.bytes({3}, {1, 5, 255});
    n.scale(2, 1);  // 0, 8, 508
    n.scale(1, 3);
    EXPECT_EQ(n.computed(adds ? "QLinearAdd" : "QLinearMul"), adds ? (list{7, 20, 255}) : (list{3, 75, 255}));
  }
}

TEST(onnx_qlinear, functions) {
  quantised_node n;
  n.bytes({3}, {0, 10, 20});
  n.scale(1, 10);  // -10, 0, 10
  n.scale(0.5F, 100);
  EXPECT_EQ(n.computed("QLinearLeakyRelu", {attribute("alpha", 0.1F)}), (list{98, 100, 120}));
  quantised_node s;
  s.bytes({2}, {10, 250});
  s.scale(1, 10);  // 0, 240
  s.scale(1.0F / 256, 0);
  EXPECT_EQ(s.computed("QLinearSigmoid"), (list{128, 255}));
}

TEST(onnx_qlinear, means_and_concatenations) {
  quantised_node n;
  n.bytes({1, 2, 1, 2}, {1, 3, 10, 30});
  n.scale(1, 0);
  n.scale(2, 1);
  EXPECT_EQ(n.computed("QLinearGlobalAveragePool"), (list{2, 11}));
  quantised_node c;
  c.scale(1, 0);
  c.bytes({1, 2}, {3, 4});
  c.scale(1, 0);
  c.bytes({1, 1}, {5});
  c.scale(3, 1);
  EXPECT_EQ(c.computed("QLinearConcat", {attribute("axis", 1)}), (list{3, 4, 12}));
}

TEST(onnx_qlinear, products_of_matrices) {
  quantised_node n;
  n.bytes({1, 2}, {3, 5});
  n.scale(0.5F, 1);               // 1, 2
  n.bytes({2, 2}, {2, 4, 6, 8});  // rows 0 2 and 4 6, each multiplied by the left row
  n.scale(1, 2);
  n.bias({2, -4});  // 1, -2
  n.scale(1, 10);
  EXPECT_EQ(n.computed("QGemm", {attribute("transB", 1)}), (list{15, 24}));
}

TEST(onnx_qlinear, convolutions_become_what_kernels_look_for) {
  quantised_node n;
  n.bytes({1, 1, 2, 2}, {3, 5, 7, 9});
  n.scale(0.5F, 1);  // 1 2 / 3 4
  n.signed_bytes({2, 1, 1, 1}, {2, -1});
  add_initializer(n.graph(), tensor_of<float>(n.name(), {2}, {1, 2}));
  n.signed_bytes({2}, {0, 0});  // 2 and -2
  n.scale(1, 20);
  n.bias({4, 2});  // 2, 2
  EXPECT_EQ(n.computed("QLinearConv", {}, ""), (list{24, 26, 28, 30, 20, 18, 16, 14}));

  // With an input in place of the image, weights stay integers and the bias becomes float32.
  n.graph().mutable_initializer()->DeleteSubrange(0, 1);
  add_input(n.graph(), "x0", {1, 1, 2, 2}, proto::TensorProto::UINT8);
  const model_folder folder;
  const collage::graph network = collage::optimise(collage::onnx::load(folder.write(n.model)));
  std::vector<std::string> kinds;
  for (const collage::node_record& node : network.nodes()) kinds.emplace_back(node.kind->name);
  EXPECT_EQ(kinds, (std::vector<std::string>{"dequantize_linear", "dequantize_linear", "conv", "quantize_linear"}));
}

TEST(onnx_qlinear, what_is_not_known_is_refused) {
  quantised_node n;
  n.bytes({1, 1, 2, 2}, {1, 3, 10, 30});
  n.scale(1, 0);
  n.scale(2, 1);
  EXPECT_NE(message_of([&] {
              (void)n.load("QLinearGlobalAveragePool", "com.microsoft", {attribute("channels_last", 1)});
            }).find("channels last"),
            std::string::npos);
}

}  // namespace onnx_lower_quantise_microsoft_test
#endif
