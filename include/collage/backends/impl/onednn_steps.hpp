// The steps after an anchor, as oneDNN's post-ops.
#pragma once

#include <collage/backends/impl/onednn_program.hpp>
#include <collage/backends/onednn_chain.hpp>
#include <collage/ops.hpp>
#include <cstddef>
#include <cstdint>

namespace collage::inline v0::detail::onednn {
namespace {

/// An elementwise operator in the library's terms.
struct eltwise {
  dnnl::algorithm what = dnnl::algorithm::undef;
  double alpha = 0;
  double beta = 0;
};

/// An activation after a convolution or product. Relu is the library's own here, unlike in exact_eltwise (onednn_rows.hpp).
inline eltwise fused_activation(const chain_step& s) {
  using enum dnnl::algorithm;
  if (s.kind == kind_id<struct ops::relu>) return {eltwise_relu};
  if (s.kind == kind_id<struct ops::leaky_relu>) return {eltwise_relu, s.alpha};
  if (s.kind == kind_id<struct ops::elu>) return {eltwise_elu, s.alpha};
  if (s.kind == kind_id<struct ops::sigmoid>) return {eltwise_logistic};
  return {eltwise_tanh};
}

/// The library's algorithm for a step with an operand.
inline dnnl::algorithm combination(const chain_step& s) {
  using enum dnnl::algorithm;
  if (s.kind == kind_id<struct ops::add>) return binary_add;
  if (s.kind == kind_id<struct ops::sub>) return binary_sub;
  return s.kind == kind_id<struct ops::mul> ? binary_mul : binary_div;
}

inline void append_pointwise(epilogue& e, const chain_step& s) {
  using enum dnnl::algorithm;
  switch (s.what) {
    case chain_step::action::scale: return e.apply(eltwise_linear, s.alpha, 0);
    case chain_step::action::clip: return e.apply(eltwise_clip, s.alpha, s.beta);
    case chain_step::action::swish: return e.apply(eltwise_swish, 1, 0);
    case chain_step::action::gelu: return e.apply(eltwise_gelu_erf, 0, 0);
    case chain_step::action::activation: {
      const eltwise f = fused_activation(s);
      return e.apply(f.what, f.alpha, f.beta);
    }
    case chain_step::action::binary:
    case chain_step::action::round:
    case chain_step::action::transpose: break;  // need a tensor, contents or a layout, which the caller provides
  }
}

/// Appends the steps from `first` on. `lay` takes a step with an operand, and how the operand lies over the result. It returns the
/// operand's layout in memory, and the layout in which the library reads it.
template <class Lay>
void append_steps(epilogue& e, const chain& m, std::size_t first, const Lay& lay) {
  for (std::size_t i = first; i < m.steps; ++i) {
    const chain_step& s = m.step[i];
    if (s.what == chain_step::action::binary) {
      const auto [from, layout] = lay(s, m.spread_of(s));
      e.combine(combination(s), s.operand, from, layout);
    } else {
      append_pointwise(e, s);
    }
  }
}

}  // namespace
}  // namespace collage::inline v0::detail::onednn
