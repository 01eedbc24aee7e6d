// Convolutions and products of float32 networks, computed on integers of 8 bits where a plan stores values so. The values have the scales
// of the plan. Weights are quantised when a kernel is built: as int8, with one scale for each filter or column.
#pragma once

#include <collage/backends/impl/byte_weights.hpp>
#include <collage/backends/impl/onednn_conv.hpp>
#include <collage/backends/impl/onednn_matmul.hpp>
#include <collage/backends/impl/onednn_quantised_conv.hpp>
#include <collage/backends/onednn_chain.hpp>
#include <collage/backends/onednn_quantised_products.hpp>
#include <collage/dtype.hpp>
#include <collage/error.hpp>
#include <collage/ops.hpp>
#include <collage/run/value_scales.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace collage::inline v0::detail::onednn {
namespace {

/// Whether the steps can follow a product of integers: the others need contents or a layout of their own.
inline bool can_follow_bytes(const chain& m) {
  for (std::size_t i = 0; i < m.steps; ++i)
    if (m.step[i].what == chain_step::action::round) return false;
  return true;
}

/// Whether a convolution is also computed on integers of 8 bits.
inline bool has_bytes(const chain& m, const conv_problem& p) {
  const bool is_depthwise = p.groups > 1 && p.inputs_per_group() == 1;
  const std::int64_t products = product(p.w) / p.y[1];
  return multiplies_bytes_exactly() && m.is(m.anchor, ops::conv) && m.resize == match_record::nothing &&
         m.graph().is_constant(p.w_value) && products <= most_products_of_bytes && can_follow_bytes(m) &&
         (p.bias == match_record::nothing || m.graph().is_constant(p.bias)) &&
         (p.groups == 1 || is_depthwise || p.inputs_per_group() % 4 == 0) && !m.ends_in_transpose();
}
/// The same for a product. Its right operand is a constant matrix.
inline bool has_bytes(const chain& m) {
  if (!multiplies_bytes_exactly() || !can_follow_bytes(m)) return false;
  const matmul_problem p = matmul_problem_of(m);
  const std::span<const std::uint32_t> in = m.inputs_of(m.anchor);
  const dims& b = p.b.extents;
  return m.graph().is_constant(p.b_value) && !m.graph().is_constant(p.a_value) && m.type_of(in[0]).dims.rank >= 2 &&
         m.type_of(in[1]).dims.rank >= 2 && product(b) == b[b.size() - 1] * b[b.size() - 2] &&
         b[b.size() - 2] <= most_products_of_bytes;
}

/// The forms of a kernel on integers: uint8 for `x`, the result in this element type, and operands of its shape alike. Values with at least
/// as many channels as a vector has elements lie with channels last.
inline value_forms byte_forms(const chain& m, std::uint32_t x, std::optional<dtype> result, bool has_channels) {
  value_forms borders;
  const auto set = [&](std::uint32_t v, std::optional<dtype> type) {
    form stored = has_channels && m.type_of(v).dims[1] >= block_size() ? form(channels_last) : form();
    stored.element = type;
    borders.set(v, stored);
  };
  for (std::size_t i = 0; i < m.steps; ++i)
    if (m.step[i].what == chain_step::action::binary && !m.graph().is_constant(m.step[i].operand) &&
        m.type_of(m.step[i].operand).dims == m.type_of(m.output_of(m.anchor)).dims)
      set(m.step[i].operand, result);
  set(x, dtype::u8);
  set(m.output(), result);
  return borders;
}

/// The integers of a value in a form. Numbers, if the form has the type of the network.
inline quantised_form quantised_form_of(const build_context& context, std::uint32_t v, const form& stored) {
  if (!stored.element) return {};
  const integer_scale how = context.scale_of(v, *stored.element);
  return {*stored.element, how.scale, how.zero_point};
}

/// The steps from `first` on, and the result. Clips are known as such, because the limits of integers may do their work.
inline void read_chain(quantised_chain& q, const chain& m, std::size_t first, const build_context& context,
                       const value_forms& borders) {
  using action = quantised_chain::step::action;
  q.target = quantised_form_of(context, m.output(), borders.of(m.output()));
  for (std::size_t i = first; i < m.steps; ++i) {
    const chain_step& s = m.step[i];
    if (s.what == chain_step::action::transpose) continue;  // strides of the result
    const bool is_integers = s.what == chain_step::action::binary && borders.of(s.operand).element.has_value();
    if (s.what == chain_step::action::activation && s.kind == kind_id<struct ops::relu>) q.steps.push_back({});
    else if (s.what == chain_step::action::clip) q.steps.push_back({.low = s.alpha, .high = s.beta});
    else if (is_integers && s.adds())
      q.steps.push_back({.what = action::add,
                         .as = quantised_form_of(context, s.operand, borders.of(s.operand)),
                         .value = s.operand});
    else if (is_integers)
      throw error(error_kind::unsupported, "integers of 8 bits are only added after a product of integers", "onednn");
    else q.steps.push_back({.what = action::real, .real = &s});
  }
}

/// Floats of a constant.
inline std::vector<float> list_of(const build_context& context, const any_match& m, std::uint32_t value) {
  const auto* const contents = context.constant<float>(value);
  return {contents, contents + m.type_of(value).dims.elements()};
}

/// A convolution of values that are stored as uint8.
inline kernel build_byte_conv(const chain& m, build_context& context, const value_forms& borders) {
  quantised_conv q;
  q.p = conv_problem_of(m, m.anchor);
  std::size_t first = 0;
  if (q.p.bias == match_record::nothing && m.begins_with_bias() && m.graph().is_constant(m.step[0].operand))
    first = take_bias(m, q.p);
  q.source = quantised_form_of(context, q.p.x_value, borders.of(q.p.x_value));
  q.weights = dtype::f32;
  const auto* const w = context.constant<float>(q.p.w_value);
  const std::int64_t each = product(q.p.w) / q.p.y[1];
  q.weight_scales = scales_of_weights(q.p.y[1], each, "onednn",
                                      [&](std::int64_t filter, std::int64_t i) { return w[filter * each + i]; });
  if (q.p.bias != match_record::nothing) q.bias = list_of(context, m, q.p.bias);
  read_chain(q, m, first, context, borders);
  return build_quantised_conv(m, context, q, borders);
}

/// A product of values that are stored as uint8 and a constant matrix.
class byte_product {
 public:
  byte_product(const chain& m, build_context& context, const value_forms& borders)
      : m_(m), context_(context), borders_(borders), p_(matmul_problem_of(m)) {
    if (m.begins_with_bias() && m.graph().is_constant(m.step[0].operand)) bias_ = 1;
    read_chain(q_, m, bias_, context, borders);
    source_ = quantised_form_of(context, p_.a_value, borders.of(p_.a_value));
    const strided& b = p_.b;
    const std::size_t row = b.extents.size() - 2;
    const auto* const contents = context.constant<float>(p_.b_value);
    scales_ = scales_of_weights(b.extents[row + 1], b.extents[row], "onednn", [&](std::int64_t column, std::int64_t i) {
      return contents[column * b.steps[row + 1] + i * b.steps[row]];
    });
  }

