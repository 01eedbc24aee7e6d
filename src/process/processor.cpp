// The processor, and how many of its threads are useful to this process.
#include <collage/run/limits.hpp>
#include <collage/run/processor.hpp>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif
#if defined(__linux__)
#include <sched.h>
#endif

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>

namespace collage::inline v0 {
namespace {

/// The text of a field in /proc/cpuinfo, of the first processor; empty if there is none.
std::string cpuinfo(std::string_view field) {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (!line.starts_with(field)) continue;
    const std::size_t colon = line.find(':');
    return colon != std::string::npos && colon + 2 <= line.size() ? line.substr(colon + 2) : std::string();
  }
  return {};
}

/// The name that the processor itself gives, trimmed as Linux does in /proc/cpuinfo: costs in stores and plans have that name.
/// Empty if the processor has none.
std::string name_by_processor() {
#if defined(__x86_64__) || defined(__i386__)
  constexpr unsigned first = 0x80000002, last = 0x80000004;
  if (__get_cpuid_max(0x80000000, nullptr) < last) return {};
  std::array<char, 16 * (last - first + 1) + 1> text{};
  for (unsigned leaf = first; leaf <= last; ++leaf) {
    std::array<unsigned, 4> part{};
    __get_cpuid(leaf, &part[0], &part[1], &part[2], &part[3]);
    std::memcpy(text.data() + sizeof part * (leaf - first), part.data(), sizeof part);
  }
  std::string name = text.data();
  name.erase(0, name.find_first_not_of(' '));
  while (!name.empty() && std::isspace(static_cast<unsigned char>(name.back())) != 0) name.pop_back();
  return name;
#else
  return {};
#endif
}

}  // namespace

std::string processor_name() {
  std::string name = name_by_processor();
  if (name.empty()) name = cpuinfo("model name");
  if (name.empty()) name = "unknown processor";
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) name += " (avx512)";
  else if (__builtin_cpu_supports("avx2")) name += " (avx2)";
#endif
  return name;
}

bool is_virtual_machine() {
#if defined(__x86_64__) || defined(__i386__)
  std::array<unsigned, 4> found{};
  constexpr unsigned hypervisor = 1U << 31U;
  return __get_cpuid(1, &found[0], &found[1], &found[2], &found[3]) != 0 && (found[2] & hypervisor) != 0;
#else
  return (' ' + cpuinfo("flags") + ' ').find(" hypervisor ") != std::string::npos;
#endif
}

int allowed_processors() {
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

int available_threads() {
  const int allowed = allowed_processors();
  const double quota = process_limits().processors();
  return quota < allowed ? std::max(1, static_cast<int>(std::ceil(quota))) : allowed;
}

}  // namespace collage::inline v0
