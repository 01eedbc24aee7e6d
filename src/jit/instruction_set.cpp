#include "instruction_set.hpp"

namespace collage::inline v0::detail::jit {

unsigned processor_features() {
  static const unsigned found = [] {
    unsigned bits = 0;
#if defined(__x86_64__)
    // These ask the processor, and whether the system saves the wide registers.
    if (__builtin_cpu_supports("avx2")) bits |= feature_avx2;
    if (__builtin_cpu_supports("fma")) bits |= feature_fma;
    if (__builtin_cpu_supports("avx512f")) bits |= feature_avx512f;
    if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512vnni"))
      bits |= feature_avx512_vnni;
#endif
    return bits;
  }();
  return found;
}

std::string refusal_of(instruction_set set, unsigned features) {
  std::string lacking;
  const auto need = [&](unsigned bit, const char* name) {
    if ((features & bit) == 0) lacking += (lacking.empty() ? "" : " and ") + std::string(name);
  };
  need(feature_avx2, "avx2");
  need(feature_fma, "fma");
  if (set == instruction_set::avx512) need(feature_avx512f, "avx512f");
  if (lacking.empty()) return {};
  return "this processor lacks " + lacking + ", which kernels for " + name_of(set) + " need";
}

}  // namespace collage::inline v0::detail::jit
