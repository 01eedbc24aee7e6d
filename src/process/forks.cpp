#include "forks.hpp"

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

namespace collage::inline v0::detail {
namespace {

thread_local int own_scopes = 0;

/// One for the process. Handlers of forks run in the order in which libraries register them, so one serves scopes and mutexes.
class fork_gate {
 public:
  static fork_gate& only() {
    static fork_gate* const gate = [] {
      static fork_gate* const made = new fork_gate;  // never destroyed: threads may fork while the process ends
      pthread_atfork([] { made->prepare(); }, [] { made->parent(); }, [] { made->child(); });
      return made;
    }();
    return *gate;
  }

  void enter() {
    if (own_scopes++ > 0) {
      ++scopes_;
      return;
    }
    for (;;) {
      ++scopes_;  // before the look: either the fork sees it, or it sees the fork
      if (!is_forking_) return;
      --scopes_;
      is_forking_.wait(true);
    }
  }
  void leave() {
    --own_scopes;
    --scopes_;
  }
  void hold(std::mutex& mutex) {
    const std::lock_guard lock(forks_);
    held_.push_back(&mutex);
  }

 private:
  void prepare() {
    using namespace std::chrono_literals;
    forks_.lock();
    is_forking_ = true;
    const auto end = std::chrono::steady_clock::now() + 2s;
    while (scopes_ > own_scopes && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(100us);
    for (std::mutex* m : held_) m->lock();
  }
  void parent() {
    for (std::mutex* m : held_) m->unlock();
    is_forking_ = false;
    is_forking_.notify_all();
    forks_.unlock();
  }
  void child() {
    scopes_ = own_scopes;  // other threads are not here
    parent();
  }

  std::mutex forks_;  ///< held by the thread that forks
  std::atomic<int> scopes_ = 0;
  std::atomic<bool> is_forking_ = false;
  std::vector<std::mutex*> held_;
};

}  // namespace

no_fork_scope::no_fork_scope() { fork_gate::only().enter(); }
no_fork_scope::~no_fork_scope() { fork_gate::only().leave(); }

bool hold_across_forks(std::mutex& mutex) {
  fork_gate::only().hold(mutex);
  return true;
}

}  // namespace collage::inline v0::detail
