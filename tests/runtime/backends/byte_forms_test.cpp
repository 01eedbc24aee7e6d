// Kernels of float32 networks on integers of 8 bits, against the reference of the quantised operators: exact, but for a step at ties.
#if defined(COLLAGE_HAS_ONEDNN) && defined(COLLAGE_HAS_JIT)
#include <gtest/gtest.h>
#include <collage/backend_set.hpp>
#include <collage/backends/jit.hpp>
#include <collage/backends/onednn.hpp>
#include <collage/backends/reference.hpp>
#include <collage/calibrate/ranges.hpp>
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
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "support/random_numbers.hpp"

namespace backends_byte_forms_test {

namespace c = collage;
namespace op = collage::ops;
using collage_test::random_numbers;

c::tensor_type f32(const c::shape& dims) { return {c::dtype::f32, dims}; }

/// A constant with a copy of these contents.
c::value constant(c::graph_builder& g, const std::string& name, const c::tensor_type& type, const void* contents) {
  const std::shared_ptr<std::byte> bytes = c::allocate_bytes(type.bytes());
  std::memcpy(bytes.get(), contents, type.bytes());
  return g.constant(name, type, bytes);
}
/// Random numbers between -1 and 1.
c::tensor random_tensor(random_numbers& random, const c::shape& dims) {
  c::tensor made(f32(dims));
  for (float& x : made.as<float>()) x = static_cast<float>(random.real(-1, 1));
  return made;
}

/// What a test is about: a chain of operators from the input `x`.
struct chain_case {
  enum class kind : std::uint8_t { conv, product } anchor = kind::conv;
  c::shape x, w;
  op::conv_attributes attributes = {};
  bool bias = false, relu = false, clips = false, swish = false, adds = false;
};

/// A value that is quantised and dequantised.
c::value rounded(c::graph_builder& g, c::value v, const c::integer_scale& how, const std::string& name) {
  const float scale = how.scale;
  const auto zero = static_cast<std::uint8_t>(how.zero_point);
  const c::value s = constant(g, name + " scale", f32({}), &scale);
  const c::value z = constant(g, name + " zero", {c::dtype::u8, {}}, &zero);
  return g(op::dequantize_linear, g(op::quantize_linear, v, s, z), s, z);
}

/// Weights as int8 with a scale for each filter or column, as numbers.
std::vector<float> rounded_weights(std::span<const float> contents, const c::shape& dims, std::int32_t axis) {
  std::vector<float> made(contents.begin(), contents.end());
  c::round_to(c::weight_quantisation(contents, dims, axis), made, dims);
  return made;
}

/// The network in float32. If scales are given, what kernels on integers compute by them.
c::graph build(const chain_case& t, std::uint64_t seed, const c::integer_scale* x_scale = nullptr,
               const c::integer_scale* added_scale = nullptr, const c::integer_scale* y_scale = nullptr) {
  random_numbers random(seed);
  c::graph_builder g;
  c::value x = g.input("x", f32(t.x));
  const bool is_conv = t.anchor == chain_case::kind::conv;
  const c::tensor w = random_tensor(random, t.w), b = random_tensor(random, {is_conv ? t.w[0] : t.w[1]});
  if (x_scale != nullptr) {
    x = rounded(g, x, *x_scale, "x");
    const std::vector<float> made = rounded_weights(w.as<float>(), t.w, is_conv ? 0 : 1);
    std::memcpy(w.data(), made.data(), w.bytes());
  }
  const c::value weights = constant(g, "w", w.type(), w.data());
  const c::value bias = t.bias ? constant(g, "bias", b.type(), b.data()) : c::value();
  c::value y = !is_conv ? g(op::matmul, x, weights)
               : t.bias ? g(op::conv, x, weights, bias, t.attributes)
                        : g(op::conv, x, weights, t.attributes);
  if (!is_conv && t.bias) y = g(op::add, y, bias);
  if (t.swish) y = g(op::mul, y, g(op::sigmoid, y));
  if (t.adds) {
    c::value added = g.input("added", g.type_of(y));
    if (added_scale != nullptr) added = rounded(g, added, *added_scale, "added");
    y = g(op::add, y, added);
  }
  if (t.relu) y = g(op::relu, y);
  if (t.clips) {
    const float low = 0, high = 2;
    y = g(op::clip, y, constant(g, "low", f32({}), &low), constant(g, "high", f32({}), &high));
  }
  if (y_scale != nullptr) y = rounded(g, y, *y_scale, "y");
  g.output("y", y);
  return g.finish();
}

/// Conversions of `backend` between two forms of a type; nothing if it has none.
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

class byte_kernels {
 public:
  explicit byte_kernels(c::backend_table table) : table_(table), onednn_(*find_backend(table, "onednn")) {}

