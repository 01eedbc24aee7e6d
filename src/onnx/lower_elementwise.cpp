// Arithmetic, functions, activations, comparisons, logic and conversions: one element of the output from one of each
// operand.
#include "importer.hpp"
#include "rules.hpp"

#include <collage/detail/small_types.hpp>
#include <collage/op/activation.hpp>
#include <collage/op/bitwise.hpp>
#include <collage/op/cast.hpp>
#include <collage/op/comparison.hpp>
#include <collage/op/elementwise.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

namespace collage::inline v0::onnx {
namespace {

// ONNX operators that become one operator of collage -----------------------------------------------------------------

template <const auto& Kind>
void lower_one_operand(lowering& n) {
  n.result(0, n(Kind, n.operand(0)));
}
template <const auto& Kind>
void lower_two_operands(lowering& n) {
  n.result(0, n(Kind, n.operand(0), n.operand(1)));
}

/// Any number of operands, joined one after the other.
template <const auto& Kind>
value joined(lowering& n) {
  value y = n.operand(0);
  for (std::size_t i = 1; i < n.operands(); ++i) y = n(Kind, y, n.operand(i));
  return y;
}
template <const auto& Kind>
void lower_several_operands(lowering& n) {
  n.result(0, joined<Kind>(n));
}

void lower_mean(lowering& n) {
  const value sum = joined<ops::add>(n);
  n.result(0, n(ops::div, sum, n.scalar(static_cast<double>(n.operands()), n.element_type_of(sum))));
}

void lower_where(lowering& n) { n.result(0, n(ops::where, n.operand(0), n.operand(1), n.operand(2))); }

// Activations --------------------------------------------------------------------------------------------------------

void lower_elu(lowering& n) { n.result(0, n(ops::elu, n.operand(0), {.alpha = n.real("alpha", 1.0)})); }
void lower_leaky_relu(lowering& n) { n.result(0, n(ops::leaky_relu, n.operand(0), {.alpha = n.real("alpha", 0.01)})); }
void lower_thresholded_relu(lowering& n) {
  n.result(0, n(ops::thresholded_relu, n.operand(0), {.alpha = n.real("alpha", 1.0)}));
}
void lower_selu(lowering& n) {
  const ops::selu_attributes usual;
  n.result(0,
           n(ops::selu, n.operand(0), {.alpha = n.real("alpha", usual.alpha), .gamma = n.real("gamma", usual.gamma)}));
}
void lower_hard_sigmoid(lowering& n) {
  n.result(0, n(ops::hard_sigmoid, n.operand(0), {.alpha = n.real("alpha", 0.2), .beta = n.real("beta", 0.5)}));
}
void lower_celu(lowering& n) {
  const double alpha = n.real("alpha", 1.0);
  if (alpha == 0) n.invalid("its alpha is 0, which it divides by");
  n.result(0, n(ops::celu, n.operand(0), {.alpha = alpha}));
}

void lower_shrink(lowering& n) {
  const value x = n.operand(0);
  const ops::shrink_attributes attributes{.bias = n.real("bias", 0.0), .lambda = n.real("lambd", 0.5)};
  // The attributes are no integers, whatever x is.
  const dtype type = n.element_type_of(x);
  const value y = n(ops::shrink, n.cast(x, is_floating(type) ? type : dtype::f64), attributes);
  n.result(0, n.cast(y, type));
}

void lower_prelu(lowering& n) {
  const value x = n.operand(0), slope = n.operand(1);
  bool fits = true;
  if (!(detail::broadcast(n.dims_of(x), n.dims_of(slope), fits) == n.dims_of(x)) || !fits)
    n.invalid("its slope must broadcast to the shape of its input");
  n.result(0, n(ops::prelu, x, slope));
}

/// The chain that exporters write, so that patterns of it find the operator too.
value gelu(lowering& n, value x) {
  const auto number = [&, type = n.element_type_of(x)](double v) { return n.scalar(v, type); };
  const value probability = n(ops::add, n(ops::erf, n(ops::div, x, number(std::sqrt(2.0)))), number(1.0));
  return n(ops::mul, x, n(ops::mul, probability, number(0.5)));
}
void lower_gelu(lowering& n) {
  const std::string approximate = n.text("approximate", "none");
  if (approximate != "none" && approximate != "tanh")
    n.invalid("its approximate is \"" + approximate + "\", and must be none or tanh");
  n.result(0, approximate == "tanh" ? n(ops::gelu_tanh, n.operand(0)) : gelu(n, n.operand(0)));
}
void lower_bias_gelu(lowering& n) { n.result(0, gelu(n, n(ops::add, n.operand(0), n.operand(1)))); }
void lower_fast_gelu(lowering& n) {
  const value x = n.operand(0);
  n.result(0, n(ops::gelu_tanh, n.has(1) ? n(ops::add, x, n.operand(1)) : x));
}

/// x * sigmoid(alpha x).
void lower_swish(lowering& n, double alpha) {
  const value x = n.operand(0);
  const value scaled = alpha == 1.0 ? x : n(ops::mul, x, n.scalar(alpha, n.element_type_of(x)));
  n.result(0, n(ops::mul, x, n(ops::sigmoid, scaled)));
}
void lower_swish(lowering& n) { lower_swish(n, n.real("alpha", 1.0)); }
void lower_quick_gelu(lowering& n) { lower_swish(n, n.real("alpha", 1.702)); }

/// The highest finite number of a floating-point type; 0 for other types.
double most_of(dtype type) {
  switch (type) {
    case dtype::f64: return std::numeric_limits<double>::max();
    case dtype::f32: return static_cast<double>(std::numeric_limits<float>::max());
    case dtype::f16: return 65504;
    case dtype::bf16: return 0x1.fep127;
    default: return 0;
  }
}

/// Limits are attributes before version 11 and operands since; each may be left out. By ONNX, a limit left out is the lowest or
/// highest finite number of the type, so infinities become finite.
void lower_clip(lowering& n) {
  const value x = n.operand(0);
  const dtype type = n.element_type_of(x);
  const auto limit = [&](const char* name, std::size_t operand) -> std::optional<value> {
    if (n.opset() < 11) {
      if (!n.has_attribute(name)) return std::nullopt;
      return n.scalar(n.real(name, 0), type);
    }
    if (!n.has(operand)) return std::nullopt;
    const value v = n.operand(operand);
    if (n.dims_of(v).elements() != 1) n.invalid(std::string("its limit ") + name + " must be one number");
    return n.reshape(v, {});
  };
  const std::optional<value> low = limit("min", 1), high = limit("max", 2);
  if (const double most = most_of(type); most > 0)
    return n.result(0, n(ops::clip, x, low ? *low : n.scalar(-most, type), high ? *high : n.scalar(most, type)));
  if (low && high) n.result(0, n(ops::clip, x, *low, *high));
  else n.result(0, low ? n(ops::max, x, *low) : high ? n(ops::min, x, *high) : x);
}

// Arithmetic ---------------------------------------------------------------------------------------------------------

/// The exponent may have a type of its own; the result has the base's.
void lower_pow(lowering& n) {
  const value x = n.operand(0), exponent = n.operand(1);
  const dtype type = n.element_type_of(x), other = n.element_type_of(exponent);
  const bool is_one = n.dims_of(exponent).elements() == 1 && n.rank_of(exponent) <= n.rank_of(x);
  if (is_one && n.is_known(exponent) && n.number_of(1, "its exponent") == 2.0) return n.result(0, n(ops::mul, x, x));
  // A type in which both have their values: of two kinds of integers the wide one, as it wraps around like the narrow.
  dtype common = type;
  if (other != type) {
    if (!is_floating(type) && !is_floating(other)) common = dtype::i64;
    else if (!is_floating(type) || other == dtype::f64) common = dtype::f64;
    else if (other == dtype::f32) common = type == dtype::f64 ? dtype::f64 : dtype::f32;
  }
  n.result(0, n.cast(n(ops::pow, n.cast(x, common), n.cast(exponent, common)), type));
}

void lower_mod(lowering& n) {
  const value x = n.operand(0), y = n.operand(1);
  n.result(0, n.integer("fmod", 0) != 0 ? n(ops::remainder, x, y) : n(ops::modulo, x, y));
}

void lower_bit_shift(lowering& n) {
  const std::string direction = n.text("direction", "");
  if (direction != "LEFT" && direction != "RIGHT") n.invalid("its direction must be LEFT or RIGHT");
  const value x = n.operand(0), count = n.operand(1);
  n.result(0, direction == "LEFT" ? n(ops::shift_left, x, count) : n(ops::shift_right, x, count));
}

void lower_is_inf(lowering& n) {
  const value x = n.operand(0);
  const bool negative = n.integer("detect_negative", 1) != 0;
  const bool positive = n.integer("detect_positive", 1) != 0;
  if (negative && positive) return n.result(0, n(ops::is_infinite, x));
  if (!negative && !positive) return n.result(0, n.filled({dtype::boolean, n.dims_of(x)}, 0));
  const double infinity = std::numeric_limits<double>::infinity();
  n.result(0, n(ops::equal, x, n.scalar(positive ? infinity : -infinity, n.element_type_of(x))));
}

// Conversions --------------------------------------------------------------------------------------------------------

/// The element type that the attribute `to` names.
dtype target_type(lowering& n) {
  if (!n.has_attribute("to")) n.invalid("it lacks the attribute to");
  const std::int64_t number = n.integer("to", 0);
  const bool is_number = number >= 0 && number <= std::numeric_limits<int>::max();
  const std::optional<dtype> type = is_number ? element_type_of(static_cast<int>(number)) : std::nullopt;
  if (!is_number) n.invalid("there is no element type " + std::to_string(number));
  if (!type) n.unsupported("a cast to " + element_type_name(static_cast<int>(number)));
  return *type;
}

/// The attributes `saturate` and `round_mode` are about small floating-point types.
void lower_cast_to(lowering& n, dtype to) {
  const value x = n.operand(0);
  if (!collage::detail::is_small_real(to) || n.element_type_of(x) == to) return n.result(0, n.cast(x, to));
  const std::string mode = n.text("round_mode", "up");
  if (mode != "up" && mode != "down" && mode != "nearest")
    n.invalid("its round_mode is \"" + mode + "\", and must be up, down or nearest");
  const power_rounding rounding = mode == "up"     ? power_rounding::up
                                  : mode == "down" ? power_rounding::down
                                                   : power_rounding::nearest;
  n.result(0, n(ops::cast, x, {.to = to, .saturate = n.integer("saturate", 1) != 0, .rounding = rounding}));
}
void lower_cast(lowering& n) { lower_cast_to(n, target_type(n)); }
void lower_cast_like(lowering& n) { lower_cast_to(n, n.element_type_of(n.operand(1))); }

/// The same bits as another type. Between integers of one size that is a cast, because casts wrap around.
void lower_bit_cast(lowering& n) {
  const value x = n.operand(0);
  const dtype from = n.element_type_of(x), to = target_type(n);
  if (bits_of(from) != bits_of(to)) n.invalid("its two element types differ in size");
  if (from == to || (!is_floating(from) && !is_floating(to))) return n.result(0, n.cast(x, to));
  (void)n.contents_of(0, "the number whose bits it reads as another type");
  n.result(0, n.constant(tensor_type{to, n.dims_of(x)}, n.driver().builder().contents_of(x).bytes));
}

constexpr const char* microsoft = "com.microsoft";

constexpr lowering_rule elementwise_lowerings[] = {
    {"", "Abs", lower_one_operand<ops::abs>},
    {"", "Acos", lower_one_operand<ops::acos>},
    {"", "Acosh", lower_one_operand<ops::acosh>},
    {"", "Add", lower_two_operands<ops::add>},
    {"", "And", lower_two_operands<ops::logical_and>},
    {"", "Asin", lower_one_operand<ops::asin>},
    {"", "Asinh", lower_one_operand<ops::asinh>},
    {"", "Atan", lower_one_operand<ops::atan>},
    {"", "Atanh", lower_one_operand<ops::atanh>},
    {"", "BitCast", lower_bit_cast},
    {"", "BitShift", lower_bit_shift},
    {"", "BitwiseAnd", lower_two_operands<ops::bitwise_and>},
    {"", "BitwiseNot", lower_one_operand<ops::bitwise_not>},
    {"", "BitwiseOr", lower_two_operands<ops::bitwise_or>},
    {"", "BitwiseXor", lower_two_operands<ops::bitwise_xor>},
    {"", "Cast", lower_cast},
    {"", "CastLike", lower_cast_like},
    {"", "Ceil", lower_one_operand<ops::ceil>},
    {"", "Celu", lower_celu},
    {"", "Clip", lower_clip},
    {"", "Cos", lower_one_operand<ops::cos>},
    {"", "Cosh", lower_one_operand<ops::cosh>},
    {"", "Div", lower_two_operands<ops::div>},
    {"", "Elu", lower_elu},
    {"", "Equal", lower_two_operands<ops::equal>},
    {"", "Erf", lower_one_operand<ops::erf>},
    {"", "Exp", lower_one_operand<ops::exp>},
    {"", "Floor", lower_one_operand<ops::floor>},
    {"", "Gelu", lower_gelu},
    {"", "Greater", lower_two_operands<ops::greater>},
    {"", "GreaterOrEqual", lower_two_operands<ops::greater_equal>},
    {"", "HardSigmoid", lower_hard_sigmoid},
    {"", "HardSwish", lower_one_operand<ops::hard_swish>},
    {"", "IsInf", lower_is_inf},
    {"", "IsNaN", lower_one_operand<ops::is_nan>},
    {"", "LeakyRelu", lower_leaky_relu},
    {"", "Less", lower_two_operands<ops::less>},
    {"", "LessOrEqual", lower_two_operands<ops::less_equal>},
    {"", "Log", lower_one_operand<ops::log>},
    {"", "Max", lower_several_operands<ops::max>},
    {"", "Mean", lower_mean},
    {"", "Min", lower_several_operands<ops::min>},
    {"", "Mish", lower_one_operand<ops::mish>},
    {"", "Mod", lower_mod},
    {"", "Mul", lower_two_operands<ops::mul>},
    {"", "Neg", lower_one_operand<ops::neg>},
    {"", "Not", lower_one_operand<ops::logical_not>},
    {"", "Or", lower_two_operands<ops::logical_or>},
    {"", "PRelu", lower_prelu},
    {"", "Pow", lower_pow},
    {"", "Reciprocal", lower_one_operand<ops::reciprocal>},
    {"", "Relu", lower_one_operand<ops::relu>},
    {"", "Round", lower_one_operand<ops::round>},
    {"", "Selu", lower_selu},
    {"", "Shrink", lower_shrink},
    {"", "Sigmoid", lower_one_operand<ops::sigmoid>},
    {"", "Sign", lower_one_operand<ops::sign>},
    {"", "Sin", lower_one_operand<ops::sin>},
    {"", "Sinh", lower_one_operand<ops::sinh>},
    {"", "Softplus", lower_one_operand<ops::softplus>},
    {"", "Softsign", lower_one_operand<ops::softsign>},
    {"", "Sqrt", lower_one_operand<ops::sqrt>},
    {"", "Sub", lower_two_operands<ops::sub>},
    {"", "Sum", lower_several_operands<ops::add>},
    {"", "Swish", lower_swish},
    {"", "Tan", lower_one_operand<ops::tan>},
    {"", "Tanh", lower_one_operand<ops::tanh>},
    {"", "ThresholdedRelu", lower_thresholded_relu},
    {"", "Where", lower_where},
    {"", "Xor", lower_two_operands<ops::logical_xor>},
    {microsoft, "BiasGelu", lower_bias_gelu},
    {microsoft, "FastGelu", lower_fast_gelu},
    {microsoft, "Gelu", lower_gelu},
    {microsoft, "QuickGelu", lower_quick_gelu},
};

}  // namespace

std::span<const lowering_rule> elementwise_rules() { return elementwise_lowerings; }

}  // namespace collage::inline v0::onnx