  kernel make() {
    const desc a = p_.a.layout(library_type(source_.type));
    const desc y = p_.c.layout(library_type(q_.target.type));
    const quantised_steps steps(q_, [&](const quantised_chain::step& s) {
      const element type = library_type(s.as.type);
      const std::uint32_t v = s.real != nullptr ? s.real->operand : s.value;
      const bool is_full = m_.type_of(v).dims.elements() == product(p_.c.extents);
      dims extents(p_.c.extents.size(), 1);
      if (is_full) extents = p_.c.extents;
      else if (m_.type_of(v).dims.elements() != 1) extents.back() = p_.c.extents.back();
      return std::pair(dense(extents, type), dense(extents, type));
    });
    const int columns_mask = 1 << (p_.c.extents.size() - 1);
    dnnl::primitive_attr attributes = onednn::attributes(steps.then().ops());
    attributes.set_scales_mask(DNNL_ARG_WEIGHTS, columns_mask);
    for (const auto& [argument, form] : ends())
      if (form->zero_point != 0) attributes.set_zero_points_mask(argument, 0);
    dims columns(p_.c.extents.size(), 1);
    columns.back() = p_.c.extents.back();
    const desc b = free_layout(p_.b.extents, dnnl::memory::data_type::s8);
    using descriptor = dnnl::matmul::primitive_desc;
    const descriptor d = fast(bias_ != 0 ? descriptor(cpu(), a, b, dense(columns), y, attributes)
                                         : descriptor(cpu(), a, b, y, attributes));
    program_builder program(m_, context_);
    std::vector<std::pair<int, std::size_t>> operands{{DNNL_ARG_SRC, program.read(p_.a_value, a)},
                                                      {DNNL_ARG_WEIGHTS, packed(program, d.weights_desc())},
                                                      {DNNL_ARG_DST, program.output(y)}};
    const double unit = steps.first_unit();
    std::vector<float> factors;
    for (const float s : scales_) factors.push_back(static_cast<float>(source_.scale * s / unit));
    operands.emplace_back(DNNL_ARG_ATTR_SCALES | DNNL_ARG_WEIGHTS, given_list(program, factors));
    if (bias_ != 0) {
      std::vector<float> bias = list_of(context_, m_, m_.step[0].operand);
      for (float& x : bias) x = static_cast<float>(x / unit);
      operands.emplace_back(DNNL_ARG_BIAS, program.seen_as(given_list(program, bias), dense(columns)));
    }
    for (const auto& [argument, form] : ends())
      if (form->zero_point != 0)
        operands.emplace_back(DNNL_ARG_ATTR_ZERO_POINTS | argument,
                              given_list(program, std::vector{static_cast<std::int32_t>(form->zero_point)}));
    steps.then().read(program, d, operands);
    program.run(d, dnnl::matmul(d), std::move(operands));
    return program.finish(std::string(d.impl_info_str()) + " of u8 packed");
  }

