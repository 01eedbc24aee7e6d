// Watching the machine while networks run on it.
#pragma once

#include <collage/measure/drift.hpp>

namespace collage::inline v0 {

/// Makes a drift monitor for `compare_placements`. It detects what disturbs networks on `threads` threads: split caches, and
/// other programs on the same cores (docs/measuring.md). Compiled with `place`.
drift_monitor watch_machine(int threads, const drift_options& options = {});

}  // namespace collage::inline v0
