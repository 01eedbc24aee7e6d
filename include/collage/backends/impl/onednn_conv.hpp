// Convolutions on oneDNN. Four ways compete:
//
//  - product: a window of one element is a product of the filters with the plain image (nchw).
//  - blocked: input and output have their channels in blocks of a vector's width. Tensors with few channels, such as the
//    colours of an image, stay plain. These are the library's older kernels, mostly as fast as its newer ones.
//  - library: input and output are plain, and are reordered into the layout that the library prefers, mostly channels last.
//    This is best for few channels, and for some convolutions with few places. The reorders take up to a third of the time.
//  - channels last, for input and output: the library's newer kernels.
//
// docs/decisions/onednn-kernels.md has the figures, and the ways that were not kept.
#pragma once

#include <algorithm>
#include <collage/backends/impl/onednn_program.hpp>
#include <collage/backends/impl/onednn_steps.hpp>
#include <collage/backends/onednn_chain.hpp>
#include <collage/ops.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace collage::inline v0::detail::onednn {
namespace {

enum class conv_way : std::uint8_t { product, blocked, library, channels_last };

/// The element type of a match's operands and result in these forms.
inline element element_of(const any_match& m, const value_forms& borders) { return element_of(borders.of(m.output())); }

/// A convolution in the library's terms.
struct conv_problem {
  std::uint32_t x_value = 0, w_value = 0;
  std::uint32_t bias = match_record::nothing;  ///< a value of M elements
  dims x, w, y;                                ///< with several groups, the first dimension of w counts the groups
  dims strides, dilations, pads_begin, pads_end;
  std::int64_t groups = 1;
  bool pointwise = true;  ///< a window of one element and no pads
  bool strided = false;
  bool thinned = false;  ///< pointwise and strided, and strides in memory can skip what no window touches

