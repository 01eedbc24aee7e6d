// The loops of the reference over tensors: in parallel, and over several operands with different steps at once.
#pragma once

#include <algorithm>
#include <collage/dtype.hpp>
#include <collage/error.hpp>
#include <collage/op/kind.hpp>
#include <collage/shape.hpp>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

namespace collage::inline v0::detail {

/// Calls body(first, last) on parts of [0, count) that have at least `least` items. Where there is enough to do, it
/// uses all threads of the process's OpenMP team. The division into parts does not depend on the number of threads.
template <class Body>
void parallel_for(std::int64_t count, std::int64_t least, const Body& body) {
  if (count <= 0) return;
  const std::int64_t part = std::max({least, (count + 63) / 64, std::int64_t{1}});
  const std::int64_t parts = (count + part - 1) / part;
  std::exception_ptr failure;  // an exception must not leave a parallel region
#ifdef _OPENMP
#pragma omp parallel for schedule(dynamic) if (parts > 1)
#endif
  for (std::int64_t i = 0; i < parts; ++i) {
    try {
      body(i * part, std::min(count, (i + 1) * part));
    } catch (...) {
#ifdef _OPENMP
#pragma omp critical(collage_reference_failure)
#endif
      failure = std::current_exception();
    }
  }
  if (failure) std::rethrow_exception(failure);
}

/// The number of items that are worth a part, where each item is a few operations on one element.
inline constexpr std::int64_t elements_per_part = 16384;

/// The distance between neighbours in each dimension of a dense tensor, in elements.
inline shape dense_steps(const shape& dims) {
  shape steps = shape::filled(dims.size(), 1);
  for (std::size_t i = dims.size(); i-- > 1;) steps[i - 1] = steps[i] * dims[i];
  return steps;
}

/// The steps through a dense tensor of shape `from` while `to` is walked: 0 where the tensor is repeated (numpy's
/// broadcasting).
inline shape broadcast_steps(const shape& from, const shape& to) {
  const shape dense = dense_steps(from);
  shape steps = shape::filled(to.size(), 0);
  for (std::size_t i = 0; i < from.size(); ++i)
    if (from[i] != 1) steps[to.size() - from.size() + i] = dense[i];
  return steps;
}

/// Visits all elements of a shape in order, as runs along the innermost dimension, with an offset into each of several
/// operands. Adjacent dimensions that all operands traverse with one step are merged.
class walk {
 public:
  walk(const shape& dims, std::span<const shape> steps) : steps_(steps.size()), offsets_(steps.size(), 0) {
    for (std::size_t i = 0; i < dims.size(); ++i) {
      if (dims[i] == 1) continue;
      bool joins = !dims_.empty();
      for (std::size_t k = 0; joins && k < steps.size(); ++k)
        joins = steps_[k][dims_.size() - 1] == steps[k][i] * dims[i];
      if (joins) {
        dims_[dims_.size() - 1] *= dims[i];
        for (std::size_t k = 0; k < steps.size(); ++k) steps_[k][dims_.size() - 1] = steps[k][i];
      } else {
        dims_.push_back(dims[i]);
        for (std::size_t k = 0; k < steps.size(); ++k) steps_[k].push_back(steps[k][i]);
      }
    }
    if (dims_.empty()) {
      dims_.push_back(1);
      for (shape& s : steps_) s.push_back(0);
    }
    at_ = shape::filled(dims_.size(), 0);
  }
  walk(const shape& dims, std::initializer_list<shape> steps) : walk(dims, std::span(steps.begin(), steps.size())) {}

  std::int64_t size() const { return dims_.elements(); }
  /// The step of operand k along a run.
  std::int64_t step(std::size_t k) const { return steps_[k][dims_.size() - 1]; }

  /// Calls body(first, count, offsets) for each run within the elements [first, last). `first` is the number of the
  /// run's first element, offsets[k] the offset of operand k. Changes the position of this object: each thread needs a
  /// copy.
  template <class Body>
  void visit(std::int64_t first, std::int64_t last, Body&& body) {
    if (first >= last) return;
    seek(first);
    const std::size_t inner = dims_.size() - 1;
    while (first < last) {
      const std::int64_t count = std::min(last - first, dims_[inner] - at_[inner]);
      body(first, count, static_cast<const std::int64_t*>(offsets_.data()));
      first += count;
      advance(count);
    }
  }
  template <class Body>
  void visit_all(Body&& body) {
    visit(0, size(), body);
  }

 private:
  void seek(std::int64_t element) {
    std::fill(offsets_.begin(), offsets_.end(), 0);
    for (std::size_t i = dims_.size(); i-- > 0;) {
      at_[i] = element % dims_[i];
      element /= dims_[i];
      for (std::size_t k = 0; k < steps_.size(); ++k) offsets_[k] += at_[i] * steps_[k][i];
    }
  }
  void advance(std::int64_t count) {
    for (std::size_t i = dims_.size(); i-- > 0;) {
      at_[i] += count;
      for (std::size_t k = 0; k < steps_.size(); ++k) offsets_[k] += count * steps_[k][i];
      if (at_[i] < dims_[i] || i == 0) return;
      for (std::size_t k = 0; k < steps_.size(); ++k) offsets_[k] -= at_[i] * steps_[k][i];
      at_[i] = 0;
      count = 1;
    }
  }

