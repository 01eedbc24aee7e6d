// Random numbers for tests, from seeds that can be given again.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <limits>
#include <random>
#include <vector>

namespace collage_test {

/// The seed of a random test: COLLAGE_SEED where it is set, so that a failure can be repeated.
inline std::uint64_t seed_or(std::uint64_t otherwise) {
  const char* text = std::getenv("COLLAGE_SEED");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

/// A new seed every time, printed; COLLAGE_SEED repeats a run.
inline std::uint64_t fresh_seed() {
  const std::uint64_t seed = seed_or(std::random_device{}());
  std::cout << "COLLAGE_SEED=" << seed << "\n";
  return seed;
}

/// Random numbers, from a fresh seed unless one is given.
class random_numbers {
 public:
  random_numbers() : random_numbers(fresh_seed()) {}
  explicit random_numbers(std::uint64_t seed) : seed_(seed), engine_(seed_) {}
  std::uint64_t seed() const { return seed_; }
  std::mt19937_64& engine() { return engine_; }
  /// Uniform in [low, high].
  std::int64_t number(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(engine_);
  }
  /// Uniform in [low, high). The distribution of libstdc++ takes two logarithms for each number.
  double real(double low, double high) {
    return low + (high - low) * (static_cast<double>(engine_() >> 11U) * 0x1p-53);
  }
  bool chance(double probability) { return real(0, 1) < probability; }

 private:
  std::uint64_t seed_;
  std::mt19937_64 engine_;
};

/// Awkward numbers, and others of every magnitude.
inline std::vector<float> all_sorts_of_numbers(random_numbers& random, std::size_t count) {
  using limits = std::numeric_limits<float>;
  std::vector<float> list;
  for (const float x : {0.0F,
                        limits::denorm_min(),
                        1e-40F,
                        limits::min(),
                        1e-20F,
                        1e-7F,
                        0.25F,
                        0.5F,
                        1.0F,
                        1.5F,
                        2.0F,
                        2.5F,
                        3.0F,
                        3.94F,
                        3.96F,
                        9.0F,
                        9.03F,
                        17.0F,
                        87.3F,
                        88.72F,
                        88.73F,
                        89.0F,
                        103.9F,
                        104.1F,
                        1e3F,
                        8191.0F,
                        8193.0F,
                        39000.5F,
                        8388609.0F,
                        2147483648.0F,
                        3e9F,
                        1e19F,
                        3e38F,
                        limits::max(),
                        limits::infinity(),
                        limits::quiet_NaN()}) {
    list.push_back(x);
    list.push_back(-x);
  }
  while (list.size() < count) {
    switch (random.number(0, 3)) {
      case 0: list.push_back(static_cast<float>(random.real(-2, 2))); break;
      case 1: list.push_back(static_cast<float>(random.real(-110, 110))); break;
      case 2: list.push_back(static_cast<float>(random.real(-1e5, 1e5))); break;
      default:
        list.push_back(static_cast<float>(std::exp(random.real(-100, 88)) * (random.chance(0.5) ? 1 : -1)));
        break;
    }
  }
  return list;
}

}  // namespace collage_test
