// Elementwise kinds of every name: interprets their traced bodies.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <collage/backends/impl/reference_loops.hpp>
#include <collage/dtype.hpp>
#include <collage/error.hpp>
#include <collage/op/body.hpp>
#include <collage/op/cast.hpp>
#include <collage/op/kind.hpp>
#include <collage/run/elements.hpp>
#include <collage/shape.hpp>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

namespace collage::inline v0::detail {

/// Arithmetic of the floating-point types, for the interpreter.
struct real_arithmetic {
  using element = double;
  static double add(double x, double y) { return x + y; }
  static double subtract(double x, double y) { return x - y; }
  static double multiply(double x, double y) { return x * y; }
  static double divide(double x, double y) { return x / y; }
  static double minimum(double x, double y) { return x < y || x != x ? x : y; }
  static double maximum(double x, double y) { return x > y || x != x ? x : y; }
  static double remainder(double x, double y) { return std::fmod(x, y); }
  static double power(double x, double y) { return std::pow(x, y); }
  static double negate(double x) { return -x; }
  static double absolute(double x) { return std::abs(x); }
  static bool less(double x, double y) { return x < y; }
  static double real(double x) { return x; }
  static double from_real(double x) { return x; }
};

/// Interprets a body over blocks of elements, one instruction for the whole block at a time.
template <class Arithmetic>
class body_interpreter {
 public:
  using element = typename Arithmetic::element;
  static constexpr std::int64_t block = 256;

  body_interpreter(const traced_body& body, std::span<const std::uint64_t> words)
      : body_(&body), memory_(static_cast<std::size_t>(body.size * block)) {
    for (std::uint32_t i = 0; i < body.size; ++i) {
      const instruction& code = body.code[i];
      const double value = code.code == opcode::attribute ? __builtin_bit_cast(double, words[code.a]) : code.value;
      if (code.code == opcode::attribute || code.code == opcode::constant)
        std::fill_n(memory_.data() + i * block, block, Arithmetic::from_real(value));
    }
  }

  /// Computes `count` <= block elements; operand k is read from in[k], each a step[k] further.
  void run(std::int64_t count, const element* const* in, const std::int64_t* step, element* out) {
    for (std::uint32_t i = 0; i < body_->size; ++i) {
      const instruction& code = body_->code[i];
      element* const to = i + 1 == body_->size ? out : memory_.data() + i * block;
      value_[i] = to;
      count_ = count;
      switch (code.code) {
        case opcode::input: read(in[code.a], step[code.a], i, to); break;
        case opcode::attribute:
        case opcode::constant:
          value_[i] = memory_.data() + i * block;
          if (to == out) std::copy_n(value_[i], count, out);
          break;
        case opcode::add: binary(code, to, Arithmetic::add); break;
        case opcode::subtract: binary(code, to, Arithmetic::subtract); break;
        case opcode::multiply: binary(code, to, Arithmetic::multiply); break;
        case opcode::divide: binary(code, to, Arithmetic::divide); break;
        case opcode::minimum: binary(code, to, Arithmetic::minimum); break;
        case opcode::maximum: binary(code, to, Arithmetic::maximum); break;
        case opcode::remainder: binary(code, to, Arithmetic::remainder); break;
        case opcode::power: binary(code, to, Arithmetic::power); break;
        case opcode::negate: unary(code, to, Arithmetic::negate); break;
        case opcode::absolute: unary(code, to, Arithmetic::absolute); break;
        case opcode::exponential: real(code, to, [](double x) { return std::exp(x); }); break;
        case opcode::logarithm: real(code, to, [](double x) { return std::log(x); }); break;
        case opcode::square_root: real(code, to, [](double x) { return std::sqrt(x); }); break;
        case opcode::sine: real(code, to, [](double x) { return std::sin(x); }); break;
        case opcode::cosine: real(code, to, [](double x) { return std::cos(x); }); break;
        case opcode::tangent: real(code, to, [](double x) { return std::tan(x); }); break;
        case opcode::arc_sine: real(code, to, [](double x) { return std::asin(x); }); break;
        case opcode::arc_cosine: real(code, to, [](double x) { return std::acos(x); }); break;
        case opcode::arc_tangent: real(code, to, [](double x) { return std::atan(x); }); break;
        case opcode::sine_hyperbolic: real(code, to, [](double x) { return std::sinh(x); }); break;
        case opcode::cosine_hyperbolic: real(code, to, [](double x) { return std::cosh(x); }); break;
        case opcode::tangent_hyperbolic: real(code, to, [](double x) { return std::tanh(x); }); break;
        case opcode::area_sine_hyperbolic: real(code, to, [](double x) { return std::asinh(x); }); break;
        case opcode::area_cosine_hyperbolic: real(code, to, [](double x) { return std::acosh(x); }); break;
        case opcode::area_tangent_hyperbolic: real(code, to, [](double x) { return std::atanh(x); }); break;
        case opcode::error_function: real(code, to, [](double x) { return std::erf(x); }); break;
        // Integers are whole already, and the large ones are no doubles.
        case opcode::floor: rounding(code, to, [](double x) { return std::floor(x); }); break;
        case opcode::ceiling: rounding(code, to, [](double x) { return std::ceil(x); }); break;
        case opcode::round_to_even: rounding(code, to, [](double x) { return std::nearbyint(x); }); break;
        case opcode::less: binary(code, to, [](element x, element y) { return truth(Arithmetic::less(x, y)); }); break;
        case opcode::equal: binary(code, to, [](element x, element y) { return truth(x == y); }); break;
        case opcode::logical_not: unary(code, to, [](element x) { return truth(!(x != 0)); }); break;
        case opcode::logical_and: binary(code, to, [](element x, element y) { return truth(x != 0 && y != 0); }); break;
        case opcode::logical_or: binary(code, to, [](element x, element y) { return truth(x != 0 || y != 0); }); break;
        case opcode::bitwise_and:
        case opcode::bitwise_or:
        case opcode::bitwise_xor:
        case opcode::bitwise_not:
        case opcode::shift_left:
        case opcode::shift_right: bits(code, to); break;
        case opcode::select:
          for (std::int64_t e = 0; e < count; ++e)
            to[e] = value_[code.a][e] != 0 ? value_[code.b][e] : value_[code.c][e];
          break;
      }
    }
  }

