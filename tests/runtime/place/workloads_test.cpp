// Which groups count as one workload where they are quantised by scales of their own.
#include "support/reference_check.hpp"

#include <collage/place/workloads.hpp>

#include <cstdint>
#include <numeric>
#include <vector>

namespace place_workloads_test {

using namespace collage_test::reference;
using collage::value;

/// The key of a product of dequantised operands, whose result is multiplied and quantised.
std::vector<std::uint64_t> key_of(double scale, double factor) {
  collage::graph_builder g;
  const auto scalar = [&](const char* name, double number) {
    const oracle_value v = reals({}, {number});
    return g.constant(name, v.type, bytes_of(v));
  };
  const value x = g.input("x", {dtype::u8, {4, 8}}), w = g.input("w", {dtype::i8, {8, 6}});
  const value y = g(op::matmul, g(op::dequantize_linear, x, scalar("scale of x", scale)),
                    g(op::dequantize_linear, w, scalar("scale of w", 0.125)));
  g.output("y", g(op::quantize_linear, g(op::mul, y, scalar("factor", factor)), scalar("scale of y", 0.25)));
  const collage::graph network = g.finish();
  std::vector<std::uint32_t> nodes(network.nodes().size());
  std::iota(nodes.begin(), nodes.end(), 0U);
  return collage::detail::structure_key(network, nodes);
}

TEST(workloads, do_not_depend_on_the_numbers_of_scales) {
  EXPECT_EQ(key_of(0.5, 3), key_of(0.75, 3));
  EXPECT_NE(key_of(0.5, 3), key_of(0.5, 4));    // a pattern may look for a factor
  EXPECT_NE(key_of(0.5, 3), key_of(1, 3));      // a kernel leaves out a scale of 1
  EXPECT_NE(key_of(0.5, 3), key_of(-0.5, 3));   // and its relu may depend on a sign
  EXPECT_NE(key_of(0.5, 3), key_of(1e-40, 3));  // a reciprocal would overflow
}

}  // namespace place_workloads_test
