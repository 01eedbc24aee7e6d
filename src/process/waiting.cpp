// How idle threads of OpenMP wait, and what a fork leaves of them.
#include <collage/run/waiting.hpp>

#include <collage/run/processor.hpp>

#include <dlfcn.h>
#include <omp.h>
#include <pthread.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <condition_variable>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace collage::inline v0 {

namespace {

constexpr const char* brief = "brief";

std::string policy_of_environment() {
  if (const char* spins = std::getenv("GOMP_SPINCOUNT"); spins != nullptr && *spins != '\0')
    return spins == std::to_string(brief_checks) ? brief : std::string("spin ") + spins;
  const char* found = std::getenv("OMP_WAIT_POLICY");
  if (found == nullptr) return {};
  std::string policy = found;
  for (char& c : policy)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return policy;
}

/// The waiting policy that the environment set when libgomp read it, which is when it was loaded; empty if none.
const std::string& configured_policy() {
  static const auto* const policy = new std::string(policy_of_environment());  // threads may ask while the program ends
  return *policy;
}
[[maybe_unused]] const std::string& at_loading = configured_policy();

/// LLVM's library has libgomp's functions as well, and counts and waits in its own way.
bool is_libgomp() { return dlsym(RTLD_DEFAULT, "__kmpc_fork_call") == nullptr; }

/// No signal of the process is delivered to threads that are started meanwhile.
class signals_blocked {
 public:
  signals_blocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  signals_blocked(const signals_blocked&) = delete;
  signals_blocked& operator=(const signals_blocked&) = delete;
  ~signals_blocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

/// Whether the system allows so many more threads. libgomp ends the process if it does not.
bool can_start(int threads) {
  std::mutex gate;
  std::vector<std::thread> started;
  bool all = true;
  {
    const std::lock_guard closed(gate);  // all exist at one time
    for (int i = 0; i < threads && all; ++i) {
      try {
        started.emplace_back([&gate] { const std::lock_guard wait(gate); });
      } catch (const std::system_error&) { all = false; }
    }
  }
  for (std::thread& t : started) t.join();
  return all;
}

}  // namespace

/// A team whose threads sleep. libgomp counts them until the thread that started them ends.
struct brief_waiting::idle_team {
  explicit idle_team(int size) : process(getpid()) {
    const signals_blocked quiet;
    holder = std::thread([this, size] { hold(size); });
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return threads != 0; });
  }
  ~idle_team() {
    {
      const std::lock_guard lock(mutex);
      done = true;
    }
    changed.notify_all();
    holder.join();
  }

  void hold(int size) {
    int count = 0;
    omp_set_dynamic(0);
#pragma omp parallel num_threads(size)
    {
#pragma omp single
      count = omp_get_num_threads();
    }
    std::unique_lock lock(mutex);
    threads = count;
    changed.notify_all();
    changed.wait(lock, [this] { return done; });
  }

  pid_t process;
  std::mutex mutex;
  std::condition_variable changed;
  int threads = 0;
  bool done = false;
  std::thread holder;
};

namespace {

std::mutex team_mutex;
std::weak_ptr<brief_waiting::idle_team>& shared_team() {
  static auto* const team =
      new std::weak_ptr<brief_waiting::idle_team>;  // objects of other files may be destroyed later
  return *team;
}

/// The team's threads do not exist in the child of a fork. Nothing is left there to join, and libgomp still counts them.
void release(brief_waiting::idle_team* team) {
  if (team->process == getpid()) delete team;
}

}  // namespace

brief_waiting::brief_waiting() {
  const std::lock_guard lock(team_mutex);
  if (const std::string& policy = configured_policy(); !policy.empty() && policy != brief) {
    why_not_ = "the environment sets the waiting policy \"" + policy + "\"";
    return;
  }
  if (!is_libgomp()) {
    why_not_ = "the OpenMP library is not GNU's";
    return;
  }
  if (configured_policy() == brief) return;
  team_ = shared_team().lock();
  if (team_) return;
  const int size = omp_get_num_procs() + 1;
  if (omp_get_thread_limit() < size) {
    why_not_ = "OMP_THREAD_LIMIT allows fewer threads than there are processors";
    return;
  }
  if (!can_start(size)) {
    why_not_ = "the system allows no " + std::to_string(size) + " more threads";
    return;
  }
  team_ = std::shared_ptr<idle_team>(new idle_team(size), release);
  if (team_->threads < size) {
    why_not_ = "OpenMP started " + std::to_string(team_->threads) +
               (team_->threads == 1 ? " thread instead of " : " threads instead of ") + std::to_string(size);
    team_.reset();
    return;
  }
  shared_team() = team_;
}

namespace {

/// The file that this process was started from; empty if it is there no more. It is also empty if the loader was started by hand and
/// was given the program (`ld.so ./program`): then the loader is the file.
std::string own_file() {
  if (getauxval(AT_BASE) == 0 || getauxval(AT_SECURE) != 0) return {};
  char path[PATH_MAX] = {};
  struct stat link{}, file{};
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
  const bool is_there = length > 0 && stat("/proc/self/exe", &link) == 0 && stat(path, &file) == 0;
  return is_there && link.st_dev == file.st_dev && link.st_ino == file.st_ino ? path : std::string();
}

}  // namespace

void restart_waiting_briefly(char** argv) {
  if (!configured_policy().empty() || !is_libgomp() || allowed_processors() == 1) return;
  const std::string file = own_file();
  if (file.empty() || setenv("GOMP_SPINCOUNT", std::to_string(brief_checks).c_str(), 1) != 0) return;
  execv(file.c_str(), argv);
  unsetenv("GOMP_SPINCOUNT");  // the system refused
}

std::string waiting_policy() {
  if (const std::string& policy = configured_policy(); !policy.empty()) return policy;
  const std::lock_guard lock(team_mutex);
  return shared_team().expired() ? "default" : brief;
}

int concurrent_threads(int wanted) { return allowed_processors() == 1 ? std::min(wanted, 1) : wanted; }

void detail::prepare_for_forks() {
  static const bool is_prepared = [] {
    pthread_atfork([] { omp_pause_resource_all(omp_pause_soft); }, nullptr, nullptr);
    return true;
  }();
  static_cast<void>(is_prepared);
}

}  // namespace collage::inline v0
