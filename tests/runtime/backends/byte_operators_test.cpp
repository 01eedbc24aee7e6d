// Operators between convolutions of float32 networks on integers of 8 bits, against the reference of the quantised operators: exact, but
// for a step at ties.
#if defined(COLLAGE_HAS_ONEDNN)
#include <gtest/gtest.h>
#include <collage/backend_set.hpp>
#include <collage/backends/onednn.hpp>
#include <collage/backends/portable.hpp>
#include <collage/backends/reference.hpp>
#include <collage/graph/graph.hpp>
#include <collage/op/convert_layout.hpp>
#include <collage/ops.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/engine.hpp>
#include <collage/run/form.hpp>
#include <collage/run/plan.hpp>
#include <collage/run/tensor.hpp>
#include <collage/run/value_scales.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "support/random_numbers.hpp"

namespace backends_byte_operators_test {

namespace c = collage;
namespace op = collage::ops;
using collage_test::random_numbers;

c::tensor_type f32(const c::shape& dims) { return {c::dtype::f32, dims}; }

c::value constant(c::graph_builder& g, const std::string& name, const c::tensor_type& type, const void* contents) {
  const std::shared_ptr<std::byte> bytes = c::allocate_bytes(type.bytes());
  std::memcpy(bytes.get(), contents, type.bytes());
  return g.constant(name, type, bytes);
}
c::value number(c::graph_builder& g, float x, const std::string& name = "number ") {
  return constant(g, name + std::to_string(x), f32({}), &x);
}

/// A value that is quantised and dequantised.
c::value rounded(c::graph_builder& g, c::value v, const c::integer_scale& how, const std::string& name) {
  const float scale = how.scale;
  const auto zero = static_cast<std::uint8_t>(how.zero_point);
  const c::value s = constant(g, name + " scale", f32({}), &scale);
  const c::value z = constant(g, name + " zero", {c::dtype::u8, {}}, &zero);
  return g(op::dequantize_linear, g(op::quantize_linear, v, s, z), s, z);
}

/// What is computed of the inputs.
using body = std::function<c::value(c::graph_builder&, const std::vector<c::value>&)>;
struct operator_case {
  std::string name;
  std::vector<c::shape> inputs;
  body computes;
  bool keeps_scale = false;  ///< the result has the scale of the first input
};

/// The scales of inputs and of the result, if these are integers.
struct scales_of_case {
  std::vector<c::integer_scale> in;
  std::optional<c::integer_scale> out;
};

c::graph build(const operator_case& t, const scales_of_case* how = nullptr) {
  c::graph_builder g;
  std::vector<c::value> in;
  for (std::size_t i = 0; i < t.inputs.size(); ++i) {
    const std::string name = "x" + std::to_string(i);
    in.push_back(g.input(name, f32(t.inputs[i])));
    if (how != nullptr) in.back() = rounded(g, in.back(), how->in[i], name);
  }
  c::value y = t.computes(g, in);
  if (how != nullptr && how->out) y = rounded(g, y, *how->out, "y");
  g.output("y", y);
  return g.finish();
}

/// The conversion of `backend` between two forms of a type.
std::optional<c::configuration> conversion_between(const c::backend_entry& backend, const c::tensor_type& type,
                                                   const c::form& from, const c::form& to) {
  c::graph_builder g;
  g.output("to", g(op::convert_layout, g.input("from", type)));
  const c::graph one = g.finish();
  const c::graph_view view = one.view();
  const c::pattern_entry* const p = backend.find("convert_layout");
  c::match_record record;
  if (p == nullptr || !match_at(view, p->nodes, 0, record)) return {};
  for (const c::configuration& how : proposed_for(*p, view, record)) {
    const c::value_forms forms = forms_of(*p, view, record, how);
    if (forms.of(view.inputs_of(0)[0]) == from && forms.of(view.output_of(0)) == to) return how;
  }
  return {};
}

/// Runs kernels on integers for whole networks, and compares them with the reference.
class operators_on_bytes {
 public:
  /// The forms of results for which a backend had kernels on integers.
  std::vector<std::string> check(const operator_case& t, std::uint64_t seed, int threads = 1) {
    const c::graph network = build(t);
    const c::graph_view view = network.view();
    std::vector<std::uint32_t> nodes(network.nodes().size());
    std::iota(nodes.begin(), nodes.end(), 0U);
    std::vector<std::string> found;
    for (const c::pattern_entry& p : find_backend(table_, "portable")->patterns) {
      c::match_record record;
      const auto root = static_cast<std::uint32_t>(nodes.size() - 1);
      if (!match_at(view, p.nodes, root, record) || record.nodes != nodes.size() || !p.accepts(view, record)) continue;
      for (const c::configuration& how : proposed_for(p, view, record)) {
        const c::value_forms forms = forms_of(p, view, record, how);
        if (forms.of(network.inputs()[0]).element != c::dtype::u8) continue;
        found.push_back(to_text(forms.of(network.inputs()[0])) + " to " + to_text(forms.of(network.outputs()[0])));
        check_kernel(network, t, seed, {"portable", p.name, how.text()}, nodes, forms, threads);
      }
    }
    return found;
  }

