// Products of integers on oneDNN: uint8 or int8 by int8, added up in int32. Scales, bias and what follows are applied in float32,
// while the sums are in registers.
#pragma once

#include <algorithm>
#include <collage/backends/impl/onednn_matmul.hpp>
#include <collage/backends/impl/onednn_program.hpp>
#include <collage/backends/impl/onednn_steps.hpp>
#include <collage/backends/onednn_chain.hpp>
#include <collage/backends/onednn_quantised_products.hpp>
#include <collage/ops.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace collage::inline v0::detail::onednn {
namespace {

using data_type = dnnl::memory::data_type;

/// The library multiplies by int8. Subtracting 128 from each uint8 and from their zero point changes no difference.
inline void to_signed(const std::byte* from, std::byte* to, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] = from[i] ^ std::byte{0x80};
}

/// The program, and what is prepared for it in every call: the library wants zero points as int32, and int8 on the right.
struct quantised_product_run {
  struct zero_point {
    std::size_t argument = 0, at = 0;  ///< at: its place in the workspace
    dtype type = dtype::u8;
    std::int32_t shift = 0;  ///< to be subtracted
  };
  struct right_operand {
    std::size_t argument = 0, at = 0, count = 0;
  };
  std::vector<zero_point> zero_points;
  std::vector<right_operand> unsigned_operands;
  std::shared_ptr<const program> steps;

  void operator()(const kernel_call& call) const {
    auto* const workspace = static_cast<std::byte*>(call.workspace);
    for (const zero_point& z : zero_points) {
      const std::int32_t whole = widened(z.type, call.in[z.argument]) - z.shift;
      std::memcpy(workspace + z.at, &whole, sizeof whole);
    }
    for (const right_operand& b : unsigned_operands)
      to_signed(static_cast<const std::byte*>(call.in[b.argument]), workspace + b.at, b.count);
    steps->run(call);
  }
};

/// Collects the attributes, operands and preparations of one product.
class quantised_matmul_maker {
 public:
  quantised_matmul_maker(const chain& m, build_context& context)
      : m_(m), context_(context), q_(m), p_(matmul_problem_of(m)), program_(m, context) {}

  kernel make() {
    const data_type a_type = library_type(m_.type_of(q_.a.integers).type);
    const bool packed = m_.graph().is_constant(p_.b_value);
    const desc a = p_.a.layout(a_type);
    const desc b = packed ? desc(p_.b.extents, data_type::s8, tag::any) : p_.b.layout(data_type::s8);
    const desc y = p_.c.layout(library_type(q_.result));
    set_scales();
    set_zero_points();
    epilogue then;
    set_post_ops(then, q_.has_bias(m_));
    attributes_.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    attributes_.set_post_ops(then.ops());
    using descriptor = dnnl::matmul::primitive_desc;
    const descriptor d = fast(q_.has_bias(m_) ? descriptor(cpu(), a, b, columns(), y, attributes_)
                                              : descriptor(cpu(), a, b, y, attributes_));
    operands_.emplace_back(DNNL_ARG_SRC, program_.read(p_.a_value, a));
    operands_.emplace_back(DNNL_ARG_WEIGHTS, right_operand(d, packed));
    operands_.emplace_back(DNNL_ARG_DST, program_.output(y));
    if (q_.has_bias(m_))
      operands_.emplace_back(DNNL_ARG_BIAS, program_.read(m_.step[q_.first_step].operand, columns()));
    then.read(program_, d, operands_);
    program_.run(d, dnnl::matmul(d), std::move(operands_));
    const std::string types = a_type == data_type::u8 ? " u8s8" : " s8s8";
    return program_.finish(d.impl_info_str() + types + (packed ? " packed" : ""),
                           [&](std::shared_ptr<const program> steps) {
                             run_.steps = std::move(steps);
                             return std::move(run_);
                           });
  }

 protected:
  static constexpr int zero_points = DNNL_ARG_ATTR_ZERO_POINTS;
  static constexpr int scales = DNNL_ARG_ATTR_SCALES;

  desc columns() const {
    dims extents(p_.c.extents.size(), 1);
    extents.back() = p_.c.extents.back();
    return dense(extents);
  }
  /// The mask of the library for one number, or one for each column.
  int mask_of(std::uint32_t value) const {
    return m_.type_of(value).dims.elements() == 1 ? 0 : 1 << (p_.c.extents.size() - 1);
  }
  /// A list of scales, as the library reads it.
  std::size_t list_of(std::uint32_t value) {
    const desc list({m_.type_of(value).dims.elements()}, f32, tag::a);
    if (m_.type_of(value).type == dtype::f32) return program_.read(value, list);
    const auto one = static_cast<float>(m_.at(value).scalar);  // accepts_quantised_operand takes no other
    return keep(list, &one, sizeof one);
  }
  std::size_t keep(const desc& layout, const void* contents, std::size_t bytes) {
    const std::shared_ptr<std::byte> own = allocate_bytes(bytes);
    std::memcpy(own.get(), contents, bytes);
    return program_.given(layout, own);
  }

  void set_scale(int argument, std::uint32_t value) {
    attributes_.set_scales_mask(argument, argument == DNNL_ARG_WEIGHTS ? mask_of(value) : 0);
    operands_.emplace_back(scales | argument, list_of(value));
  }
  void set_scales() {
    if (q_.more_factor != match_record::nothing) set_scale(DNNL_ARG_SRC, q_.more_factor);
    else if (!q_.a.is_unscaled(m_)) set_scale(DNNL_ARG_SRC, q_.a.scale);
    if (q_.factor != match_record::nothing) set_scale(DNNL_ARG_WEIGHTS, q_.factor);
    else if (!q_.b.is_unscaled(m_)) set_scale(DNNL_ARG_WEIGHTS, q_.b.scale);
    if (q_.quantizer == match_record::nothing) return;
    const std::uint32_t scale = m_.inputs_of(q_.quantizer)[1];
    if (!m_.at(scale).has_scalar || m_.at(scale).scalar != 1) set_scale(DNNL_ARG_DST, scale);
  }

