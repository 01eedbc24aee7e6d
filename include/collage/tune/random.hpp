// Random numbers that are the same on every machine and with every standard library.
#pragma once

#include <collage/detail/hash.hpp>
#include <cstddef>
#include <cstdint>

namespace collage::inline v0::tune {

/// SplitMix64 (Steele, Lea, Flood 2014). The distributions of <random> differ between libraries, and a log must not.
class random_source {
 public:
  constexpr explicit random_source(std::uint64_t seed) : state_(seed) {}

  constexpr std::uint64_t next() {
    state_ += 0x9E3779B97F4A7C15ULL;
    return detail::mix(state_);
  }
  /// A number below `count`, each with the same chance. `count` must not be 0.
  constexpr std::size_t below(std::size_t count) {
    const std::uint64_t uneven = -static_cast<std::uint64_t>(count) % count;  // 2^64 mod count
    std::uint64_t drawn = next();
    while (drawn < uneven) drawn = next();
    return static_cast<std::size_t>(drawn % count);
  }

 private:
  std::uint64_t state_;
};

}  // namespace collage::inline v0::tune
