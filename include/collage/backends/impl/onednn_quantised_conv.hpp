// Convolutions of integers of 8 bits on oneDNN. `quantised_conv` says what is computed, whatever asks for it. All kernels have
// channels last inside.
//
// The library multiplies each sum of products by one factor per filter, adds the bias, and applies post-ops. The factors hold all
// scales that are known: so the post-ops begin in units of the next quantisation.
#pragma once

#include <algorithm>
#include <cmath>
#include <collage/backends/impl/byte_weights.hpp>
#include <collage/backends/impl/onednn_conv.hpp>
#include <collage/backends/impl/onednn_program.hpp>
#include <collage/dtype.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace collage::inline v0::detail::onednn {
namespace {

/// How numbers are stored: (integer - zero_point) * scale. float32 stores the numbers themselves, and int32 sums of products.
struct quantised_form {
  dtype type = dtype::f32;
  double scale = 1;
  std::int64_t zero_point = 0;

  bool is_quantised() const { return is_8_bit_integer(type); }
  /// The ends of the range of the type, less the zero point.
  double lowest() const { return (type == dtype::i8 ? -128.0 : 0.0) - static_cast<double>(zero_point); }
  double highest() const { return lowest() + 255; }
};

/// The operations after a convolution or product of quantised values, and the form of its result.
struct quantised_chain {
  struct step {
    enum class action : std::uint8_t { clip, round, add, real };
    action what = action::clip;
    double low = 0, high = std::numeric_limits<double>::infinity();  ///< of `clip`; a relu has these bounds
    quantised_form as = {};                                          ///< `round`: to this form; `add`: of the tensor
    std::uint32_t value = 0;                                         ///< `add`: a tensor of the result's shape
    const chain_step* real = nullptr;                                ///< `real`: an operation on the numbers themselves
  };

  quantised_form target;
  std::vector<step> steps;
};

/// A convolution of quantised values.
struct quantised_conv : quantised_chain {
  conv_problem p;  ///< its bias is not read
  quantised_form source;
  dtype weights = dtype::i8;               ///< f32: they are quantised when the kernel is built
  std::vector<float> weight_scales;        ///< one, or one for each filter
  std::vector<std::int32_t> weight_zeros;  ///< empty, or one, or one for each filter
  std::vector<float> bias;                 ///< empty, or one for each filter

  std::size_t filters() const { return static_cast<std::size_t>(p.y[1]); }
};

/// The post-ops, and the unit in which they begin.
class quantised_steps {
 public:
  /// `lay` returns the layout of a step's tensor in memory, and that in which the library reads it.
  template <class Lay>
  quantised_steps(const quantised_chain& q, const Lay& lay) {
    unit_ = first_unit_ = unit_from(q, 0);
    for (std::size_t i = 0; i < q.steps.size(); ++i) {
      const quantised_chain::step& s = q.steps[i];
      using enum quantised_chain::step::action;
      if (s.what == clip) append_clip(q, i);
      else if (s.what == round) append_round(s);
      else if (s.what == add) append_sum(s, lay(s));
      else append_real(s, lay);
      convert(unit_from(q, i + 1));
    }
    flush();
  }
  double first_unit() const { return first_unit_; }
  const epilogue& then() const { return then_; }

 private:
  static bool is_one(double x) { return std::abs(x - 1) < 1e-9; }

  /// The unit that the steps from `first` on need: that of the next rounding or sum, or the result's. Operations on numbers have 1.
  static double unit_from(const quantised_chain& q, std::size_t first) {
    for (std::size_t i = first; i < q.steps.size(); ++i)
      if (q.steps[i].what != quantised_chain::step::action::clip) return q.steps[i].as.scale;
    return q.target.scale;
  }
  template <class Lay>
  void append_real(const quantised_chain::step& s, const Lay& lay) {
    flush();
    if (s.real->what != chain_step::action::binary) return append_pointwise(then_, *s.real);
    const auto [from, layout] = lay(s);
    then_.combine(combination(*s.real), s.real->operand, from, layout);
  }
  void append_clip(const quantised_chain& q, std::size_t i) {
    const quantised_chain::step& s = q.steps[i];
    const double low = s.low / unit_, high = s.high / unit_;
    const bool is_last = i + 1 == q.steps.size() && q.target.is_quantised();
    if (is_last && low <= q.target.lowest() && high >= q.target.highest()) return;  // stored integers have these bounds
    flush();
    if (s.low == 0 && std::isinf(s.high)) then_.apply(dnnl::algorithm::eltwise_relu, 0, 0);
    else then_.apply(dnnl::algorithm::eltwise_clip, low, std::min(high, 3e38));
  }
  void append_round(const quantised_chain::step& s) {
    flush();
    then_.apply(dnnl::algorithm::eltwise_round, 0, 0);
    then_.apply(dnnl::algorithm::eltwise_clip, s.as.lowest(), s.as.highest());
  }
  void append_sum(const quantised_chain::step& s, const std::pair<desc, desc>& layouts) {
    flush();
    then_.combine(dnnl::algorithm::binary_add, s.value, layouts.first, layouts.second);
    shift_ -= static_cast<double>(s.as.zero_point);
  }
  void convert(double unit) {
    factor_ *= unit_ / unit;
    shift_ *= unit_ / unit;
    unit_ = unit;
  }
  void flush() {
    if (!is_one(factor_) || shift_ != 0) then_.apply(dnnl::algorithm::eltwise_linear, factor_, shift_);
    factor_ = 1, shift_ = 0;
  }