  /// Runs all kernels on integers that `backend` has for the whole network, and compares them with the reference. Returns how many.
  int check(const std::string& backend, const chain_case& t, std::uint64_t seed) {
    const c::graph network = build(t, seed);
    const c::graph_view view = network.view();
    const c::backend_entry& b = *find_backend(table_, backend);
    std::vector<std::uint32_t> nodes(network.nodes().size());
    for (std::uint32_t n = 0; n < nodes.size(); ++n) nodes[n] = n;
    int count = 0;
    for (const c::pattern_entry& p : b.patterns) {
      c::match_record record;
      const auto root = static_cast<std::uint32_t>(nodes.size() - 1);
      if (!match_at(view, p.nodes, root, record) || record.nodes != nodes.size() || !p.accepts(view, record)) continue;
      for (const c::configuration& how : proposed_for(p, view, record)) {
        const c::value_forms forms = forms_of(p, view, record, how);
        if (forms.of(network.inputs()[0]).element != c::dtype::u8) continue;
        ++count;
        check_kernel(network, t, seed, {backend, p.name, how.text()}, nodes, forms);
      }
    }
    return count;
  }

 private:
  static constexpr c::integer_scale x_scale{0.01F, 100}, added_scale{0.012F, 90};

  /// Inputs, the same for each kernel of a case: numbers for which integers stand, so that no tie is among them.
  static std::vector<c::tensor> inputs_of(const c::graph& network, std::uint64_t seed) {
    random_numbers random(seed + 1);
    std::vector<c::tensor> made;
    for (const std::uint32_t v : network.inputs()) {
      const c::integer_scale how = made.empty() ? x_scale : added_scale;
      made.emplace_back(network.type_of(v));
      for (float& x : made.back().as<float>()) x = c::number_for(static_cast<std::int32_t>(random.number(0, 255)), how);
    }
    return made;
  }

  void check_kernel(const c::graph& network, const chain_case& t, std::uint64_t seed, const c::kernel_step& step,
                    const std::vector<std::uint32_t>& nodes, const c::value_forms& forms) {
    const std::string where =
        step.backend + " " + step.pattern + " " + step.configuration + ", COLLAGE_SEED=" + std::to_string(seed);
    const std::vector<c::tensor> in = inputs_of(network, seed);
    const std::vector<c::const_tensor_view> views(in.begin(), in.end());
    const std::vector<c::oracle_value> real = evaluate(network, views);
    const auto [low, high] = std::ranges::minmax(real[0].real);
    const c::integer_scale x = x_scale, added = added_scale, y = c::scale_for(c::dtype::u8, 0.9 * low, 0.9 * high);
    const std::uint32_t x_value = network.inputs()[0], y_value = network.outputs()[0];
    const bool writes_bytes = forms.of(y_value).element.has_value();

    auto scales = std::make_shared<c::value_scales>();
    scales->set(x_value, c::dtype::u8, x);
    scales->set(y_value, c::dtype::u8, y);
    if (t.adds) scales->set(network.inputs()[1], c::dtype::u8, added);
    const bool adds_bytes = t.adds && forms.of(network.inputs()[1]).element.has_value();
    const c::graph quantised = build(t, seed, &x, adds_bytes ? &added : nullptr, writes_bytes ? &y : nullptr);
    const std::vector<c::oracle_value> expected = evaluate(quantised, views);

    c::placement placed;
    placed.scales = scales;
    placed.groups.emplace_back();
    placed.groups.back().step = step;
    placed.groups.back().nodes = nodes;
    for (const std::uint32_t v : network.inputs()) convert(placed, network, v, c::form(), forms.of(v), where);
    convert(placed, network, y_value, forms.of(y_value), c::form(), where);
    std::optional<c::dynamic_engine> engine;
    try {
      engine.emplace(network, placed, table_, 1);
    } catch (const c::error& e) {
      ADD_FAILURE() << where << ": " << e.what();
      return;
    }
    const c::tensor out(network.type_of(y_value));
    c::dynamic_context context = engine->context();
    const c::tensor_view result[] = {out};
    context.run(views, result);
    compare(out.as<float>(), expected[0].real, writes_bytes ? y.scale : 0, where);
  }

  void convert(c::placement& placed, const c::graph& network, std::uint32_t v, const c::form& from, const c::form& to,
               const std::string& where) {
    if (from == to) return;
    const auto how = conversion_between(onednn_, network.type_of(v), from, to);
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
    EXPECT_LE(steps, expected.size() / 200 + 1) << where;
  }

