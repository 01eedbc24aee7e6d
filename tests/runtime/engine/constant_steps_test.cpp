// Weights of 8 bits that no chosen kernel reads as integers are dequantised once, when the engine is built.
#include "support/random_numbers.hpp"

#include <collage/backend_set.hpp>
#include <collage/backends/eigen.hpp>
#include <collage/backends/openblas.hpp>
#include <collage/backends/portable.hpp>
#include <collage/backends/reference.hpp>
#include <collage/ops.hpp>
#include <collage/place.hpp>
#include <collage/run/engine.hpp>
#include <collage/run/quantised_agreement.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace engine_constant_steps_test {

namespace c = collage;
namespace op = collage::ops;
using c::dtype;

#if defined(COLLAGE_HAS_EIGEN) && defined(COLLAGE_HAS_OPENBLAS)
using floats = c::backend_set<c::openblas, c::eigen, c::portable>;
#else
using floats = c::backend_set<c::portable>;
#endif

template <class T>
std::shared_ptr<const std::byte> bytes_of(const std::vector<T>& list) {
  const std::shared_ptr<std::byte> bytes = c::allocate_bytes(list.size() * sizeof(T));
  std::copy(list.begin(), list.end(), reinterpret_cast<T*>(bytes.get()));
  return bytes;
}

/// Two products of a quantised file. Both read the same integers, by scales of their own.
struct file {
  explicit file(std::uint64_t seed) : random(seed) {
    c::graph_builder g;
    std::vector<std::int8_t> numbers(depth * columns);
    for (std::int8_t& n : numbers) n = static_cast<std::int8_t>(random.number(-127, 127));
    const std::shared_ptr<const std::byte> contents = bytes_of(numbers);
    const auto number = [&](const char* name, float of) {
      return g.constant(name, {dtype::f32, {}}, bytes_of<float>({of}));
    };
    const c::value x = g.input("x", {dtype::u8, {rows, depth}});
    const c::value read = g(op::dequantize_linear, x, number("x scale", 0.01F));
    const auto product = [&](const char* name, float scale) {
      const c::value w = g.constant(name, {dtype::i8, {depth, columns}}, contents);
      return g(op::matmul, read, g(op::dequantize_linear, w, number((std::string(name) + " scale").c_str(), scale)));
    };
    const c::value sum = g(op::add, product("w", 0.01F), product("v", 0.003F));
    g.output("y", g(op::quantize_linear, sum, number("y scale", 0.3F), {.type = dtype::i8}));
    network = g.finish();
    for (std::uint8_t& n : input) n = static_cast<std::uint8_t>(random.number(0, 255));
  }
  static constexpr std::int64_t rows = 5, depth = 40, columns = 33;
  collage_test::random_numbers random;
  c::graph network;
  std::vector<std::uint8_t> input = std::vector<std::uint8_t>(rows * depth);
};

std::size_t steps_done_once(const c::dynamic_engine& engine) {
  return static_cast<std::size_t>(
      std::ranges::count_if(engine.steps(), [](const c::step_info& s) { return s.kernel.ends_with("(once)"); }));
}
/// The regions of a program that are constants of this element type.
std::size_t constants_of(const c::dynamic_engine& engine, const c::graph& network, dtype type) {
  return static_cast<std::size_t>(std::ranges::count_if(engine.code().regions, [&](const c::program_region& r) {
    return r.where == c::program_region::home::weights && network.type_of(r.value).type == type &&
           network.type_of(r.value).dims.elements() > 1;
  }));
}

TEST(constant_steps, weights_are_dequantised_once) {
  file f(collage_test::fresh_seed());
  const c::backend_table table = c::table_of<floats>;
  const c::plan made = c::place<floats>(f.network, {.threads = 1, .costs = c::placing_costs::none});
  const auto packed = std::make_shared<c::packed_weights>();
  const c::dynamic_engine engine(f.network, made.chosen, table, 1, packed);
  EXPECT_EQ(steps_done_once(engine), 2U);
  EXPECT_EQ(c::fault_of(engine.code()), "");
  EXPECT_EQ(constants_of(engine, f.network, dtype::f32), 2U);
  EXPECT_EQ(constants_of(engine, f.network, dtype::i8), 0U);  // no kernel reads the integers any more

  const std::size_t forms = packed->size();
  const c::dynamic_engine other(f.network, made.chosen, table, 1, packed);
  EXPECT_EQ(packed->size(), forms);  // engines share the memory

  const c::const_tensor_view x(f.input.data(), f.network.type_of(f.network.inputs()[0]));
  const c::tensor y(f.network.type_of(f.network.outputs()[0]));
  auto context = engine.context();
  for (int run = 0; run < 2; ++run) {
    context.run({x}, {y});
    const c::oracle_value expected = c::evaluate(f.network, std::vector{x}).at(0);
    const c::agreement found = c::compare_quantised(y, expected, 1);
    EXPECT_TRUE(found) << found.why;
  }
}

/// What is dequantised from an input, or is a result of the network, is computed in each run.
TEST(constant_steps, other_steps_stay) {
  c::graph_builder g;
  const c::value s = g.constant("s", {dtype::f32, {}}, bytes_of<float>({0.5F}));
  const c::value w = g.constant("w", {dtype::i8, {3}}, bytes_of<std::int8_t>({1, -2, 4}));
  g.output("x", g(op::dequantize_linear, g.input("a", {dtype::u8, {3}}), s));
  g.output("y", g(op::dequantize_linear, w, s));
  const c::graph network = g.finish();
  const c::plan made = c::place<floats>(network, {.threads = 1, .costs = c::placing_costs::none});
  const c::dynamic_engine engine(network, made.chosen, c::table_of<floats>, 1);
  EXPECT_EQ(steps_done_once(engine), 0U);
  const std::uint8_t a[] = {0, 3, 255};
  const c::tensor x(network.type_of(network.outputs()[0])), y(network.type_of(network.outputs()[1]));
  engine.context().run({c::const_tensor_view(a, network.type_of(network.inputs()[0]))}, {x, y});
  EXPECT_EQ(x.as<float>()[1], 1.5F);
  EXPECT_EQ(y.as<float>()[2], 2.0F);
}

}  // namespace engine_constant_steps_test
