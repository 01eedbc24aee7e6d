// Whether memory is left for a large block.
//
// Definition: src/process/limits.cpp (the target collage::reference).
#pragma once

#include <cstddef>

namespace collage::inline v0::detail {

/// Throws if a limit of memory has no room for so many more bytes (run/limits.hpp). Linux would end the process, or refuse the
/// memory later, when the reason is not known any more. `what` needs the bytes: "the arena". Fewer bytes than 1 MB are not checked,
/// because checking takes time.
void check_memory(std::size_t bytes, const char* what);

}  // namespace collage::inline v0::detail
