// 64-bit hashes for names and for keys, usable in constant evaluation.
#pragma once

#include <cstddef>
#include <cstdint>

namespace collage::inline v0::detail {

inline constexpr std::uint64_t fnv_basis = 0xCBF29CE484222325ULL, fnv_prime = 0x100000001B3ULL;

/// FNV-1a (Fowler, Noll, Vo), 64 bits, finished with the mixer of SplitMix64 so that all bits depend on all bytes.
constexpr std::uint64_t mix(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31);
}

constexpr std::uint64_t hash(const char* text, std::size_t length) {
  std::uint64_t h = fnv_basis;
  for (std::size_t i = 0; i < length; ++i) h = (h ^ static_cast<unsigned char>(text[i])) * fnv_prime;
  return mix(h);
}

constexpr std::uint64_t hash(const char* text) {
  std::size_t length = 0;
  while (text[length] != '\0') ++length;
  return hash(text, length);
}

/// A running hash over words; order matters.
constexpr std::uint64_t combine(std::uint64_t seed, std::uint64_t word) {
  return mix(seed * 0x9E3779B97F4A7C15ULL + word + 0x632BE59BD9B4E019ULL);
}

}  // namespace collage::inline v0::detail