 private:
  void check_kernel(const c::graph& network, const operator_case& t, std::uint64_t seed, const c::kernel_step& step,
                    const std::vector<std::uint32_t>& nodes, const c::value_forms& forms, int threads) {
    const std::string where = t.name + ", " + step.pattern + " " + step.configuration + " to " +
                              to_text(forms.of(network.outputs()[0])) + ", COLLAGE_SEED=" + std::to_string(seed);
    random_numbers random(seed);
    scales_of_case how;
    std::vector<c::tensor> in;
    for (const std::uint32_t v : network.inputs()) {
      how.in.push_back(
          {static_cast<float>(random.real(0.005, 0.05)), static_cast<std::int32_t>(random.number(0, 255))});
      in.emplace_back(network.type_of(v));
      for (float& x : in.back().as<float>())
        x = c::number_for(static_cast<std::int32_t>(random.number(0, 255)), how.in.back());
    }
    const std::vector<c::const_tensor_view> views(in.begin(), in.end());
    const std::uint32_t y_value = network.outputs()[0];
    if (forms.of(y_value).element) {
      const std::vector<c::oracle_value> real = evaluate(network, views);
      double low = 0, high = 0;
      for (const double r : real[0].real)
        if (std::isfinite(r)) low = std::min(low, r), high = std::max(high, r);
      how.out = t.keeps_scale ? how.in[0] : c::scale_for(c::dtype::u8, 0.9 * low, 0.9 * high);
    }
    auto scales = std::make_shared<c::value_scales>();
    for (std::size_t i = 0; i < in.size(); ++i) scales->set(network.inputs()[i], c::dtype::u8, how.in[i]);
    if (how.out) scales->set(y_value, c::dtype::u8, *how.out);
    const std::vector<c::oracle_value> expected = evaluate(build(t, &how), views);

    c::placement placed;
    placed.scales = scales;
    placed.groups.emplace_back();
    placed.groups.back().step = step;
    placed.groups.back().nodes = nodes;
    for (const std::uint32_t v : network.inputs()) convert(placed, network, v, c::form(), forms.of(v), where);
    convert(placed, network, y_value, forms.of(y_value), c::form(), where);
    const c::tensor out(network.type_of(y_value));
    const c::tensor_view result[] = {out};
    try {
      const c::dynamic_engine engine(network, placed, table_, threads);
      engine.context().run(views, result);
    } catch (const c::error& e) {
      ADD_FAILURE() << where << ": " << e.what();
      return;
    }
    compare(out.as<float>(), expected[0].real, how.out ? how.out->scale : 0, where);
  }

  void convert(c::placement& placed, const c::graph& network, std::uint32_t v, const c::form& from, const c::form& to,
               const std::string& where) {
    if (from == to) return;
    const auto how = conversion_between(*find_backend(table_, "onednn"), network.type_of(v), from, to);
    ASSERT_TRUE(how) << where << ": no conversion from " << to_text(from) << " to " << to_text(to);
    placed.conversions.push_back({v, {to_text(from), to_text(to), "onednn", how->text()}, {}, 0});
  }

