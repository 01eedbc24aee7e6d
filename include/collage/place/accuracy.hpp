// How much kernels err: measured with random inputs, and with channels of very different sizes.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <collage/dtype.hpp>
#include <collage/run/algorithm.hpp>
#include <collage/run/elements.hpp>
#include <collage/run/tensor.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
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
template <class T>
double error_of(std::span<const T> actual, std::span<const double> expected) {
  // Separate numbers for neighbours let the compiler use vectors.
  constexpr std::size_t lanes = 8;
  std::array<double, lanes> largest{}, squares{};
  const auto note = [&](std::size_t i, std::size_t lane) {
    const double r = expected[i], distance = std::abs(static_cast<double>(actual[i]) - r);
    // The distance is finite where both numbers are.
    const bool counts = distance <= std::numeric_limits<double>::max();
    largest[lane] = counts && largest[lane] < distance ? distance : largest[lane];
    squares[lane] += counts ? r * r : 0.0;
  };
  const std::size_t whole = expected.size() / lanes * lanes;
  for (std::size_t i = 0; i < whole; i += lanes)
    for (std::size_t lane = 0; lane < lanes; ++lane) note(i + lane, lane);
  for (std::size_t i = whole; i < expected.size(); ++i) note(i, 0);
  const double most = *std::ranges::max_element(largest);
  if (most == 0) return 0;
  return most / std::sqrt(std::accumulate(squares.begin(), squares.end(), 0.0) / static_cast<double>(expected.size()));
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

/// Judges the kernels of one group by their errors. The measure is the largest errors of the direct kernels that were judged
/// before; without any, it is the expected error of the definition.
class accuracy_judge {
 public:
  /// Why a kernel is not accurate; empty if it is. Direct kernels always are.
  std::string judge(const judged_kernel& k) {
    if (k.algorithm.is_direct()) {
      has_direct_ = true;
      direct_.random = std::max(direct_.random, k.errors.random);
      direct_.scaled = std::max(direct_.scaled, k.errors.scaled);
      return {};
    }
    const double random = has_direct_ ? direct_.random : k.algorithm.direct_error;
    const double scaled = has_direct_ ? direct_.scaled : k.algorithm.direct_error;
    const bool is_wrong = k.errors.random > most_accurate_ratio * random;
    if (!is_wrong && !(k.errors.scaled > most_accurate_ratio * scaled)) return {};
    const double ratio = is_wrong ? k.errors.random / random : k.errors.scaled / scaled;
    return inaccurate_[k.algorithm.name] = std::string("the algorithm ") + k.algorithm.name + " errs " +
                                           std::to_string(ratio).substr(0, 4) + " times as much as the definition" +
                                           (is_wrong ? "" : " where channels differ in size") +
                                           ", and accurate algorithms at most twice";
  }
  /// Why kernels by an algorithm are not accurate, if one of them was judged so. Layouts and tiles change no error by much.
  std::string known(const kernel_algorithm& algorithm) const {
    const auto found = inaccurate_.find(algorithm.name);
    return found == inaccurate_.end() ? std::string() : found->second;
  }

 private:
  measured_errors direct_;
  bool has_direct_ = false;
  std::map<std::string, std::string, std::less<>> inaccurate_;
};

}  // namespace collage::inline v0::detail
