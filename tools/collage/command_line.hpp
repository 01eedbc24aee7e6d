// Parses the command line, and prints help pages.
#pragma once

#include "options.hpp"

namespace program {

/// A command with its options. `command` is null if a help page was printed: nothing is left to do.
struct command_line {
  int (*command)(const options& given) = nullptr;
  bool computes = false;  ///< the command runs kernels
  options given;
  int exit_code = 0;
};

/// Throws `collage::error` for an unknown command or option, and for a wrong value.
command_line parse(int argc, char** argv);

}  // namespace program
