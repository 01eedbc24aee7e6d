// The style sheet and the script of a report. The build makes their texts from the files in assets/ (embed.cmake).
#pragma once

#include <string>

namespace collage::inline v0::report {

std::string style_sheet();
std::string script();

}  // namespace collage::inline v0::report
