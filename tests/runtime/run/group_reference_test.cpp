// Which integers of kernels agree with the reference: equal ones, and neighbours where a quotient lies near a tie.
#include "support/random_numbers.hpp"

#include <collage/graph/graph.hpp>
#include <collage/ops.hpp>
#include <collage/run/group_reference.hpp>
#include <collage/run/space.hpp>
#include <collage/run/tensor.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

namespace run_group_reference_test {

using collage::agreement;
using collage::dtype;
using collage::shape;
using collage::tensor;
using collage_test::random_numbers;
namespace op = collage::ops;

/// What a kernel does wrong when it quantises.
enum class fault : std::uint8_t { none, zero_point, truncates, scale };
constexpr fault faults[] = {fault::zero_point, fault::truncates, fault::scale};

template <class T>
std::shared_ptr<const std::byte> bytes_of(const std::vector<T>& list) {
  const std::shared_ptr<std::byte> bytes = collage::allocate_bytes(list.size() * sizeof(T));
  std::copy(list.begin(), list.end(), reinterpret_cast<T*>(bytes.get()));
  return bytes;
}

/// x[rows, depth] w[depth, columns], perhaps rounded, + bias, relu, perhaps quantised. The numbers are 40 steps wide.
struct product {
  static constexpr std::int64_t rows = 8, columns = 24, depth = 30;
  explicit product(std::uint64_t seed, bool has_inner, bool has_last)
      : random(seed), rounds(has_inner), quantises(has_last) {
    for (std::int64_t i = 0; i < rows * depth; ++i) x.push_back(static_cast<std::uint8_t>(random.number(0, 255)));
    for (std::int64_t i = 0; i < depth * columns; ++i) w.push_back(static_cast<float>(random.real(-1, 1)));
    wide = x_scale * 74 * std::sqrt(depth / 3.0);
    for (std::int64_t i = 0; i < columns; ++i) bias.push_back(static_cast<float>(random.real(0, wide)));
    inner_scale = static_cast<float>(wide / random.real(30, 50)),
    scale = static_cast<float>(wide / random.real(30, 50));
    zero = static_cast<std::uint8_t>(random.number(0, 90));
    make_graph();
  }
  /// The result of a kernel in float32 that adds up in another order than the reference. Its sums err as much as float32 may.
  tensor run(fault inside, fault at_the_end) {
    std::vector<std::int64_t> order(depth);
    std::iota(order.begin(), order.end(), 0);
    std::ranges::shuffle(order, random.engine());
    tensor made(network.type_of(result));
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < columns; ++j) {
        float sum = 0;
        for (const std::int64_t k : order)
          sum += static_cast<float>(x[static_cast<std::size_t>(i * depth + k)] - 128) * x_scale *
                 w[static_cast<std::size_t>(k * columns + j)];
        sum += static_cast<float>(random.real(-2e-5, 2e-5) * wide);
        if (rounds) sum = static_cast<float>(quantised(sum, inner_scale, 100, inside) - 100) * inner_scale;
        sum = std::max(sum + bias[static_cast<std::size_t>(j)], 0.0F);
        const auto at = static_cast<std::size_t>(i * columns + j);
        if (quantises) made.as<std::uint8_t>()[at] = quantised(sum, scale, zero, at_the_end);
        else made.as<float>()[at] = sum;
      }
    return made;
  }
  collage::group_reference reference() const {
    std::vector<std::uint32_t> nodes(network.nodes().size());
    std::iota(nodes.begin(), nodes.end(), 0U);
    const collage::known_value known[] = {{network.inputs()[0], {x.data(), network.type_of(network.inputs()[0])}}};
    return {network, nodes, known, std::span(&result, 1)};
  }

  random_numbers random;
  bool rounds, quantises;
  collage::graph network;
  std::uint32_t result = 0;

 private:
  static std::uint8_t quantised(float number, float scale, int zero, fault how) {
    const float quotient = number * (1 / (how == fault::scale ? scale * 1.01F : scale));
    const float whole = how == fault::truncates ? std::trunc(quotient) : std::nearbyint(quotient);
    const int shift = how == fault::zero_point ? zero + 1 : zero;
    return static_cast<std::uint8_t>(std::clamp(whole + static_cast<float>(shift), 0.0F, 255.0F));
  }
  void make_graph() {
    collage::graph_builder g;
    const auto number = [&](const char* name, float of) {
      return g.constant(name, {dtype::f32, {}}, bytes_of<float>({of}));
    };
    const auto byte = [&](const char* name, int of) {
      return g.constant(name, {dtype::u8, {}}, bytes_of<std::uint8_t>({static_cast<std::uint8_t>(of)}));
    };
    const collage::value read = g(op::dequantize_linear, g.input("x", {dtype::u8, {rows, depth}}),
                                  number("x scale", x_scale), byte("x zero", 128));
    collage::value y = g(op::matmul, read, g.constant("w", {dtype::f32, {depth, columns}}, bytes_of(w)));
    if (rounds) {
      const collage::value s = number("inner scale", inner_scale), z = byte("inner zero", 100);
      y = g(op::dequantize_linear, g(op::quantize_linear, y, s, z, {.type = dtype::u8}), s, z);
    }
    y = g(op::relu, g(op::add, y, g.constant("bias", {dtype::f32, {columns}}, bytes_of(bias))));
    if (quantises) y = g(op::quantize_linear, y, number("scale", scale), byte("zero", zero), {.type = dtype::u8});
    g.output("y", y);
    network = g.finish();
    result = network.outputs()[0];
  }

