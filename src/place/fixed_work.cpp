// The fixed pieces of work that the drift monitor repeats.
#include "fixed_work.hpp"

#include <algorithm>
#include <array>
#include <collage/measure/time_source.hpp>
#include <cstddef>
#include <vector>

#ifndef _OPENMP
#error "compile this file with OpenMP (-fopenmp): the machine is watched with as many threads as it is measured with"
#endif

namespace collage::inline v0::detail {
namespace {

/// The exchange, some ten microseconds long. Several times over, each thread reads data that another thread has just written, as
/// the threads of a network do from step to step. It takes three times as long while the processors share no cache. It also
/// takes longer while another program or machine uses one of them. A team of one thread computes in its own cache.
class exchange_work {
 public:
  explicit exchange_work(int threads) : threads_(threads) {
    for (auto& side : buffers_) side.assign(static_cast<std::size_t>(threads), std::vector<float>(elements, 1.0F));
  }

  void operator()() {
    const int turns = threads_ > 1 ? 8 : 64;  // a turn of a single thread is about this much shorter
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

/// The walk, some ten microseconds long. Each thread reads data that fits its second-level cache but not its first, several
/// times over. It takes a fifth longer while another machine uses the other half of the same core.
class walk_work {
 public:
  explicit walk_work(int threads) : threads_(threads), parts_(static_cast<std::size_t>(threads)) {}

  /// Returns the longest time of a thread, without the time to wake the threads.
  double operator()(const time_source& time) {
#pragma omp parallel for num_threads(threads_) schedule(static, 1)
    for (int t = 0; t < threads_; ++t) {
      part& own = parts_[static_cast<std::size_t>(t)];
      if (own.elements.empty()) own.elements.assign(elements, 1.0F);  // allocated by the thread that reads them
      const double start = time.now_ms();
      read(own.elements.data(), own.sums.data());
      own.took_ms = time.now_ms() - start;
    }
    double most = 0;
    for (const part& p : parts_) most = std::max(most, p.took_ms);
    return most;
  }

 private:
  static constexpr std::size_t elements = 16384,
                               lanes = 32;  // 64 KiB; 32 independent sums, so that only loads take time
  static constexpr int turns = 16;

  /// Adds all elements, so that no load is optimised away. Sanitizers have nothing to find here, and would make it take
  /// milliseconds.
  [[gnu::noinline, gnu::no_sanitize("address", "undefined")]] static void read(const float* own, float* to) {
    float sum[lanes] = {};
    for (int turn = 0; turn < turns; ++turn)
      for (std::size_t i = 0; i < elements; i += lanes)
        for (std::size_t k = 0; k < lanes; ++k) sum[k] += own[i + k];
    for (std::size_t k = 0; k < lanes; ++k) to[k] = sum[k];
  }

  struct part {  // of a thread
    std::vector<float> elements;
    std::array<float, lanes> sums{};
    double took_ms = 0;
  };

  int threads_;
  std::vector<part> parts_;
};

}  // namespace

std::array<drift_work, drift_signs> drift_works(int threads) {
  return {timed(exchange_work(threads)), walk_work(threads)};
}

}  // namespace collage::inline v0::detail
