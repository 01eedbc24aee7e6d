// Functions of vectors of floats on Highway, for the target that hwy/foreach_target.h has chosen: included once for each.
// NaN, infinities and denormals are as the C library has them; finite results are within some 1e-7 of it, relatively.

// A guard for each target, as in Highway's own headers.
#if defined(COLLAGE_STACKED_MATH) == defined(HWY_TARGET_TOGGLE)
#ifdef COLLAGE_STACKED_MATH
#undef COLLAGE_STACKED_MATH
#else
#define COLLAGE_STACKED_MATH
#endif

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>
#include <cmath>
#include <collage/backends/impl/elementwise_polynomials.hpp>
#include <cstddef>
#include <cstdint>
#include <limits>

HWY_BEFORE_NAMESPACE();
namespace collage::inline v0::detail::host {
namespace {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using vector_tag = hn::ScalableTag<float>;
using vector = hn::Vec<vector_tag>;
inline constexpr vector_tag tag{};

HWY_INLINE vector number(float x) { return hn::Set(tag, x); }

HWY_INLINE hn::Mask<vector_tag> is_nan(vector x) { return hn::IsNaN(x); }
/// x where it is NaN, else y.
HWY_INLINE vector keep_nan(vector x, vector y) { return hn::IfThenElse(hn::Eq(x, x), y, x); }

/// Results below the smallest normal number are rounded, those beyond the largest are infinite.
HWY_INLINE vector exponential(vector x) {
  using n = exponential_numbers;
  // The second operand of both is what processors of this family answer where it is NaN; keep_nan is for the others.
  const vector inside = hn::Min(number(n::most), hn::Max(number(n::least), x));
  const vector shift = number(n::shift);
  const vector shifted = hn::MulAdd(inside, number(n::inverse_logarithm), shift);
  const vector whole = hn::Sub(shifted, shift);
  const vector r = hn::MulAdd(whole, number(n::logarithm_rest), hn::MulAdd(whole, number(n::minus_logarithm), inside));
  vector y = number(n::polynomial[0]);
  for (std::size_t i = 1; i < n::terms; ++i) y = hn::MulAdd(y, r, number(n::polynomial[i]));
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
  return vector{_mm512_scalef_ps(y.raw, whole.raw)};
#else
  // In two halves: 2^q itself may be too small or too large for a number.
  const hn::Rebind<std::int32_t, vector_tag> integers;
  const auto q = hn::Sub(hn::BitCast(integers, shifted), hn::BitCast(integers, shift));
  const auto half = hn::ShiftRight<1>(q);
  const auto bias = hn::Set(integers, 127);
  const vector first = hn::BitCast(tag, hn::ShiftLeft<23>(hn::Add(half, bias)));
  const vector second = hn::BitCast(tag, hn::ShiftLeft<23>(hn::Add(hn::Sub(q, half), bias)));
  return keep_nan(x, hn::Mul(hn::Mul(y, first), second));
#endif
}

/// 1 / (1 + exp(-x)); for negative x multiplied by exp(x) above and below, which does not overflow.
HWY_INLINE vector sigmoid(vector x) {
  const vector one = number(1.0F);
  const vector power = exponential(hn::Neg(hn::Abs(x)));
  return hn::Div(hn::IfThenElse(hn::Lt(x, hn::Zero(tag)), power, one), hn::Add(one, power));
}

HWY_INLINE vector logarithm(vector x) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  vector y = hn::impl::Log<vector_tag, vector>(tag, x);  // with denormals, of positive finite numbers
  y = hn::IfThenElse(hn::Eq(x, number(infinity)), x, y);
  y = hn::IfThenElse(hn::Eq(x, number(0.0F)), number(-infinity), y);
  y = hn::IfThenElse(hn::Lt(x, number(0.0F)), number(std::numeric_limits<float>::quiet_NaN()), y);
  return keep_nan(x, y);
}

/// From `end` on exactly 1, so that 1 - y is 0 there.
template <std::size_t N>
HWY_INLINE vector odd_ratio(vector x, const odd_ratio_numbers<N>& n) {
  const vector t = hn::Mul(x, x);
  vector above = number(n.above[N - 1]), below = number(n.below[N - 1]);
  for (std::size_t i = N - 1; i-- > 0;) {
    above = hn::MulAdd(above, t, number(n.above[i]));
    below = hn::MulAdd(below, t, number(n.below[i]));
  }
  const vector one = number(1.0F);
  const vector size = hn::Min(hn::Div(hn::Mul(hn::Abs(x), above), below), one);
  return keep_nan(x, hn::CopySign(hn::IfThenElse(hn::Lt(hn::Abs(x), number(n.end)), size, one), x));
}
HWY_INLINE vector error_function(vector x) { return odd_ratio(x, error_function_numbers); }
HWY_INLINE vector tangent_hyperbolic(vector x) { return odd_ratio(x, tangent_hyperbolic_numbers); }

/// A function of the C library, number by number.
template <class F>
HWY_INLINE vector each_number(const F& function, vector x) {
  HWY_ALIGN float list[hn::MaxLanes(tag)];
  hn::Store(x, tag, list);
  for (float& one : list) one = function.scalar(one);
  return hn::Load(tag, list);
}
template <class F>
HWY_INLINE vector each_number(const F& function, vector x, vector y) {
  HWY_ALIGN float list[hn::MaxLanes(tag)];
  HWY_ALIGN float other[hn::MaxLanes(tag)];
  hn::Store(x, tag, list);
  hn::Store(y, tag, other);
  for (std::size_t i = 0; i < hn::MaxLanes(tag); ++i) list[i] = function.scalar(list[i], other[i]);
  return hn::Load(tag, list);
}

// Highway reduces angles to a quadrant exactly up to 39000; beyond, and for what is not finite, the C library does.
HWY_INLINE bool are_small_angles(vector x) { return hn::AllTrue(tag, hn::Lt(hn::Abs(x), number(8192.0F))); }

struct sine {
  static float scalar(float x) { return std::sin(x); }
  static HWY_INLINE vector run(vector x) { return are_small_angles(x) ? hn::Sin(tag, x) : each_number(sine(), x); }
};
struct cosine {
  static float scalar(float x) { return std::cos(x); }
  static HWY_INLINE vector run(vector x) { return are_small_angles(x) ? hn::Cos(tag, x) : each_number(cosine(), x); }
};

}  // namespace HWY_NAMESPACE
}  // namespace
}  // namespace collage::inline v0::detail::host
HWY_AFTER_NAMESPACE();

#endif