  shape dims_, at_;
  std::vector<shape> steps_;
  std::vector<std::int64_t> offsets_;
};

/// Product of the extents [first, last) of a shape.
inline std::int64_t product(const shape& dims, std::size_t first, std::size_t last) {
  std::int64_t result = 1;
  for (std::size_t i = first; i < last; ++i) result *= dims[i];
  return result;
}

/// The elements of a tensor in the type in which the reference holds them: double or int64.
template <class Element>
std::span<Element> elements_of(const reference_tensor& t) {
  if constexpr (std::is_same_v<Element, double>) return t.real;
  else return t.integer;
}

/// Calls body(Element{}) with the type in which the reference holds the elements of `t`.
template <class Body>
void with_elements(const reference_tensor& t, const Body& body) {
  if (is_floating(t.type.type)) body(double{});
  else body(std::int64_t{});
}

/// Throws unless the type is floating-point, for kinds that are not defined for integers.
inline void require_floating(const reference_tensor& t, const char* kind) {
  if (!is_floating(t.type.type))
    throw error(error_kind::unsupported, "its operands must have a floating-point type", kind);
}

/// Arithmetic of an integer type T on int64 words: wraps around and never traps.
template <class T>
struct integer_arithmetic {
  using element = std::int64_t;

  static std::int64_t wrap(std::uint64_t x) { return static_cast<std::int64_t>(static_cast<T>(x)); }
  static std::uint64_t bits(std::int64_t x) { return static_cast<std::uint64_t>(x); }

  static std::int64_t add(std::int64_t x, std::int64_t y) { return wrap(bits(x) + bits(y)); }
  static std::int64_t subtract(std::int64_t x, std::int64_t y) { return wrap(bits(x) - bits(y)); }
  static std::int64_t multiply(std::int64_t x, std::int64_t y) { return wrap(bits(x) * bits(y)); }
  static std::int64_t negate(std::int64_t x) { return wrap(0 - bits(x)); }
  static std::int64_t absolute(std::int64_t x) { return less(x, 0) ? negate(x) : x; }
  /// Truncates toward zero; division by zero gives 0.
  static std::int64_t divide(std::int64_t x, std::int64_t y) {
    if (y == 0) return 0;
    if constexpr (std::is_unsigned_v<T>) return wrap(bits(x) / bits(y));
    else return y == -1 ? negate(x) : x / y;
  }
  static std::int64_t remainder(std::int64_t x, std::int64_t y) {
    if (y == 0) return 0;
    if constexpr (std::is_unsigned_v<T>) return wrap(bits(x) % bits(y));
    else return y == -1 ? 0 : x % y;
  }
  static std::int64_t bitwise_not(std::int64_t x) { return wrap(~bits(x)); }
  /// A count outside [0, bits of the type) shifts everything out.
  static std::int64_t shift_left(std::int64_t x, std::int64_t count) {
    return bits(count) < 8 * sizeof(T) ? wrap(bits(x) << bits(count)) : 0;
  }
  static std::int64_t shift_right(std::int64_t x, std::int64_t count) {
    if (bits(count) >= 8 * sizeof(T)) return std::is_signed_v<T> && x < 0 ? -1 : 0;
    if constexpr (std::is_unsigned_v<T>) return wrap(bits(x) >> bits(count));
    else return x >> count;
  }
  static bool less(std::int64_t x, std::int64_t y) {
    if constexpr (std::is_unsigned_v<T>) return bits(x) < bits(y);
    else return x < y;
  }
  static std::int64_t minimum(std::int64_t x, std::int64_t y) { return less(y, x) ? y : x; }
  static std::int64_t maximum(std::int64_t x, std::int64_t y) { return less(x, y) ? y : x; }
  /// By repeated squaring, wrapping around. A negative exponent gives the power truncated toward zero, and 0 for x = 0.
  static std::int64_t power(std::int64_t x, std::int64_t y) {
    if (std::is_signed_v<T> && y < 0) {
      if (x == 1) return 1;
      if (x == -1) return y % 2 == 0 ? 1 : -1;
      return 0;
    }
    std::int64_t result = 1;
    for (std::uint64_t rest = bits(y); rest != 0; rest >>= 1U) {
      if ((rest & 1U) != 0) result = multiply(result, x);
      x = multiply(x, x);
    }
    return result;
  }
  static double real(std::int64_t x) { return static_cast<double>(static_cast<T>(x)); }
  /// From double: truncates toward zero, saturates at the ends of the range, and maps NaN to 0.
  static std::int64_t from_real(double x) {
    using limits = std::numeric_limits<T>;
    if (x != x) return 0;
    // The largest value may not be a double; the power of two after it is.
    const double end = 2.0 * static_cast<double>(T{1} << (limits::digits - 1));
    if (x >= end) return static_cast<std::int64_t>(limits::max());
    if (x <= static_cast<double>(limits::min())) return static_cast<std::int64_t>(limits::min());
    return static_cast<std::int64_t>(static_cast<T>(x));
  }
  static std::int64_t lowest() { return static_cast<std::int64_t>(std::numeric_limits<T>::min()); }
  static std::int64_t highest() { return static_cast<std::int64_t>(std::numeric_limits<T>::max()); }
};

}  // namespace collage::inline v0::detail
