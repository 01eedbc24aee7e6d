// What the drift monitor repeats.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#ifndef _OPENMP
#error "compile this file with OpenMP (-fopenmp): the machine is watched with as many threads as it is measured with"
#endif

namespace collage::inline v0::detail {
namespace {

/// A fixed piece of work of some ten microseconds: the threads of the team read what another one has just written, several
/// times over, as threads of a network do from step to step. It takes three times as long while the processors that they
/// run on share no cache, and longer while one of them is somebody else's. A team of one computes in its own cache.
class fixed_work {
 public:
  explicit fixed_work(int threads) : threads_(threads) {
    for (auto& side : buffers_) side.assign(static_cast<std::size_t>(threads), std::vector<float>(elements, 1.0F));
  }

  void operator()() {
    const int turns = threads_ > 1 ? 8 : 64;  // a turn of one thread alone is that much shorter
    for (int turn = 0; turn < turns; ++turn) {
      const auto& from = buffers_[static_cast<std::size_t>(turn % 2)];
      auto& to = buffers_[static_cast<std::size_t>(1 - turn % 2)];
#pragma omp parallel for num_threads(threads_) schedule(static, 1)
      for (int t = 0; t < threads_; ++t) {
        const float* other = from[static_cast<std::size_t>((t + 1) % threads_)].data();
        float* mine = to[static_cast<std::size_t>(t)].data();
        for (std::size_t i = 0; i < elements; ++i) mine[i] = other[i] * 0.5F + 0.5F;
      }
    }
  }

 private:
  static constexpr std::size_t elements = 1024;  // 4 KiB
  int threads_;
  std::array<std::vector<std::vector<float>>, 2> buffers_;
};

}  // namespace
}  // namespace collage::inline v0::detail
