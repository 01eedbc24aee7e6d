// The backend `portable`: quantising, dequantising and dynamic quantisation, bit for bit, with one thread and two.
#include "support/backend_check.hpp"
#include "support/reference_check.hpp"

#include <collage/backends/portable.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace backends_portable_quantise_test {

using namespace collage_test::reference;
using collage::tensor_type;
using collage::value;

/// Builds the kernel of a pattern at the last node, and returns what it writes: one tensor for each output of the match.
std::vector<oracle_value> computed(const collage::graph& network, const std::vector<oracle_value>& given,
                                   const std::string& pattern, int threads) {
  std::vector<std::shared_ptr<const std::byte>> bytes;
  for (const oracle_value& v : given) bytes.push_back(bytes_of(v));
  const collage::backend_entry& table = collage::table_of<collage::backend_set<collage::portable>>[0];
  for (const auto& p : table.patterns) {
    if (p.name != pattern) continue;
    collage::match_record record;
    const auto root = static_cast<std::uint32_t>(network.nodes().size() - 1);
    EXPECT_TRUE(collage::match_at(network.view(), p.nodes, root, record));
    const collage::verdict v = p.accepts(network.view(), record);
    EXPECT_TRUE(v) << v.rule;
    collage::packed_weights packed;
    collage::build_context context(network, threads, packed);
    const collage::kernel built = p.build(network.view(), record, context);
    EXPECT_EQ(built.name().find("reference"), std::string::npos) << built.name();
    std::vector<const void*> in;
    for (const std::uint32_t argument : record.argument_list()) {
      in.push_back(nullptr);
      for (std::size_t i = 0; i < network.inputs().size(); ++i)
        if (network.inputs()[i] == argument) in.back() = bytes[i].get();
      if (network.at(argument).role == collage::value_role::constant) in.back() = network.bytes_of(argument).data();
    }
    std::vector<collage_test::guarded_memory> out;
    std::vector<void*> to;
    out.reserve(record.outputs);
    for (const std::uint32_t o : record.output_list()) {
      out.emplace_back(network.type_of(o).bytes(), collage::size_of(network.type_of(o).type),
                       static_cast<unsigned char>(0x5A));
      to.push_back(out.back().data());
    }
    const int token = table.enter(threads);
    built(collage::kernel_call{in.data(), to.data(), nullptr});
    table.leave(token);
    std::vector<oracle_value> results;
    for (std::size_t i = 0; i < out.size(); ++i) {
      EXPECT_TRUE(out[i].intact());
      results.push_back(collage::to_oracle({out[i].data(), network.type_of(record.output_list()[i])}));
    }
    return results;
  }
  ADD_FAILURE() << "portable has no pattern " << pattern;
  return {};
}

TEST(portable_quantise, equals_the_reference) {
  random_source random;
  for (int round = 0; round < 200; ++round) {
    shape dims = random.dims(random.number(1, 4));
    if (random.chance(0.2)) dims[0] = random.number(100, 9000);
    const dtype type = random.chance(0.5) ? dtype::u8 : dtype::i8;
    const bool quantises = random.chance(0.5);
    const dtype real = quantises || random.chance(0.6) ? dtype::f32 : dtype::f64;
    const std::int64_t axis = random.number(0, static_cast<std::int64_t>(dims.size()) - 1);
    const shape list = random.chance(0.5) ? shape{} : shape{dims[static_cast<std::size_t>(axis)]};
    std::vector<oracle_value> given{random.tensor(dims, quantises ? real : type, 0.05), oracle_value({real, list})};
    for (double& x : given[1].real)
      x = static_cast<double>(static_cast<float>(std::ldexp(random.real(), random.chance(0.5) ? -8 : 0)));
    for (double& x : given[1].real) x = x == 0 ? 1 : std::abs(x);
    if (random.chance(0.6)) given.push_back(random.tensor(list, type));
    collage::graph_builder g;
    std::vector<value> in;
    for (const oracle_value& v : given) in.push_back(g.input("x" + std::to_string(in.size()), v.type));
    const std::span<const value> operands(in);
    const op::quantize_attributes a{.axis = axis, .type = type};
    g.output("y", quantises ? g(op::quantize_linear, operands, a) : g(op::dequantize_linear, operands, a));
    const collage::graph network = g.finish();
    std::vector<std::shared_ptr<const std::byte>> bytes;
    std::vector<collage::const_tensor_view> views;
    for (const oracle_value& v : given) {
      bytes.push_back(bytes_of(v));
      views.emplace_back(bytes.back().get(), v.type);
    }
    oracle_value expected = collage::evaluate(network, views).at(0);
    for (double& x : expected.real) x = real == dtype::f32 ? static_cast<double>(static_cast<float>(x)) : x;
    for (int threads = 1; threads <= 2; ++threads) {
      const oracle_value y = computed(network, given, "loops", threads).at(0);
      EXPECT_EQ(y.integer, expected.integer);
      EXPECT_EQ(y.real, expected.real);
    }
  }
}