  c::backend_table table_;
  const c::backend_entry& onednn_;
};

using both = c::backend_set<c::onednn, c::jit>;

chain_case conv(const c::shape& x, const c::shape& w, const op::conv_attributes& a = {}) {
  chain_case t;
  t.x = x, t.w = w, t.attributes = a;
  return t;
}

/// Convolutions with what is odd about them: few channels, odd counts, strides, pads, groups, three dimensions.
std::vector<chain_case> convolutions() {
  std::vector<chain_case> list{
      conv({1, 16, 8, 8}, {32, 16, 1, 1}),
      conv({2, 20, 7, 9}, {24, 20, 3, 3}, {.pads_begin = {1, 1}, .pads_end = {1, 1}}),
      conv({1, 3, 17, 19}, {16, 3, 3, 3}, {.strides = {2, 2}, .pads_begin = {1, 1}, .pads_end = {1, 1}}),
      conv({1, 16, 9, 9}, {5, 16, 1, 1}, {.strides = {2, 2}}),
      conv({1, 32, 6, 6}, {32, 16, 3, 3}, {.groups = 2, .pads_begin = {0, 2}, .pads_end = {1, 0}}),
      conv({1, 24, 10, 11}, {24, 1, 3, 3}, {.groups = 24, .pads_begin = {1, 1}, .pads_end = {1, 1}}),
      conv({1, 16, 12}, {16, 16, 3}, {.dilations = {2}}),
      conv({1, 16, 4, 5, 6}, {16, 16, 2, 2, 2}),
  };
  const std::size_t count = list.size();
  for (std::size_t i = 0; i < count; ++i) {
    list.push_back(list[i]);
    list.back().bias = true;
    list.back().relu = i % 2 == 0;
    list.back().clips = i % 2 == 1;
    list.push_back(list[i]);
    list.back().swish = i % 2 == 0;
    list.back().adds = true;
  }
  return list;
}

std::vector<chain_case> products() {
  std::vector<chain_case> list;
  for (const auto& [x, w] :
       {std::pair<c::shape, c::shape>({5, 16}, {16, 24}), {{2, 7, 33}, {33, 19}}, {{1, 3, 64}, {64, 1}}})
    for (const int variant : {0, 1, 2, 3}) {
      chain_case t;
      t.anchor = chain_case::kind::product;
      t.x = x, t.w = w;
      t.bias = variant > 0, t.relu = variant == 1, t.swish = variant == 2, t.adds = variant == 3;
      list.push_back(t);
    }
  return list;
}

bool has_vnni() {
  return c::onednn::probe().available && std::string(c::onednn::probe().details).find("vnni") != std::string::npos;
}

TEST(byte_forms, convolutions_equal_the_reference_of_quantised_ones) {
  byte_kernels check(c::table_of<both>);
  int kernels = 0;
  const std::uint64_t seed = collage_test::fresh_seed();
  for (const chain_case& t : convolutions()) kernels += check.check("onednn", t, seed);
  if (has_vnni()) EXPECT_GT(kernels, 30);
}

TEST(byte_forms, products_equal_the_reference_of_quantised_ones) {
  byte_kernels check(c::table_of<both>);
  int kernels = 0;
  const std::uint64_t seed = collage_test::fresh_seed();
  for (const chain_case& t : products()) kernels += check.check("onednn", t, seed);
  if (has_vnni()) EXPECT_GT(kernels, 15);
}

/// Products of one input by one square constant, as it is and transposed, on the values of scales if they are given.
c::graph build_both_orientations(const c::tensor& w, const c::integer_scale* scale = nullptr) {
  c::graph_builder g;
  c::value x = g.input("x", f32({3, 32}));
  if (scale != nullptr) x = rounded(g, x, *scale, "x");
  const auto weights = [&](const std::string& name, std::int32_t axis) {
    const std::vector<float> made = scale != nullptr ? rounded_weights(w.as<float>(), w.type().dims, axis)
                                                     : std::vector<float>(w.as<float>().begin(), w.as<float>().end());
    return constant(g, name, w.type(), made.data());
  };
  const c::value straight = weights("w", 1), transposed = scale != nullptr ? weights("wt", 0) : straight;
  g.output("y", g(op::matmul, x, straight));
  g.output("yt", g(op::matmul, x, transposed, {.transpose_b = true}));
  return g.finish();
}

TEST(byte_forms, one_constant_in_two_orientations_is_packed_twice) {
  if (!has_vnni()) return;  // there are no kernels
  random_numbers random;
  const c::tensor w = random_tensor(random, {32, 32});
  const c::integer_scale scale{0.01F, 100};
  const c::graph network = build_both_orientations(w), quantised = build_both_orientations(w, &scale);
  const c::tensor x(f32({3, 32}));
  for (float& e : x.as<float>()) e = c::number_for(static_cast<std::int32_t>(random.number(0, 255)), scale);
  const c::const_tensor_view in[] = {x};
  const std::vector<c::oracle_value> expected = evaluate(quantised, in);

  const c::backend_table table = c::table_of<both>;
  auto scales = std::make_shared<c::value_scales>();
  scales->set(network.inputs()[0], c::dtype::u8, scale);
  c::placement placed;
  placed.scales = scales;
  for (std::uint32_t node = 0; node < 2; ++node) {
    placed.groups.emplace_back();
    placed.groups.back().step = c::kernel_step{"onednn", "matmul", "5"};  // from uint8 to float32
    placed.groups.back().nodes = {node};
  }
  const c::form bytes = c::form().of(c::dtype::u8);
  const auto how = conversion_between(*find_backend(table, "onednn"), x.type(), c::form(), bytes);
  ASSERT_TRUE(how);
  placed.conversions.push_back({network.inputs()[0], {"plain", to_text(bytes), "onednn", how->text()}, {}, 0});
  const c::dynamic_engine engine(network, placed, table, 1);
  const c::tensor y(f32({3, 32})), yt(f32({3, 32}));
  const c::tensor_view out[] = {y, yt};
  engine.context().run(in, out);
  for (std::size_t i = 0; i < expected[0].real.size(); ++i) {
    EXPECT_NEAR(y.as<float>()[i], expected[0].real[i], 1e-4) << i;
    EXPECT_NEAR(yt.as<float>()[i], expected[1].real[i], 1e-4) << i;
  }
}

TEST(byte_forms, own_depthwise_kernels_equal_the_reference_of_quantised_ones) {
  byte_kernels check(c::table_of<both>);
  const std::uint64_t seed = collage_test::fresh_seed();
  int kernels = 0;
  for (const std::int64_t stride : {1, 2})
    for (const std::int64_t channels : {16, 23, 96}) {
      chain_case t = conv({2, channels, 11, 13}, {channels, 1, 3, 3},
                          {.groups = channels, .strides = {stride, stride}, .pads_begin = {1, 1}, .pads_end = {1, 1}});
      kernels += check.check("jit", t, seed);
      t.bias = t.clips = true;
      kernels += check.check("jit", t, seed);
    }
  EXPECT_GT(kernels, 10);
}

TEST(byte_forms, integers_that_stand_for_numbers_are_rounded_to_nearest) {
  const c::integer_scale how{0.5F, 3};
  EXPECT_EQ(c::integer_for(0, how, c::dtype::u8), 3);
  EXPECT_EQ(c::integer_for(0.25F, how, c::dtype::u8), 3);  // ties go to the even quotient
  EXPECT_EQ(c::integer_for(0.75F, how, c::dtype::u8), 5);
  EXPECT_EQ(c::integer_for(-100, how, c::dtype::u8), 0);
  EXPECT_EQ(c::integer_for(1000, how, c::dtype::u8), 255);
  EXPECT_EQ(c::integer_for(-1000, {0.5F, 0}, c::dtype::i8), -127);
  EXPECT_EQ(c::integer_for(std::nanf(""), how, c::dtype::u8), 3);
  EXPECT_EQ(c::number_for(7, how), 2.0F);
  const c::integer_scale wide = c::scale_for(c::dtype::u8, -1, 3);
  EXPECT_NEAR(wide.scale, 4.0 / 255, 1e-9);
  EXPECT_EQ(c::number_for(wide.zero_point, wide), 0.0F);  // zero is exact
  EXPECT_EQ(c::scale_for(c::dtype::u8, 1, 2).zero_point, 0);
  EXPECT_EQ(c::scale_for(c::dtype::u8, 0, 0), c::integer_scale());
}

TEST(byte_forms, a_kernel_without_a_scale_is_refused_in_a_sentence) {
  const c::graph network = build(conv({1, 16, 8, 8}, {32, 16, 1, 1}), 1);
  c::packed_weights packed;
  const c::build_context context(network, 1, packed);
  try {
    (void)context.scale_of(network.inputs()[0], c::dtype::u8);
    FAIL();
  } catch (const c::error& e) {
    EXPECT_EQ(e.kind(), c::error_kind::unsupported);
    EXPECT_NE(std::string(e.what()).find("has no scale for integers of 8 bits"), std::string::npos) << e.what();
  }
}

}  // namespace backends_byte_forms_test
#endif
