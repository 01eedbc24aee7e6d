// A pointwise convolution (window of one element) and the depthwise convolution after it, as one kernel on oneDNN. The second is a
// post-op of the first, computed while rows of the first are in the cache.
//
// The library (3.2, AVX-512) has such kernels for depthwise strides of 2, if the tensor between the two exceeds twice the
// second-level cache. Elsewhere an implementation called "ref" keeps the whole tensor in scratch memory, and is refused.
// docs/decisions/onednn-kernels.md has the figures.
#pragma once

#include <collage/backends/impl/onednn_conv.hpp>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace collage::inline v0::detail::onednn {
namespace {

/// The layout of each choice.
inline const layout& pair_layout(std::size_t choice) { return choice == 0 ? blocked() : channels_last; }

inline value_forms pair_layouts(const chain& m, std::size_t choice) {
  value_forms list;
  list.set(m.inputs_of(m.anchor)[0], pair_layout(choice));
  list.set(m.output(), pair_layout(choice));
  return list;
}

inline kernel build_pair(const chain& m, build_context& context) {
  using type = dnnl::memory::data_type;
  const layout& order = pair_layout(context.choice());
  const conv_problem first = conv_problem_of(m, m.anchor);
  const conv_problem second = conv_problem_of(m, m.depthwise);
  const bool biased = second.bias != match_record::nothing;
  epilogue then;
  for (std::size_t i = 0; i < m.between; ++i) append_pointwise(then, m.step[i]);
  then.convolve(biased ? f32 : type::undef, second.w[3], second.strides[0], second.pads_begin[0]);
  for (std::size_t i = m.between; i < m.steps; ++i) append_pointwise(then, m.step[i]);
  const conv_descriptor d = fast(describe_conv(first, desc_in(order, first.x), desc_in(order, first.y), then));

  constexpr int depthwise = DNNL_ARG_ATTR_POST_OP_DW;
  const desc filters = d.query_md(dnnl::query::exec_arg_md, depthwise | DNNL_ARG_WEIGHTS);
  const desc result = desc_in(order, second.y);
  if (d.dst_desc() != result) throw error(error_kind::unsupported, "the library writes another layout", "onednn");
  program_builder program(m, context);
  std::vector<std::pair<int, std::size_t>> operands{
      {DNNL_ARG_SRC, program.read(first.x_value, d.src_desc())},
      {DNNL_ARG_WEIGHTS, program.read(first.w_value, dense(first.w), d.weights_desc())},
      {depthwise | DNNL_ARG_WEIGHTS, program.read(second.w_value, dense(second.w), filters)},
      {DNNL_ARG_DST, program.output(result)}};
  if (first.bias != match_record::nothing)
    operands.emplace_back(DNNL_ARG_BIAS, program.read(first.bias, dense({first.y[1]})));
  if (biased) operands.emplace_back(depthwise | DNNL_ARG_BIAS, program.read(second.bias, dense({second.y[1]})));
  program.run(d, dnnl::convolution_forward(d), std::move(operands));
  return program.finish(std::string(d.impl_info_str()) + " and depthwise " + name_of(result));
}

}  // namespace
}  // namespace collage::inline v0::detail::onednn
