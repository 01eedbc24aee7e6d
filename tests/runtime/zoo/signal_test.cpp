// The built-in networks are alive: what comes out depends on what goes in, so that no comparison of outputs can pass on
// a dead network. Computed by the reference.
#include <collage/backends/reference.hpp>
#include <collage/graph/graph.hpp>
#include <collage/run/tensor.hpp>
#include <collage/zoo/all.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

namespace zoo_signal_test {

namespace c = collage;

// Uniform in [-1, 1); another seed, another input.
std::vector<double> output_for(const c::graph& network, const std::string& seed) {
  const c::tensor input(network.type_of(network.inputs()[0]));
  c::fill_uniform(input.as<float>(), seed, {-1.0F, 1.0F});
  const c::const_tensor_view inputs[] = {input};
  return c::evaluate(network, inputs).at(0).real;
}

double largest(const std::vector<double>& list) {
  double most = 0;
  for (const double x : list) most = std::max(most, std::abs(x));
  return most;
}

void expect_alive(const char* name) {
  c::graph_builder builder;
  ASSERT_TRUE(c::zoo::build(name, builder));
  c::graph network = builder.finish();
  c::fill_constants(network);

  const std::vector<double> one = output_for(network, "one"), other = output_for(network, "other");
  ASSERT_FALSE(one.empty());
  ASSERT_EQ(one.size(), other.size());
  std::vector<double> differences;
  for (std::size_t i = 0; i < one.size(); ++i) {
    ASSERT_TRUE(std::isfinite(one[i]) && std::isfinite(other[i])) << "element " << i;
    differences.push_back(one[i] - other[i]);
  }
  const double scale = std::max(largest(one), largest(other));
  EXPECT_GT(largest(differences), 0.01 * scale) << "the output hardly depends on the input";
  // float32 would lose small or large signals on the way, and a sigmoid would be saturated.
  EXPECT_GT(scale, 0.1);
  EXPECT_LT(scale, 100.0);
  if (one.size() == 1) { EXPECT_LT(scale, 0.99) << "the probability is saturated"; }
  testing::Test::RecordProperty("difference", std::to_string(largest(differences) / scale));
  testing::Test::RecordProperty("scale", std::to_string(scale));
}

TEST(zoo_signal, bert_paper) { expect_alive("bert-paper"); }
TEST(zoo_signal, mobilenet_v2) { expect_alive("mobilenet-v2"); }

TEST(zoo_signal_long, dcgan_paper) { expect_alive("dcgan-paper"); }
TEST(zoo_signal_long, nasnet_a_paper) { expect_alive("nasnet-a-paper"); }
TEST(zoo_signal_long, resnet50_3d_paper) { expect_alive("resnet50-3d-paper"); }
TEST(zoo_signal_long, resnext50_paper) { expect_alive("resnext50-paper"); }
TEST(zoo_signal_long, resnet50) { expect_alive("resnet50"); }
TEST(zoo_signal_long, bert_base_128) { expect_alive("bert-base-128"); }

}  // namespace zoo_signal_test
