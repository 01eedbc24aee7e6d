// How optimisers are lowered, against their definitions over several steps; and what their rules refuse.
#ifdef COLLAGE_HAS_ONNX
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "live_node.hpp"
#include "support/reference_check.hpp"
#include "writer.hpp"

namespace onnx_lower_training_test {

using namespace collage_test;
using namespace collage_test::reference;

live_node optimiser(const std::string& name, const std::vector<oracle_value>& operands, int outputs,
                    const std::vector<proto::AttributeProto>& attributes) {
  live_node n(17);
  for (const oracle_value& x : operands) n.add(x);
  n.finish(name, outputs, attributes).set_domain("ai.onnx.preview.training");
  auto& import = *n.model.add_opset_import();
  import.set_domain("ai.onnx.preview.training");
  import.set_version(1);
  return n;
}

/// The definitions, for one number.
std::vector<double> stepped(const std::string& name, double rate, double count, double x, double gradient, double v,
                            double h) {
  const double g = 0.25 * x + gradient;
  if (name == "Adagrad") {
    const double now = v + g * g;
    return {x - rate / (1 + count * 0.5) * g / (std::sqrt(now) + 0.125), now};
  }
  if (name == "Adam") {
    const double v_new = 0.75 * v + 0.25 * g, h_new = 0.5 * h + 0.5 * g * g;
    const double adjusted = count > 0 ? rate * std::sqrt(1 - std::pow(0.5, count)) / (1 - std::pow(0.75, count)) : rate;
    return {0.875 * (x - adjusted * (v_new / (std::sqrt(h_new) + 0.125))), v_new, h_new};
  }
  const double v_new = 0.75 * v + (count > 0 ? 0.5 : 1) * g;
  return {x - rate * (name == "Nesterov" ? g + 0.75 * v_new : v_new), v_new};
}

TEST(onnx_optimisers, agree_with_their_definitions) {
  random_source random;
  for (int round = 0; round < 40; ++round)
    for (const std::string name : {"Momentum", "Nesterov", "Adagrad", "Adam"}) {
      const std::size_t states = name == "Adam" ? 2 : 1, tensors = static_cast<std::size_t>(random.number(1, 3));
      const oracle_value rate = random.tensor({}, dtype::f64);
      const oracle_value count = integers({}, {random.number(0, 2)});
      std::vector<oracle_value> operands{rate, count};
      std::vector<shape> dims;
      for (std::size_t i = 0; i < tensors; ++i) dims.push_back(random.dims(random.number(1, 3)));
      for (std::size_t kind = 0; kind < states + 2; ++kind)
        for (const shape& own : dims) {
          operands.push_back(random.tensor(own, dtype::f64));
          if (kind >= 2)
            for (double& state : operands.back().real) state = std::abs(state);
        }
      std::vector<proto::AttributeProto> attributes{attribute("norm_coefficient", 0.25F)};
      if (name == "Adagrad") attributes.push_back(attribute("decay_factor", 0.5F));
      if (name == "Adam") attributes.push_back(attribute("norm_coefficient_post", 0.125F));
      if (name == "Adagrad" || name == "Adam") attributes.push_back(attribute("epsilon", 0.125F));
      if (name != "Adagrad") attributes.push_back(attribute("alpha", 0.75F));
      if (name != "Adagrad") attributes.push_back(attribute("beta", 0.5F));
      if (name == "Momentum") attributes.push_back(attribute("mode", "standard"));
      if (name == "Nesterov") attributes.push_back(attribute("mode", "nesterov"));
      const std::size_t outputs = tensors * (states + 1);
      const std::vector<oracle_value> got =
          optimiser(name == "Nesterov" ? "Momentum" : name, operands, static_cast<int>(outputs), attributes).computed();
      ASSERT_EQ(got.size(), outputs);
      for (std::size_t i = 0; i < tensors; ++i) {
        std::vector<oracle_value> wanted(states + 1, oracle_value(collage::tensor_type{dtype::f64, dims[i]}));
        for (std::size_t e = 0; e < wanted[0].size(); ++e) {
          const auto number = [&](std::size_t kind) { return operands[2 + kind * tensors + i].real[e]; };
          const std::vector<double> results = stepped(name, rate.real[0], static_cast<double>(count.integer[0]),
                                                      number(0), number(1), number(2), states == 2 ? number(3) : 0);
          for (std::size_t r = 0; r <= states; ++r) wanted[r].real[e] = results[r];
        }
        for (std::size_t r = 0; r <= states; ++r) expect_same(got[r * tensors + i], wanted[r], name);
      }
      if (HasFatalFailure()) return;
    }
}

TEST(onnx_optimisers, refuse_what_has_no_meaning) {
  const oracle_value one = reals({}, {1}), count = integers({}, {1}), list = reals({2}, {1, 2});
  const auto refusal = [](const std::vector<oracle_value>& operands, const char* mode) {
    return optimiser("Momentum", operands, 2, {attribute("mode", mode)}).refusal();
  };
  EXPECT_EQ(refusal({one, count, list, list, list}, "standard"), "no error");
  EXPECT_NE(refusal({one, count, list, list, list}, "none").find("neither standard nor nesterov"), std::string::npos);
  EXPECT_NE(refusal({one, count, list, list}, "standard").find("as many gradients and states"), std::string::npos);
  EXPECT_NE(refusal({list, count, list, list, list}, "standard").find("one number each"), std::string::npos);
  EXPECT_NE(refusal({one, count, one, list, list}, "standard").find("the shapes of their tensors"), std::string::npos);
}

TEST(onnx_array_feature_extractor, makes_a_row_of_a_list) {
  live_node n(17, {reals({3}, {1, 2, 3}), integers({2}, {2, 0})});
  n.finish("ArrayFeatureExtractor", 1, {}).set_domain("ai.onnx.ml");
  auto& import = *n.model.add_opset_import();
  import.set_domain("ai.onnx.ml");
  import.set_version(1);
  const oracle_value y = n.computed().at(0);
  EXPECT_EQ(y.type.dims, (shape{1, 2}));
  EXPECT_EQ(y.real, (std::vector<double>{3, 1}));
}

}  // namespace onnx_lower_training_test
#endif
