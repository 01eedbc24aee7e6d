// Random numbers for tests, from seeds that can be given again.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <random>

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

/// Random numbers from a fresh seed.
class random_numbers {
 public:
  random_numbers() : seed_(fresh_seed()), engine_(seed_) {}
  std::uint64_t seed() const { return seed_; }
  std::mt19937_64& engine() { return engine_; }
  /// Uniform in [low, high].
  std::int64_t number(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(engine_);
  }
  double real(double low, double high) { return std::uniform_real_distribution<double>(low, high)(engine_); }
  bool chance(double probability) { return real(0, 1) < probability; }

 private:
  std::uint64_t seed_;
  std::mt19937_64 engine_;
};

}  // namespace collage_test
