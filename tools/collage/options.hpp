// What the command line says.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace program {

struct options {
  std::string network;                ///< NET as given: zoo:NAME
  std::vector<std::string> backends;  ///< empty: all there are
  int threads = 0;                    ///< 0: not given
  std::uint64_t seed = 1;
  bool json = false;
  bool quiet = false;
  std::string plan_file;
  // inspect
  std::string dot_file;
  // run
  std::vector<std::string> inputs;  ///< NAME=FILE.npy or NAME=random
  std::string output_folder;
  bool profile = false;
  // bench
  double seconds = 10;
};

}  // namespace program
