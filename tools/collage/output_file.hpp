// Files that commands write beside those that they read.
#pragma once

#include "options.hpp"

#include <string>

namespace program {

/// Throws if a command cannot write a file, or would replace a file that it reads. For the time before minutes of measuring.
void check_output(const std::string& file, const options& given);

/// The same for a file that may replace the plan of --plan, such as the new plan.
void check_plan_output(const std::string& file, const options& given);

}  // namespace program