 private:
  static element truth(bool holds) { return holds ? element{1} : element{0}; }

  void read(const element* in, std::int64_t step, std::uint32_t i, element* to) {
    if (step == 1 && i + 1 != body_->size) value_[i] = in;  // read in place
    else
      for (std::int64_t e = 0; e < count_; ++e) to[e] = in[e * step];
  }
  template <class F>
  void unary(const instruction& code, element* to, const F& f) const {
    for (std::int64_t e = 0; e < count_; ++e) to[e] = f(value_[code.a][e]);
  }
  template <class F>
  void binary(const instruction& code, element* to, const F& f) const {
    for (std::int64_t e = 0; e < count_; ++e) to[e] = f(value_[code.a][e], value_[code.b][e]);
  }
  template <class F>
  void real(const instruction& code, element* to, const F& f) const {
    unary(code, to, [&](element x) { return Arithmetic::from_real(f(Arithmetic::real(x))); });
  }
  void bits(const instruction& code, element* to) const {
    if constexpr (std::is_same_v<element, double>) {
      throw error(error_kind::unsupported, "bitwise operators need integer operands", "reference");
    } else {
      switch (code.code) {
        case opcode::bitwise_and: return binary(code, to, [](element x, element y) { return x & y; });
        case opcode::bitwise_or: return binary(code, to, [](element x, element y) { return x | y; });
        case opcode::bitwise_xor: return binary(code, to, [](element x, element y) { return x ^ y; });
        case opcode::bitwise_not: return unary(code, to, Arithmetic::bitwise_not);
        case opcode::shift_left: return binary(code, to, Arithmetic::shift_left);
        default: return binary(code, to, Arithmetic::shift_right);
      }
    }
  }
  template <class F>
  void rounding(const instruction& code, element* to, const F& f) const {
    if constexpr (std::is_same_v<element, double>) unary(code, to, f);
    else std::copy_n(value_[code.a], count_, to);
  }

