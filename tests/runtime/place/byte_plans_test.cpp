// Plans that store values as integers of 8 bits: which are found, which errors they keep, and what files hold of them.
#include <gtest/gtest.h>
#include <collage/backend_set.hpp>
#include <collage/calibrate/ranges.hpp>
#include <collage/graph/graph.hpp>
#include <collage/io/plan_file.hpp>
#include <collage/op/convert_layout.hpp>
#include <collage/ops.hpp>
#include <collage/pattern/single.hpp>
#include <collage/place.hpp>
#include <collage/place/within_error.hpp>
#include <collage/run/engine.hpp>
#include <collage/run/layouts.hpp>
#include <collage/run/plan.hpp>
#include <collage/run/precision.hpp>
#include <collage/run/rounding.hpp>
#include <collage/run/tensor.hpp>
#include <collage/run/value_scales.hpp>
#include <collage/run/verify.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "support/messages.hpp"
#include "support/placing.hpp"

namespace place_byte_plans_test {

namespace c = collage;
namespace op = collage::ops;
using collage_test::message_of;

/// The time of kernels, on a clock that stands still otherwise.
double now_ms = 0;

using product = c::single<op::matmul>;
using relu = c::single<op::relu>;
using conversion = c::single<op::convert_layout>;

constexpr std::int64_t rows = 4, width = 8, count = rows * width;
const c::tensor_type type{c::dtype::f32, {rows, width}};
const c::form bytes = c::form().of(c::dtype::u8);

/// How a kernel reads or writes a value: as integers with this scale, or as numbers.
struct storage {
  c::form stored;
  c::integer_scale how;

  std::vector<float> read(const void* from) const {
    std::vector<float> x(count);
    to_plain(type, stored, static_cast<const std::byte*>(from), reinterpret_cast<std::byte*>(x.data()), &how);
    return x;
  }
  void write(const std::vector<float>& x, void* to) const {
    from_plain(type, stored, reinterpret_cast<const std::byte*>(x.data()), static_cast<std::byte*>(to), &how);
  }
};
storage storage_of(const c::build_context& context, std::uint32_t value, bool is_bytes) {
  return is_bytes ? storage{bytes, context.scale_of(value, c::dtype::u8)} : storage{};
}

/// Choice 0 is in float32. Choice 1 is on integers, and a product takes a quarter of the time.
struct integers : c::backend<"integers"> {
  using patterns = c::patterns<product, relu, conversion>;