  static constexpr float x_scale = 0.02F;
  std::vector<std::uint8_t> x;
  std::vector<float> w, bias;
  double wide = 0;
  float inner_scale = 0, scale = 0;
  std::uint8_t zero = 0;
};

agreement compared(product& p, fault inside, fault at_the_end) {
  return p.reference().compare(0, p.run(inside, at_the_end), {});
}

TEST(group_reference, kernels_in_float32_agree) {
  const std::uint64_t first = collage_test::fresh_seed();
  std::size_t near_ties = 0;
  for (std::uint64_t seed = first; seed < first + 150; ++seed)
    for (const bool rounds : {false, true})
      for (const bool quantises : {false, true}) {
        product p(seed, rounds, quantises);
        const collage::group_reference reference = p.reference();
        const tensor made = p.run(fault::none, fault::none);
        const agreement found = reference.compare(0, made, {});
        EXPECT_TRUE(found) << seed << (rounds ? " rounds" : "") << (quantises ? " quantises" : "") << ": " << found.why
                           << " at " << found.worst_index;
        if (quantises || rounds) near_ties += collage::compare(made, reference.expected(0)).agrees ? 0 : 1;
      }
  EXPECT_GT(near_ties, 0U);  // or nothing would have been allowed that equality does not allow
}

TEST(group_reference, faults_of_quantisation_are_found) {
  const std::uint64_t first = collage_test::fresh_seed();
  for (std::uint64_t seed = first; seed < first + 15; ++seed)
    for (const fault wrong : faults) {
      for (const bool rounds : {false, true}) {
        product last(seed, rounds, true);
        const agreement found = compared(last, fault::none, wrong);
        EXPECT_FALSE(found) << seed << ", fault " << static_cast<int>(wrong);
        EXPECT_STREQ(found.why,
                     "it differs from the reference, and not only by a step where a quotient lies near a tie");
      }
      for (const bool quantises : {false, true}) {
        product inside(seed, true, quantises);
        EXPECT_FALSE(compared(inside, wrong, fault::none))
            << seed << ", fault " << static_cast<int>(wrong) << " inside";
      }
    }
}

/// A quotient of two numbers that are given has no sum that could err.
TEST(group_reference, quantising_alone_is_exact_but_for_the_quotient) {
  collage::graph_builder g;
  const collage::value x = g.input("x", {dtype::f32, {4}});
  g.output("y",
           g(op::quantize_linear, x, g.constant("s", {dtype::f32, {}}, bytes_of<float>({0.5F})), {.type = dtype::i8}));
  const collage::graph network = g.finish();
  const std::uint32_t nodes[] = {0};
  const float numbers[] = {0.25F, 0.2501F, -0.75F, 60};
  const collage::known_value known[] = {{network.inputs()[0], {numbers, network.type_of(network.inputs()[0])}}};
  const collage::group_reference reference(network, nodes, known, network.outputs());
  const auto agrees = [&](std::vector<std::int8_t> made) {
    return reference.compare(0, {made.data(), network.type_of(network.outputs()[0])}, {}).agrees;
  };
  EXPECT_TRUE(agrees({0, 1, -2, 120}));
  EXPECT_TRUE(agrees({1, 1, -1, 120}));  // 0.25 and -0.75 are ties
  EXPECT_FALSE(agrees({0, 0, -2, 120}));
  EXPECT_FALSE(agrees({0, 1, -2, 121}));
  EXPECT_FALSE(agrees({-1, 1, -2, 120}));
}

/// Between two quantisations that are added, no element says what another may be.
TEST(group_reference, several_quantisations_inside_are_compared_by_a_tolerance) {
  collage::graph_builder g;
  const collage::value s = g.constant("s", {dtype::f32, {}}, bytes_of<float>({0.5F}));
  const auto rounded = [&](collage::value v) { return g(op::dequantize_linear, g(op::quantize_linear, v, s), s); };
  const collage::value a = rounded(g.input("a", {dtype::f32, {3}})), b = rounded(g.input("b", {dtype::f32, {3}}));
  g.output("y", g(op::sub, a, b));
  const collage::graph network = g.finish();
  std::vector<std::uint32_t> nodes(network.nodes().size());
  std::iota(nodes.begin(), nodes.end(), 0U);
  const float numbers[] = {10, 20, 100}, zeros[] = {0, 0, 0};
  const collage::tensor_type type = network.type_of(network.outputs()[0]);
  const collage::known_value known[] = {{network.inputs()[0], {numbers, type}}, {network.inputs()[1], {zeros, type}}};
  const collage::group_reference reference(network, nodes, known, network.outputs());
  const float near[] = {11, 20, 100}, far[] = {13, 20, 100};
  EXPECT_TRUE(reference.compare(0, {near, type}, {}));
  EXPECT_FALSE(reference.compare(0, {far, type}, {}));
}

}  // namespace run_group_reference_test
