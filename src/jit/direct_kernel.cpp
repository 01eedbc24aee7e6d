#include "direct_kernel.hpp"

#include "configuration_reading.hpp"
#include "convolution_point.hpp"
#include "matches.hpp"
#include "replica.hpp"
#include "traced_epilogue.hpp"

#include <collage/run/layouts.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace collage::inline v0::detail::jit {
namespace {

struct run_direct {
  std::shared_ptr<const direct_convolution> convolution;
  std::shared_ptr<const std::byte> weights;
  kernel_input<float> input;
  std::vector<kernel_input<float>> operands;
  std::vector<kernel_output<float>> outputs;

  void operator()(const kernel_call& call) const {
    std::array<const float*, epilogue::most_operands> read{};
    for (std::size_t i = 0; i < operands.size(); ++i) read[i] = operands[i](call);
    std::array<float*, epilogue::most_outputs> to{};
    for (std::size_t i = 0; i < outputs.size(); ++i) to[i] = outputs[i](call);
    convolution->run({.from = input(call),
                      .weights = reinterpret_cast<const float*>(weights.get()),
                      .operands = std::span(read).first(operands.size()),
                      .to = std::span(to).first(outputs.size()),
                      .scratch = static_cast<float*>(call.workspace)});
  }
};

configuration_reading<direct_configuration> read_direct(const product_match& product,
                                                        const collage::configuration& how) {
  if (product.is_enlarged()) return {{}, "a direct convolution does not enlarge its image"};
  return read_configuration(&parse_direct_configuration, how,
                            "it is not of the form: direct1 avx512 tile 14x2 unroll 4 prefetch 0 broadcast memory rows "
                            "4, or has a tile that does not fit the registers");
}

std::string name_of(const direct_configuration& c, const std::string& refusal) {
  std::string name = "direct, " + std::to_string(c.product.rows) + "x" + std::to_string(c.product.vectors) +
                     ", blocks of " + std::to_string(c.rows) + (c.rows == 1 ? " row" : " rows");
  if (!refusal.empty()) name += std::string(", replica ") + replica().target;
  return name;
}

/// Dilated rows of a window are packed as single elements.
std::string packing_of(const configuration& c, const direct_shape& s) {
  return "jit direct convolution panels of " + std::to_string(c.columns()) + " lanes " + std::to_string(c.lanes()) +
         (s.pieces() > 1 ? " by elements" : "");
}

}  // namespace

direct_shape direct_of(const any_match& m, const product_match& product) {
  const shape& x = m.type_of(product.left).dims;
  const shape& w = m.type_of(product.right).dims;
  const ops::conv_attributes t = m.attributes(product.anchor, ops::conv);
  direct_shape s = {.batch = x[0], .channels = x[1], .outputs = w[0], .depth = {}, .height = {}, .width = {}};
  direct_extent* const extents[] = {&s.width, &s.height, &s.depth};
  for (std::size_t i = 0; i + 2 < x.rank; ++i) {
    const std::size_t d = x.rank - 3 - i;  // from the last dimension on
    *extents[i] = {x[d + 2], w[d + 2], t.strides[d], t.dilations[d], t.pads_begin[d], t.pads_end[d]};
  }
  return s;
}

void propose_direct(const any_match& m, const product_match& product, configuration_list& to) {
  const convolution_machine here = this_machine();
  for (const direct_configuration& c :
       propose_direct(direct_of(m, product), here.set, here.second_level_bytes, needs_many_registers(m, product)))
    to.add(to_text(c));
}

verdict knows_direct(const product_match& product, const collage::configuration& how) {
  const auto found = read_direct(product, how);
  return found.how ? runs_here(found.how->product.set) : verdict{false, found.fault};
}

kept_constants weights_of_direct(const any_match& m, const product_match& product, const collage::configuration& how) {
  const auto found = read_direct(product, how);
  if (!found.how) return {};
  const direct_shape s = direct_of(m, product);
  return {{product.right, packing_of(found.how->product, s), static_cast<std::size_t>(weight_bytes(*found.how, s))}};
}

void set_direct_layouts(const any_match& m, const product_match& product, value_forms& to) {
  to.set(product.left, channels_last);
  for (const std::uint32_t v : m.outputs()) to.set(v, channels_last);
  const shape& result = m.type_of(m.output()).dims;
  for (const std::uint32_t v : m.arguments())
    if (v != product.right && v != product.bias && m.type_of(v).dims == result) to.set(v, channels_last);
}

kernel build_direct(const any_match& m, const product_match& product, build_context& context) {
  const direct_configuration how = needed(read_direct(product, context.configuration()), context.configuration());
  const traced_epilogue then = trace_epilogue(m, product);
  const auto made =
      std::make_shared<const direct_convolution>(how, direct_of(m, product), then.steps, context.threads());
  const kept_constants kept = weights_of_direct(m, product, context.configuration());
  auto weights = context.packed(kept[0].value, kept[0].packing, kept[0].bytes, [&](std::byte* to) {
    made->pack(context.constant<float>(product.right), reinterpret_cast<float*>(to));
  });
  run_direct run{made, std::move(weights), m.in<float>(product.left), {}, {}};
  for (const std::uint32_t v : then.operands) run.operands.push_back(m.in<float>(v));
  for (const std::size_t o : then.outputs) run.outputs.push_back(m.out<float>(o));
  kernel built(name_of(how, made->refusal()), std::move(run), made->scratch_bytes());
  set_access(built, m, product, {&then, 1});
  return built;
}

}  // namespace collage::inline v0::detail::jit
