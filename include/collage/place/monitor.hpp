// Watching the machine while networks run on it.
#pragma once

#include <collage/measure/drift.hpp>

namespace collage::inline v0 {

/// A drift monitor that detects what disturbs networks on that many threads: split caches, and other programs on the same cores
/// (docs/measuring.md). For `compare_placements`. Compiled with `place`.
drift_monitor watch_machine(int threads, const drift_options& options = {});

}  // namespace collage::inline v0
