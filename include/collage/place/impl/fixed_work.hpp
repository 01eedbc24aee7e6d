// What the drift monitor repeats.
#pragma once

#include <cstddef>
#include <vector>

#ifndef _OPENMP
#error "compile this file with OpenMP (-fopenmp): the machine is watched with as many threads as it is measured with"
#endif

namespace collage::inline v0::detail {
namespace {

/// A fixed piece of work of some ten microseconds for each thread of the team: vectors multiplied and added as fast as the
/// processor can, over a buffer in the first-level cache. It notices a processor whose units somebody else uses, too (the
/// other thread of the same core, which programs on a virtual machine do not see), one that is slowed down, and threads
/// that have to wait.
class fixed_work {
 public:
  explicit fixed_work(int threads) : threads_(threads), buffers_(static_cast<std::size_t>(threads)) {
    for (auto& buffer : buffers_) buffer.assign(vectors, lanes{1, 1, 1, 1});
  }

  void operator()() {
#pragma omp parallel for num_threads(threads_) schedule(static, 1)
    for (int t = 0; t < threads_; ++t) {
      std::vector<lanes>& buffer = buffers_[static_cast<std::size_t>(t)];
      constexpr std::size_t chains = 12;  // enough that no operation waits for the one before
      lanes sums[chains] = {};
      for (int pass = 0; pass < passes; ++pass)
        for (std::size_t i = 0; i < vectors; i += chains)
          for (std::size_t k = 0; k < chains; ++k) sums[k] = sums[k] * 0.5F + buffer[i + k];
      for (std::size_t k = 0; k < chains; ++k) buffer[k] = sums[k] * 0.25F;
    }
  }

 private:
  typedef float lanes __attribute__((vector_size(16)));
  static constexpr std::size_t vectors = 960;  // 15 KiB
  static constexpr int passes = 60;
  int threads_;
  std::vector<std::vector<lanes>> buffers_;
};

}  // namespace
}  // namespace collage::inline v0::detail
