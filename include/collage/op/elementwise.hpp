// Elementwise operators, each defined by its body: their common base, arithmetic and functions.
#pragma once

#include <collage/op/kind.hpp>

namespace collage::inline v0 {

namespace detail {

/// The shape rule of all elementwise kinds. The first `conditions` operands must be boolean.
constexpr verdict infer_elementwise(auto& io, std::uint32_t conditions, dtype result) {
  const dtype computed = io.in[conditions].type;
  tensor_type& y = io.out[0];
  y = {result, io.in[0].dims};
  for (std::uint32_t i = 0; i < io.in.size(); ++i) {
    const auto which = static_cast<std::int32_t>(i);
    const tensor_type& x = io.in[i];
    if (i < conditions && x.type != dtype::boolean) return {false, "its condition must be boolean", which};
    if (i > conditions && x.type != computed) return {false, "its operands must have the same element type", which};
    if (i == 0) continue;
    bool fits = true;
    y.dims = broadcast(y.dims, x.dims, fits);
    if (!fits) return {false, "its operands' shapes must broadcast", which};
  }
  return {};
}

constexpr work count_elementwise(const auto& io, const traced_body& body) {
  double operations = 0;
  for (std::uint32_t i = 0; i < body.size; ++i)
    if (body.code[i].code > opcode::constant) operations += 1;
  return {static_cast<double>(io.out[0].dims.elements()) * operations};
}

}  // namespace detail

/// The members that an elementwise kind may leave out.
template <std::uint32_t Inputs>
struct elementwise_defaults : kind_defaults {
  static constexpr std::uint32_t body_inputs = Inputs;
  static constexpr arity inputs{Inputs, Inputs};
  static constexpr fusion_kind fusion = Inputs == 1 ? fusion_kind::elementwise : fusion_kind::broadcast;

  /// How many leading operands are booleans, whatever the type of the others. Fewer than all.
  static constexpr std::uint32_t conditions = 0;
  /// Whether the body has a meaning for an element type.
  static constexpr bool takes(dtype) { return true; }
  /// The element type of the result, given the attributes and the type in which the body is computed.
  static constexpr dtype result_type(const auto&, dtype computed) { return computed; }
};

/// The base of elementwise kinds. `Derived` has `body`, a function over any value type. Operands broadcast against each
/// other (numpy's rule). Attributes that the body reads are doubles, and follow the operands in its parameters. Shape
/// rule, costs, reference and the backends' code follow from the body.
///
/// The operands share one element type. The body is computed in it, and the result has it too. `Derived` may deviate in
/// two ways: leading operands may be conditions, read as 0 or 1, and the result may be converted, as `cast` does.
template <class Derived, std::uint32_t Inputs>
struct elementwise_kind : kind<Derived, elementwise_defaults<Inputs>> {
  static constexpr verdict infer(const auto& attributes, auto& io) {
    const dtype computed = io.in[Derived::conditions].type;
    if (!Derived::takes(computed))
      return {false, "it is not defined for this element type", static_cast<std::int32_t>(Derived::conditions)};
    return detail::infer_elementwise(io, Derived::conditions, Derived::result_type(attributes, computed));
  }
  static constexpr work count(const auto&, const auto& io) {
    return detail::count_elementwise(io, detail::body_of<Derived>);
  }
};

namespace ops {

// One operand -------------------------------------------------------------------------------------------------------

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

inline constexpr struct tan : elementwise_kind<tan, 1> {
  static constexpr char name[] = "tan";
  static constexpr auto body(auto x) { return math::tan(x); }
} tan{};

inline constexpr struct asin : elementwise_kind<asin, 1> {
  static constexpr char name[] = "asin";
  static constexpr auto body(auto x) { return math::asin(x); }
} asin{};

inline constexpr struct acos : elementwise_kind<acos, 1> {
  static constexpr char name[] = "acos";
  static constexpr auto body(auto x) { return math::acos(x); }
} acos{};

inline constexpr struct atan : elementwise_kind<atan, 1> {
  static constexpr char name[] = "atan";
  static constexpr auto body(auto x) { return math::atan(x); }
} atan{};

inline constexpr struct sinh : elementwise_kind<sinh, 1> {
  static constexpr char name[] = "sinh";
  static constexpr auto body(auto x) { return math::sinh(x); }
} sinh{};

inline constexpr struct cosh : elementwise_kind<cosh, 1> {
  static constexpr char name[] = "cosh";
  static constexpr auto body(auto x) { return math::cosh(x); }
} cosh{};

inline constexpr struct asinh : elementwise_kind<asinh, 1> {
  static constexpr char name[] = "asinh";
  static constexpr auto body(auto x) { return math::asinh(x); }
} asinh{};

inline constexpr struct acosh : elementwise_kind<acosh, 1> {
  static constexpr char name[] = "acosh";
  static constexpr auto body(auto x) { return math::acosh(x); }
} acosh{};

inline constexpr struct atanh : elementwise_kind<atanh, 1> {
  static constexpr char name[] = "atanh";
  static constexpr auto body(auto x) { return math::atanh(x); }
} atanh{};

/// round(x): halves go to the even neighbour.
inline constexpr struct round : elementwise_kind<round, 1> {
  static constexpr char name[] = "round";
  static constexpr auto body(auto x) { return math::round(x); }
} round{};

/// sign(x): -1, 0 or 1; NaN for NaN.
inline constexpr struct sign : elementwise_kind<sign, 1> {
  static constexpr char name[] = "sign";
  static constexpr auto body(auto x) {
    return math::select(0.0 < x, x.literal(1.0), math::select(x < 0.0, x.literal(-1.0), x));
  }
} sign{};

// Two operands ------------------------------------------------------------------------------------------------------

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

/// remainder(x, y): the remainder of truncating division, with the sign of x (fmod of C). For integers it is 0 if y is 0.
inline constexpr struct remainder : elementwise_kind<remainder, 2> {
  static constexpr char name[] = "remainder";
  static constexpr auto body(auto x, auto y) { return math::remainder(x, y); }
} remainder{};

/// modulo(x, y): the remainder of division that rounds down, with the sign of y. For integers it is 0 if y is 0.
inline constexpr struct modulo : elementwise_kind<modulo, 2> {
  static constexpr char name[] = "modulo";
  static constexpr auto body(auto x, auto y) {
    const auto rest = math::remainder(x, y);
    return math::select(rest == 0.0 || (rest < 0.0) == (y < 0.0), rest, rest + y);
  }
} modulo{};

}  // namespace ops
}  // namespace collage::inline v0
