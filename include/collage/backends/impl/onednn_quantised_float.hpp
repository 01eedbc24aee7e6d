// Convolutions of integers of 8 bits that are computed in float32: where the processor would not multiply integers exactly, and
// where float32 is faster. Weights become float32 when the kernel is built. Images do so in each run, and only within the kernel.
#pragma once

#include <collage/backends/impl/onednn_in_float.hpp>
#include <collage/backends/impl/onednn_quantised_conv.hpp>
#include <collage/detail/hash.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace collage::inline v0::detail::onednn {
namespace {

/// Weights times the factors of their filters, as float32.
inline std::vector<float> float_weights(const quantised_conv& q, const std::byte* contents, double unit) {
  const std::vector<std::int16_t> centred = centred_weights(q, contents);
  const std::vector<float> factors = factors_of(q, unit);
  const std::size_t each = centred.size() / q.filters();
  std::vector<float> made(centred.size());
  for (std::size_t i = 0; i < made.size(); ++i)
    made[i] = static_cast<float>(centred[i]) * factors[factors.size() == 1 ? 0 : i / each];
  return made;
}

/// The weights as an operand. The key of the packed form has the factors, because the form depends on them.
inline std::size_t pack_float_weights(program_builder& program, build_context& context, const quantised_conv& q,
                                      double unit, const desc& to) {
  const std::vector<float> factors = factors_of(q, unit);
  const auto* const bytes = reinterpret_cast<const char*>(factors.data());
  const std::string packing = "float32 times " + std::to_string(hash(bytes, factors.size() * sizeof(float))) + ' ';
  return program.pack(q.p.w_value, packing, dense(q.p.w), to, [&](std::byte* made) {
    const std::vector<float> w = float_weights(q, context.constant<std::byte>(q.p.w_value), unit);
    program_builder::repack(dense(q.p.w), reinterpret_cast<const std::byte*>(w.data()), to, made);
  });
}

inline kernel build_quantised_in_float(const any_match& m, build_context& context, const quantised_conv& q,
                                       const value_forms& borders) {
  if (q.target.type == dtype::i32)
    throw error(error_kind::unsupported, "float32 does not hold exact sums of products", "onednn");
  const auto wanted = [&](std::uint32_t v, const dims& extents, dtype type) {
    return borders.of(v).order == channels_last ? desc_in(channels_last, extents, library_type(type))
                                                : free_layout(extents, library_type(type));
  };
  const quantised_steps steps(q, [&](const quantised_chain::step& s) {
    return std::pair(desc_in(borders.of(s.value), q.p.y, library_type(s.as.type)),
                     wanted(m.output(), q.p.y, s.as.type));
  });
  const conv_descriptor d =
      fast(conv_descriptor(cpu(), dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct,
                           wanted(q.p.x_value, q.p.x, dtype::f32), free_layout(q.p.w),
                           q.bias.empty() ? desc() : dense({q.p.y[1]}), wanted(m.output(), q.p.y, dtype::f32),
                           q.p.strides, q.p.dilations, q.p.pads_begin, q.p.pads_end, attributes(steps.then().ops())));

  program_builder program(m, context);
  (void)program.read(q.p.x_value, desc_in(borders.of(q.p.x_value), q.p.x, library_type(q.source.type)));
  const auto reordered = [&](std::size_t from, const desc& to) {
    if (program.layout_of(from) == to) return from;
    const std::size_t made = program.scratch(to);
    program.reorder(from, made);
    return made;
  };
  const std::size_t image = program.scratch(desc_in(borders.of(q.p.x_value), q.p.x));
  std::vector<std::pair<int, std::size_t>> operands{{DNNL_ARG_SRC, reordered(image, d.src_desc())}};
  operands.emplace_back(DNNL_ARG_WEIGHTS,
                        pack_float_weights(program, context, q, steps.first_unit(), d.weights_desc()));
  if (!q.bias.empty()) operands.emplace_back(DNNL_ARG_BIAS, given_list(program, bias_in(q, steps.first_unit())));
  steps.then().read(program, d, operands);
  const desc y = desc_in(borders.of(m.output()), q.p.y);
  const std::size_t result = q.target.is_quantised() ? program.scratch(y) : program.output(y);
  if (q.target.is_quantised())
    (void)program.output(desc_in(borders.of(m.output()), q.p.y, library_type(q.target.type)));
  const std::size_t inner = d.dst_desc() == y ? result : program.scratch(d.dst_desc());
  operands.emplace_back(DNNL_ARG_DST, inner);
  program.run(d, dnnl::convolution_forward(d), std::move(operands));
  if (inner != result) program.reorder(inner, result);

  run_in_float run{.argument = m.index_of(q.p.x_value),
                   .x_at = program.offset_of(image),
                   .y_at = program.offset_of(result),
                   .inputs = product(q.p.x),
                   .outputs = product(q.p.y),
                   .from = q.source.type,
                   .to = q.target.type,
                   .x_scale = {.known = 1},
                   .x_zero = {.known = static_cast<float>(q.source.zero_point)},
                   .y_scale = {.known = 1},
                   .y_zero = {.known = static_cast<float>(q.target.zero_point)},
                   .threads = context.threads()};
  return program.finish(std::string(d.impl_info_str()) + " of bytes as float32 " + name_of(d.src_desc()),
                        [&](auto made) {
                          run.steps = std::move(made);
                          return run;
                        });
}

}  // namespace
}  // namespace collage::inline v0::detail::onednn
