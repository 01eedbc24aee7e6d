#pragma once

#include <cstddef>

namespace collage_test {

/// How often the test program has called operator new so far, in any thread.
std::size_t allocations();

}  // namespace collage_test
