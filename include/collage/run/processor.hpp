// The properties of this machine and this process that costs depend on.
#pragma once

#if defined(__linux__)
#include <sched.h>
#endif

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

namespace collage::inline v0 {

/// The processor's name and the part of its instruction set that matters to kernels, as in "AMD EPYC 9R14 (avx512)".
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

/// Whether the system runs on virtual processors, which a host may move; false if that is not known.
inline bool is_virtual_machine() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.rfind("flags", 0) == 0) return (line + ' ').find(" hypervisor ") != std::string::npos;
  return false;
}

/// The number of processors that the calling thread and the threads it starts may run on: the useful number of threads.
inline int available_threads() {
#if defined(__linux__)
  // The standard library counts all processors of the machine, but taskset and containers exclude some. If OpenMP binds
  // threads, the mask of this thread says nothing: OpenMP has bound it already, and binds others elsewhere.
  const bool is_bound = std::getenv("OMP_PROC_BIND") != nullptr || std::getenv("OMP_PLACES") != nullptr ||
                        std::getenv("GOMP_CPU_AFFINITY") != nullptr;
  cpu_set_t allowed;
  if (!is_bound && sched_getaffinity(0, sizeof(allowed), &allowed) == 0) return std::max(1, CPU_COUNT(&allowed));
#endif
  return static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
}

}  // namespace collage::inline v0
