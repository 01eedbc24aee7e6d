// How this program was built, and with which libraries. cmake/CollageBuildInfo.cmake writes the definitions.
#pragma once

#include <vector>

namespace program {

struct build_info {
  const char* compiler;
  const char* system;
  const char* type;      ///< such as Release
  const char* flags;     ///< of all files; libraries and adapters have more
  const char* adapters;  ///< the processor for which adapters are compiled
};
extern const build_info the_build;

struct build_library {
  const char* name;
  const char* version;  ///< found when collage was built; empty if that does not matter
  const char* licence;  ///< an SPDX identifier
  const char* how;      ///< inside, shared or opened
  const char* used_for;
};
const std::vector<build_library>& build_libraries();

}  // namespace program
