// Products of integers of 8 bits that are computed in float32. They serve processors that do not multiply integers exactly, and
// columns that have zero points of their own. Weights become float32 when the kernel is built, the left operand in each run.
#pragma once

#include <collage/backends/impl/onednn_in_float.hpp>
#include <collage/backends/impl/onednn_quantised_matmul.hpp>
#include <collage/detail/hash.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace collage::inline v0::detail::onednn {
namespace {

class product_in_float_maker : quantised_matmul_maker {
 public:
  using quantised_matmul_maker::quantised_matmul_maker;

  kernel make_in_float() {
    if (q_.result == dtype::i32)
      throw error(error_kind::unsupported, "float32 does not hold exact sums of products", "onednn");
    if (multiplies_bytes_exactly() && has_one_zero_point())
      throw error(error_kind::unsupported, "this processor multiplies integers faster", "onednn");
    epilogue then;
    if (q_.factor != match_record::nothing) {
      const desc layout = mask_of(q_.factor) == 0 ? dense(dims(p_.c.extents.size(), 1)) : columns();
      then.combine(dnnl::algorithm::binary_mul, q_.factor, layout, layout);
    }
    const bool biased = q_.factor == match_record::nothing && q_.has_bias(m_);
    set_post_ops(then, biased);
    const desc a = p_.a.layout(), y = p_.c.layout();
    using descriptor = dnnl::matmul::primitive_desc;
    const auto how = attributes(then.ops());
    const descriptor d = fast(biased ? descriptor(cpu(), a, free_layout(p_.b.extents), columns(), y, how)
                                     : descriptor(cpu(), a, free_layout(p_.b.extents), y, how));
    const std::size_t left = program_.scratch(a);
    const bool quantises = q_.quantizer != match_record::nothing;
    const std::size_t result = quantises ? program_.scratch(y) : program_.output(y);
    operands_ = {{DNNL_ARG_SRC, left}, {DNNL_ARG_WEIGHTS, float_weights(d)}, {DNNL_ARG_DST, result}};
    if (biased) operands_.emplace_back(DNNL_ARG_BIAS, program_.read(m_.step[q_.first_step].operand, columns()));
    then.read(program_, d, operands_);
    program_.run(d, dnnl::matmul(d), std::move(operands_));
    run_in_float run = preparation(left, result);
    return program_.finish(d.impl_info_str() + std::string(" of bytes as float32"), [&](auto steps) {
      run.steps = std::move(steps);
      return run;
    });
  }

 private:
  /// Whether the zero points of the columns, if they are known, are equal.
  bool has_one_zero_point() const {
    try {
      if (q_.b.zero_point != match_record::nothing && m_.graph().is_constant(q_.b.zero_point))
        (void)known_zero_point(q_.b.zero_point);
      return true;
    } catch (const error&) { return false; }
  }
  quantisation_number number(std::uint32_t value) {
    if (value == match_record::nothing) return {};
    const dtype type = m_.type_of(value).type;
    if (!m_.graph().is_constant(value)) return {.argument = program_.read_outside(value), .type = type};
    if (m_.at(value).has_scalar) return {.known = static_cast<float>(m_.at(value).scalar)};
    return {.known = static_cast<float>(known_zero_point(value))};
  }
  run_in_float preparation(std::size_t left, std::size_t result) {
    run_in_float run;
    run.argument = program_.read_outside(p_.a_value);
    run.x_at = program_.offset_of(left);
    run.inputs = m_.type_of(q_.a.integers).dims.elements();
    run.outputs = m_.type_of(m_.output()).dims.elements();
    run.from = m_.type_of(q_.a.integers).type;
    run.to = q_.result;
    run.threads = context_.threads();
    run.x_scale = number(q_.a.scale);
    if (q_.more_factor != match_record::nothing) run.x_factor = number(q_.more_factor);
    run.x_zero = number(q_.a.zero_point);
    if (q_.quantizer == match_record::nothing) return run;
    const auto in = m_.inputs_of(q_.quantizer);
    run.y_at = program_.offset_of(result);
    run.y_scale = number(in[1]);
    if (in.size() == 3) run.y_zero = number(in[2]);
    return run;
  }

  /// The weights as float32, packed. Their scales and zero points are part of the key, because the packed form depends on them.
  template <class Descriptor>
  std::size_t float_weights(const Descriptor& d) {
    const auto* const contents = context_.constant<std::byte>(p_.b_value);
    const auto* const zeros = context_.constant<std::byte>(q_.b.zero_point);
    const bool has_zeros = q_.b.zero_point != match_record::nothing;
    const auto* const list = context_.constant<float>(q_.b.scale);
    if (contents == nullptr || list == nullptr || (has_zeros && zeros == nullptr))
      throw error(error_kind::unsupported,
                  "weights become float32 only if they, their scales and zero points are constant", "onednn");
    const dtype type = m_.type_of(q_.b.integers).type;
    const auto count = static_cast<std::size_t>(m_.type_of(q_.b.scale).dims.elements());
    std::vector<float> factors, shifts(count, 0);
    if (m_.type_of(q_.b.scale).type == dtype::f32) factors.assign(list, list + count);
    else factors.assign(1, static_cast<float>(m_.at(q_.b.scale).scalar));
    for (std::size_t i = 0; has_zeros && i < count; ++i) shifts[i] = static_cast<float>(widened(type, zeros + i));
    const shape& extents = m_.type_of(q_.b.integers).dims;
    const auto axis = static_cast<std::size_t>(m_.attributes(q_.b.node, ops::dequantize_linear).axis);
    const std::int64_t inner = count == 1 ? 1 : extents.from(axis + 1).elements();
    const auto text = [](const std::vector<float>& numbers) {
      return std::to_string(hash(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(float))) + ' ';
    };
    const desc from = p_.b.layout();
    return program_.pack(
        p_.b_value, "float32 by " + text(factors) + text(shifts), from, d.weights_desc(), [&](std::byte* to) {
          std::vector<float> made(static_cast<std::size_t>(extents.elements()));
          for (std::size_t i = 0; i < made.size(); ++i) {
            const std::size_t s = static_cast<std::size_t>(static_cast<std::int64_t>(i) / inner) % count;
            made[i] = (static_cast<float>(widened(type, contents + i)) - shifts[s]) * factors[s];
          }
          program_builder::repack(from, reinterpret_cast<const std::byte*>(made.data()), d.weights_desc(), to);
        });
  }
};

/// By integers, or in float32.
inline kernel build_quantised_matmul(const chain& m, build_context& context) {
  if (context.choice() == 0) return build_product_of_integers(m, context);
  return product_in_float_maker(m, context).make_in_float();
}

}  // namespace
}  // namespace collage::inline v0::detail::onednn
