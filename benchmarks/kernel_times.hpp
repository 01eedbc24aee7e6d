// Memory, weights and medians for benchmarks that time kernels themselves.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace benchmarks {

/// Floats of one value that begin at a cache line.
class floats {
 public:
  explicit floats(std::size_t count, float value = 0) : memory_(count + 16, value) {
    data_ = memory_.data() + (64 - reinterpret_cast<std::uintptr_t>(memory_.data()) % 64) / 4;
  }
  float* data() const { return data_; }

 private:
  std::vector<float> memory_;
  float* data_;
};

/// Copies of weights, more than a last-level cache holds: at least two, and of small ones at most 32.
inline std::size_t copies_of(std::size_t floats_of_one) {
  return std::clamp<std::size_t>((96 << 20) / (4 * floats_of_one), 2, 32);
}

inline double median(std::vector<double> list) {
  std::ranges::sort(list);
  return list[list.size() / 2];
}

}  // namespace benchmarks