  epilogue then_;
  double first_unit_ = 1, unit_ = 1;
  double factor_ = 1, shift_ = 0;  // still to be applied to what the post-ops computed so far
};

/// How much a product of integers counts in a unit: for each filter, or for all.
inline std::vector<float> factors_of(const quantised_conv& q, double unit) {
  std::vector<float> factors;
  for (const float scale : q.weight_scales) factors.push_back(static_cast<float>(q.source.scale * scale / unit));
  return factors;
}
inline std::vector<float> bias_in(const quantised_conv& q, double unit) {
  std::vector<float> bias;
  for (const float b : q.bias) bias.push_back(static_cast<float>(b / unit));
  return bias;
}

/// The weights less their zero points, which may need 9 bits.
inline std::vector<std::int16_t> centred_weights(const quantised_conv& q, const std::byte* contents) {
  const std::size_t filters = q.filters(), each = static_cast<std::size_t>(product(q.p.w)) / filters;
  std::vector<std::int16_t> made(filters * each);
  for (std::size_t m = 0; m < filters; ++m) {
    const std::int32_t zero = q.weight_zeros.empty() ? 0 : q.weight_zeros[q.weight_zeros.size() == 1 ? 0 : m];
    for (std::size_t i = m * each; i < (m + 1) * each; ++i) {
      const auto bits = static_cast<std::uint8_t>(contents[i]);
      const std::int32_t w = q.weights == dtype::i8 ? static_cast<std::int8_t>(bits) : std::int32_t{bits};
      made[i] = static_cast<std::int16_t>(w - zero);
    }
  }
  return made;
}
/// The same as int8. Throws if one does not fit.
inline std::vector<std::int8_t> weights_of_8_bits(const quantised_conv& q, const std::byte* contents) {
  if (q.weights == dtype::f32)
    return rounded_weights(reinterpret_cast<const float*>(contents), q.weight_scales,
                           product(q.p.w) / static_cast<std::int64_t>(q.filters()));
  const std::vector<std::int16_t> centred = centred_weights(q, contents);
  for (const std::int16_t w : centred)
    if (w < -128 || w > 127)
      throw error(error_kind::unsupported, "weights less their zero points need more than 8 bits", "onednn");
  return {centred.begin(), centred.end()};
}

inline dnnl::primitive_attr quantised_attributes(const quantised_conv& q, const quantised_steps& steps) {
  dnnl::primitive_attr a = attributes(steps.then().ops());
  if (q.source.zero_point != 0) a.set_zero_points_mask(DNNL_ARG_SRC, 0);
  if (q.target.zero_point != 0) a.set_zero_points_mask(DNNL_ARG_DST, 0);
  const int of_filters = q.p.groups > 1 ? 3 : 1;
  if (q.target.type != dtype::i32) a.set_scales_mask(DNNL_ARG_WEIGHTS, q.weight_scales.size() == 1 ? 0 : of_filters);
  return a;
}

/// A convolution that the library has described.
struct described_quantised_conv {
  conv_descriptor d;
  quantised_steps steps;
};

/// The layouts of the operand of an operation on numbers: in memory, and as the library reads it.
inline std::pair<desc, desc> layouts_of_operand(const any_match& m, const chain_step& s, const value_forms& borders,
                                                const desc& y) {
  const dims whole = y.get_dims();
  dims extents = to_dims(m.type_of(s.operand).dims);
  extents.insert(extents.begin(), whole.size() - extents.size(), 1);
  if (extents != whole) return {dense(extents), dense(extents)};
  const bool last = borders.of(m.output()).order == channels_last;
  return {desc_in(borders.of(s.operand), whole), last ? desc_in(channels_last, whole) : free_layout(whole)};
}

/// Describes the convolution with values at its border in `borders`. Where these are plain, the library chooses the layout inside.
inline described_quantised_conv describe_quantised(const any_match& m, const quantised_conv& q,
                                                   const value_forms& borders) {
  const auto wanted = [&](std::uint32_t v, const dims& extents, dtype type) {
    return borders.of(v).order == channels_last ? desc_in(channels_last, extents, library_type(type))
                                                : free_layout(extents, library_type(type));
  };
  const desc y = wanted(m.output(), q.p.y, q.target.type);
  const quantised_steps steps(q, [&](const quantised_chain::step& s) {
    if (s.real != nullptr) return layouts_of_operand(m, *s.real, borders, y);
    const bool last = borders.of(m.output()).order == channels_last;
    return std::pair(
        desc_in(borders.of(s.value), q.p.y, library_type(s.as.type)),
        last ? desc_in(channels_last, q.p.y, library_type(s.as.type)) : free_layout(q.p.y, library_type(s.as.type)));
  });
  const desc bias = q.bias.empty() ? desc() : dense({q.p.y[1]});
  const conv_descriptor d = fast(
      conv_descriptor(cpu(), dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct,
                      wanted(q.p.x_value, q.p.x, q.source.type), free_layout(q.p.w, library_type(dtype::i8)), bias, y,
                      q.p.strides, q.p.dilations, q.p.pads_begin, q.p.pads_end, quantised_attributes(q, steps)));
  check_faults(q.p, d);
  return {d, steps};
}

/// The kernel of a quantised convolution. Throws where the library has none, and where it would not multiply exactly.
inline kernel build_quantised_conv(const any_match& m, build_context& context, const quantised_conv& q,
                                   const value_forms& borders) {
  if (!multiplies_bytes_exactly())
    throw error(error_kind::unsupported,
                "this processor lacks VNNI, without which products of integers of 8 bits saturate", "onednn");
  const auto [d, steps] = describe_quantised(m, q, borders);
  program_builder program(m, context);
  const desc x = desc_in(borders.of(q.p.x_value), q.p.x, library_type(q.source.type));
  std::vector<std::pair<int, std::size_t>> operands{{DNNL_ARG_SRC, program.read(q.p.x_value, x, d.src_desc())}};
  const std::string packing = std::string("integers for ") + (q.source.type == dtype::i8 ? "i8" : "u8") +
                              (q.source.zero_point != 0 ? " with a zero point " : " ");
  const desc w = dense(q.p.w, library_type(dtype::i8));
  operands.emplace_back(DNNL_ARG_WEIGHTS, program.pack(q.p.w_value, packing, w, d.weights_desc(), [&](std::byte* to) {
    const std::vector<std::int8_t> centred = weights_of_8_bits(q, context.constant<std::byte>(q.p.w_value));
    program_builder::repack(w, reinterpret_cast<const std::byte*>(centred.data()), d.weights_desc(), to);
  }));
  if (!q.bias.empty()) operands.emplace_back(DNNL_ARG_BIAS, given_list(program, bias_in(q, steps.first_unit())));
  if (q.target.type != dtype::i32)
    operands.emplace_back(DNNL_ARG_ATTR_SCALES | DNNL_ARG_WEIGHTS,
                          given_list(program, factors_of(q, steps.first_unit())));
  for (const auto& [argument, form] : {std::pair(DNNL_ARG_SRC, &q.source), std::pair(DNNL_ARG_DST, &q.target)})
    if (form->zero_point != 0)
      operands.emplace_back(DNNL_ARG_ATTR_ZERO_POINTS | argument,
                            given_list(program, std::vector{static_cast<std::int32_t>(form->zero_point)}));
  steps.then().read(program, d, operands);
  const desc y = desc_in(borders.of(m.output()), q.p.y, library_type(q.target.type));
  const bool reordered = d.dst_desc() != y;
  const std::size_t result = program.output(y);
  const std::size_t inner = reordered ? program.scratch(d.dst_desc()) : result;
  operands.emplace_back(DNNL_ARG_DST, inner);
  program.run(d, dnnl::convolution_forward(d), std::move(operands));
  if (reordered) program.reorder(inner, result);
  return program.finish(std::string(d.impl_info_str()) + " of " + (q.source.type == dtype::i8 ? "i8" : "u8") + ' ' +
                        name_of(d.src_desc()) + (reordered ? " inside" : ""));
}

}  // namespace
}  // namespace collage::inline v0::detail::onednn
