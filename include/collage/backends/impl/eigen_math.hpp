// Eigen in a namespace of its own, and the elementwise functions that it vectorizes.
#pragma once

#include <algorithm>
#include <cmath>
#include <collage/backends/impl/elementwise_run.hpp>
#include <cstdint>

// This copy of Eigen is compiled for one particular processor. A program that uses Eigen itself has functions of the same names,
// compiled for another processor, and the linker would keep only one of each. So this copy gets a namespace of its own.
#ifdef EIGEN_WORLD_VERSION
#error "include this file before Eigen, or better in a file of its own: it includes Eigen under another name"
#endif
#define Eigen collage_eigen
#define EIGEN_DONT_PARALLELIZE  // only team.hpp starts threads
#define EIGEN_NO_MALLOC         // kernels never allocate
// g++ 12 warns of the vectors that its own AVX-512 header leaves uninitialized on purpose (its bug 105593).
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <Eigen/Core>
#include <unsupported/Eigen/SpecialFunctions>
#pragma GCC diagnostic pop

#if !EIGEN_VERSION_AT_LEAST(3, 4, 0)
#error "this adapter needs Eigen 3.4 or newer"
#endif

namespace collage::inline v0::detail::host {
namespace {

/// An array expression over floats that Eigen does not own, at any alignment.
using array_map = Eigen::Map<Eigen::Array<float, Eigen::Dynamic, 1>>;
using const_array_map = Eigen::Map<const Eigen::Array<float, Eigen::Dynamic, 1>>;

/// Functions beyond arithmetic, by Eigen. All propagate NaN.
struct eigen_math {
  static constexpr bool has_functions = true;

  template <class T>
  static void run(opcode code, std::int64_t n, T* to, const block_operand<T>& a, const block_operand<T>& b) {
    standard_math::run(code, n, to, a, b);
  }
  static void run(opcode code, std::int64_t n, float* to, const block_operand<float>& a,
                  const block_operand<float>& b) {
    if (a.data == nullptr && (code != opcode::power || b.data == nullptr)) {  // one result for all elements
      float once = 0;
      run(code, 1, &once, {&a.number, 0}, b.data == nullptr ? b : block_operand<float>{b.data, 0});
      std::fill_n(to, n, once);
      return;
    }
    array_map out(to, n);
    const const_array_map x(a.data, n);
    switch (code) {
      case opcode::exponential: out = x.exp(); return;
      case opcode::logarithm: out = x.log(); return;
      case opcode::sine: out = x.sin(); return;
      case opcode::cosine: out = x.cos(); return;
      case opcode::tangent_hyperbolic: out = x.tanh(); return;
      case opcode::error_function: out = x.erf(); return;
      case opcode::floor: out = x.floor(); return;
      case opcode::ceiling: out = x.ceil(); return;
      case opcode::round_to_even: out = x.rint(); return;
      case opcode::power: power(n, to, a, b); return;
      default: return standard_math::run(code, n, to, a, b);
    }
  }

 private:
  /// Computes element by element: Eigen 3.4's power is no faster, and treats -0 as 0.
  static void power(std::int64_t n, float* to, const block_operand<float>& a, const block_operand<float>& b) {
    if (b.data == nullptr && b.number == 2.0F) return void(array_map(to, n) = const_array_map(a.data, n).square());
    for (std::int64_t i = 0; i < n; ++i)
      to[i] = std::pow(a.data != nullptr ? a.data[i] : a.number, b.data != nullptr ? b.data[i] : b.number);
  }
};

}  // namespace
}  // namespace collage::inline v0::detail::host
