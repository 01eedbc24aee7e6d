// Products by matrices of constants that alone are quantised, against the reference.
#include "quantised_cases.hpp"

#include "support/placing.hpp"

#include <collage/backends/portable.hpp>
#include <collage/pass/fold_constants.hpp>
#include <collage/pass/optimise.hpp>
#include <collage/place.hpp>
#include <collage/run/buffers.hpp>
#include <collage/run/engine.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

namespace backends_portable_weights_test {

using namespace collage_test;
using collage::dtype;

/// A product by a quantised matrix.
struct weights_case {
  dtype type = dtype::i8;
  std::int64_t rows = 1, depth = 64, columns = 64;
  std::int64_t block = 0;  ///< 0: scales are for columns, or one
  bool one_scale = false, transposed = false, has_zero_points = true, adds = false;
};

value add_product(graph_builder& g, data_source& data, const weights_case& one) {
  const std::int64_t k = one.depth, n = one.columns;
  const shape dims = one.transposed ? shape{n, k} : shape{k, n};
  const std::int64_t axis_of_rows = one.transposed ? 1 : 0,
                     blocks = one.block == 0 ? 1 : (k + one.block - 1) / one.block;
  const shape scales = one.one_scale    ? shape{}
                       : one.block == 0 ? shape{n}
                       : one.transposed ? shape{n, blocks}
                                        : shape{blocks, n};
  const bool is_small = one.type == dtype::i4 || one.type == dtype::u4,
             has_sign = one.type == dtype::i8 || one.type == dtype::i4;
  const std::int64_t count = is_small ? 16 : 256, least = has_sign ? -count / 2 : 0;
  const auto integers = [&](const std::string& name, const shape& of) {
    collage::oracle_value made(collage::tensor_type{one.type, of});
    for (std::int64_t& i : made.integer) i = data.number(least, least + count - 1);
    const std::shared_ptr<std::byte> bytes = collage::allocate_bytes(made.type.bytes());
    collage::from_oracle(made, bytes.get());
    return g.constant(name, made.type, bytes);
  };
  const value scale = data.constant(g, "scales", f32(scales), {.low = 0.01, .high = 0.02});
  const op::quantize_attributes how{.axis = one.block == 0 ? 1 - axis_of_rows : axis_of_rows, .block = one.block};
  const value integer = integers("w", dims);
  const value w = one.has_zero_points ? g(op::dequantize_linear, integer, scale, integers("zeros", scales), how)
                                      : g(op::dequantize_linear, integer, scale, how);
  const shape x = one.rows == 0 ? shape{k} : data.chance(0.5) ? shape{one.rows, k} : shape{1, one.rows, k};
  const value y = g(op::matmul, g.input("x", f32(x)), w, {.transpose_b = one.transposed});
  if (!one.adds) return y;
  const value row = data.constant(g, "row", f32(shape{n}));
  return data.chance(0.5) ? g(op::add, y, row) : g(op::add, row, y);
}

class portable_weights_test : public ::testing::Test {
 protected:
  portable_weights_test() { options.must_cover = false; }
  void run(const weights_case& one) {
    check([&](graph_builder& g, data_source& data) { return add_product(g, data, one); }, options);
  }
  backend_checker<collage::portable> check;
  check_options options;
};

TEST_F(portable_weights_test, random_products) {
  const dtype types[] = {dtype::i8, dtype::u8, dtype::i4, dtype::u4};
  for (int i = 0; i < 60; ++i) {
    data_source& d = check.data();
    weights_case one;
    one.type = types[i % 4];
    one.rows = d.number(0, 9), one.depth = d.number(1, 400), one.columns = d.number(1, 200);
    one.block = d.chance(0.5) ? 0 : std::int64_t{16} << d.number(0, 4);
    one.one_scale = one.block == 0 && d.chance(0.3);
    one.transposed = d.chance(0.5), one.has_zero_points = d.chance(0.6), one.adds = d.chance(0.5);
    run(one);
  }
  EXPECT_GE(check.checked("product_by_integers"), 60U);
}

TEST_F(portable_weights_test, awkward_products) {
  for (const dtype type : {dtype::i8, dtype::u4})
    for (const std::int64_t columns : {1, 63, 64, 65, 128})
      for (const std::int64_t depth : {1, 255, 257}) run({.type = type, .rows = 5, .depth = depth, .columns = columns});
  options.range.specials = 0.02;  // NaN and infinity pass as in the reference
  for (const dtype type : {dtype::u8, dtype::i4}) run({.type = type, .rows = 3, .depth = 70, .columns = 90});
  EXPECT_EQ(check.refused("product_by_integers"), 0U);
}

TEST_F(portable_weights_test, refuses_other_operands) {
  run({.depth = 64, .columns = 64, .block = 8});
  check(
      [&](graph_builder& g, data_source& data) {  // a scale for each row
        const value w = g(op::dequantize_linear, data.constant(g, "w", {dtype::i8, {32, 48}}),
                          data.constant(g, "s", f32({32})), {.axis = 0});
        return g(op::matmul, g.input("x", f32({1, 32})), w);
      },
      options);
  check(
      [&](graph_builder& g, data_source& data) {  // what is added has more dimensions than the product
        const value w = g(op::dequantize_linear, data.constant(g, "w", {dtype::i8, {32, 48}}),
                          data.constant(g, "s", f32({48})), {.axis = 1});
        return g(op::add, g(op::matmul, g.input("x", f32({32})), w), data.constant(g, "r", f32({2, 48})));
      },
      options);
  check(
      [&](graph_builder& g, data_source& data) {  // kernels on integers multiply both
        const value w = g(op::dequantize_linear, data.constant(g, "w", {dtype::i8, {32, 48}}),
                          data.constant(g, "s", f32({48})), {.axis = 1});
        return g(op::matmul, add_quantised_input(g, data, "x", {2, 32}, 0.02), w);
      },
      options);
  EXPECT_EQ(check.refused("product_by_integers"), 4U);
  EXPECT_EQ(check.checked("product_by_integers"), 1U);  // without the sum
}

/// The same bytes in another shape are another matrix.
TEST(portable_weights, are_packed_by_shape) {
  using set = collage::backend_set<collage::portable>;
  const std::shared_ptr<std::byte> bytes = collage::allocate_bytes(65536);
  std::fill_n(bytes.get(), 65536, std::byte{1});
  const auto packed = std::make_shared<collage::packed_weights>();
  std::vector<collage::dynamic_engine> engines;
  for (const std::int64_t rows : {1024, 64}) {
    graph_builder g;
    const value integers = g.constant("w", {dtype::i8, {rows, 65536 / rows}}, bytes);
    const value scale = g.constant("s", f32({}), data_source().contents(f32({}), {.low = 0.5, .high = 0.5}));
    g.output("y", g(op::matmul, g.input("x", f32({1, rows})), g(op::dequantize_linear, integers, scale)));
    const collage::graph network = g.finish();
    const collage::placed_plan made = collage::place<set>(network, quick_options());
    EXPECT_EQ(made.chosen.groups.size(), 1U);
    const collage::dynamic_engine& engine =
        engines.emplace_back(network, made.chosen, collage::table_of<set>, 1, packed);
    const collage::run_buffers memory(network);
    std::ranges::fill(memory.in[0].as<float>(), 1.0F);
    engine.context().run(memory.inputs, memory.outputs);
    for (const float y : memory.out[0].as<float>()) EXPECT_EQ(y, 0.5F * static_cast<float>(rows));
  }
}

std::size_t dequantisations_in(const collage::graph& network) {
  std::size_t count = 0;
  for (std::uint32_t n = 0; n < network.nodes().size(); ++n)
    count += network.node(n).kind->id == collage::kind_id<struct op::dequantize_linear> ? 1U : 0U;
  return count;
}

/// Weights of few rows stay integers when constants are folded. Where many rows share them, or a few numbers, they become float32.
TEST(fold_constants, leaves_weights_that_bind_a_product) {
  const auto is_left = [](const weights_case& one, const collage::fold_options& how = {}) {
    graph_builder g;
    data_source data;
    g.output("y", add_product(g, data, one));
    return dequantisations_in(collage::fold_constants(g.finish(), how)) != 0;
  };
  EXPECT_TRUE(is_left({.depth = 1024, .columns = 512}));
  EXPECT_TRUE(is_left({.type = dtype::u4, .rows = 8, .depth = 1024, .columns = 512, .block = 16}));
  EXPECT_FALSE(is_left({.rows = 9, .depth = 1024, .columns = 512}));
  EXPECT_FALSE(is_left({.depth = 1024, .columns = 256}));
  EXPECT_FALSE(is_left({.depth = 16384, .columns = 32}));
  EXPECT_FALSE(is_left({.depth = 1024, .columns = 512, .block = 8}));
  collage::fold_options all;
  all.leaves_weights = false;
  EXPECT_FALSE(is_left({.depth = 1024, .columns = 512}, all));
}

/// Each product that reads shared weights gets a dequantisation of its own, which its kernel takes in.
TEST(optimise, gives_each_product_its_weights) {
  graph_builder g;
  data_source data;
  const value w = g(op::dequantize_linear, data.constant(g, "w", {dtype::u4, {1024, 512}}),
                    data.constant(g, "s", f32({512})), {.axis = 1});
  const value a = g(op::matmul, g.input("a", f32({1, 1024})), w), b = g(op::matmul, g.input("b", f32({1, 1024})), w);
  g.output("y", g(op::add, a, b));
  EXPECT_EQ(dequantisations_in(collage::optimise(g.finish())), 2U);
}

}  // namespace backends_portable_weights_test
