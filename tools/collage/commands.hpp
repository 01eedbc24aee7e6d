// The commands. Each returns the program's exit code. They throw `collage::error` for mistakes of the user and for
// failures of the machine.
#pragma once

#include "options.hpp"

namespace program {

int show_version(const options& given);
int show_backends(const options& given);
int show_zoo(const options& given);
int inspect(const options& given);
int tune(const options& given);
int run(const options& given);
int calibrate(const options& given);
int bench(const options& given);
int explain(const options& given);
int diff(const options& given);
int report(const options& given);
int verify(const options& given);
int replay_placements(const options& given);
int store(const options& given);

}  // namespace program
