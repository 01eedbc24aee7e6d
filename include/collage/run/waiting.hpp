// How idle threads of OpenMP wait for work: all host code of collage shares one team of threads.
//
// Declarations. The definitions are in src/process/waiting.cpp (the target collage::reference, with which run-time graphs are linked).
#pragma once

#include <memory>
#include <string>

namespace collage::inline v0 {

/// How threads of the OpenMP team wait for work:
///
/// - "default": they look for work for some milliseconds, then sleep (libgomp's 300,000 checks);
/// - "brief": for microseconds: about two, as `brief_waiting` makes them (100 checks), or some tens, as `restart_waiting_briefly` does
///   (2,000 checks);
/// - "spin N": GOMP_SPINCOUNT=N, another number of checks;
/// - "active", "passive": OMP_WAIT_POLICY.
///
/// libgomp reads the variables when it is loaded. They go before `brief_waiting`.
std::string waiting_policy();

/// Starts the program again, with GOMP_SPINCOUNT in its environment, so that threads wait for some tens of microseconds
/// (`brief_checks` checks). Networks of many short kernels need that. A thread that sleeps after two microseconds sleeps between
/// kernels, and waking it takes longer than such a kernel. The process stays the same, and so do its arguments and open files.
/// Children inherit the variable.
///
/// Call it at the beginning of `main`, before other threads exist and before anything is written. It takes as long as a start of
/// the program does. It returns only if it did nothing. Then the environment sets a policy, OpenMP is not GNU's, or the process may
/// use one processor only. Or the program's file cannot be started again. An object of `brief_waiting` serves then.
void restart_waiting_briefly(char** argv);

/// The number of checks that `restart_waiting_briefly` sets.
inline constexpr int brief_checks = 2000;

/// While an object of this class exists, idle threads of OpenMP sleep after microseconds instead of milliseconds. A network of long
/// kernels that has all processors runs as fast as before. Beside other programs it runs several times faster, because spinning
/// threads take processors from threads that compute.
///
/// It holds for all of OpenMP in the process, so that it is an option: a program creates one in `main`.
///
/// libgomp waits briefly while it manages more threads than there are processors (gomp_throttled_spin_count_var). The first object
/// therefore starts one thread more than there are processors. They sleep until the last object is destroyed.
class brief_waiting {
 public:
  brief_waiting();

  /// Why threads wait as before. Empty if they wait briefly.
  const std::string& why_not() const { return why_not_; }

  struct idle_team;

 private:
  std::shared_ptr<idle_team> team_;
  std::string why_not_;
};

/// The number of threads that compute at the same time if `wanted` are requested: 1 where the process may use one processor only.
/// There the threads of a team would wait for each other in turns.
int concurrent_threads(int wanted);

namespace detail {

/// From the first call on, a fork leaves the child able to use OpenMP. libgomp's threads do not exist in the child, and its first
/// region would wait for them without end. So the forking thread ends its team before the fork; the next region starts it again.
/// Engines call it when they are built.
void prepare_for_forks();

}  // namespace detail
}  // namespace collage::inline v0
