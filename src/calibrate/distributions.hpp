// Quantiles of Student's t and of the beta distribution.
#pragma once

#include <cmath>
#include <limits>

namespace collage::inline v0::detail {

/// The regularised incomplete beta function, by its continued fraction (Lentz's method), for a, b > 0 and x in [0, 1].
inline double regularised_beta(double a, double b, double x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  if (x > (a + 1) / (a + b + 2)) return 1 - regularised_beta(b, a, 1 - x);  // where the fraction converges fast
  const double front =
      std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) + b * std::log1p(-x)) / a;
  constexpr double tiny = 1e-300;
  const auto not_zero = [](double v) { return std::abs(v) < tiny ? tiny : v; };
  double c = 1, d = 1 / not_zero(1 - (a + b) * x / (a + 1)), fraction = d;
  for (int m = 1; m <= 1000; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / not_zero(1 + even * d);
    c = not_zero(1 + even / c);
    fraction *= c * d;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / not_zero(1 + odd * d);
    c = not_zero(1 + odd / c);
    fraction *= c * d;
    if (std::abs(c * d - 1) < 1e-15) break;
  }
  return front * fraction;
}

/// The argument at which an increasing function of [low, high] reaches `wanted`, by bisection.
template <class F>
double argument_of(F increasing, double wanted, double low, double high) {
  for (int i = 0; i < 200 && low < high; ++i) {
    const double middle = low + (high - low) / 2;
    if (middle == low || middle == high) break;
    (increasing(middle) < wanted ? low : high) = middle;
  }
  return high;
}

/// The quantile of Student's t with `freedom` degrees of freedom, for a probability in [0.5, 1).
inline double student_quantile(double probability, double freedom) {
  // P(T <= t) = 1 - I(freedom / (freedom + t^2); freedom / 2, 1 / 2) / 2, solved for the argument of I.
  const double tail = 2 * (1 - probability);
  if (tail >= 1) return 0;
  const double x = argument_of([&](double at) { return regularised_beta(freedom / 2, 0.5, at); }, tail, 0, 1);
  return std::sqrt(freedom * (1 - x) / x);
}

/// The quantile of the beta distribution.
inline double beta_quantile(double probability, double a, double b) {
  return argument_of([&](double at) { return regularised_beta(a, b, at); }, probability, 0, 1);
}

}  // namespace collage::inline v0::detail
