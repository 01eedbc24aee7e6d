// What an adapter was compiled for, and whether this processor has it.
#pragma once

#include <string>

#ifndef COLLAGE_COMPILED_FOR
#define COLLAGE_COMPILED_FOR "an unnamed processor"
#endif

namespace collage::inline v0::detail::host {
namespace {

/// "compiled for znver4"
inline const char* compiled_for() { return "compiled for " COLLAGE_COMPILED_FOR; }

/// An instruction set that this file was compiled with and the processor lacks, or null. The compiler may use all it
/// was told of anywhere, so that nothing else here may run before this was asked.
inline const char* missing_instructions() {
#if defined(__x86_64__) && defined(__GNUC__)
#ifdef __AVX2__
  if (!__builtin_cpu_supports("avx2")) return "AVX2";
#endif
#ifdef __FMA__
  if (!__builtin_cpu_supports("fma")) return "FMA";
#endif
#ifdef __AVX512F__
  if (!__builtin_cpu_supports("avx512f")) return "AVX-512F";
#endif
#ifdef __AVX512DQ__
  if (!__builtin_cpu_supports("avx512dq")) return "AVX-512DQ";
#endif
#ifdef __AVX512BW__
  if (!__builtin_cpu_supports("avx512bw")) return "AVX-512BW";
#endif
#ifdef __AVX512VL__
  if (!__builtin_cpu_supports("avx512vl")) return "AVX-512VL";
#endif
#endif
  return nullptr;
}

/// One sentence, or an empty one where all is well.
inline std::string why_not_here() {
  const char* missing = missing_instructions();
  if (missing == nullptr) return {};
  return std::string("this backend was ") + compiled_for() + ", and this processor lacks " + missing +
         ": configure with another COLLAGE_ARCH";
}

}  // namespace
}  // namespace collage::inline v0::detail::host
