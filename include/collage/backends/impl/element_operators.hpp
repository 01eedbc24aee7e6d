// Runs instructions of elementwise bodies over blocks of elements, in the type of the elements.
#pragma once

#include <algorithm>
#include <cmath>
#include <collage/backends/impl/element_blocks.hpp>
#include <collage/op/body.hpp>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace collage::inline v0::detail::host {
namespace {

/// A block of elements, or one number for all of them (`data` is null).
template <class T>
struct block_operand {
  const T* data = nullptr;
  T number{};
};

// Loops over blocks. A result may lie exactly on an operand, but may not overlap it otherwise. `omp simd` promises that to the
// compiler, which would otherwise check for overlap and not vectorize. Each f is a function object with a type of its own. A
// loop shared by several functions would call them one element at a time.
template <class T, class F>
void for_block(std::int64_t count, T* to, const block_operand<T>& a, const F& f) {
  if (a.data == nullptr) return void(std::fill_n(to, count, f(a.number)));
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) to[i] = f(a.data[i]);
}
template <class T, class F>
void for_block(std::int64_t count, T* to, const block_operand<T>& a, const block_operand<T>& b, const F& f) {
  if (a.data != nullptr && b.data != nullptr) {
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) to[i] = f(a.data[i], b.data[i]);
  } else if (a.data != nullptr) {
    const T y = b.number;
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) to[i] = f(a.data[i], y);
  } else if (b.data != nullptr) {
    const T x = a.number;
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) to[i] = f(x, b.data[i]);
  } else {
    std::fill_n(to, count, f(a.number, b.number));
  }
}

/// Computes element by element, for operations without vector instructions.
template <class T, class F>
void for_each_element(std::int64_t count, T* to, const block_operand<T>& a, const block_operand<T>& b, const F& f) {
  for (std::int64_t i = 0; i < count; ++i)
    to[i] = f(a.data != nullptr ? a.data[i] : a.number, b.data != nullptr ? b.data[i] : b.number);
}

/// The operators on one element, by IEEE 754. Minimum and maximum return NaN if an operand is NaN.
template <class T>
struct element_operators {
  static T add(T x, T y) { return x + y; }
  static T subtract(T x, T y) { return x - y; }
  static T multiply(T x, T y) { return x * y; }
  static T divide(T x, T y) { return x / y; }
  static T remainder(T x, T y) { return std::fmod(x, y); }
  static T power(T x, T y) { return std::pow(x, y); }
  static T negate(T x) { return -x; }
  static T absolute(T x) { return std::abs(x); }
  static T maximum(T x, T y) { return x > y || x != x ? x : y; }
  static T minimum(T x, T y) { return x < y || x != x ? x : y; }
};

/// Integers and booleans wrap around after every operation. Division truncates toward zero; division by zero is 0.
template <class T>
  requires std::is_integral_v<T>
struct element_operators<T> {
  using word = std::conditional_t<sizeof(T) <= sizeof(std::uint32_t), std::uint32_t, std::uint64_t>;
  static constexpr bool is_signed = std::is_signed_v<T>;
  static word bits(T x) { return static_cast<word>(x); }

