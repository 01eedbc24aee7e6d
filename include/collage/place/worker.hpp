// Workers: candidates are measured in this program started again, so that a kernel that crashes, hangs or ends its process
// is refused with a reason, and placing goes on.
//
// Declarations. The definitions are in src/place/worker.cpp (the target collage::place).
#pragma once

#include <collage/backend_set.hpp>
#include <collage/list_view.hpp>
#include <collage/op/kind.hpp>
#include <collage/run/backend_table.hpp>
#include <cstddef>

namespace collage::inline v0 {

/// To be called first in main: `if (collage::worker<backends>(argc, argv)) return 0;`.
///
/// Where the program was started by its user, it notes that this program can be started again as a worker with these
/// backends, which from then on measure for whoever places, and answers false. Where it was started as a worker, it serves
/// until whoever started it closes the connection or ends, and answers true.
///
/// `kinds` are operator kinds of the user's own that no pattern of the table names; groups that hold a kind which neither
/// these nor the patterns nor collage itself know are measured in the process that places.
bool worker(backend_table backends, int argc, char** argv, list_view<const kind_info* const> kinds = {});

/// The same over a backend set, with kinds of the user's own: `collage::worker<backends, struct my::kind>(argc, argv)`.
template <backend_set_type Set, operator_kind... Kind>
bool worker(int argc, char** argv) {
  static constexpr const kind_info* kinds[] = {&kind_of<Kind>..., nullptr};
  return worker(table_of<Set>, argc, argv, {kinds, sizeof...(Kind)});
}

}  // namespace collage::inline v0
