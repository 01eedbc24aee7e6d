// Products of integers on oneDNN against the reference: random shapes, types, transposes, zero points, scales, and what follows.
// Scales are powers of two and everything else is whole, so that float32 computes without rounding, and results must be equal. Only
// ties may be rounded to either side: the library adds a zero point before it rounds, ONNX afterwards.
#ifdef COLLAGE_HAS_ONEDNN
#include "support/backend_check.hpp"
#include "support/reference_check.hpp"

#include <collage/backends/onednn.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace backends_onednn_quantised_matmul_test {

using namespace collage_test::reference;
using collage::graph_builder;
using collage::tensor_type;
using collage::value;

/// A random graph of one product, and contents of its inputs.
class problem {
 public:
  random_source& random;
  graph_builder g;
  std::vector<oracle_value> given;
  std::string text;
  std::string pattern, kernel;  ///< the last ones that were built

  explicit problem(random_source& r) : random(r) {}

  value input(oracle_value contents) {
    given.push_back(std::move(contents));
    return g.input("x" + std::to_string(given.size()), given.back().type);
  }
  value constant(const oracle_value& contents) {
    return g.constant("c" + std::to_string(constants_++), contents.type, bytes_of(contents));
  }
  value either(const oracle_value& contents, double constant_chance) {
    return random.chance(constant_chance) ? constant(contents) : input(contents);
  }
  oracle_value whole(const shape& dims, dtype type) {
    oracle_value v(tensor_type{type, dims});
    for (std::int64_t& x : v.integer) x = type == dtype::u8 ? random.number(0, 255) : random.number(-128, 127);
    for (double& x : v.real) x = static_cast<double>(random.number(-20, 20));
    return v;
  }
  oracle_value powers(const shape& dims) {
    oracle_value v(tensor_type{dtype::f32, dims});
    for (double& x : v.real) x = std::ldexp(1, static_cast<int>(random.number(-3, 1)));
    return v;
  }
  value dequantised(value numbers, const shape& scales, dtype type, dtype to, std::int64_t axis, bool one,
                    double fixed) {
    oracle_value scale = powers(scales);
    if (one) std::fill(scale.real.begin(), scale.real.end(), 1.0);
    scale.type.type = to;
    const value s = one || to != dtype::f32 ? constant(scale) : either(scale, fixed);
    if (random.chance(0.3)) return g(op::dequantize_linear, numbers, s, {.axis = axis});
    oracle_value zero = whole(scales, type);
    std::fill(zero.integer.begin(), zero.integer.end(), zero.integer[0]);
    return g(op::dequantize_linear, numbers, s, scales.size() == 0 ? either(zero, fixed) : constant(zero),
             {.axis = axis});
  }

 private:
  int constants_ = 0;
};

shape swapped(shape dims) {
  std::swap(dims[dims.size() - 1], dims[dims.size() - 2]);
  return dims;
}

/// The reference's numbers that the last node quantises, in steps; empty if it does not quantise.
std::vector<double> quotients(const collage::graph& network, const std::vector<collage::const_tensor_view>& views) {
  const auto last = static_cast<std::uint32_t>(network.nodes().size() - 1);
  if (std::string(network.node(last).kind->name) != "quantize_linear") return {};
  std::vector<std::uint32_t> nodes(network.nodes().size());
  std::iota(nodes.begin(), nodes.end(), 0U);
  std::vector<collage::known_value> known;
  for (std::size_t i = 0; i < views.size(); ++i) known.push_back({network.inputs()[i], views[i]});
  const auto in = network.view().inputs_of(last);
  const std::vector<std::uint32_t> wanted{in[0], in[1]};
  std::vector<oracle_value> found = collage::evaluate_group(network, nodes, known, wanted);
  for (double& x : found[0].real) x /= found[1].real[0];
  return found[0].real;
}

/// How far results in floating point may be off: by a share of the largest one, or of `least` if that is larger.
struct tolerance {
  double share = 0, least = 0;
};

