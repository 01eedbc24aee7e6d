// How much tests try.
#pragma once

#include <collage/detail/host_memory.hpp>
#include <cstdint>
#include <random>

#include "support/random_numbers.hpp"

namespace collage_test {

/// How many random cases are tried of those that an optimised build tries: under the address sanitizer each takes some ten
/// times as long, and a quarter of them shows there what it is for.
template <class T>
constexpr T cases(T all) {
  return collage::detail::is_watched ? (all + 3) / 4 : all;
}

/// Takes all cases of a list in an optimised build. Under the address sanitizer it takes every third, from a random one on, so that
/// the next run takes others.
class some_cases {
 public:
  some_cases() : at_(seed_or(std::random_device{}()) % part) {}
  bool operator()() { return !collage::detail::is_watched || at_++ % part == 0; }

 private:
  static constexpr std::uint64_t part = 3;
  std::uint64_t at_;
};

}  // namespace collage_test
