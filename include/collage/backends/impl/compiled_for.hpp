// The instruction sets that an adapter was compiled for, and whether this processor has them.
#pragma once

#ifndef COLLAGE_COMPILED_FOR
#define COLLAGE_COMPILED_FOR "an unnamed processor"
#endif

namespace collage::inline v0::detail::host {
namespace {

inline constexpr const char* compiled_for = "compiled for " COLLAGE_COMPILED_FOR;

/// Returns a sentence if the processor lacks an instruction set that this file was compiled for, else an empty string. All
/// sentences are literals, because the compiler may use the missing instructions anywhere, even to build a string.
inline const char* why_not_here() {
#if defined(__x86_64__) && defined(__GNUC__)
#define COLLAGE_LACKS(set)                                                                \
  "this backend was compiled for " COLLAGE_COMPILED_FOR ", and this processor lacks " set \
  ": configure with another COLLAGE_ARCH"
#ifdef __AVX2__
  if (!__builtin_cpu_supports("avx2")) return COLLAGE_LACKS("AVX2");
#endif
#ifdef __FMA__
  if (!__builtin_cpu_supports("fma")) return COLLAGE_LACKS("FMA");
#endif
#ifdef __AVX512F__
  if (!__builtin_cpu_supports("avx512f")) return COLLAGE_LACKS("AVX-512F");
#endif
#ifdef __AVX512DQ__
  if (!__builtin_cpu_supports("avx512dq")) return COLLAGE_LACKS("AVX-512DQ");
#endif
#ifdef __AVX512BW__
  if (!__builtin_cpu_supports("avx512bw")) return COLLAGE_LACKS("AVX-512BW");
#endif
#ifdef __AVX512VL__
  if (!__builtin_cpu_supports("avx512vl")) return COLLAGE_LACKS("AVX-512VL");
#endif
#undef COLLAGE_LACKS
#endif
  return "";
}

}  // namespace
}  // namespace collage::inline v0::detail::host
