// Work that a forked child could not go on with: a fork waits for it.
#pragma once

#include <mutex>

namespace collage::inline v0::detail {

/// While one exists, other threads may wait for this one. A fork by another thread waits until none exists. After two seconds it goes
/// on, since this thread may wait for a lock of the one that forks, such as Python's. Its work then never ends in the child.
class no_fork_scope {
 public:
  no_fork_scope();
  ~no_fork_scope();
  no_fork_scope(const no_fork_scope&) = delete;
  no_fork_scope& operator=(const no_fork_scope&) = delete;
};

/// The same for a moment, as a look into a list behind a mutex. While a fork waits for others' scopes, these still begin.
class brief_no_fork_scope {
 public:
  brief_no_fork_scope();
  ~brief_no_fork_scope();
  brief_no_fork_scope(const brief_no_fork_scope&) = delete;
  brief_no_fork_scope& operator=(const brief_no_fork_scope&) = delete;
};

/// From now on each fork holds this mutex, behind all scopes, so that no child begins with one that a lost thread holds. It must live as
/// long as the process. Call it while libraries are loaded, to initialise a variable of a namespace. It waits for a fork under way: a
/// function's static variable would be locked in the child for ever.
bool hold_across_forks(std::mutex& mutex);

}  // namespace collage::inline v0::detail