/// Compares a result with the reference.
void compare(const oracle_value& actual, const oracle_value& expected, const std::vector<double>& steps,
             tolerance allowed, const std::string& text) {
  for (std::size_t i = 0; i < actual.integer.size(); ++i) {
    if (actual.integer[i] == expected.integer[i]) continue;
    ASSERT_FALSE(steps.empty()) << text << ": element " << i << " is " << actual.integer[i] << ", not "
                                << expected.integer[i];
    ASSERT_EQ(std::abs(steps[i] - std::floor(steps[i])), 0.5) << text << ": element " << i;
    ASSERT_EQ(std::abs(actual.integer[i] - expected.integer[i]), 1) << text << ": element " << i;
  }
  double largest = allowed.least;
  for (const double x : expected.real) largest = std::max(largest, std::abs(x));
  for (std::size_t i = 0; i < actual.real.size(); ++i) {
    const double wanted = static_cast<double>(static_cast<float>(expected.real[i]));
    ASSERT_LE(std::abs(actual.real[i] - wanted), allowed.share * largest) << text << ": element " << i;
  }
}

/// Builds every kernel of a quantised pattern at the last node, and compares its result. Returns whether there was one.
bool check(problem& p, value result, tolerance allowed = {}) {
  p.g.output("y", result);
  const collage::graph network = p.g.finish();
  std::vector<std::shared_ptr<const std::byte>> bytes;
  std::vector<collage::const_tensor_view> views;
  for (const oracle_value& v : p.given) {
    bytes.push_back(bytes_of(v));
    views.emplace_back(bytes.back().get(), v.type);
  }
  const oracle_value expected = collage::evaluate(network, views).at(0);
  const std::vector<double> steps = quotients(network, views);
  const collage::backend_entry& table = collage::table_of<collage::backend_set<collage::onednn>>[0];
  collage::packed_weights packed;
  bool found = false;
  for (const auto& pattern : table.patterns) {
    const std::string name = pattern.name;
    if (!name.starts_with("quantised_product") && !name.starts_with("rounded_product")) continue;
    collage::match_record record;
    const auto root = static_cast<std::uint32_t>(network.nodes().size() - 1);
    if (!collage::match_at(network.view(), pattern.nodes, root, record)) continue;
    EXPECT_EQ(record.nodes, network.nodes().size()) << p.text;
    if (const collage::verdict v = pattern.accepts(network.view(), record); !v) {
      EXPECT_NE(std::string(v.rule).find("258 products"), std::string::npos) << p.text << ": " << v.rule;
      continue;
    }
    for (std::size_t run = 0; run < 4; ++run) {
      const int threads = run % 2 == 0 ? 1 : 2;
      const std::size_t variant = run / 2;
      collage::build_context context(network, threads, packed);
      context.set_configuration(collage::configuration(variant));
      const int token = table.enter(threads);
      std::optional<collage::kernel> built;
      try {
        built = pattern.build(network.view(), record, context);
      } catch (const collage::error& e) {
        EXPECT_EQ(e.kind(), collage::error_kind::unsupported) << p.text << ": " << e.what();
        table.leave(token);
        continue;
      }
      std::vector<const void*> in;
      for (const std::uint32_t argument : record.argument_list()) {
        in.push_back(nullptr);
        for (std::size_t i = 0; i < network.inputs().size(); ++i)
          if (network.inputs()[i] == argument) in.back() = bytes[i].get();
        if (network.at(argument).role == collage::value_role::constant) in.back() = network.bytes_of(argument).data();
      }
      const collage_test::guarded_memory out(expected.type.bytes(), 0, 0x5A);
      const collage_test::guarded_memory workspace(built->workspace(), 0, 0x5A);
      void* const to[] = {out.data()};
      (*built)(collage::kernel_call{in.data(), to, workspace.data()});
      table.leave(token);
      EXPECT_TRUE(out.intact() && workspace.intact()) << p.text;
      const oracle_value actual = collage::to_oracle({out.data(), expected.type});
      compare(actual, expected, steps, allowed, p.text + ' ' + built->name());
      found = true;
      p.pattern = name;
      p.kernel = built->name();
    }
  }
  return found;
}

