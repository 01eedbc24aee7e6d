// Workers are started from the program itself, or from an executable of its own that measures for it.
#pragma once

#include <sys/types.h>
#include <string>
#include <vector>

namespace collage::inline v0::detail {

/// The program that called `worker` in a normal start.
struct noted_program {
  bool is_noted = false;
  std::string name = {};
  // The path of its file, and which file that was at the start.
  std::string path = {};
  dev_t device = 0;
  ino_t inode = 0;

  /// Notes a program, as its main begins: the folder that its path may be relative to is still the one that it was started in.
  static noted_program now(const char* name);
  /// Whether the path still leads to the file that was started. Another version of the program would measure otherwise.
  bool has_file() const;
};
noted_program& program();

/// An executable that measures for a program whose main does not call `worker`. It is started with the arguments of a worker and
/// those here, and must call `worker` with the first three.
struct worker_executable {
  std::string path = {};  ///< absolute; empty: there is none
  std::vector<std::string> arguments = {};
  std::string why_not = {};  ///< why there is none: "the program does not ..."
};

/// Sets the executable for the workers that start from now on. Any thread may call it at any time.
void use_worker_executable(worker_executable found);
worker_executable used_worker_executable();

/// Names the build of the program or shared library that contains this function: two builds of different sources, or by
/// different options, have different names.
const std::string& build_name();

}  // namespace collage::inline v0::detail