  static T add(T x, T y) { return static_cast<T>(bits(x) + bits(y)); }
  static T subtract(T x, T y) { return static_cast<T>(bits(x) - bits(y)); }
  static T multiply(T x, T y) { return static_cast<T>(bits(x) * bits(y)); }
  static T divide(T x, T y) {
    if (y == T{}) return T{};
    if constexpr (is_signed)
      if (y == -1) return negate(x);
    return static_cast<T>(x / y);
  }
  static T remainder(T x, T y) {
    if (y == T{}) return T{};
    if constexpr (is_signed)
      if (y == -1) return T{};
    return static_cast<T>(x % y);
  }
  /// By repeated squaring. For a negative exponent the power is truncated toward zero; for the base 0 it is 0.
  static T power(T x, T y) {
    if constexpr (is_signed)
      if (y < 0) return x == 1 ? T{1} : x == -1 ? static_cast<T>(y % 2 == 0 ? 1 : -1) : T{};
    T result{1};
    for (word rest = bits(y); rest != 0; rest >>= 1U) {
      if ((rest & 1U) != 0) result = multiply(result, x);
      x = multiply(x, x);
    }
    return result;
  }
  static T negate(T x) { return static_cast<T>(word{} - bits(x)); }
  static T absolute(T x) { return x < T{} ? negate(x) : x; }
  static T maximum(T x, T y) { return x < y ? y : x; }
  static T minimum(T x, T y) { return y < x ? y : x; }
  static T bitwise_not(T x) { return static_cast<T>(~bits(x)); }
  static bool is_within(T count) { return std::uint64_t{bits(count)} < 8 * sizeof(T); }
  static T shift_left(T x, T count) { return is_within(count) ? static_cast<T>(bits(x) << bits(count)) : T{}; }
  static T shift_right(T x, T count) {
    return is_within(count) ? static_cast<T>(x >> bits(count)) : static_cast<T>(x < T{} ? -1 : 0);
  }
};

/// Calls f with the function of one argument for which an instruction stands. Does nothing for other instructions.
template <class F>
void with_function(opcode code, const F& f) {
  switch (code) {
    case opcode::exponential: return f([](auto x) { return std::exp(x); });
    case opcode::logarithm: return f([](auto x) { return std::log(x); });
    case opcode::square_root: return f([](auto x) { return std::sqrt(x); });
    case opcode::sine: return f([](auto x) { return std::sin(x); });
    case opcode::cosine: return f([](auto x) { return std::cos(x); });
    case opcode::tangent: return f([](auto x) { return std::tan(x); });
    case opcode::arc_sine: return f([](auto x) { return std::asin(x); });
    case opcode::arc_cosine: return f([](auto x) { return std::acos(x); });
    case opcode::arc_tangent: return f([](auto x) { return std::atan(x); });
    case opcode::sine_hyperbolic: return f([](auto x) { return std::sinh(x); });
    case opcode::cosine_hyperbolic: return f([](auto x) { return std::cosh(x); });
    case opcode::tangent_hyperbolic: return f([](auto x) { return std::tanh(x); });
    case opcode::area_sine_hyperbolic: return f([](auto x) { return std::asinh(x); });
    case opcode::area_cosine_hyperbolic: return f([](auto x) { return std::acosh(x); });
    case opcode::area_tangent_hyperbolic: return f([](auto x) { return std::atanh(x); });
    case opcode::error_function: return f([](auto x) { return std::erf(x); });
    case opcode::floor: return f([](auto x) { return std::floor(x); });
    case opcode::ceiling: return f([](auto x) { return std::ceil(x); });
    case opcode::round_to_even: return f([](auto x) { return std::nearbyint(x); });
    default: return;
  }
}

/// For kernels that never run a function beyond arithmetic.
struct plain_math {
  static constexpr bool has_functions = false;
};

/// The functions of the C++ library. Floating-point numbers are computed in their type, integers in double.
struct standard_math {
  static constexpr bool has_functions = true;

  template <class T>
  static void run(opcode code, std::int64_t n, T* to, const block_operand<T>& a, const block_operand<T>& b) {
    using op = element_operators<T>;
    if (code == opcode::power) return for_each_element(n, to, a, b, [](T x, T y) { return op::power(x, y); });
    if (code == opcode::remainder) return for_each_element(n, to, a, b, [](T x, T y) { return op::remainder(x, y); });
    const bool rounds = code == opcode::floor || code == opcode::ceiling || code == opcode::round_to_even;
    if (std::is_integral_v<T> && rounds)
      return for_block(n, to, a, [](T x) { return x; });  // a large integer is not exact as a double
    with_function(code, [&](const auto& function) {
      if constexpr (std::is_floating_point_v<T>) for_block(n, to, a, function);
      else for_each_element(n, to, a, a, [&](T x, T) { return from_real<T>(function(static_cast<double>(x))); });
    });
  }
};