  std::int64_t inputs_per_group() const { return x[1] / groups; }
  std::int64_t outputs_per_group() const { return y[1] / groups; }
};

/// The operands that convolutions and transposed convolutions have in common. w has the operator's shape.
inline conv_problem conv_operands(const any_match& m, std::uint32_t node) {
  const std::span<const std::uint32_t> in = m.inputs_of(node);
  conv_problem p;
  p.x_value = in[0];
  p.w_value = in[1];
  if (in.size() == 3) p.bias = in[2];
  p.x = to_dims(m.type_of(in[0]).dims);
  p.w = to_dims(m.type_of(in[1]).dims);
  p.y = to_dims(m.type_of(m.output_of(node)).dims);
  return p;
}

inline conv_problem conv_problem_of(const any_match& m, std::uint32_t node) {
  const auto a = m.attributes(node, ops::conv);
  conv_problem p = conv_operands(m, node);
  p.groups = a.groups;
  for (std::size_t i = 0; i + 2 < p.x.size(); ++i) {
    p.strides.push_back(a.strides[i]);
    p.dilations.push_back(a.dilations[i] - 1);  // the library counts the elements between taps
    p.pads_begin.push_back(a.pads_begin[i]);
    p.pads_end.push_back(a.pads_end[i]);
    p.pointwise = p.pointwise && p.w[i + 2] == 1 && a.pads_begin[i] == 0 && a.pads_end[i] == 0;
    p.strided = p.strided || a.strides[i] != 1;
  }
  p.thinned = p.pointwise && p.strided;
  // The library cannot describe strides if the last one would end beyond the tensor.
  for (std::size_t i = 0; i < p.strides.size(); ++i)
    p.thinned = p.thinned && (p.y[i + 2] == 1 || p.y[i + 2] * p.strides[i] <= p.x[i + 2]);
  if (p.groups > 1) {
    p.w.insert(p.w.begin(), p.groups);
    p.w[1] /= p.groups;
  }
  return p;
}

inline std::vector<conv_way> conv_ways(const conv_problem& p) {
  using enum conv_way;
  const std::int64_t block = block_size();
  std::vector<conv_way> ways;
  if (p.pointwise && p.groups == 1 && (p.thinned || !p.strided)) ways.push_back(product);
  const bool depthwise = p.groups > 1 && p.inputs_per_group() == 1;
  const bool whole_blocks = p.inputs_per_group() % std::max<std::int64_t>(block, 1) == 0 &&
                            p.outputs_per_group() % std::max<std::int64_t>(block, 1) == 0;
  const bool fills_blocks = p.x[1] >= block || p.y[1] >= block;
  const bool takes_blocks = block != 0 && (p.groups == 1 || depthwise ? fills_blocks : whole_blocks);
  if (takes_blocks) ways.push_back(conv_way::blocked);
  // Groups in blocks of 16 are far faster than the library's choice, or equal to it: measuring both would be a waste.
  if (ways.empty() || (ways.front() == conv_way::blocked && (p.groups == 1 || block == 8)) || block == 0)
    ways.push_back(library);
  // Channels last is slow for fewer channels than a vector holds, and for groups that are not depthwise.
  if (takes_blocks && (p.groups == 1 || depthwise) && p.x[1] >= block && p.y[1] >= block) ways.push_back(channels_last);
  return ways;
}

/// The layouts of the values at a convolution's border if it is computed in a certain way.
inline value_forms conv_layouts(const chain& m, const conv_problem& p, conv_way way) {
  value_forms list;
  if (way != conv_way::blocked && way != conv_way::channels_last) return list;
  const layout& order = way == conv_way::blocked ? blocked() : channels_last;
  const auto set = [&](std::uint32_t v) {
    if (!m.graph().is_constant(v) && m.type_of(v).dims[1] >= block_size()) list.set(v, order);
  };
  set(p.x_value);
  set(m.output());
  const shape& result = m.type_of(m.output()).dims;
  for (std::size_t i = 0; i < m.steps; ++i)
    if (m.step[i].what == chain_step::action::binary && m.type_of(m.step[i].operand).dims == result)
      set(m.step[i].operand);
  return list;
}

/// A way to compute, and the element type in which values are stored and multiplied: the network's, or bfloat16.
struct conv_variant {
  conv_way way = conv_way::library;
  std::optional<dtype> stored;
};

/// Stores the large values of a match in another element type: the result and the operands. Constants stay as they are, and so do
/// filters, biases, and operands with one number, or one for each channel.
inline void store_in(dtype type, const chain& m, value_forms& borders) {
  const std::span<const std::uint32_t> in = m.inputs_of(m.anchor);
  for (const std::uint32_t v : m.arguments()) {
    bool is_stored = !m.graph().is_constant(v);
    for (std::size_t i = 1; i < in.size() && m.is_convolution(m.anchor); ++i) is_stored = is_stored && in[i] != v;
    for (std::size_t i = 0; i < m.steps; ++i)
      if (m.step[i].what == chain_step::action::binary && m.step[i].operand == v)
        is_stored = is_stored && m.spread_of(m.step[i]) == spread::full;
    if (is_stored) borders.set(v, borders.of(v).of(type));
  }
  borders.set(m.output(), borders.of(m.output()).of(type));
}

inline value_forms conv_forms(const chain& m, const conv_problem& p, const conv_variant& which) {
  value_forms borders = conv_layouts(m, p, which.way);
  if (which.stored) store_in(*which.stored, m, borders);
  return borders;
}

/// The elements of the input that a strided window of one element touches.
inline desc touched(const conv_problem& p, element type) {
  dims steps = dense_steps(p.x);
  for (std::size_t i = 0; i < p.strides.size(); ++i)
    if (p.y[i + 2] > 1) steps[i + 2] *= p.strides[i];
  dims extents = p.y;
  extents[1] = p.x[1];
  return {extents, type, steps};
}

/// Makes an addition per channel right after the convolution its bias. Returns how many steps that consumes: 1 or 0.
inline std::size_t take_bias(const chain& m, conv_problem& p) {
  if (p.bias != match_record::nothing || !m.begins_with_bias()) return 0;
  p.bias = m.step[0].operand;
  return 1;
}

/// Multiplies filters [1, M, C] by the image [N, C, places].
inline kernel build_conv_product(const chain& m, build_context& context, const conv_problem& p,
                                 const value_forms& borders) {
  const element type = element_of(m, borders);
  const std::int64_t places = product({p.y.begin() + 2, p.y.end()});
  const dims image{p.x[0], p.x[1], places};
  const dims result{p.y[0], p.y[1], places};
  epilogue then;
  if (p.bias != match_record::nothing)
    then.combine(dnnl::algorithm::binary_add, p.bias, dense({1, p.y[1], 1}), dense({1, p.y[1], 1}));
  append_steps(then, m, 0, [&](const chain_step& s, spread lies) {
    if (lies == spread::full)
      return std::pair(dense(result, m.graph().is_constant(s.operand) ? f32 : type), dense(result, type));
    const desc layout = dense({1, lies == spread::channel ? p.y[1] : 1, 1});
    return std::pair(layout, layout);
  });
  const desc stored = dense({1, p.y[1], p.x[1]}), filters = dense({1, p.y[1], p.x[1]}, type);
  const auto d = fast(
      dnnl::matmul::primitive_desc(cpu(), filters, dense(image, type), dense(result, type), attributes(then.ops())));

  program_builder program(m, context);
  std::size_t columns = 0;
  if (p.thinned) {
    const std::size_t from = program.read(p.x_value, touched(p, type));
    columns = program.scratch(dense(image, type));
    const desc kept = dense(touched(p, type).get_dims(), type);
    program.reorder(from, program.seen_as(columns, kept));
  } else {
    columns = program.read(p.x_value, dense(image, type));
  }
  std::vector<std::pair<int, std::size_t>> operands{{DNNL_ARG_SRC, program.read(p.w_value, stored, filters)},
                                                    {DNNL_ARG_WEIGHTS, columns},
                                                    {DNNL_ARG_DST, program.output(dense(result, type))}};
  then.read(program, d, operands);
  program.run(d, dnnl::matmul(d), std::move(operands));
  return program.finish(std::string(d.impl_info_str()) + (p.thinned ? " 1x1, every other place" : " 1x1"));
}

/// Empty if there is no bias.
inline desc bias_of(const conv_problem& p) { return p.bias == match_record::nothing ? desc() : dense({p.y[1]}); }

using conv_descriptor = dnnl::convolution_forward::primitive_desc;

/// Describes a convolution with the given layouts of input and output. The weights have the input's element type.
inline conv_descriptor describe_conv(const conv_problem& p, const desc& x, const desc& y, const epilogue& then) {
  return conv_descriptor(cpu(), dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct, x,
                         free_layout(p.w, x.get_data_type()), bias_of(p), y, p.strides, p.dilations, p.pads_begin,
                         p.pads_end, attributes(then.ops()));
}

/// In bfloat16, the library (3.2) fills up blocks with what the steps make of zero. Errors: `unsupported` if that may not be zero.
inline void check_filling(const chain& m, std::size_t first, const conv_problem& p, const value_forms& borders) {
  const form& stored = borders.of(m.output());
  const bool fills = stored.order != plain && stored.order != channels_last && p.y[1] % block_size() != 0;
  if (stored.element && fills && m.steps > first)
    throw error(error_kind::unsupported, "the library fills up blocks with other numbers than zero", "onednn");
}

/// In lower precision, the library (3.2) computes some windows over three dimensions wrongly. These are groups of integers, and channels that
/// fill no block. Errors: `unsupported` for them.
inline void check_volume(const conv_problem& p, const conv_descriptor& d) {
  const std::string name = d.impl_info_str();
  const bool is_lower = d.src_desc().get_data_type() != f32 && p.strides.size() == 3;
  const bool has_groups = p.groups > 1 && name.find("gemm") != std::string::npos;
  const bool fills_none = p.x[1] % 16 != 0 && name.starts_with("brgconv:");
  if (is_lower && (has_groups || fills_none))
    throw error(error_kind::unsupported, "the library computes this window over three dimensions wrongly", "onednn");
}

/// In lower precision, the library (3.2) copies whole rows behind their pads into buffers that end where the last window ends. Where no window
/// touches the last columns, it writes behind the buffer, and results are wrong. Errors: `unsupported` for such pads.
inline void check_row_buffers(const conv_problem& p, const conv_descriptor& d) {
  const std::size_t last = p.strides.size() - 1;
  const std::int64_t window = (p.w.back() - 1) * (p.dilations[last] + 1) + 1;
  const std::int64_t touched = (p.y.back() - 1) * p.strides[last] + window;
  const bool overruns = p.pads_begin[last] > 0 && p.pads_begin[last] + p.x.back() > touched;
  if (overruns && d.src_desc().get_data_type() != f32 && std::string(d.impl_info_str()).starts_with("brgconv:"))
    throw error(error_kind::unsupported, "the library computes this window wrongly where it leaves columns over",
                "onednn");
}

/// On integers whose zero is another number, the library's kernels (3.2) for AMX sum weights behind the end of the filters. Results
/// are wrong, or the program ends. 10,000 random shapes showed where: windows with a depth of 1, and images with four or more rows of
/// pads before or after them. Errors: `unsupported` for these.
inline void check_sums_of_weights(const conv_problem& p, const conv_descriptor& d) {
  if (d.src_desc().get_data_type() != element::u8 && d.src_desc().get_data_type() != element::s8) return;
  if (std::string(d.impl_info_str()).find("amx") == std::string::npos) return;
  const std::size_t dimensions = p.strides.size();
  const bool is_flat = dimensions == 3 && p.w[p.w.size() - 3] == 1;
  const bool has_large_pads =
      dimensions >= 2 && std::max(p.pads_begin[dimensions - 2], p.pads_end[dimensions - 2]) >= 4;
  if (is_flat || has_large_pads)
    throw error(error_kind::unsupported, "the library reads behind the filters of this window", "onednn");
}

/// The library's kernels (3.2) of 1x1 windows for AMX take two tiles of at most 16 places at once, also where an image has three. Then
/// they read, and sometimes write, behind it. 3,000 random shapes showed it up to 48 places. Errors: `unsupported` for so few.
inline void check_tiles(const conv_problem& p, const conv_descriptor& d) {
  const bool has_few = product({p.y.begin() + 2, p.y.end()}) <= 48;
  if (has_few && std::string(d.impl_info_str()).starts_with("jit_1x1:avx512_core_amx"))
    throw error(error_kind::unsupported, "the library reads behind images of so few places", "onednn");
}

/// Errors: `unsupported` where the library is known to compute a convolution wrongly.
inline void check_faults(const conv_problem& p, const conv_descriptor& d) {
  check_volume(p, d);
  check_row_buffers(p, d);
  check_sums_of_weights(p, d);
  check_tiles(p, d);
}

/// Tries layouts in turn, and returns the description of the first for which the library has more than a plain loop. For
/// channels last it tries no other layout, since the library itself prefers channels last inside a kernel. `describe` calls the
/// library.
template <class Describe>
auto choose_conv(const chain& m, std::size_t first, const conv_problem& p, conv_way way, const value_forms& borders,
                 const Describe& describe) {
  check_filling(m, first, p, borders);
  std::optional<error> refused;
  const int first_attempt = way == conv_way::library ? 1 : 0;
  const int last_attempt = way == conv_way::channels_last ? 0 : 2;
  for (int attempt = first_attempt; attempt <= last_attempt; ++attempt) {
    const auto wanted = [&](std::uint32_t v, const dims& extents) {
      const form& stored = borders.of(v);
      return attempt == 0   ? desc_in(stored, extents)
             : attempt == 1 ? free_layout(extents, element_of(stored))
                            : dense(extents, element_of(stored));
    };
    const desc y = wanted(m.output(), p.y);
    epilogue then;
    append_steps(then, m, first, [&](const chain_step& s, spread lies) {
      if (lies == spread::full) return std::pair(desc_in(borders.of(s.operand), p.y), y);
      dims small(p.y.size(), 1);
      if (lies == spread::channel) small[1] = p.y[1];
      return std::pair(dense(small), dense(small));
    });
    try {
      return translated("this convolution",
                        [&] { return std::pair(fast(describe(p, wanted(p.x_value, p.x), y, then)), then); });
    } catch (const error& e) {
      if (e.kind() != error_kind::unsupported) throw;
      if (!refused) refused.emplace(e);
    }
  }
  throw error(*refused);
}

/// Finishes the kernel of a convolution that the library has described. The kernel reads `x`, weights that are in the program
/// already, and the operands of the steps after the convolution. The result is reordered if it lies in another layout.
template <class Primitive, class Descriptor>
kernel finish_conv(program_builder& program, const conv_problem& p, const Descriptor& d, const epilogue& then,
                   const desc& x, std::size_t weights, const value_forms& borders) {
  std::vector<std::pair<int, std::size_t>> operands{{DNNL_ARG_SRC, program.read(p.x_value, x, d.src_desc())},
                                                    {DNNL_ARG_WEIGHTS, weights}};
  if (p.bias != match_record::nothing) operands.emplace_back(DNNL_ARG_BIAS, program.read(p.bias, dense({p.y[1]})));
  then.read(program, d, operands);
  const desc y = desc_in(borders.of(program.match().output()), p.y);
  const bool reordered = d.dst_desc() != y;
  const std::size_t result = program.output(y);
  const std::size_t inner = reordered ? program.scratch(d.dst_desc()) : result;
  operands.emplace_back(DNNL_ARG_DST, inner);
  program.run(d, Primitive(d), std::move(operands));
  if (reordered) program.reorder(inner, result);
  const std::string layout = name_of(d.src_desc()) == name_of(d.dst_desc()) ? "" : name_of(d.src_desc()) + " to ";
  return program.finish(std::string(d.impl_info_str()) + ' ' + layout + name_of(d.dst_desc()) +
                        (reordered ? " inside" : ""));
}

inline kernel build_conv(const chain& m, build_context& context, const conv_variant& which) {
  conv_problem p = conv_problem_of(m, m.anchor);
  const std::size_t first = which.way == conv_way::product ? 0 : take_bias(m, p);
  const value_forms borders = conv_forms(m, p, which);
  if (which.way == conv_way::product) return build_conv_product(m, context, p, borders);

  const conv_way way = which.way;
  desc x = desc_in(borders.of(p.x_value), p.x);
  if (p.thinned && borders.of(p.x_value).order == plain) {
    x = touched(p, element_of(borders.of(p.x_value)));
    p.x = x.get_dims();
    p.strides.assign(p.strides.size(), 1);
  }
  const auto [d, then] = choose_conv(m, first, p, way, borders, describe_conv);
  check_faults(p, d);
  program_builder program(m, context);
  const std::size_t weights = program.read(p.w_value, dense(p.w), d.weights_desc());
  return finish_conv<dnnl::convolution_forward>(program, p, d, then, x, weights, borders);
}

}  // namespace
}  // namespace collage::inline v0::detail::onednn
