// Requantised networks: which ranges of a quantised network belong to which values of its network in floating point.
#include <gtest/gtest.h>
#include <collage/graph/graph.hpp>
#include <collage/ops.hpp>
#include <collage/place/requantise.hpp>
#include <collage/run/buffers.hpp>
#include <collage/run/tensor.hpp>

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <string>

#include "support/messages.hpp"

namespace place_requantise_test {

namespace c = collage;
namespace op = collage::ops;

template <class T>
c::value constant(c::graph_builder& g, const std::string& name, c::dtype type, const c::shape& dims,
                  std::initializer_list<T> numbers) {
  const std::shared_ptr<std::byte> bytes = c::allocate_bytes(numbers.size() * sizeof(T));
  std::memcpy(bytes.get(), numbers.begin(), numbers.size() * sizeof(T));
  return g.constant(name, {type, dims}, bytes);
}
c::value rounded(c::graph_builder& g, c::value x, const std::string& name, float scale, std::uint8_t zero) {
  const c::value s = constant<float>(g, name + ".scale", c::dtype::f32, {}, {scale});
  const c::value z = constant<std::uint8_t>(g, name + ".zero", c::dtype::u8, {}, {zero});
  return g(op::dequantize_linear, g(op::quantize_linear, x, s, z), s, z);
}

/// Without the rounding of its input, a product by large weights of one row would be one by quantised weights alone.
TEST(requantise, leaves_no_weights_quantised) {
  c::graph_builder g;
  const c::value w = g.constant("w", {c::dtype::i8, {1024, 512}}, c::allocate_bytes(1024 * 512));
  const c::value s = constant<float>(g, "w.scale", c::dtype::f32, {}, {0.5F});
  const c::value x = rounded(g, g.input("x", {c::dtype::f32, {1, 1024}}), "x", 0.5F, 128);
  g.output("y", g(op::matmul, x, g(op::dequantize_linear, w, s)));
  const c::requantised_network made = c::requantise(g.finish());
  ASSERT_EQ(made.network.nodes().size(), 1U);
  EXPECT_EQ(made.network.type_of(made.network.view().inputs_of(0)[1]).type, c::dtype::f32);
}

TEST(requantise, ranges_are_those_of_the_file) {
  c::graph_builder g;
  const c::value w = constant<std::int8_t>(g, "w", c::dtype::i8, {2, 2}, {1, -2, 3, 4});
  const c::value s = constant<float>(g, "w.scale", c::dtype::f32, {}, {0.5F});
  c::value x = rounded(g, g.input("x", {c::dtype::f32, {3, 2}}), "x", 0.5F, 128);
  x = g(op::matmul, x, g(op::dequantize_linear, w, s));
  x = g(op::transpose, x);
  g.output("y", rounded(g, x, "y", 2, 28));
  const c::requantised_network made = c::requantise(g.finish());
  EXPECT_EQ(made.ranges.fingerprint, made.network.fingerprint());
  ASSERT_EQ(made.network.nodes().size(), 2U);
  const c::graph_view view = made.network.view();
  const c::value_range* const input = c::find_range(made.ranges.top, made.network.inputs()[0]);
  ASSERT_NE(input, nullptr);
  EXPECT_EQ(input->kept, (c::interval{-64, 63.5F}));
  EXPECT_EQ(input->how, (c::quantisation{c::dtype::u8, -1, {0.5F}, {128}}));
  // The file has only the range of what was transposed. The product has the same numbers.
  for (const std::uint32_t v : {view.output_of(0), view.output_of(1)}) {
    const c::value_range* const range = c::find_range(made.ranges.top, v);
    ASSERT_NE(range, nullptr) << made.network.value_name(v);
    EXPECT_EQ(range->kept, (c::interval{-56, 454}));
    EXPECT_EQ(range->how.zero_points[0], 28);
  }
  EXPECT_EQ(made.ranges.top.values.size(), 3U);
}

TEST(requantise, a_product_with_other_weights_has_no_range_of_the_file) {
  // Passes move the factor into the weights, so that the product has other numbers.
  c::graph_builder g;
  const c::value w = constant<std::int8_t>(g, "w", c::dtype::i8, {2, 2}, {1, -2, 3, 4});
  const c::value s = constant<float>(g, "w.scale", c::dtype::f32, {}, {0.5F});
  c::value x = rounded(g, g.input("x", {c::dtype::f32, {3, 2}}), "x", 0.5F, 128);
  x = rounded(g, g(op::matmul, x, g(op::dequantize_linear, w, s)), "product", 1, 128);
  x = rounded(g, g(op::add, x, constant<float>(g, "b", c::dtype::f32, {2}, {1, 2})), "sum", 1, 128);
  g.output("y", g(op::mul, x, constant<float>(g, "f", c::dtype::f32, {}, {8})));
  const c::requantised_network made = c::requantise(g.finish());
  const c::graph_view view = made.network.view();
  for (std::uint32_t n = 0; n < made.network.nodes().size(); ++n)
    if (const c::value_range* range = c::find_range(made.ranges.top, view.output_of(n)); range != nullptr) {
      // Only what has the numbers of the file may have its range.
      EXPECT_NE(view.kind_id_of(n), c::kind_id<struct c::ops::matmul>) << made.network.nodes().size();
    }
}

TEST(requantise, needs_a_quantised_network) {
  c::graph_builder g;
  g.output("y", g(op::relu, g.input("x", {c::dtype::f32, {4}})));
  const c::graph network = g.finish();
  EXPECT_EQ(collage_test::message_of([&] { (void)c::requantise(network); }),
            "requantise: no value is quantised to 8 bits by one known scale and zero point; take the network as it is");
}

}  // namespace place_requantise_test
