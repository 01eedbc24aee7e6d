// How much tests try.
#pragma once

#include <collage/detail/host_memory.hpp>

namespace collage_test {

/// How many random cases are tried of those that an optimised build tries: under the address sanitizer each takes some ten
/// times as long, and a quarter of them shows there what it is for.
template <class T>
constexpr T cases(T all) {
  return collage::detail::is_watched ? (all + 3) / 4 : all;
}

}  // namespace collage_test