 private:
  std::vector<std::pair<int, const quantised_form*>> ends() const {
    return {{DNNL_ARG_SRC, &source_}, {DNNL_ARG_DST, &q_.target}};
  }
  /// The right operand as int8, in the library's layout.
  std::size_t packed(program_builder& program, const desc& to) const {
    const strided& b = p_.b;
    const std::size_t row = b.extents.size() - 2;
    const desc from = dense(b.extents, dnnl::memory::data_type::s8);
    // One constant may be read in two orientations.
    const std::string packing = "integers by columns, " + std::to_string(b.steps[row]) + " and " +
                                std::to_string(b.steps[row + 1]) + " apart" +
                                (source_.zero_point != 0 ? ", with a zero point " : " ");
    return program.pack(p_.b_value, packing, from, to, [&](std::byte* bytes) {
      const auto* const contents = context_.constant<float>(p_.b_value);
      std::vector<std::int8_t> rounded;
      for (std::int64_t i = 0; i < b.extents[row]; ++i)
        for (std::int64_t column = 0; column < b.extents[row + 1]; ++column) {
          const float x = contents[column * b.steps[row + 1] + i * b.steps[row]];
          const float scale = scales_[static_cast<std::size_t>(column)];
          rounded.push_back(rounded_weight(x, scale));
        }
      program_builder::repack(from, reinterpret_cast<const std::byte*>(rounded.data()), to, bytes);
    });
  }

  const chain& m_;
  build_context& context_;
  const value_forms& borders_;
  matmul_problem p_;
  quantised_chain q_;
  quantised_form source_;
  std::vector<float> scales_;  // by column
  std::size_t bias_ = 0;       // steps that are the bias: 1 or 0
};

}  // namespace
}  // namespace collage::inline v0::detail::onednn