  /// The zero point of an argument, minus `shift`. One that is known to be 0 costs nothing.
  void set_zero_point(int argument, std::uint32_t value, std::int32_t shift) {
    const desc one({1}, data_type::s32, tag::a);
    if (value == match_record::nothing || m_.graph().is_constant(value)) {
      const std::int32_t number = known_zero_point(value) - shift;
      if (number == 0) return;
      operands_.emplace_back(zero_points | argument, keep(one, &number, sizeof number));
    } else {
      const std::size_t made = program_.scratch(one);
      run_.zero_points.push_back(
          {program_.read_outside(value), program_.offset_of(made), m_.type_of(value).type, shift});
      operands_.emplace_back(zero_points | argument, made);
    }
    attributes_.set_zero_points_mask(argument, 0);
  }
  /// A constant zero point; all of a list must be equal.
  std::int32_t known_zero_point(std::uint32_t value) const {
    if (value == match_record::nothing) return 0;
    const auto* const bytes = context_.constant<std::byte>(value);
    const auto count = static_cast<std::size_t>(m_.type_of(value).dims.elements());
    if (std::any_of(bytes, bytes + count, [&](std::byte b) { return b != bytes[0]; }))
      throw error(error_kind::unsupported, "the library has no products with different zero points for the columns",
                  "onednn");
    return widened(m_.type_of(value).type, bytes);
  }
  void set_zero_points() {
    set_zero_point(DNNL_ARG_SRC, q_.a.zero_point, 0);
    set_zero_point(DNNL_ARG_WEIGHTS, q_.b.zero_point, m_.type_of(q_.b.integers).type == dtype::u8 ? 128 : 0);
    if (q_.quantizer == match_record::nothing) return;
    const auto in = m_.inputs_of(q_.quantizer);
    set_zero_point(DNNL_ARG_DST, in.size() == 3 ? in[2] : match_record::nothing, 0);
  }

  /// Rounding as post-ops: to steps, to a whole number within the range of the integers, and back.
  void round(epilogue& then, std::uint32_t dequantizer) const {
    const auto back = m_.inputs_of(dequantizer);
    const double scale = m_.at(back[1]).scalar, zero = zero_point_of(m_, dequantizer);
    const double low = m_.type_of(back[0]).type == dtype::i8 ? -128 : 0;
    using enum dnnl::algorithm;
    then.apply(eltwise_linear, 1 / scale, 0);
    then.apply(eltwise_round, 0, 0);
    then.apply(eltwise_clip, low - zero, low + 255 - zero);
    then.apply(eltwise_linear, scale, 0);
  }
  /// The steps after the factor. `biased`: the first of them is the library's bias.
  void set_post_ops(epilogue& then, bool biased) const {
    const dims result = p_.c.extents;
    std::size_t first = q_.first_step + (biased ? 1 : 0);
    if (first < m_.steps && m_.step[first].what == chain_step::action::round) round(then, m_.step[first++].node);
    append_steps(then, m_, first, [&](const chain_step&, spread lies) {
      const desc layout = lies == spread::full      ? dense(result)
                          : lies == spread::channel ? columns()
                                                    : dense(dims(result.size(), 1));
      return std::pair(layout, layout);
    });
  }

  /// Constants are packed as int8, once. Other operands are read as they are, or from an int8 copy.
  template <class Descriptor>
  std::size_t right_operand(const Descriptor& d, bool packed) {
    const bool is_unsigned = m_.type_of(q_.b.integers).type == dtype::u8;
    const desc from = p_.b.layout(data_type::s8);
    const auto count = static_cast<std::size_t>(m_.type_of(q_.b.integers).dims.elements());
    if (!packed && !is_unsigned) return program_.read(p_.b_value, from);
    if (!packed) {
      const std::size_t copy = program_.scratch(from);
      run_.unsigned_operands.push_back({program_.read_outside(p_.b_value), program_.offset_of(copy), count});
      return copy;
    }
    const std::byte* contents = context_.constant<std::byte>(p_.b_value);
    // The packed form of some implementations also holds sums, which depend on the type of the left operand.
    const std::string how = std::string(is_unsigned ? "uint8 as int8 for " : "int8 for ") +
                            (m_.type_of(q_.a.integers).type == dtype::u8 ? "uint8 " : "int8 ");
    return program_.pack(p_.b_value, how, from, d.weights_desc(), [&](std::byte* bytes) {
      std::vector<std::byte> copy;
      if (is_unsigned) {
        copy.resize(count);
        to_signed(contents, copy.data(), count);
        contents = copy.data();
      }
      program_builder::repack(from, contents, d.weights_desc(), bytes);
    });
  }

  const chain& m_;
  build_context& context_;
  quantised_product q_;
  matmul_problem p_;
  program_builder program_;
  dnnl::primitive_attr attributes_;
  std::vector<std::pair<int, std::size_t>> operands_;
  quantised_product_run run_;
};

/// Throws if the processor has no exact products of bytes, or if the library has only slow loops.
inline kernel build_product_of_integers(const chain& m, build_context& context) {
  if (!multiplies_bytes_exactly())
    throw error(error_kind::unsupported, "this processor lacks VNNI, without which sums of products of bytes saturate",
                "onednn");
  return quantised_matmul_maker(m, context).make();
}

}  // namespace
}  // namespace collage::inline v0::detail::onednn
