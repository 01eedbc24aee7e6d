// How bits are read as another type.
#ifdef COLLAGE_HAS_ONNX
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

}  // namespace onnx_lower_elementwise_test
#endif
