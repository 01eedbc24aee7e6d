// Removing the rounding of quantised networks: what is left computes the same in floating point, and which intervals are known.
#include <gtest/gtest.h>
#include <collage/graph/graph.hpp>
#include <collage/ops.hpp>
#include <collage/pass/optimise.hpp>
#include <collage/pass/remove_dead.hpp>
#include <collage/pass/remove_quantisation.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "testing.hpp"

namespace pass_remove_quantisation_test {

using namespace collage_test;
namespace op = collage::ops;

/// Writes quantised networks.
struct writer {
  c::graph_builder g;
  int constants = 0;

  std::string name() { return "c" + std::to_string(constants++); }
  c::value scale(float s) { return g.constant(name(), {c::dtype::f32, {}}, bytes_of<float>({s})); }
  c::value zero(std::uint8_t z) { return g.constant(name(), {c::dtype::u8, {}}, bytes_of<std::uint8_t>({z})); }
  c::value quantised(c::value x, float s, std::uint8_t z) { return g(op::quantize_linear, x, scale(s), zero(z)); }
  c::value dequantised(c::value x, float s, std::uint8_t z) { return g(op::dequantize_linear, x, scale(s), zero(z)); }
  c::value both(c::value x, float s, std::uint8_t z) { return dequantised(quantised(x, s, z), s, z); }
  c::value input() { return g.input("x", {c::dtype::f32, {2, 4}}); }
};

std::size_t count(const c::graph& g, const std::string& kind) {
  return static_cast<std::size_t>(
      std::ranges::count_if(g.nodes(), [&](const c::node_record& n) { return n.kind->name == kind; }));
}
c::unquantised_network without(writer& w) {
  const c::graph network = w.g.finish();
  c::unquantised_network made = c::remove_quantisation(network);
  made.network = c::optimise(made.network);
  return made;
}

TEST(remove_quantisation, pairs_disappear_and_weights_become_float32) {
  writer w;
  const c::value x = w.both(w.input(), 0.5F, 128);
  const c::value weights =
      w.g.constant("w", {c::dtype::i8, {4, 3}}, bytes_of<std::int8_t>({3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3}));
  const c::value y = w.g(op::matmul, x, w.g(op::dequantize_linear, weights, w.scale(0.25F)));
  w.g.output("y", w.both(y, 2, 100));
  const c::unquantised_network made = without(w);
  EXPECT_EQ(count(made.network, "quantize_linear"), 0U);
  EXPECT_EQ(count(made.network, "dequantize_linear"), 0U);
  EXPECT_EQ(made.network.nodes().size(), 1U);
  const std::uint32_t left = made.network.view().inputs_of(0)[1];
  ASSERT_EQ(made.network.type_of(left).type, c::dtype::f32);
  float first = 0;
  std::memcpy(&first, made.network.bytes_of(left).data(), sizeof first);
  EXPECT_EQ(first, 0.75F);
  ASSERT_EQ(made.intervals.size(), 2U);
  EXPECT_EQ(made.intervals.at("x"), (c::quantised_interval{-64, 63.5F}));
  EXPECT_EQ(made.intervals.at(made.network.value_name(made.network.view().output_of(0))),
            (c::quantised_interval{-200, 310}));
}

TEST(remove_quantisation, integers_that_end_at_zero_stand_for_a_clip) {
  writer w;
  const c::value x = w.input();
  w.g.output("a", w.both(w.g(op::tanh, x), 0.25F, 0));                 // a relu or clip was removed here
  w.g.output("b", w.both(w.g(op::relu, x), 0.25F, 0));                 // it is still there
  w.g.output("c", w.both(w.g(op::tanh, w.g(op::relu, x)), 0.25F, 7));  // nothing was removed
  const c::unquantised_network made = without(w);
  EXPECT_EQ(count(made.network, "quantize_linear"), 0U);
  ASSERT_EQ(count(made.network, "clip"), 1U);
  for (std::uint32_t n = 0; n < made.network.nodes().size(); ++n) {
    if (std::string(made.network.node(n).kind->name) != "clip") continue;
    const auto in = made.network.view().inputs_of(n);
    EXPECT_EQ(made.network.at(in[1]).scalar, 0);
    EXPECT_EQ(made.network.at(in[2]).scalar, 63.75);
  }
}

TEST(remove_quantisation, what_moves_integers_moves_numbers) {
  writer w;
  const c::value bytes = w.quantised(w.input(), 0.5F, 128);
  const c::value moved = w.g(op::transpose, bytes, {});
  w.g.output("y", w.dequantised(moved, 0.5F, 128));
  const c::unquantised_network made = without(w);
  ASSERT_EQ(made.network.nodes().size(), 1U);
  EXPECT_EQ(made.network.type_of(made.network.outputs()[0]).type, c::dtype::f32);
  EXPECT_EQ(made.intervals.size(), 2U);
}

TEST(remove_quantisation, leaves_what_is_no_pair) {
  writer w;
  const c::value bytes = w.quantised(w.input(), 0.5F, 128);
  w.g.output("integers", bytes);
  w.g.output("other", w.dequantised(bytes, 0.25F, 128));  // another scale
  const c::unquantised_network made = without(w);
  EXPECT_EQ(count(made.network, "quantize_linear"), 1U);
  EXPECT_EQ(count(made.network, "dequantize_linear"), 1U);
}

}  // namespace pass_remove_quantisation_test
