// Softmax and the norms.
#pragma once

#include <collage/op/kind.hpp>

namespace collage::inline v0::ops {

struct softmax_attributes {
  std::int64_t axis = -1;  ///< stored non-negative
  template <class Self, class Visitor>
  static constexpr void visit(Self& self, Visitor&& visitor) {
    visitor("axis", self.axis);
  }
};

/// The base of both kinds.
template <class Derived>
struct softmax_kind : kind<Derived> {
  static constexpr fusion_kind fusion = fusion_kind::opaque;
  using attributes = softmax_attributes;

  static constexpr void normalise(attributes& a, list_view<const tensor_type> in) {
    a.axis = detail::wrap_axis(a.axis, in[0].rank());
  }
  static constexpr verdict infer(const attributes& a, auto& io) {
    if (!is_floating(io.in[0].type)) return {false, "its input must have a floating-point type", 0};
    if (a.axis < 0 || a.axis >= static_cast<std::int64_t>(io.in[0].rank()))
      return {false, "its axis must be within the rank of its input"};
    io.out[0] = io.in[0];
    return {};
  }
  static constexpr work count(const attributes&, const auto& io) {
    return {5.0 * static_cast<double>(io.in[0].dims.elements())};
  }
};

/// softmax(x): exp(x - max) / sum(exp(x - max)) along one axis.
inline constexpr struct softmax : softmax_kind<softmax> {
  static constexpr char name[] = "softmax";
  static void reference(const attributes& a, const reference_call& call);
} softmax{};

/// log_softmax(x): x - max - log(sum(exp(x - max))) along one axis.
inline constexpr struct log_softmax : softmax_kind<log_softmax> {
  static constexpr char name[] = "log_softmax";
  static void reference(const attributes& a, const reference_call& call);
} log_softmax{};

struct layer_norm_attributes {
  std::int64_t axis = -1;  ///< the first of the normalised dimensions, all to the last; stored non-negative
  double epsilon = 1e-5;
  template <class Self, class Visitor>
  static constexpr void visit(Self& self, Visitor&& visitor) {
    visitor("axis", self.axis);
    visitor("epsilon", self.epsilon);
  }
};

/// layer_norm(x, scale[, bias]): (x - mean) / sqrt(variance + epsilon) * scale + bias over the dimensions from `axis`
/// on; scale and bias broadcast to x.
inline constexpr struct layer_norm : kind<layer_norm> {
  static constexpr char name[] = "layer_norm";
  static constexpr fusion_kind fusion = fusion_kind::opaque;
  static constexpr arity inputs{2, 3};
  using attributes = layer_norm_attributes;

  static constexpr void normalise(attributes& a, list_view<const tensor_type> in) {
    a.axis = detail::wrap_axis(a.axis, in[0].rank());
  }
  static constexpr verdict infer(const attributes& a, auto& io) {
    const auto& x = io.in[0].dims;
    if (!is_floating(io.in[0].type)) return {false, "its input must have a floating-point type", 0};
    if (a.axis < 0 || a.axis >= static_cast<std::int64_t>(x.rank))
      return {false, "its axis must be within the rank of its input"};
    for (std::size_t i = 1; i < io.in.size(); ++i) {
      bool fits = io.in[i].type == io.in[0].type;
      const shape together = detail::broadcast(x, io.in[i].dims, fits);
      // Broadcasting must not enlarge the input; where its extent is not known, it may turn out to be any.
      fits = fits && together.rank == x.rank;
      for (std::size_t d = 0; fits && d < x.rank; ++d) fits = x[d] < 0 || together[d] == x[d];
      if (!fits)
        return {false, "its scale and bias must have its input's element type and broadcast to its shape",
                static_cast<std::int32_t>(i)};
    }
    io.out[0] = io.in[0];
    return {};
  }
  static constexpr work count(const attributes&, const auto& io) {
    return {8.0 * static_cast<double>(io.in[0].dims.elements())};
  }
  static void reference(const attributes& a, const reference_call& call);
} layer_norm{};

}  // namespace collage::inline v0::ops