/// dequantize(a) x dequantize(b), with the batches of both operands.
value product_of(problem& p, bool is_integer, std::int64_t depth) {
  random_source& random = p.random;
  const dtype a_type = random.chance(0.6) ? dtype::u8 : dtype::i8, b_type = random.chance(0.3) ? dtype::u8 : dtype::i8;
  const std::int64_t rows = random.chance(0.3) ? 1 : random.number(1, 33);
  const std::int64_t columns = random.chance(0.2) ? 1 : random.number(1, 70);
  shape a{rows, depth}, b{depth, columns};
  const bool ta = random.chance(0.15), tb = random.chance(0.3), moved = random.chance(0.15);
  if (ta) a = swapped(a);
  if (tb != moved) b = swapped(b);
  if (random.chance(0.3)) a = joined({random.number(1, 3)}, a);
  if (a.size() == 3 && random.chance(0.5)) b = joined({random.chance(0.3) ? 1 : a[0]}, b);
  if (a.size() == 3 && random.chance(0.3)) a = joined({2}, a);
  const dtype to = is_integer && random.chance(0.5) ? dtype::f64 : dtype::f32;
  const bool by_column = !is_integer && random.chance(0.5);
  const auto axis = static_cast<std::int64_t>(b.size()) - (tb != moved ? 2 : 1);
  p.text = text_of(a) + (ta ? "t" : "") + name_of(a_type) + " x " + text_of(b) + (tb ? "t" : "") + (moved ? "m" : "") +
           name_of(b_type) + (by_column ? " by column" : "");
  const value x = p.dequantised(p.input(p.whole(a, a_type)), {}, a_type, to, 0, is_integer, 0.5);
  value y = p.dequantised(p.either(p.whole(b, b_type), 0.7), by_column ? shape{columns} : shape{}, b_type, to, axis,
                          is_integer, 0.8);
  if (moved) {
    shape order;
    for (std::size_t d = 0; d < b.size(); ++d) order.push_back(static_cast<std::int64_t>(d));
    y = p.g(op::transpose, y, {.permutation = swapped(order)});
  }
  return p.g(op::matmul, x, y, {.transpose_a = ta, .transpose_b = tb});
}

/// Quantised and dequantised at once.
value rounded(problem& p, value y) {
  const dtype type = p.random.chance(0.5) ? dtype::u8 : dtype::i8;
  const value scale = p.constant(reals({}, {std::ldexp(1, static_cast<int>(p.random.number(-4, 8)))}));
  if (p.random.chance(0.3))
    return p.g(op::dequantize_linear, p.g(op::quantize_linear, y, scale, {.type = type}), scale);
  const value zero = p.constant(p.whole({}, type));
  return p.g(op::dequantize_linear, p.g(op::quantize_linear, y, scale, zero, {.type = type}), scale, zero);
}

class onednn_quantised_matmul : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!onednn.available) GTEST_SKIP() << onednn.reason;
    if (std::string(onednn.details).find("vnni") == std::string::npos &&
        std::string(onednn.details).find("bf16") == std::string::npos)
      GTEST_SKIP() << "this processor lacks VNNI";
  }
  collage::probe_result onednn = collage::onednn::probe();
  random_source random;
  int found = 0, rounded_ones = 0;
};

TEST_F(onednn_quantised_matmul, products_of_integers_are_exact) {
  constexpr int rounds = 60;
  for (int round = 0; round < rounds; ++round) {
    problem p(random);
    const std::int64_t depth = random.chance(0.1) ? 3000 : random.number(1, 70);
    value y = product_of(p, true, depth);
    y = p.g(op::cast, p.g(op::cast, y, {.to = dtype::i64}), {.to = dtype::i32});
    if (random.chance(0.5)) {
      y = p.g(op::cast, y, {.to = dtype::f32});
      const std::int64_t columns = p.g.type_of(y).dims[p.g.type_of(y).rank() - 1];
      if (random.chance(0.8))
        y = p.g(op::mul, y, p.either(p.powers(random.chance(0.5) ? shape{} : shape{columns}), 0.3));
    }
    // Before the library takes zero points into account, a long sum can need more digits than float32 has. It is scaled by 2 at most.
    const tolerance rounded_sums{0x1p-23, 2 * 0x1p16 * static_cast<double>(depth)};
    found += check(p, y, depth > 256 ? rounded_sums : tolerance{}) ? 1 : 0;
  }
  EXPECT_GT(found, rounds / 2);  // others have operands that the library multiplies only by slow loops
}