  template <class P>
  static std::size_t choices(const c::match<P>&) {
    return 2;
  }
  template <class P>
  static void layouts(const c::match<P>& m, std::size_t choice, c::value_forms& to) {
    if (choice == 0) return;
    to.set(m.record().argument[0], bytes);
    to.set(m.record().output[0], bytes);
  }
  static void layouts(const c::match<conversion>& m, std::size_t choice, c::value_forms& to) {
    to.set(choice == 0 ? m.record().argument[0] : m.record().output[0], bytes);
  }
  static c::kernel build(const c::match<product>& m, c::build_context& context) {
    const bool on_bytes = context.choice() == 1;
    const std::uint32_t weights = m.record().argument[1];
    const auto* const contents = context.constant<float>(weights);
    std::vector<float> w(contents, contents + width * width);
    const c::shape dims{width, width};
    if (on_bytes) c::round_to(c::weight_quantisation(w, dims, 1), w, dims);
    const storage in = storage_of(context, m.record().argument[0], on_bytes);
    const storage out = storage_of(context, m.record().output[0], on_bytes);
    return {on_bytes ? "product of bytes" : "product", [=](const c::kernel_call& call) {
              const std::vector<float> x = in.read(call.in[0]);
              std::vector<float> y(count);
              for (std::size_t i = 0; i < y.size(); ++i)
                for (std::size_t k = 0; k < width; ++k) y[i] += x[i / width * width + k] * w[k * width + i % width];
              out.write(y, call.out[0]);
              now_ms += on_bytes ? 1 : 4;
            }};
  }
  static c::kernel build(const c::match<relu>& m, c::build_context& context) {
    const bool on_bytes = context.choice() == 1;
    const storage in = storage_of(context, m.record().argument[0], on_bytes);
    const storage out = storage_of(context, m.record().output[0], on_bytes);
    return {on_bytes ? "relu of bytes" : "relu", [=](const c::kernel_call& call) {
              std::vector<float> x = in.read(call.in[0]);
              for (float& element : x) element = std::max(element, 0.0F);
              out.write(x, call.out[0]);
              now_ms += 0.25;
            }};
  }
  static c::kernel build(const c::match<conversion>& m, c::build_context& context) {
    const bool widens = context.choice() == 0;
    const std::uint32_t from = m.record().argument[0], to = m.record().output[0];
    const storage in = storage_of(context, from, widens), out = storage_of(context, to, !widens);
    return {widens ? "widen" : "round", [=](const c::kernel_call& call) {
              out.write(in.read(call.in[0]), call.out[0]);
              now_ms += 0.125;
            }};
  }
};
using set = c::backend_set<integers>;

c::graph layers(std::size_t products) {
  c::graph_builder g;
  c::value x = g.input("x", type);
  for (std::size_t i = 0; i < products; ++i) {
    const std::string name = "w" + std::to_string(i);
    x = g(op::relu,
          g(op::matmul, x, g.constant(name.c_str(), {c::dtype::f32, {width, width}}, c::uniform{-0.25F, 0.5F})));
  }
  g.output("y", x);
  c::graph made = g.finish();
  c::fill_constants(made);
  return made;
}

c::sample_source samples_of(std::size_t all) {
  return [all](std::size_t which, std::span<const c::tensor_view> inputs) {
    if (which >= all) return false;
    std::mt19937_64 random(which);
    std::uniform_real_distribution<float> number(0.2F, 1.8F);
    auto* const x = static_cast<float*>(inputs[0].data);
    for (std::int64_t i = 0; i < count; ++i) x[i] = number(random);
    return true;
  };
}
c::place_options options(double most_error, c::precisions elements = c::precisions::int8) {
  c::place_options how = collage_test::clock_options(now_ms);
  how.precision.elements = elements;
  how.precision.most_error = most_error;
  return how;
}
/// Few outputs of small networks err differently in each sample, so many are held back.
c::placed_within_error within(double most, const c::graph& network, c::within_error_options how = {}) {
  how.held_back = 48;
  return c::place_within_error(network, c::table_of<set>, options(most), samples_of(64), how);
}
std::ptrdiff_t count_of(const c::plan& made, const std::string& kernel) {
  return std::ranges::count(made.chosen.groups, kernel, &c::plan_group::kernel);
}
std::vector<float> outputs_of(const c::graph& network, const c::placement& of) {
  const c::dynamic_engine engine(network, of, c::table_of<set>, 1);
  const c::tensor in(type), out(type);
  const c::tensor_view inputs[] = {in};
  samples_of(1)(0, inputs);
  const c::const_tensor_view given[] = {in};
  const c::tensor_view results[] = {out};
  c::dynamic_context context = engine.context();
  context.run(given, results);
  return {out.as<float>().begin(), out.as<float>().end()};
}

TEST(byte_plans, multiply_integers_where_the_error_allows_it) {
  const c::graph network = layers(3);
  const c::placed_within_error made = within(0.1, network);
  EXPECT_EQ(count_of(made, "product of bytes"), 3) << made.why_unrounded;
  EXPECT_EQ(made.precision, "int8, error at most 10 %");
  EXPECT_DOUBLE_EQ(made.runs[0].median_ms, 3 * 1.25 + 2 * 0.125);
  ASSERT_TRUE(made.error);
  EXPECT_GT(made.error->measured, 1e-4);
  EXPECT_LE(made.error->upper, 0.1);
  // Each value has a scale; those of relu cover no negative numbers, so zero is the first integer.
  ASSERT_NE(made.chosen.scales, nullptr);
  // The last relu may be in float32, at the same cost.
  EXPECT_GE(made.chosen.scales->list().size(), 6U);
  for (std::uint32_t n = 0; n + 1 < network.nodes().size(); ++n) {
    const std::uint32_t v = network.view().output_of(n);
    const std::optional<c::integer_scale> how = made.chosen.scales->of(v, c::dtype::u8);
    ASSERT_TRUE(how) << network.value_name(v);
    if (n % 2 == 1) EXPECT_EQ(how->zero_point, 0) << network.value_name(v);
  }
  EXPECT_TRUE(c::verify<set>(network, made)) << c::verify<set>(network, made).why();
}

TEST(byte_plans, keep_what_is_named_in_float32) {
  const c::graph network = layers(3);
  c::place_options how = options(0.1);
  how.kept = {{"kind:relu"}, {network.node_name(2)}};
  const c::placed_within_error made =
      c::place_within_error(network, c::table_of<set>, how, samples_of(64), {.held_back = 48});
  EXPECT_EQ(count_of(made, "product of bytes"), 2) << made.why_unrounded;
  EXPECT_EQ(count_of(made, "relu"), 3);
  for (const c::plan_group& g : made.chosen.groups)
    if (g.nodes[0] == 2) EXPECT_EQ(g.kernel, "product");
  EXPECT_EQ(made.precision, "int8, error at most 10 %, kept in fp32: kind:relu, " + network.node_name(2));
}

TEST(byte_plans, round_less_within_a_smaller_bound) {
  const c::graph network = layers(5);
  const double all = within(0.2, network).error->upper;
  double before = 0;
  for (const double part : {0.3, 0.6, 0.9, 1.5}) {
    const c::placed_within_error made = within(part * all, network);
    const double ms = made.runs[0].median_ms;
    if (made.error) EXPECT_LE(made.error->upper, part * all) << part;
    if (before > 0) EXPECT_LE(ms, before) << "a larger bound gives no slower plan";
    before = ms;
  }
  EXPECT_DOUBLE_EQ(before, 5 * 1.25 + 2 * 0.125);
  EXPECT_EQ(within(1e-6, network).chosen.scales, nullptr);  // in float32
}

TEST(byte_plans, take_given_ranges) {
  const c::graph network = layers(2);
  c::network_ranges ranges{"", network.fingerprint(), {}, {}};
  for (std::uint32_t v = 0; v < network.values().size(); ++v) {
    if (network.at(v).role == c::value_role::constant) continue;
    c::value_range r;
    r.value = v;
    r.kept = {-8, 24};
    r.how = c::quantisation_of(r.kept, c::quantisation_schema::asymmetric);
    ranges.top.values.push_back(r);
  }
  c::within_error_options how;
  how.ranges = std::make_shared<const c::network_ranges>(ranges);
  const c::placed_within_error made = within(0.3, network, how);
  ASSERT_NE(made.chosen.scales, nullptr);
  for (const c::value_scales::entry& e : made.chosen.scales->list()) {
    EXPECT_FLOAT_EQ(e.how.scale, 32.0F / 255);
    EXPECT_EQ(e.how.zero_point, 64);
  }
  // A value without a range stays in float32.
  ranges.top.values.front().how = {};
  how.ranges = std::make_shared<const c::network_ranges>(ranges);
  EXPECT_EQ(count_of(within(0.3, network, how), "product of bytes"), 1);
  ranges.fingerprint = 1;
  how.ranges = std::make_shared<const c::network_ranges>(ranges);
  EXPECT_EQ(message_of([&] { (void)within(0.3, network, how); }),
            "ranges: are of another network; calibrate this network, or leave them out");
}

TEST(byte_plans, are_not_found_in_bfloat16) {
  const c::graph network = layers(2);
  const c::placed_within_error made =
      c::place_within_error(network, c::table_of<set>, options(0.1, c::precisions::bf16), samples_of(24), {});
  EXPECT_EQ(count_of(made, "product"), 2);
  EXPECT_EQ(made.why_unrounded, "no kernel that can run here rounds anything");
}

TEST(byte_plans, in_files_compute_the_same) {
  const c::graph network = layers(3);
  const c::placed_within_error made = within(0.1, network);
  const c::json written = c::plan_to_json(made, network);
  const c::plan read = c::plan_from_json(written, network, "a file");
  ASSERT_NE(read.chosen.scales, nullptr);
  EXPECT_EQ(read.chosen.scales->list(), made.chosen.scales->list());
  EXPECT_EQ(outputs_of(network, read.chosen), outputs_of(network, made.chosen));
  const auto fault_of = [&](const std::function<void(c::json&)>& damage) {
    c::json damaged = written;
    damage(damaged["chosen"]);
    return message_of([&] { (void)c::plan_from_json(damaged, network, "a file"); });
  };
  EXPECT_NE(fault_of([](c::json& p) { p["scales"][0]["scale"] = 0; }).find("is not positive and finite"),
            std::string::npos);
  EXPECT_NE(fault_of([](c::json& p) { p["scales"][0]["element"] = "f8"; }).find("is f8; known are u8, i8"),
            std::string::npos);
  EXPECT_NE(fault_of([](c::json& p) { p["scales"][0]["zero_point"] = 256; }).find("zero_point"), std::string::npos);
  EXPECT_NE(fault_of([](c::json& p) { p["scales"][0]["value"][1] = "z"; }).find("but the network's value"),
            std::string::npos);
  // Without scales, the engine says what is missing.
  c::placement without = made.chosen;
  without.scales = nullptr;
  EXPECT_NE(message_of([&] { (void)outputs_of(network, without); }).find("has no scale for integers of 8 bits"),
            std::string::npos);
}

}  // namespace place_byte_plans_test