  const traced_body* body_;
  std::vector<element> memory_;
  std::array<const element*, traced_body::max_size> value_{};
  std::int64_t count_ = 0;
};

/// A double as a number of the floating-point type that a cast has.
inline double rounded_to(const ops::cast_attributes& how, double x) {
  if (is_small(how.to)) return decode_small(how.to, encode_small(how.to, x, how.saturate, how.rounding));
  switch (how.to) {
    case dtype::f32: return static_cast<float>(x);
    case dtype::f16: return half::widen(half::narrow(x));
    case dtype::bf16: return brain_float::widen(brain_float::narrow(x));
    default: return x;
  }
}

/// Elements in the type that a body was computed in, as elements of another type: what `cast` does.
template <class Arithmetic>
void convert_elements(std::span<const typename Arithmetic::element> from, const reference_tensor& to, std::size_t first,
                      const ops::cast_attributes& how) {
  const dtype type = to.type.type;
  if (is_floating(type)) {
    for (std::size_t i = 0; i < from.size(); ++i) to.real[first + i] = rounded_to(how, Arithmetic::real(from[i]));
  } else if (is_small(type)) {
    for (std::size_t i = 0; i < from.size(); ++i) {
      std::int64_t whole = 0;
      if constexpr (std::is_same_v<Arithmetic, real_arithmetic>)
        whole = integer_arithmetic<std::int64_t>::from_real(from[i]);
      else whole = from[i];
      to.integer[first + i] = wrap_small(type, whole);
    }
  } else if (type == dtype::boolean) {
    for (std::size_t i = 0; i < from.size(); ++i) to.integer[first + i] = from[i] != 0 ? 1 : 0;
  } else {
    with_integer_type(type, [&](auto zero) {
      using arithmetic = integer_arithmetic<decltype(zero)>;
      for (std::size_t i = 0; i < from.size(); ++i) {
        if constexpr (std::is_same_v<Arithmetic, real_arithmetic>)
          to.integer[first + i] = arithmetic::from_real(from[i]);
        else to.integer[first + i] = arithmetic::wrap(arithmetic::bits(from[i]));
      }
    });
  }
}

template <class Arithmetic>
void run_body(const traced_body& body, std::span<const std::uint64_t> words, const reference_call& call) {
  using element = typename Arithmetic::element;
  constexpr std::int64_t block = body_interpreter<Arithmetic>::block;
  const reference_tensor& result = call.out[0];
  const dtype computed = call.in.back().type.type;
  const shape& dims = result.type.dims;
  std::vector<shape> steps;
  for (const reference_tensor& t : call.in) steps.push_back(broadcast_steps(t.type.dims, dims));
  ops::cast_attributes how{.to = result.type.type};
  if (is_small_real(how.to) && to_words(how).size == words.size()) how = from_words<ops::cast_attributes>(words);
  const walk operands(dims, steps);
  parallel_for(operands.size(), elements_per_part, [&](std::int64_t first, std::int64_t last) {
    body_interpreter<Arithmetic> interpreter(body, words);
    walk own = operands;
    std::vector<const element*> in(call.in.size());
    std::vector<std::int64_t> step(call.in.size());
    std::vector<std::vector<element>> conditions(call.in.size());  // of operands that are held as another type
    std::vector<element> unconverted(result.type.type == computed ? 0 : static_cast<std::size_t>(block));
    for (std::size_t k = 0; k < call.in.size(); ++k) {
      if (is_floating(call.in[k].type.type) != is_floating(computed))
        conditions[k].resize(static_cast<std::size_t>(block));
      step[k] = conditions[k].empty() ? own.step(k) : 1;
    }
    own.visit(first, last, [&](std::int64_t at, std::int64_t count, const std::int64_t* offsets) {
      for (std::int64_t done = 0; done < count;) {
        const std::int64_t part = std::min(count - done, block);
        for (std::size_t k = 0; k < in.size(); ++k) {
          const std::int64_t from = offsets[k] + done * own.step(k);
          in[k] = conditions[k].empty() ? elements_of<element>(call.in[k]).data() + from : conditions[k].data();
          for (std::size_t e = 0; !conditions[k].empty() && e < static_cast<std::size_t>(part); ++e)
            conditions[k][e] = static_cast<element>(
                call.in[k].integer[static_cast<std::size_t>(from + static_cast<std::int64_t>(e) * own.step(k))]);
        }
        if (unconverted.empty()) {
          interpreter.run(part, in.data(), step.data(), elements_of<element>(result).data() + at + done);
        } else {
          interpreter.run(part, in.data(), step.data(), unconverted.data());
          convert_elements<Arithmetic>(std::span<const element>(unconverted).first(static_cast<std::size_t>(part)),
                                       result, static_cast<std::size_t>(at + done), how);
        }
        done += part;
      }
    });
  });
}

/// Evaluates an elementwise kind in the type of its last operand; others may be conditions. Floating-point types follow
/// IEEE 754, minimum and maximum propagating NaN; integers wrap around after every instruction, divide toward zero, and
/// by zero to 0.
inline void run_body(const traced_body& body, std::span<const std::uint64_t> words, const reference_call& call) {
  const dtype computed = call.in.back().type.type;
  if (is_floating(computed)) return run_body<real_arithmetic>(body, words, call);
  with_integer_type(computed, [&](auto zero) { run_body<integer_arithmetic<decltype(zero)>>(body, words, call); });
}

}  // namespace collage::inline v0::detail
