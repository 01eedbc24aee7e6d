// The command line: what there is to say, and the help pages.
#pragma once

#include "options.hpp"

namespace program {

/// What was asked for: a command with its options, or nothing more where a help page or the version was printed.
struct command_line {
  int (*command)(const options& given) = nullptr;
  options given;
  int exit_code = 0;
};

/// Throws `collage::error` for everything that is no command or option.
command_line parse(int argc, char** argv);

}  // namespace program