  /// Integers are equal but for a step where a quotient is near a tie, which few are. Numbers differ by rounding errors of float32.
  static void compare(std::span<const float> actual, std::span<const double> expected, float step,
                      const std::string& where) {
    double largest = 0;
    for (const double e : expected) largest = std::max(largest, std::abs(e));
    std::size_t steps = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const double distance = std::abs(static_cast<double>(actual[i]) - expected[i]);
      if (distance <= 1e-5 * largest + 1e-6) continue;
      ++steps;
      ASSERT_LE(distance, 1.001 * static_cast<double>(step))
          << where << ", element " << i << ": " << actual[i] << ", the reference has " << expected[i];
    }
    EXPECT_LE(steps, expected.size() / 50 + 1) << where;
  }

  c::backend_table table_ = c::table_of<c::backend_set<c::onednn, c::portable>>;
};

template <class Kind>
body one_operand(const Kind& kind) {
  return [&kind](c::graph_builder& g, const std::vector<c::value>& x) { return g(kind, x[0]); };
}
template <class Kind>
body two_operands(const Kind& kind) {
  return [&kind](c::graph_builder& g, const std::vector<c::value>& x) { return g(kind, x[0], x[1]); };
}

/// All forms in which results of images with many channels are found.
const std::vector<std::string> both_orders{"plain:u8 to plain:u8", "channels-last:u8 to channels-last:u8"};

const std::vector<std::string> one_order{both_orders[0]}, last_order{both_orders[1]};

TEST(byte_operators, functions_equal_the_reference_of_quantised_ones) {
  const std::uint64_t seed = collage_test::fresh_seed();
  const c::shape image{2, 19, 5, 7};
  const std::vector<operator_case> list{
      {"relu", {image}, one_operand(op::relu)},
      {"sigmoid", {image}, one_operand(op::sigmoid)},
      {"tanh", {image}, one_operand(op::tanh)},
      {"hard_swish", {image}, one_operand(op::hard_swish)},
      {"gelu_tanh", {image}, one_operand(op::gelu_tanh)},
      {"abs", {image}, one_operand(op::abs)},
      {"twice", {image}, [](c::graph_builder& g, const auto& x) { return g(op::add, x[0], x[0]); }},
      {"clip",
       {image},
       [](c::graph_builder& g, const auto& x) { return g(op::clip, x[0], number(g, -0.5F), number(g, 1)); }},
      {"a number less x", {image}, [](c::graph_builder& g, const auto& x) { return g(op::sub, number(g, 1), x[0]); }},
      {"silu", {image}, [](c::graph_builder& g, const auto& x) { return g(op::mul, x[0], g(op::sigmoid, x[0])); }},
      {"gelu",
       {image},
       [](c::graph_builder& g, const auto& x) {
         const c::value erf = g(op::erf, g(op::div, x[0], number(g, 1.41421356F)));
         return g(op::mul, x[0], g(op::mul, number(g, 0.5F), g(op::add, erf, number(g, 1))));
       }},
      {"hard_swish as exporters spell it",
       {image},
       [](c::graph_builder& g, const auto& x) {
         const c::value gate = g(op::clip, g(op::add, x[0], number(g, 3)), number(g, 0), number(g, 6));
         return g(op::div, g(op::mul, x[0], gate), number(g, 6, "divisor "));
       }},
      {"a chain",
       {image},
       [](c::graph_builder& g, const auto& x) {
         return g(op::relu, g(op::add, g(op::mul, g(op::tanh, x[0]), number(g, 2)), number(g, 0.25F)));
       }},
  };
  operators_on_bytes check;
  for (const operator_case& t : list) EXPECT_EQ(check.check(t, seed), both_orders) << t.name;
  EXPECT_EQ(check.check({"of a matrix", {{33, 65}}, one_operand(op::sigmoid)}, seed), one_order);
  // In one step, oneDNN 3.2 converts these wrongly.
  EXPECT_EQ(check.check({"of 128 channels", {{1, 128, 7, 7}}, one_operand(op::abs)}, seed), both_orders);
  EXPECT_EQ(check.check({"of many", {{1, 64, 40, 41}}, one_operand(op::elu)}, seed, 2), both_orders);
}

