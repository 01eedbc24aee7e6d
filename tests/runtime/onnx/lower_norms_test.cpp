// How the precision and the scale of norms are lowered.
#ifdef COLLAGE_HAS_ONNX
#include <collage/io/onnx.hpp>
#include <string>

#include "live_node.hpp"
#include "support/reference_check.hpp"
#include "writer.hpp"

namespace onnx_lower_norms_test {

using namespace collage_test;
using namespace collage_test::reference;

TEST(onnx_rms_normalization, refuses_scales_that_enlarge_its_input) {
  live_node n(23, {reals({2, 1}, {1, 2}), reals({3}, {1, 2, 3})});
  n.finish("RMSNormalization", 1, {});
  EXPECT_NE(n.refusal().find("its scale must broadcast"), std::string::npos);
}

/// The square of 1e30 is no number of float32.
TEST(onnx_rms_normalization, computes_in_the_type_that_is_asked_for) {
  live_node n(23, {reals({1, 2}, {1e30, 1e30}), reals({2}, {1, 2})});
  n.finish("RMSNormalization", 1, {attribute("stash_type", 11)});
  const model_folder folder;
  const collage::graph network = collage::onnx::load(folder.write(n.model));
  int roots = 0;
  for (const auto& node : network.nodes())
    if (std::string(node.kind->name) == "sqrt" && network.type_of(node.first_output).type == dtype::f64) ++roots;
  EXPECT_EQ(roots, 1);
  EXPECT_NEAR(n.computed().at(0).real[1], 2, 1e-6);
}

}  // namespace onnx_lower_norms_test
#endif
