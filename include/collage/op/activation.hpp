// Activations: elementwise operators that networks apply to the results of convolutions and matrix products.
#pragma once

#include <collage/op/elementwise.hpp>

namespace collage::inline v0::ops {

/// One attribute: the slope or scale of an activation.
struct alpha_attributes {
  double alpha = 1.0;
  template <class Self, class Visitor>
  static constexpr void visit(Self& self, Visitor&& visitor) {
    visitor("alpha", self.alpha);
  }
};

/// Two attributes: y = clamp(alpha x + beta).
struct alpha_beta_attributes {
  double alpha = 0.2;
  double beta = 0.5;
  template <class Self, class Visitor>
  static constexpr void visit(Self& self, Visitor&& visitor) {
    visitor("alpha", self.alpha);
    visitor("beta", self.beta);
  }
};

inline constexpr struct relu : elementwise_kind<relu, 1> {
  static constexpr char name[] = "relu";
  static constexpr auto body(auto x) { return math::max(x, 0.0); }
} relu{};

inline constexpr struct leaky_relu : elementwise_kind<leaky_relu, 1> {
  static constexpr char name[] = "leaky_relu";
  using attributes = alpha_attributes;
  static constexpr auto body(auto x, auto alpha) { return math::select(x < 0.0, alpha * x, x); }
} leaky_relu{};

/// prelu(x, slope): leaky_relu with slopes from a tensor.
inline constexpr struct prelu : elementwise_kind<prelu, 2> {
  static constexpr char name[] = "prelu";
  static constexpr auto body(auto x, auto slope) { return math::select(x < 0.0, slope * x, x); }
} prelu{};

inline constexpr struct elu : elementwise_kind<elu, 1> {
  static constexpr char name[] = "elu";
  using attributes = alpha_attributes;
  static constexpr auto body(auto x, auto alpha) { return math::select(x < 0.0, alpha * (math::exp(x) - 1.0), x); }
} elu{};

/// celu(x): elu whose slope is continuous at 0 for every alpha, which must not be 0.
inline constexpr struct celu : elementwise_kind<celu, 1> {
  static constexpr char name[] = "celu";
  using attributes = alpha_attributes;
  static constexpr auto body(auto x, auto alpha) {
    return math::select(x < 0.0, alpha * (math::exp(x / alpha) - 1.0), x);
  }
} celu{};

/// The defaults keep the mean and the variance of what passes through.
struct selu_attributes {
  double alpha = 1.67326319217681884765625;
  double gamma = 1.05070102214813232421875;
  template <class Self, class Visitor>
  static constexpr void visit(Self& self, Visitor&& visitor) {
    visitor("alpha", self.alpha);
    visitor("gamma", self.gamma);
  }
};

/// selu(x): gamma * elu(x).
inline constexpr struct selu : elementwise_kind<selu, 1> {
  static constexpr char name[] = "selu";
  using attributes = selu_attributes;
  static constexpr auto body(auto x, auto alpha, auto gamma) {
    return gamma * math::select(x < 0.0, alpha * (math::exp(x) - 1.0), x);
  }
} selu{};

/// thresholded_relu(x): x where it is above alpha, else 0, also for NaN.
inline constexpr struct thresholded_relu : elementwise_kind<thresholded_relu, 1> {
  static constexpr char name[] = "thresholded_relu";
  using attributes = alpha_attributes;
  static constexpr auto body(auto x, auto alpha) { return math::select(alpha < x, x, x.literal(0.0)); }
} thresholded_relu{};

struct shrink_attributes {
  double bias = 0.0;
  double lambda = 0.5;
  template <class Self, class Visitor>
  static constexpr void visit(Self& self, Visitor&& visitor) {
    visitor("bias", self.bias);
    visitor("lambda", self.lambda);
  }
};

/// shrink(x): what is farther than lambda from 0, moved toward 0 by the bias; all else is 0, also for NaN.
inline constexpr struct shrink : elementwise_kind<shrink, 1> {
  static constexpr char name[] = "shrink";
  using attributes = shrink_attributes;
  static constexpr auto body(auto x, auto bias, auto lambda) {
    return math::select(x < -lambda, x + bias, math::select(lambda < x, x - bias, x.literal(0.0)));
  }
} shrink{};

inline constexpr struct sigmoid : elementwise_kind<sigmoid, 1> {
  static constexpr char name[] = "sigmoid";
  static constexpr auto body(auto x) { return 1.0 / (1.0 + math::exp(-x)); }
} sigmoid{};

inline constexpr struct hard_sigmoid : elementwise_kind<hard_sigmoid, 1> {
  static constexpr char name[] = "hard_sigmoid";
  using attributes = alpha_beta_attributes;
  static constexpr auto body(auto x, auto alpha, auto beta) { return math::max(math::min(alpha * x + beta, 1.0), 0.0); }
} hard_sigmoid{};

/// hard_swish(x): x * hard_sigmoid(x) with alpha 1/6 and beta 1/2.
inline constexpr struct hard_swish : elementwise_kind<hard_swish, 1> {
  static constexpr char name[] = "hard_swish";
  static constexpr auto body(auto x) { return x * math::max(math::min(x / 6.0 + 0.5, 1.0), 0.0); }
} hard_swish{};

/// gelu_tanh(x): x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))), which stands for GELU. That itself is a chain of
/// operators, as exporters write it, so that one pattern finds both.
inline constexpr struct gelu_tanh : elementwise_kind<gelu_tanh, 1> {
  static constexpr char name[] = "gelu_tanh";
  static constexpr auto body(auto x) {
    return 0.5 * x * (1.0 + math::tanh(0.79788456080286536 * x * (1.0 + 0.044715 * x * x)));
  }
} gelu_tanh{};

inline constexpr struct softplus : elementwise_kind<softplus, 1> {
  static constexpr char name[] = "softplus";
  static constexpr auto body(auto x) { return math::log(1.0 + math::exp(-math::abs(x))) + math::max(x, 0.0); }
} softplus{};

/// mish(x): x * tanh(softplus(x)).
inline constexpr struct mish : elementwise_kind<mish, 1> {
  static constexpr char name[] = "mish";
  static constexpr auto body(auto x) { return x * math::tanh(softplus.body(x)); }
} mish{};

/// softsign(x): x / (1 + |x|).
inline constexpr struct softsign : elementwise_kind<softsign, 1> {
  static constexpr char name[] = "softsign";
  static constexpr auto body(auto x) { return x / (1.0 + math::abs(x)); }
} softsign{};

/// clip(x, low, high): min(max(x, low), high).
inline constexpr struct clip : elementwise_kind<clip, 3> {
  static constexpr char name[] = "clip";
  static constexpr auto body(auto x, auto low, auto high) { return math::min(math::max(x, low), high); }
} clip{};

}  // namespace collage::inline v0::ops
