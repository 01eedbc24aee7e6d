// How much kernels err: measured with random inputs, and with channels of very different sizes.
#pragma once

#include <algorithm>
#include <cmath>
#include <collage/dtype.hpp>
#include <collage/run/algorithm.hpp>
#include <collage/run/elements.hpp>
#include <collage/run/tensor.hpp>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace collage::inline v0::detail {

/// The largest errors of a kernel, divided by the root mean square of the whole result.
struct measured_errors {
  double random = 0;  ///< of random inputs
  double scaled = 0;  ///< of the same inputs, each channel times a number from 1e-2 to 1e2
};

/// The largest error of a result. NaN and infinity have been compared before.
inline double error_of(std::span<const double> actual, std::span<const double> expected) {
  double largest = 0, squares = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (!std::isfinite(actual[i]) || !std::isfinite(expected[i])) continue;
    largest = std::max(largest, std::abs(actual[i] - expected[i]));
    squares += expected[i] * expected[i];
  }
  if (largest == 0) return 0;
  return largest / std::sqrt(squares / static_cast<double>(expected.size()));
}

/// Multiplies each channel by a random power of ten, uniform in its exponent from -2 to 2.
inline void scale_channels(const tensor& t, std::size_t dimension, std::mt19937_64& random) {
  const shape& dims = t.type().dims;
  if (t.type().type != dtype::f32 || dimension >= dims.size()) return;
  std::int64_t inner = 1;
  for (std::size_t d = dimension + 1; d < dims.size(); ++d) inner *= dims[d];
  std::uniform_real_distribution<double> exponent(-2, 2);
  std::vector<float> factors;
  for (std::int64_t c = 0; c < dims[dimension]; ++c)
    factors.push_back(static_cast<float>(std::pow(10.0, exponent(random))));
  float* const at = reinterpret_cast<float*>(t.data());
  const std::int64_t elements = dims.elements();
  for (std::int64_t i = 0; i < elements; ++i) at[i] *= factors[static_cast<std::size_t>(i / inner % dims[dimension])];
}

/// A kernel's algorithm, and its errors if they were measured.
struct judged_kernel {
  kernel_algorithm algorithm;
  measured_errors errors;
};

/// For each kernel, why it is not accurate; empty if it is. Direct kernels always are. The largest errors of the direct ones are
/// the measure; without any, the expected error of the definition is.
inline std::vector<std::string> inaccuracies_of(std::span<const judged_kernel> kernels) {
  measured_errors direct;
  bool has_direct = false;
  for (const judged_kernel& k : kernels) {
    if (!k.algorithm.is_direct()) continue;
    has_direct = true;
    direct.random = std::max(direct.random, k.errors.random);
    direct.scaled = std::max(direct.scaled, k.errors.scaled);
  }
  std::vector<std::string> list;
  for (const judged_kernel& k : kernels) {
    const double random = has_direct ? direct.random : k.algorithm.direct_error;
    const double scaled = has_direct ? direct.scaled : k.algorithm.direct_error;
    std::string& why = list.emplace_back();
    if (k.algorithm.is_direct()) continue;
    const bool is_wrong = k.errors.random > most_accurate_ratio * random;
    if (!is_wrong && !(k.errors.scaled > most_accurate_ratio * scaled)) continue;
    const double ratio = is_wrong ? k.errors.random / random : k.errors.scaled / scaled;
    why = std::string("the algorithm ") + k.algorithm.name + " errs " + std::to_string(ratio).substr(0, 4) +
          " times as much as the definition" + (is_wrong ? "" : " where channels differ in size") +
          ", and accurate algorithms at most twice";
  }
  return list;
}

}  // namespace collage::inline v0::detail
