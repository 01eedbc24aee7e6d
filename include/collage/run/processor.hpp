// What this machine is, as far as costs depend on it.
#pragma once

#include <algorithm>
#include <fstream>
#include <string>
#include <thread>

namespace collage::inline v0 {

/// The processor's name and what of its instruction set matters to kernels, as in "AMD EPYC 9R14 (avx512)".
inline std::string processor_name() {
  std::string name = "unknown processor";
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.rfind("model name", 0) != 0) continue;
    const std::size_t colon = line.find(':');
    if (colon != std::string::npos && colon + 2 <= line.size()) name = line.substr(colon + 2);
    break;
  }
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) name += " (avx512)";
  else if (__builtin_cpu_supports("avx2")) name += " (avx2)";
#endif
  return name;
}

/// How many threads this process may use.
inline int available_threads() { return static_cast<int>(std::max(1U, std::thread::hardware_concurrency())); }

}  // namespace collage::inline v0
