// Notices when the system keeps the process from its processors: a quota of processor time, and other programs.
//
// Definitions: src/process/holdups.cpp (the target collage::reference).
#pragma once

#include <collage/run/limits.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace collage::inline v0 {

/// How the system kept the process from processors during some work. Times then vary more, and all threads wait for one that stands
/// still.
struct process_holdups {
  std::size_t periods = 0;  ///< of the quota of processor time that held it up most (run/limits.hpp); 0 without a quota
  std::size_t throttled = 0;  ///< of these, periods in which it used up the quota and stood still
  double throttled_s = 0;     ///< for so long
  double waited_s = 0;  ///< that threads waited for a processor, summed over threads; 0 if the system does not count it
  std::size_t preempted = 0;  ///< how often a thread of this process had to leave its processor to another
  std::string advice;         ///< what held it up and what to do, in sentences; empty if nothing did to speak of
};

/// Compares the system's counts at the start of some work with those at its end.
class holdup_watch {
 public:
  holdup_watch();

  /// The report of the time since the start, for work with so many threads. `workers_ms`: for so long, the threads of workers have
  /// waited for a processor.
  process_holdups report(int threads, double workers_ms = 0) const;

 private:
  process_limits limits_;
  std::vector<quota_periods> quotas_;
  double waited_ms_, start_ms_;
  std::uint64_t preempted_;
};

namespace detail {

/// For how long the threads of this process have waited for a processor, summed over those that are alive. 0 without /proc.
double waited_for_processors_ms();

}  // namespace detail
}  // namespace collage::inline v0