TEST_F(onednn_quantised_matmul, bias_activation_and_quantisation_follow) {
  constexpr int rounds = 80;
  for (int round = 0; round < rounds; ++round) {
    problem p(random);
    value y = product_of(p, false, random.number(1, 40));
    const shape dims = p.g.type_of(y).dims;
    const bool is_rounded = random.chance(0.4);
    if (is_rounded) y = rounded(p, y);
    const shape bias = random.chance(0.7) ? shape{dims[dims.size() - 1]} : random.chance(0.5) ? shape{} : dims;
    if (random.chance(0.7)) y = p.g(op::add, y, p.either(p.whole(bias, dtype::f32), 0.5));
    if (random.chance(0.4)) y = p.g(op::relu, y);
    if (random.chance(0.6)) {
      const dtype to = random.chance(0.5) ? dtype::u8 : dtype::i8;
      const value scale = p.either(p.powers({}), 0.5);
      if (random.chance(0.4)) y = p.g(op::quantize_linear, y, scale, {.type = to});
      else y = p.g(op::quantize_linear, y, scale, p.either(p.whole({}, to), 0.5), {.type = to});
    }
    found += check(p, y) ? 1 : 0;
    rounded_ones += p.pattern == "rounded_product" ? 1 : 0;
  }
  EXPECT_GT(found, rounds / 2);
  EXPECT_GT(rounded_ones, rounds / 10);
}

TEST_F(onednn_quantised_matmul, gelu_follows_within_the_tolerance_of_float32) {
  problem p(random);
  const value x = p.dequantised(p.input(p.whole({5, 32}, dtype::u8)), {}, dtype::u8, dtype::f32, 0, true, 1);
  const value w = p.dequantised(p.constant(p.whole({32, 48}, dtype::i8)), {}, dtype::i8, dtype::f32, 0, true, 1);
  value y = p.g(op::cast, p.g(op::cast, p.g(op::matmul, x, w), {.to = dtype::i64}), {.to = dtype::i32});
  y = p.g(op::mul, p.g(op::cast, y, {.to = dtype::f32}), p.input(reals({}, {0x1p-14})));
  y = p.g(op::add, y, p.constant(p.whole({48}, dtype::f32)));
  const value erf = p.g(op::erf, p.g(op::div, y, p.constant(reals({}, {static_cast<double>(1.4142135F)}))));
  y = p.g(op::mul, y, p.g(op::mul, p.constant(reals({}, {0.5})), p.g(op::add, erf, p.constant(reals({}, {1})))));
  EXPECT_TRUE(check(p, y, {1e-4, 1}));  // it takes the difference of almost equal numbers around 1
}

/// Zero points that differ between the columns leave only the variant in float32.
TEST_F(onednn_quantised_matmul, columns_may_have_zero_points_of_their_own) {
  for (int round = 0; round < 20; ++round) {
    problem p(random);
    const dtype type = random.chance(0.5) ? dtype::u8 : dtype::i8;
    const value x =
        p.dequantised(p.input(p.whole({random.number(1, 9), 24}, dtype::u8)), {}, dtype::u8, dtype::f32, 0, false, 0.5);
    oracle_value zeros = p.whole({10}, type);
    zeros.integer[0] = zeros.integer[1] == 3 ? 4 : 3;
    const value w = p.g(op::dequantize_linear, p.constant(p.whole({24, 10}, type)), p.constant(p.powers({10})),
                        p.constant(zeros), {.axis = 1});
    value y = p.g(op::matmul, x, w);
    if (random.chance(0.5)) y = p.g(op::add, y, p.constant(p.whole({10}, dtype::f32)));
    if (random.chance(0.5)) y = p.g(op::quantize_linear, y, p.either(p.powers({}), 0.5), {.type = type});
    EXPECT_TRUE(check(p, y));
    EXPECT_NE(p.kernel.find("as float32"), std::string::npos) << p.kernel;
  }
}

TEST_F(onednn_quantised_matmul, sums_that_could_overflow_are_refused) {
  graph_builder g;
  const value x = g.input("x", {dtype::u8, {2, 33026}}), w = g.input("w", {dtype::i8, {33026, 3}});
  const oracle_value number = reals({}, {1});
  const value one = g.constant("one", number.type, bytes_of(number));
  g.output("y", g(op::matmul, g(op::dequantize_linear, x, one), g(op::dequantize_linear, w, one)));
  const collage::graph network = g.finish();
  for (const auto& pattern : collage::table_of<collage::backend_set<collage::onednn>>[0].patterns) {
    if (std::string(pattern.name) != "quantised_product") continue;
    collage::match_record record;
    ASSERT_TRUE(collage::match_at(network.view(), pattern.nodes, 2, record));
    const collage::verdict v = pattern.accepts(network.view(), record);
    EXPECT_FALSE(v);
    EXPECT_NE(std::string(v.rule).find("33,025"), std::string::npos);
  }
}

}  // namespace backends_onednn_quantised_matmul_test
#endif
