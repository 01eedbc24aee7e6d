// How much tests try.
#pragma once

#include <collage/detail/host_memory.hpp>
#include <cstdint>
#include <random>

#include "support/random_numbers.hpp"

namespace collage_test {

#ifdef COLLAGE_TEST_LONG
inline constexpr bool is_long = true;
#else
inline constexpr bool is_long = false;
#endif

/// How many random cases are tried of those that an optimised build tries. Under the address sanitizer each takes some ten
/// times as long, and a quarter of them shows there what it is for.
template <class T>
constexpr T cases(T all) {
  return collage::detail::is_watched ? (all + 3) / 4 : all;
}

/// Takes a part of the cases of a list, from a random one on, so that the next run takes others: every `optimised`-th one in an
/// optimised build, and fewer under the address sanitizer. The long tests take all of them, or every third.
class some_cases {
 public:
  explicit some_cases(std::uint64_t optimised = 1)
      : part_(collage::detail::is_watched ? (is_long ? 3 : 3 * optimised) : (is_long ? 1 : optimised)),
        at_(seed_or(std::random_device{}()) % part_) {}
  bool operator()() { return at_++ % part_ == 0; }

 private:
  std::uint64_t part_, at_;
};

}  // namespace collage_test
