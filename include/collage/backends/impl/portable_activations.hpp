// Activations of recurrent cells over blocks of float32, written so that the compiler makes vectors of them.
#pragma once

#include <bit>
#include <cmath>
#include <collage/op/recurrent.hpp>
#include <cstdint>

namespace collage::inline v0::detail::host {
namespace {

/// exp(x) - 1 for |x| <= 88, to about an ulp of the larger of it and 1, also where it is small; NaN stays NaN.
/// x = n log 2 + r with |r| <= log(2) / 2; a Taylor polynomial gives exp(r) - 1, and the two powers join without loss.
inline float exponential_minus_one(float x) {
  constexpr float shift = 12582912.0F;  // 1.5 * 2^23: adding it rounds to a whole number, in the low bits
  const float shifted = x * 1.44269504F + shift;
  const float n = shifted - shift;
  const float r = (x - n * 0.693145752F) - n * 1.42860677e-6F;
  const float p =
      r + r * r * (0.5F + r * (1.66666667e-1F + r * (4.16666667e-2F + r * (8.33333333e-3F + r * 1.38888889e-3F))));
  const float power = std::bit_cast<float>((std::bit_cast<std::uint32_t>(shifted) << 23U) + 0x3F800000U);
  return power * p + (power - 1);
}

/// Limits that leave NaN as it is.
inline float at_most(float x, float limit) { return x > limit ? limit : x; }
inline float at_least(float x, float limit) { return x < limit ? limit : x; }

inline float sigmoid_of(float x) { return 1 / (2 + exponential_minus_one(at_most(at_least(-x, -87), 87))); }
inline float tanh_of(float x) {
  const float m = exponential_minus_one(at_most(2 * std::abs(x), 20));
  return std::copysign(m / (m + 2), x);
}

template <class F>
void transform(float* x, std::int64_t count, const F& f) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) x[i] = f(x[i]);
}

/// One activation with its parameters.
struct activation_function {
  recurrent_activation kind = recurrent_activation::tanh;
  float alpha = 0;
  float beta = 0;

  void operator()(float* x, std::int64_t count) const {
    const float a = alpha;
    const float b = beta;
    switch (kind) {
      case recurrent_activation::sigmoid: return transform(x, count, sigmoid_of);
      case recurrent_activation::tanh: return transform(x, count, tanh_of);
      case recurrent_activation::relu: return transform(x, count, [](float v) { return v < 0 ? 0 : v; });
      case recurrent_activation::affine: return transform(x, count, [=](float v) { return a * v + b; });
      case recurrent_activation::leaky_relu: return transform(x, count, [=](float v) { return v < 0 ? a * v : v; });
      case recurrent_activation::thresholded_relu: return transform(x, count, [=](float v) { return v < a ? 0 : v; });
      case recurrent_activation::scaled_tanh: return transform(x, count, [=](float v) { return a * tanh_of(b * v); });
      case recurrent_activation::hard_sigmoid:
        return transform(x, count, [=](float v) { return at_most(at_least(a * v + b, 0), 1); });
      case recurrent_activation::elu:
        return transform(x, count, [=](float v) {
          const float below = a * exponential_minus_one(at_least(at_most(v, 0), -87));
          return v < 0 ? below : v;
        });
      case recurrent_activation::softsign: return transform(x, count, [](float v) { return v / (1 + std::abs(v)); });
      case recurrent_activation::softplus:
        for (std::int64_t i = 0; i < count; ++i) x[i] = std::log1p(std::exp(-std::abs(x[i]))) + at_least(x[i], 0);
        return;
    }
  }
};

}  // namespace
}  // namespace collage::inline v0::detail::host