/// Bitwise instructions on integers.
template <class T>
void run_bits(opcode code, std::int64_t n, T* to, const block_operand<T>& a, const block_operand<T>& b) {
  using op = element_operators<T>;
  switch (code) {
    case opcode::bitwise_and: return for_block(n, to, a, b, [](T x, T y) { return static_cast<T>(x & y); });
    case opcode::bitwise_or: return for_block(n, to, a, b, [](T x, T y) { return static_cast<T>(x | y); });
    case opcode::bitwise_xor: return for_block(n, to, a, b, [](T x, T y) { return static_cast<T>(x ^ y); });
    case opcode::bitwise_not: return for_block(n, to, a, [](T x) { return op::bitwise_not(x); });
    case opcode::shift_left: return for_block(n, to, a, b, [](T x, T y) { return op::shift_left(x, y); });
    case opcode::shift_right: return for_block(n, to, a, b, [](T x, T y) { return op::shift_right(x, y); });
    default: return;
  }
}

/// Runs one instruction over one block. `Math` says whether and how functions are computed.
template <class Math, class T>
void run_instruction(opcode code, std::int64_t n, T* to, const block_operand<T>& a, const block_operand<T>& b,
                     const block_operand<T>& c) {
  using op = element_operators<T>;
  const auto truth = [](bool holds) { return static_cast<T>(holds); };
  switch (code) {
    case opcode::add: return for_block(n, to, a, b, [](T x, T y) { return op::add(x, y); });
    case opcode::subtract: return for_block(n, to, a, b, [](T x, T y) { return op::subtract(x, y); });
    case opcode::multiply: return for_block(n, to, a, b, [](T x, T y) { return op::multiply(x, y); });
    case opcode::divide:
      if constexpr (std::is_integral_v<T>)
        return for_each_element(n, to, a, b, [](T x, T y) { return op::divide(x, y); });
      else return for_block(n, to, a, b, [](T x, T y) { return op::divide(x, y); });
    case opcode::minimum: return for_block(n, to, a, b, [](T x, T y) { return op::minimum(x, y); });
    case opcode::maximum: return for_block(n, to, a, b, [](T x, T y) { return op::maximum(x, y); });
    case opcode::negate: return for_block(n, to, a, [](T x) { return op::negate(x); });
    case opcode::absolute: return for_block(n, to, a, [](T x) { return op::absolute(x); });
    case opcode::square_root:
      if constexpr (std::is_floating_point_v<T>) return for_block(n, to, a, [](T x) { return std::sqrt(x); });
      break;
    case opcode::less: return for_block(n, to, a, b, [&](T x, T y) { return truth(x < y); });
    case opcode::equal: return for_block(n, to, a, b, [&](T x, T y) { return truth(x == y); });
    case opcode::logical_not: return for_block(n, to, a, [&](T x) { return truth(x == T{}); });
    case opcode::logical_and: return for_block(n, to, a, b, [&](T x, T y) { return truth((x != T{}) & (y != T{})); });
    case opcode::logical_or: return for_block(n, to, a, b, [&](T x, T y) { return truth((x != T{}) | (y != T{})); });
    case opcode::bitwise_and:
    case opcode::bitwise_or:
    case opcode::bitwise_xor:
    case opcode::bitwise_not:
    case opcode::shift_left:
    case opcode::shift_right:
      if constexpr (std::is_integral_v<T>) run_bits(code, n, to, a, b);
      return;
    case opcode::select:
      for (std::int64_t i = 0; i < n; ++i) {
        const bool first = (a.data != nullptr ? a.data[i] : a.number) != T{};
        const T x = b.data != nullptr ? b.data[i] : b.number;
        const T y = c.data != nullptr ? c.data[i] : c.number;
        to[i] = first ? x : y;
      }
      return;
    default: break;
  }
  if constexpr (Math::has_functions) Math::run(code, n, to, a, b);
}

}  // namespace
}  // namespace collage::inline v0::detail::host
