// Workers: placing starts this program again and measures candidates there. A kernel that crashes, hangs or ends its process is
// refused with a reason, and placing goes on.
//
// Declarations. The definitions are in src/place/worker.cpp (the target collage::place).
#pragma once

#include <collage/backend_set.hpp>
#include <collage/list_view.hpp>
#include <collage/op/kind.hpp>
#include <collage/run/backend_table.hpp>
#include <cstddef>

namespace collage::inline v0 {

/// Call it first in main: `if (collage::worker<backends>(argc, argv)) return 0;`.
///
/// If the user started the program, it notes that this program can be started as a worker with these backends, and returns
/// false. From then on, placing measures in workers. If the program was started as a worker, it serves until the placing process
/// closes the connection or ends, and returns true.
///
/// `kinds` are the user's own operator kinds that no pattern of the table names. A group with a kind that is not in `kinds`, in
/// the patterns or in collage itself is measured in the placing process.
bool worker(backend_table backends, int argc, char** argv, list_view<const kind_info* const> kinds = {});

/// Whether placing started this program as a worker. For programs that prepare something in workers, before they call `worker`.
bool is_worker(int argc, const char* const* argv);

/// The same as `worker` for a backend set, with the user's own operator kinds: `collage::worker<backends, struct my::kind>(argc, argv)`.
template <backend_set_type Set, operator_kind... Kind>
bool worker(int argc, char** argv) {
  static constexpr const kind_info* kinds[] = {&kind_of<Kind>..., nullptr};
  return worker(table_of<Set>, argc, argv, {kinds, sizeof...(Kind)});
}

}  // namespace collage::inline v0
