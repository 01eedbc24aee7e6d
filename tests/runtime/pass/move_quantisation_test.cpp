// The passes that let operators work on integers of 8 bits.
#include <gtest/gtest.h>

#include <collage/collage.hpp>
#include <collage/graph/graph.hpp>
#include <collage/pass/fold_constants.hpp>
#include <collage/pass/move_quantisation.hpp>
#include <collage/pass/optimise.hpp>
#include <collage/pass/remove_dead.hpp>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "testing.hpp"

namespace pass_move_quantisation_test {

using namespace collage_test;

c::value number(c::graph_builder& g, const char* name, float x) {
  return g.constant(name, {c::dtype::f32, {}}, bytes_of<float>({x}));
}
c::value byte(c::graph_builder& g, const char* name, std::uint8_t x) {
  return g.constant(name, {c::dtype::u8, {}}, bytes_of<std::uint8_t>({x}));
}
c::value weights(c::graph_builder& g, const char* name, const c::shape& dims) {
  std::mt19937 random(7);
  const std::shared_ptr<std::byte> bytes = c::allocate_bytes(static_cast<std::size_t>(dims.elements()));
  for (std::int64_t i = 0; i < dims.elements(); ++i) bytes.get()[i] = static_cast<std::byte>(random());
  return g.constant(name, {c::dtype::i8, dims}, bytes);
}
std::size_t count(const c::graph& g, const char* kind) {
  std::size_t found = 0;
  for (std::uint32_t n = 0; n < g.nodes().size(); ++n) found += std::string(g.node(n).kind->name) == kind ? 1 : 0;
  return found;
}

TEST(move_quantisation, movers_and_max_pool_work_on_integers) {
  c::graph_builder g;
  const c::value x = g.input("x", {c::dtype::u8, {1, 2, 4, 4}});
  const c::value s = number(g, "s", 0.1F), z = byte(g, "z", 100);
  const c::value pooled = g(op::max_pool, g(op::dequantize_linear, x, s, z), {.window = {2, 2}, .strides = {2, 2}});
  const c::value turned = g(op::transpose, g(op::dequantize_linear, g(op::quantize_linear, pooled, s, z), s, z),
                            {.permutation = {0, 2, 3, 1}});
  g.output("y", g(op::quantize_linear, turned, s, z));
  const c::graph before = g.finish();
  const c::graph after = c::optimise(before);
  EXPECT_EQ(count(after, "quantize_linear") + count(after, "dequantize_linear"), 0U);
  EXPECT_EQ(after.nodes().size(), 2U);
  expect_same_results(before, after, 0);
}

TEST(move_quantisation, operands_of_other_scales_are_quantised_anew) {
  c::graph_builder g;
  const c::value x = g.input("x", {c::dtype::u8, {1, 2, 3}}), y = g.input("y", {c::dtype::u8, {1, 2, 3}});
  const c::value s = number(g, "s", 0.125F), z = byte(g, "z", 3), t = number(g, "t", 0.5F);
  const c::value joined =
      g(op::concat, g(op::dequantize_linear, x, s, z), g(op::dequantize_linear, y, t, z), {.axis = 1});
  g.output("joined", g(op::quantize_linear, joined, s, z));
  const c::graph before = g.finish(), after = remove_dead(move_quantisation(before));
  EXPECT_EQ(count(after, "quantize_linear"), 1U) << "of y";
  EXPECT_EQ(count(after, "dequantize_linear"), 1U);
  expect_same_results(before, after, 0);
}

TEST(move_quantisation, results_that_are_read_as_numbers_stay) {
  c::graph_builder g;
  const c::value x = g.input("x", {c::dtype::u8, {1, 2, 4, 4}});
  const c::value s = number(g, "s", 0.1F), z = byte(g, "z", 100);
  const c::value pooled = g(op::max_pool, g(op::dequantize_linear, x, s, z), {.window = {2, 2}, .strides = {2, 2}});
  g.output("y", g(op::quantize_linear, pooled, s, z));
  g.output("real", pooled);
  const c::graph before = g.finish(), after = move_quantisation(before);
  EXPECT_EQ(count(after, "quantize_linear"), 1U);
  EXPECT_EQ(after.fingerprint(), before.fingerprint());
}

TEST(move_quantisation, scales_that_are_not_known_stay) {
  c::graph_builder g;
  const c::value x = g.input("x", {c::dtype::u8, {4}}), s = g.input("s", {c::dtype::f32, {}}), z = byte(g, "z", 1);
  g.output("y", g(op::quantize_linear, g(op::dequantize_linear, x, s, z), s, z));
  const c::graph before = g.finish();
  EXPECT_EQ(move_quantisation(before).fingerprint(), before.fingerprint()) << "the scale may be negative or zero";
}

/// Two convolutions of one dequantised value, and a product of floating-point values by dequantised weights.
c::graph shared_source() {
  c::graph_builder g;
  const c::value x = g.input("x", {c::dtype::u8, {1, 4, 5, 5}}), f = g.input("f", {c::dtype::f32, {2, 8}});
  const c::value s = number(g, "s", 0.1F), z = byte(g, "z", 100), ws = number(g, "ws", 0.01F);
  const c::value real = g(op::dequantize_linear, x, s, z);
  for (const char* name : {"a", "b"}) {
    const c::value w = g(op::dequantize_linear, weights(g, name, {3, 4, 1 + (*name == 'b'), 1}), ws);
    g.output(std::string("conv ") + name, g(op::conv, real, w));
  }
  g.output("product", g(op::matmul, f, g(op::dequantize_linear, weights(g, "w", {8, 3}), ws)));
  return g.finish();
}

TEST(fold_constants, weights_stay_integers_only_beside_dequantised_values) {
  const c::graph before = shared_source(), after = remove_dead(fold_constants(before));
  EXPECT_EQ(count(before, "dequantize_linear"), 4U);
  EXPECT_EQ(count(after, "dequantize_linear"), 3U) << "the product's weights became float32";
  expect_same_results(before, after, 1e-6);
}

TEST(split_dequantisation, each_reader_gets_its_own) {
  const c::graph before = shared_source(), after = c::optimise(before);
  EXPECT_EQ(count(after, "dequantize_linear"), 4U);
  for (std::uint32_t v = 0; v < after.values().size(); ++v)
    EXPECT_EQ(c::detail::dequantised_by(after, v) ? after.at(v).uses : 1U, 1U);
  expect_same_results(before, after, 1e-6);
  EXPECT_EQ(c::optimise(after).fingerprint(), after.fingerprint()) << "a fixed point";
}

TEST(split_dequantisation, a_product_gets_its_own_beside_readers_of_numbers) {
  c::graph_builder g;
  const c::value x = g.input("x", {c::dtype::u8, {2, 8}}), s = number(g, "s", 0.1F);
  const c::value real = g(op::dequantize_linear, x, s);
  g.output("product", g(op::matmul, real, g(op::dequantize_linear, weights(g, "w", {8, 3}), s)));
  g.output("sum", g(op::tanh, real));  // as a residual connection reads it
  const c::graph before = g.finish(), after = c::optimise(before);
  EXPECT_EQ(count(after, "dequantize_linear"), 3U);
  for (std::uint32_t v = 0; v < after.values().size(); ++v)
    EXPECT_EQ(c::detail::dequantised_by(after, v) ? after.at(v).uses : 1U, 1U);
  expect_same_results(before, after, 1e-6);
}

}  // namespace pass_move_quantisation_test
