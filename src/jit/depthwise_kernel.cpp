#include "depthwise_kernel.hpp"

#include "configuration_reading.hpp"
#include "convolution_point.hpp"
#include "matches.hpp"
#include "replica.hpp"
#include "traced_epilogue.hpp"

#include <collage/error.hpp>
#include <collage/run/layouts.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace collage::inline v0::detail::jit {
namespace {

struct run_depthwise {
  std::shared_ptr<const depthwise_product> both;
  std::shared_ptr<const std::byte> window, packed;
  kernel_input<float> input;
  std::optional<kernel_input<float>> bias;
  std::vector<kernel_input<float>> operands;
  kernel_output<float> output;

  void operator()(const kernel_call& call) const {
    depthwise_product_call c;
    c.from = input(call);
    c.window = reinterpret_cast<const float*>(window.get());
    if (bias) c.bias = (*bias)(call);
    c.packed = reinterpret_cast<const float*>(packed.get());
    for (std::size_t i = 0; i < operands.size(); ++i) c.operands[i] = operands[i](call);
    c.to = output(call);
    c.scratch = static_cast<float*>(call.workspace);
    both->run(c);
  }
};

configuration_reading<depthwise_configuration> read_depthwise(const collage::configuration& how) {
  return read_configuration(
      &parse_depthwise_configuration, how,
      "it is not of the form: depthwise1 avx512 tile 14x2 unroll 4 prefetch 0 broadcast memory rows "
      "4 threads blocks, or has a tile that does not fit the registers");
}

/// The bias of the depthwise convolution; match_record::nothing if there is none.
std::uint32_t bias_of(const any_match& m, const product_match& product) {
  const auto in = m.inputs_of(product.depthwise);
  return in.size() > 2 ? in[2] : match_record::nothing;
}

depthwise_product::bounds bounds_of(const any_match& m, const product_match& product) {
  if (product.between == match_record::nothing) return {};
  if (!m.is(product.between, ops::clip)) return {.least = 0};
  const auto in = m.inputs_of(product.between);
  return {static_cast<float>(m.at(in[1]).scalar), static_cast<float>(m.at(in[2]).scalar)};
}

std::string name_of(const depthwise_configuration& c, const std::string& refusal) {
  std::string name = "depthwise and classical, " + std::to_string(c.product.rows) + "x" +
                     std::to_string(c.product.vectors) +
                     (c.partition == depthwise_partition::blocks ? ", blocks of " : ", shared blocks of ") +
                     std::to_string(c.rows) + (c.rows == 1 ? " row" : " rows");
  if (!refusal.empty()) name += std::string(", replica ") + replica().target;
  return name;
}

std::string packing_of(const configuration& c) {
  return "jit pointwise panels of " + std::to_string(c.columns()) + " lanes " + std::to_string(c.lanes());
}

}  // namespace

depthwise_shape depthwise_of(const any_match& m, const product_match& product) {
  const shape& x = m.type_of(product.left).dims;
  const ops::conv_attributes t = m.attributes(product.depthwise, ops::conv);
  return {.batch = x[0],
          .channels = x[1],
          .height = x[2],
          .width = x[3],
          .window = m.type_of(m.inputs_of(product.depthwise)[1]).dims[2],
          .stride = t.strides[0],
          .pad_top = t.pads_begin[0],
          .pad_left = t.pads_begin[1],
          .pad_bottom = t.pads_end[0],
          .pad_right = t.pads_end[1]};
}

void propose_depthwise(const any_match& m, const product_match& product, configuration_list& to) {
  for (const depthwise_configuration& c : promising_configurations(
           depthwise_of(m, product), product.n, needs_many_registers(m, product), this_machine().threads))
    to.add(to_text(c));
}

verdict knows_depthwise(const collage::configuration& how) {
  const auto found = read_depthwise(how);
  return found.how ? runs_here(found.how->product.set) : verdict{false, found.fault};
}

kept_constants weights_of_depthwise(const any_match& m, const product_match& product,
                                    const collage::configuration& how) {
  const auto found = read_depthwise(how);
  if (!found.how) return {};
  const depthwise_shape s = depthwise_of(m, product);
  const configuration& c = found.how->product;
  return {{m.inputs_of(product.depthwise)[1], "jit depthwise", static_cast<std::size_t>(s.weight_floats()) * 4},
          {product.right, packing_of(c), static_cast<std::size_t>(packed_floats(c, s.channels, product.n)) * 4}};
}

void set_depthwise_layouts(const any_match& m, const product_match& product, value_forms& to) {
  to.set(product.left, channels_last);
  to.set(m.output(), channels_last);
  const shape& result = m.type_of(m.output()).dims;
  const std::uint32_t window = m.inputs_of(product.depthwise)[1];
  for (const std::uint32_t v : m.arguments())
    if (v != product.right && v != product.bias && v != window && m.type_of(v).dims == result) to.set(v, channels_last);
}

kernel build_depthwise(const any_match& m, const product_match& product, build_context& context) {
  const depthwise_configuration how = needed(read_depthwise(context.configuration()), context.configuration());
  const depthwise_shape s = depthwise_of(m, product);
  const traced_epilogue then = trace_epilogue(m, product);
  const auto made = std::make_shared<const depthwise_product>(how, s, product.n, bounds_of(m, product), then.steps,
                                                              context.threads());
  const kept_constants kept = weights_of_depthwise(m, product, context.configuration());
  const float* const window = context.constant<float>(kept[0].value);
  // Pads are products with zeros, as long as weights are numbers.
  if (!std::all_of(window, window + s.channels * s.window * s.window, [](float w) { return std::isfinite(w); }))
    throw error(error_kind::unsupported, "a weight of a depthwise convolution is not finite", "jit");
  run_depthwise run{made, {}, {}, m.in<float>(product.left), {}, {}, m.out<float>()};
  run.window = context.packed(kept[0].value, kept[0].packing, kept[0].bytes,
                              [&](std::byte* to) { pack_depthwise(s, window, reinterpret_cast<float*>(to)); });
  run.packed = context.packed(kept[1].value, kept[1].packing, kept[1].bytes, [&](std::byte* to) {
    made->pack(context.constant<float>(product.right), reinterpret_cast<float*>(to));
  });
  if (bias_of(m, product) != match_record::nothing) run.bias = m.in<float>(bias_of(m, product));
  for (const std::uint32_t v : then.operands) run.operands.push_back(m.in<float>(v));
  kernel built(name_of(how, made->refusal()), std::move(run), made->workspace());
  set_access(built, m, product, {&then, 1});
  return built;
}

}  // namespace collage::inline v0::detail::jit
