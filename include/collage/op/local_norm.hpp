// Normalisation over neighbouring channels.
#pragma once

#include <collage/op/kind.hpp>

namespace collage::inline v0::ops {

struct lrn_attributes {
  std::int64_t size = 1;  ///< how many channels are summed
  double alpha = 1e-4;
  double beta = 0.75;
  double bias = 1;
  template <class Self, class Visitor>
  static constexpr void visit(Self& self, Visitor&& visitor) {
    visitor("size", self.size);
    visitor("alpha", self.alpha);
    visitor("beta", self.beta);
    visitor("bias", self.bias);
  }
};

/// lrn(x), local response normalisation: x / (bias + alpha / size * sum of x^2)^beta. The sum is over the `size` channels
/// around each channel. If `size` is even, it has one channel more after the centre than before. x: [N, C, ...].
inline constexpr struct lrn : kind<lrn> {
  static constexpr char name[] = "lrn";
  static constexpr fusion_kind fusion = fusion_kind::opaque;
  using attributes = lrn_attributes;

  static constexpr verdict infer(const attributes& a, auto& io) {
    if (!is_floating(io.in[0].type)) return {false, "its input must have a floating-point type", 0};
    if (io.in[0].rank() < 2) return {false, "its input must have shape [N, C, ...]", 0};
    if (a.size < 1) return {false, "its size must be at least 1"};
    io.out[0] = io.in[0];
    return {};
  }
  static constexpr work count(const attributes& a, const auto& io) {
    return {static_cast<double>(io.in[0].dims.elements()) * (2.0 * static_cast<double>(a.size) + 20.0)};
  }
  static void reference(const attributes& a, const reference_call& call);
} lrn{};

}  // namespace collage::inline v0::ops
