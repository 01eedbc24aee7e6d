// What a test's own process has in memory.
#pragma once

#include <collage/detail/host_memory.hpp>

#include <cstddef>
#include <fstream>
#include <string>

namespace collage_test {

/// Whether memory that was given back stays in use, as the address sanitizer has it.
inline constexpr bool keeps_memory = collage::detail::is_watched;

/// A size of this process's, as in "VmRSS", in bytes.
inline std::size_t own_memory(const std::string& what) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(what + ":")) return 1024 * std::stoul(line.substr(what.size() + 1));
  return 0;
}

}  // namespace collage_test