TEST(byte_operators, pairs_equal_the_reference_of_quantised_ones) {
  const std::uint64_t seed = collage_test::fresh_seed();
  const c::shape image{2, 19, 5, 7}, channels{2, 19, 1, 1}, shared{1, 19, 1, 1};
  const auto added_and = [](const auto& last) {
    return [last](c::graph_builder& g, const std::vector<c::value>& x) { return last(g, g(op::add, x[0], x[1])); };
  };
  const std::vector<operator_case> list{
      {"add", {image, image}, two_operands(op::add)},
      {"sub", {image, image}, two_operands(op::sub)},
      {"mul", {image, image}, two_operands(op::mul)},
      {"add and relu", {image, image}, added_and([](auto& g, c::value y) { return g(op::relu, y); })},
      {"add and clip", {image, image}, added_and([](auto& g, c::value y) {
         return g(op::clip, y, number(g, -1), number(g, 2));
       })},
      {"mul of channels", {image, channels}, two_operands(op::mul)},
      {"mul of channels in front", {channels, image}, two_operands(op::mul)},
      {"add of shared channels", {image, shared}, two_operands(op::add)},
  };
  operators_on_bytes check;
  for (const operator_case& t : list) EXPECT_EQ(check.check(t, seed), both_orders) << t.name;
  const operator_case large{"large", {{2, 64, 40, 41}, {2, 64, 1, 1}}, two_operands(op::mul)};
  EXPECT_EQ(check.check(large, seed, 2), both_orders);
  EXPECT_EQ(check.check({"rows", {{33, 65}, {33, 65}}, two_operands(op::add)}, seed), one_order);
  EXPECT_TRUE(check.check({"other broadcasts", {{33, 65}, {33, 1}}, two_operands(op::add)}, seed).empty());
}

TEST(byte_operators, concat_equals_the_reference_of_the_quantised_one) {
  const std::uint64_t seed = collage_test::fresh_seed();
  operators_on_bytes check;
  const auto joined = [](std::int64_t axis) {
    return [axis](c::graph_builder& g, const std::vector<c::value>& x) {
      return x.size() == 2 ? g(op::concat, {x[0], x[1]}, {.axis = axis})
                           : g(op::concat, {x[0], x[1], x[2]}, {.axis = axis});
    };
  };
  for (const std::int64_t n : {1, 3}) {
    const c::shape a{n, 64, 9, 7}, b{n, 3, 9, 7}, d{n, 130, 9, 7};
    EXPECT_EQ(check.check({"channels", {a, b, d}, joined(1)}, seed), both_orders);
    EXPECT_EQ(check.check({"images", {a, a}, joined(0)}, seed), both_orders);
    EXPECT_EQ(check.check({"rows", {a, {n, 64, 2, 7}}, joined(2)}, seed), both_orders);
    EXPECT_EQ(check.check({"columns", {a, {n, 64, 9, 1}}, joined(3)}, seed), both_orders);
  }
  EXPECT_EQ(check.check({"matrices", {{5, 8}, {5, 3}}, joined(1)}, seed), one_order);
  EXPECT_EQ(check.check({"large", {{2, 64, 40, 41}, {2, 32, 40, 41}}, joined(1)}, seed, 2), both_orders);
}

