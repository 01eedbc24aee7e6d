// The limits that a process runs within: processor time and memory of its control groups, and its address space.
//
// Definitions: src/process/limits.cpp (the target collage::reference).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace collage::inline v0 {

/// The use of a quota of processor time, since its control group exists. Linux grants a group some time in each
/// period, usually of 100 ms. If the group has used it up, all its threads stand still until the period ends: they are throttled.
struct quota_periods {
  std::uint64_t periods = 0;    ///< in which the group ran something
  std::uint64_t throttled = 0;  ///< of these, periods in which it was throttled
  double throttled_s = 0;       ///< for so long in all
};

/// A limit of memory.
struct memory_limit {
  std::uint64_t bytes = 0;
  std::uint64_t used = 0;  ///< of these, in use; without the copies of files that Linux drops when memory is needed
  std::string set_by;      ///< as in "memory.max of /sys/fs/cgroup/job"

  std::uint64_t left() const { return bytes > used ? bytes - used : 0; }
};

/// The control groups of this process, of version 1 and 2, as far as they are mounted here. Each parent's limit holds as well. The
/// limits are read when they are requested, because they can change. Without control groups, /proc or /sys there are no limits.
class process_limits {
 public:
  /// Finds the groups. `root` comes before every path: a test gives a folder with files as those of /proc and /sys.
  explicit process_limits(std::string root = {});

  /// The smallest quota of processor time, in processors; infinity if there is none.
  double processors() const;
  /// The periods of each quota: of the process's group, of its parent and so on.
  std::vector<quota_periods> periods() const;
  /// The limits of memory that would not let the process have so many more bytes: the one with least memory left. Nothing if the
  /// bytes fit. Free swap space counts as memory.
  std::optional<memory_limit> memory_without_room_for(std::uint64_t bytes) const;
  /// The same for the limit of the address space alone (`ulimit -v`), which also counts memory that is never touched.
  std::optional<memory_limit> address_space_without_room_for(std::uint64_t bytes) const;

 private:
  struct group {
    std::string folder;  // without the root
    bool is_v2 = false;
  };
  std::optional<memory_limit> limit_of(const group& of, std::uint64_t needed) const;
  void add_groups(const std::string& controller, std::vector<group>& to) const;

  std::string root_;
  std::vector<group> processor_groups_, memory_groups_;  // a group before its parent
};

}  // namespace collage::inline v0
