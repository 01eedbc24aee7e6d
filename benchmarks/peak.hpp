// The peak of multiply-adds on registers alone, and how far results are from exact ones, for benchmarks of kernels.
#pragma once

#include <benchmark/benchmark.h>

#include <immintrin.h>
#include <algorithm>
#include <chrono>
#include <cmath>

namespace benchmarks {

// Chains of multiply-adds, as many as hide an instruction's latency twice. Each returns its operations.
__attribute__((target("avx512f"))) inline double peak_avx512(int rounds) {
  __m512 sum[20];
  for (__m512& s : sum) s = _mm512_set1_ps(1.0F);
  __m512 x = _mm512_set1_ps(0.999F), y = _mm512_set1_ps(0.001F);
  for (int r = 0; r < rounds; ++r) {
    asm volatile("" : "+v"(x), "+v"(y));
#pragma GCC unroll 20
    for (__m512& s : sum) s = _mm512_fmadd_ps(s, x, y);
  }
  for (__m512& s : sum) benchmark::DoNotOptimize(s);
  return 2.0 * 16 * 20 * rounds;
}
__attribute__((target("avx2,fma"))) inline double peak_avx2(int rounds) {
  __m256 sum[12];
  for (__m256& s : sum) s = _mm256_set1_ps(1.0F);
  __m256 x = _mm256_set1_ps(0.999F), y = _mm256_set1_ps(0.001F);
  for (int r = 0; r < rounds; ++r) {
    asm volatile("" : "+x"(x), "+x"(y));
#pragma GCC unroll 12
    for (__m256& s : sum) s = _mm256_fmadd_ps(s, x, y);
  }
  for (__m256& s : sum) benchmark::DoNotOptimize(s);
  return 2.0 * 8 * 12 * rounds;
}

/// Operations in a second of one thread, measured now: the best of some short runs.
inline double measured_peak(bool is_avx512) {
  using clock = std::chrono::steady_clock;
  double best = 0;
  for (int i = 0; i < 40; ++i) {
    const auto begin = clock::now();
    const double done = is_avx512 ? peak_avx512(2000) : peak_avx2(2000);
    best = std::max(best, done / std::chrono::duration<double>(clock::now() - begin).count());
  }
  return best;
}

/// The largest error of some results, over the root mean square of the exact ones.
class error_meter {
 public:
  void see(double found, double exact) {
    largest_ = std::max(largest_, std::abs(found - exact));
    squares_ += exact * exact;
    ++count_;
  }
  double value() const { return largest_ / std::sqrt(squares_ / count_); }

 private:
  double largest_ = 0, squares_ = 0, count_ = 0;
};

}  // namespace benchmarks