TEST(byte_operators, what_moves_integers_keeps_them) {
  const std::uint64_t seed = collage_test::fresh_seed();
  operators_on_bytes check;
  const c::shape image{2, 40, 6, 7};
  const auto sliced = [](const op::slice_attributes& a) {
    return [a](c::graph_builder& g, const std::vector<c::value>& x) { return g(op::slice, x[0], a); };
  };
  const op::slice_attributes channels{.starts = {0, 17, 0, 0}, .steps = {1, 1, 1, 1}, .extents = {2, 20, 6, 7}};
  const op::slice_attributes steps{.starts = {1, 38, 5, 0}, .steps = {1, -2, -1, 3}, .extents = {1, 19, 6, 3}};
  EXPECT_EQ(check.check({"half", {image}, sliced(channels), true}, seed), both_orders);
  EXPECT_EQ(check.check({"steps", {image}, sliced(steps), true}, seed), both_orders);
  const auto transposed = [](c::graph_builder& g, const std::vector<c::value>& x) {
    return g(op::transpose, x[0], {.permutation = {0, 2, 1, 3}});
  };
  EXPECT_EQ(check.check({"transpose", {image}, transposed, true}, seed), one_order);
  const auto pooled = [](c::graph_builder& g, const std::vector<c::value>& x) {
    return g(op::max_pool, x[0],
             {.window = {3, 3}, .strides = {2, 1}, .dilations = {1, 2}, .pads_begin = {1, 1}, .pads_end = {0, 1}});
  };
  EXPECT_EQ(check.check({"max_pool", {image}, pooled, true}, seed), last_order);
  EXPECT_EQ(check.check({"max_pool of few channels", {{2, 4, 6, 7}}, pooled, true}, seed), one_order);
}

TEST(byte_operators, integers_of_another_scale_are_not_moved) {
  c::graph_builder g;
  const c::value x = g.input("x", f32({2, 3, 4}));
  g.output("y", g(op::transpose, x, {.permutation = {0, 2, 1}}));
  const c::graph network = g.finish();
  const auto scales = std::make_shared<c::value_scales>();
  scales->set(network.inputs()[0], c::dtype::u8, {0.5F, 3});
  scales->set(network.outputs()[0], c::dtype::u8, {0.25F, 3});
  c::placement placed;
  placed.scales = scales;
  placed.groups.emplace_back();
  placed.groups.back().step = c::kernel_step{"portable", "loops", "1"};
  placed.groups.back().nodes = {0};
  try {
    const c::dynamic_engine engine(network, placed, c::table_of<c::backend_set<c::onednn, c::portable>>, 1);
    FAIL();
  } catch (const c::error& e) {
    EXPECT_NE(std::string(e.what()).find("needs one scale for its input and its output"), std::string::npos)
        << e.what();
  }
}

TEST(byte_operators, means_equal_the_reference_of_quantised_ones) {
  const std::uint64_t seed = collage_test::fresh_seed();
  operators_on_bytes check;
  const auto mean = [](const op::pool_attributes& a) {
    return [a](c::graph_builder& g, const std::vector<c::value>& x) { return g(op::average_pool, x[0], a); };
  };
  for (const bool counts : {false, true}) {
    op::pool_attributes a;
    a.window = {3, 3}, a.strides = {2, 1}, a.pads_begin = {1, 1}, a.pads_end = {1, 1}, a.count_padding = counts;
    EXPECT_EQ(check.check({"3x3", {{2, 19, 9, 10}}, mean(a)}, seed), last_order);
    EXPECT_EQ(check.check({"3x3 of few channels", {{2, 4, 9, 10}}, mean(a)}, seed), one_order);
    EXPECT_EQ(check.check({"3x3, large", {{1, 300, 20, 21}}, mean(a)}, seed, 2), last_order);
    a.window = {20, 20}, a.strides = {1, 1}, a.pads_begin = {0, 2}, a.pads_end = {3, 0};
    EXPECT_EQ(check.check({"20x20", {{1, 40, 21, 22}}, mean(a)}, seed), last_order);
  }
  const std::vector<std::string> all{"plain:u8 to plain:u8", "channels-last:u8 to channels-last:u8",
                                     "plain:u8 to plain", "channels-last:u8 to plain:u8", "channels-last:u8 to plain"};
  const auto global = [](bool keeps) {
    return [keeps](c::graph_builder& g, const std::vector<c::value>& x) {
      return g(op::reduce_mean, x[0], {.axes = {2, 3}, .keep_dims = keeps});
    };
  };
  EXPECT_EQ(check.check({"all places", {{2, 300, 7, 7}}, global(true)}, seed), all);
  const std::vector<std::string> of_lists{"plain:u8 to plain:u8", "plain:u8 to plain", "channels-last:u8 to plain"};
  EXPECT_EQ(check.check({"all places of lists", {{2, 30, 7, 7}}, global(false)}, seed), of_lists);
}

}  // namespace backends_byte_operators_test
#endif
