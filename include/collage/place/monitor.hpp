// Watching the machine while networks run on it.
#pragma once

#include <collage/measure/drift.hpp>

namespace collage::inline v0 {

/// A drift monitor whose work tells what disturbs networks on that many threads: that their processors share no cache for a
/// while, or somebody else uses them (docs/measuring.md). For `end_to_end` and `compare_placements`. Compiled with `place`.
drift_monitor watch_machine(int threads, const drift_options& options = {});

}  // namespace collage::inline v0
