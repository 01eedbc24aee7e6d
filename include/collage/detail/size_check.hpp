// Whether a value can ever be in memory.
//
// Definition: src/process/limits.cpp (the target collage::reference).
#pragma once

#include <cstddef>

namespace collage::inline v0::detail {

/// Throws if the machine, or a limit of memory (run/limits.hpp), has fewer bytes in all, whatever is in use now. `what` needs
/// them: "value y". Fewer bytes than 256 MiB are not checked.
void check_size(std::size_t bytes, const char* what);

}  // namespace collage::inline v0::detail