/// DynamicQuantizeLinear as it is lowered. The scale and zero point are read outside only if they are outputs.
collage::graph dynamic(const shape& dims, bool with_outputs) {
  collage::graph_builder g;
  const auto scalar = [&](const char* name, double number) {
    const oracle_value v = reals({}, {number});
    return g.constant(name, v.type, bytes_of(v));
  };
  const value x = g.input("x", {dtype::f32, dims}), zero = scalar("zero", 0);
  const value low = g(op::min, g(op::reduce_min, x, {.keep_dims = false}), zero);
  const value high = g(op::max, g(op::reduce_max, x, {.keep_dims = false}), zero);
  const value range = g(op::sub, high, low);
  const value scale =
      g(op::where, g(op::equal, range, zero), scalar("one", 1), g(op::div, range, scalar("steps", 255)));
  const value zero_point = g(op::quantize_linear, g(op::neg, low), scale);
  g.output("y", g(op::quantize_linear, x, scale, zero_point));
  if (with_outputs) {
    g.output("scale", scale);
    g.output("zero_point", zero_point);
  }
  return g.finish();
}

TEST(portable_quantise, quantises_dynamically_in_float32) {
  random_source random;
  for (int round = 0; round < 60; ++round) {
    const std::int64_t count = random.chance(0.3) ? random.number(30000, 70000) : random.number(1, 300);
    oracle_value x({dtype::f32, {count}});
    const double low = random.chance(0.3) ? 0 : random.real(), width = random.chance(0.1) ? 0 : 3;
    for (double& number : x.real) number = static_cast<double>(static_cast<float>(low + width * random.real()));
    if (random.chance(0.2)) std::fill(x.real.begin(), x.real.end(), 0.0);
    float least = 0, most = 0;
    for (const double number : x.real) {
      least = std::min(least, static_cast<float>(number));
      most = std::max(most, static_cast<float>(number));
    }
    const float range = most - least, scale = range == 0 ? 1 : range / 255;
    const float shift = std::clamp(std::nearbyint(-least / scale), 0.0F, 255.0F);
    std::vector<std::int64_t> wanted;
    for (const double number : x.real)
      wanted.push_back(static_cast<std::int64_t>(
          std::clamp(std::nearbyint(static_cast<float>(number) / scale) + shift, 0.0F, 255.0F)));
    for (int threads = 1; threads <= 2; ++threads)
      for (const bool with_outputs : {false, true}) {
        const std::vector<oracle_value> y =
            computed(dynamic(x.type.dims, with_outputs), {x}, "dynamic_quantize", threads);
        ASSERT_EQ(y.size(), with_outputs ? 3U : 1U);
        EXPECT_EQ(y[0].integer, wanted);
        if (!with_outputs) continue;
        const std::size_t real = y[1].real.empty() ? 2 : 1;  // the order of outputs is the match's
        EXPECT_EQ(y[real].real.at(0), static_cast<double>(scale));
        EXPECT_EQ(y[3 - real].integer.at(0), static_cast<std::int64_t>(shift));
      }
  }
}

TEST(portable_quantise, keeps_nan_of_a_dynamic_range) {
  for (const std::size_t count : {5, 200}) {
    oracle_value x({dtype::f32, {static_cast<std::int64_t>(count)}});
    x.real[count / 2] = not_a_number;
    const std::vector<oracle_value> y = computed(dynamic(x.type.dims, true), {x}, "dynamic_quantize", 1);
    EXPECT_TRUE(std::isnan(y[1].real.empty() ? y[2].real.at(0) : y[1].real.at(0)));
  }
}

}  // namespace backends_portable_quantise_test
