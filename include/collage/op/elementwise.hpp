// Elementwise operators, unary and with broadcast operands, each given by its body.
#pragma once

#include <collage/op/kind.hpp>

namespace collage::inline v0 {

/// The base of elementwise kinds. `Derived` has `body`, a function over any value type; operands broadcast against each
/// other (numpy's rule) and share one element type, which is also the output's. Attributes, where there are any, are
/// doubles and follow the operands in `body`. Shape rule, costs, reference and the backends' code follow from the body.
template <class Derived, std::uint32_t Inputs>
struct elementwise_kind : kind<Derived> {
  static constexpr std::uint32_t body_inputs = Inputs;
  static constexpr arity inputs{Inputs, Inputs};
  static constexpr fusion_kind fusion = Inputs == 1 ? fusion_kind::elementwise : fusion_kind::broadcast;

  static constexpr verdict infer(const auto&, inference& io) {
    io.out[0] = io.in[0];
    for (std::size_t i = 1; i < Inputs; ++i) {
      if (io.in[i].type != io.in[0].type)
        return {false, "its operands must have the same element type", static_cast<std::int32_t>(i)};
      bool fits = true;
      io.out[0].dims = detail::broadcast(io.out[0].dims, io.in[i].dims, fits);
      if (!fits) return {false, "its operands' shapes must broadcast", static_cast<std::int32_t>(i)};
    }
    return {};
  }
  static constexpr work count(const auto&, const inference& io) {
    double operations = 0;
    for (std::size_t i = 0; i < detail::body_of<Derived>.size; ++i)
      if (detail::body_of<Derived>.code[i].code > opcode::constant) operations += 1;
    return {static_cast<double>(io.out[0].dims.elements()) * operations};
  }
};

namespace ops {

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

// Unary
// ------------------------------------------------------------------------------------------------------------------

inline constexpr struct relu : elementwise_kind<relu, 1> {
  static constexpr char name[] = "relu";
  static constexpr auto body(auto x) { return math::max(x, 0.0); }
} relu{};

inline constexpr struct leaky_relu : elementwise_kind<leaky_relu, 1> {
  static constexpr char name[] = "leaky_relu";
  using attributes = alpha_attributes;
  static constexpr auto body(auto x, auto alpha) { return math::select(x < 0.0, alpha * x, x); }
} leaky_relu{};

inline constexpr struct elu : elementwise_kind<elu, 1> {
  static constexpr char name[] = "elu";
  using attributes = alpha_attributes;
  static constexpr auto body(auto x, auto alpha) { return math::select(x < 0.0, alpha * (math::exp(x) - 1.0), x); }
} elu{};

inline constexpr struct hard_sigmoid : elementwise_kind<hard_sigmoid, 1> {
  static constexpr char name[] = "hard_sigmoid";
  using attributes = alpha_beta_attributes;
  static constexpr auto body(auto x, auto alpha, auto beta) { return math::max(math::min(alpha * x + beta, 1.0), 0.0); }
} hard_sigmoid{};

inline constexpr struct sigmoid : elementwise_kind<sigmoid, 1> {
  static constexpr char name[] = "sigmoid";
  static constexpr auto body(auto x) { return 1.0 / (1.0 + math::exp(-x)); }
} sigmoid{};

inline constexpr struct tanh : elementwise_kind<tanh, 1> {
  static constexpr char name[] = "tanh";
  static constexpr auto body(auto x) { return math::tanh(x); }
} tanh{};

inline constexpr struct erf : elementwise_kind<erf, 1> {
  static constexpr char name[] = "erf";
  static constexpr auto body(auto x) { return math::erf(x); }
} erf{};

inline constexpr struct exp : elementwise_kind<exp, 1> {
  static constexpr char name[] = "exp";
  static constexpr auto body(auto x) { return math::exp(x); }
} exp{};

inline constexpr struct log : elementwise_kind<log, 1> {
  static constexpr char name[] = "log";
  static constexpr auto body(auto x) { return math::log(x); }
} log{};

inline constexpr struct sqrt : elementwise_kind<sqrt, 1> {
  static constexpr char name[] = "sqrt";
  static constexpr auto body(auto x) { return math::sqrt(x); }
} sqrt{};

inline constexpr struct reciprocal : elementwise_kind<reciprocal, 1> {
  static constexpr char name[] = "reciprocal";
  static constexpr auto body(auto x) { return 1.0 / x; }
} reciprocal{};

inline constexpr struct neg : elementwise_kind<neg, 1> {
  static constexpr char name[] = "neg";
  static constexpr auto body(auto x) { return -x; }
} neg{};

inline constexpr struct abs : elementwise_kind<abs, 1> {
  static constexpr char name[] = "abs";
  static constexpr auto body(auto x) { return math::abs(x); }
} abs{};

inline constexpr struct floor : elementwise_kind<floor, 1> {
  static constexpr char name[] = "floor";
  static constexpr auto body(auto x) { return math::floor(x); }
} floor{};

inline constexpr struct ceil : elementwise_kind<ceil, 1> {
  static constexpr char name[] = "ceil";
  static constexpr auto body(auto x) { return math::ceil(x); }
} ceil{};

inline constexpr struct sin : elementwise_kind<sin, 1> {
  static constexpr char name[] = "sin";
  static constexpr auto body(auto x) { return math::sin(x); }
} sin{};

inline constexpr struct cos : elementwise_kind<cos, 1> {
  static constexpr char name[] = "cos";
  static constexpr auto body(auto x) { return math::cos(x); }
} cos{};

inline constexpr struct softplus : elementwise_kind<softplus, 1> {
  static constexpr char name[] = "softplus";
  static constexpr auto body(auto x) { return math::log(1.0 + math::exp(-math::abs(x))) + math::max(x, 0.0); }
} softplus{};

// Two operands
// -----------------------------------------------------------------------------------------------------------

inline constexpr struct add : elementwise_kind<add, 2> {
  static constexpr char name[] = "add";
  static constexpr bool commutative = true;
  static constexpr auto body(auto x, auto y) { return x + y; }
} add{};

inline constexpr struct sub : elementwise_kind<sub, 2> {
  static constexpr char name[] = "sub";
  static constexpr auto body(auto x, auto y) { return x - y; }
} sub{};

inline constexpr struct mul : elementwise_kind<mul, 2> {
  static constexpr char name[] = "mul";
  static constexpr bool commutative = true;
  static constexpr auto body(auto x, auto y) { return x * y; }
} mul{};

inline constexpr struct div : elementwise_kind<div, 2> {
  static constexpr char name[] = "div";
  static constexpr auto body(auto x, auto y) { return x / y; }
} div{};

inline constexpr struct max : elementwise_kind<max, 2> {
  static constexpr char name[] = "max";
  static constexpr bool commutative = true;
  static constexpr auto body(auto x, auto y) { return math::max(x, y); }
} max{};

inline constexpr struct min : elementwise_kind<min, 2> {
  static constexpr char name[] = "min";
  static constexpr bool commutative = true;
  static constexpr auto body(auto x, auto y) { return math::min(x, y); }
} min{};

inline constexpr struct pow : elementwise_kind<pow, 2> {
  static constexpr char name[] = "pow";
  static constexpr auto body(auto x, auto y) { return math::pow(x, y); }
} pow{};

// Three operands
// ---------------------------------------------------------------------------------------------------------

/// clip(x, low, high): min(max(x, low), high).
inline constexpr struct clip : elementwise_kind<clip, 3> {
  static constexpr char name[] = "clip";
  static constexpr auto body(auto x, auto low, auto high) { return math::min(math::max(x, low), high); }
} clip{};

}  // namespace ops
}  // namespace collage::inline v0
