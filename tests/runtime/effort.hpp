// How much tests try.
#pragma once

namespace collage_test {

/// How many random cases are tried of those that an optimised build tries: under the address sanitizer each takes some ten
/// times as long, and a quarter of them shows there what it is for.
template <class T>
constexpr T cases(T all) {
#ifdef __SANITIZE_ADDRESS__
  return (all + 3) / 4;
#else
  return all;
#endif
}

}  // namespace collage_test
