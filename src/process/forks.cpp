#include "forks.hpp"

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

namespace collage::inline v0::detail {
namespace {

/// Scopes of one kind.
struct gate {
  std::atomic<int> inside = 0;
  std::atomic<bool> is_closed = false;

  void enter() {
    for (;;) {
      ++inside;  // before the look: either the fork sees it, or it sees the fork
      if (!is_closed) return;
      --inside;
      is_closed.wait(true);
    }
  }
  void open() {
    is_closed = false;
    is_closed.notify_all();
  }
};

/// The scopes of this thread: inner ones count as the outermost, and never wait.
thread_local gate* own_gate = nullptr;
thread_local int own_scopes = 0;

/// One for the process. Handlers of forks run in the order in which libraries register them, so one serves scopes and mutexes.
class fork_handler {
 public:
  static fork_handler& only() {
    static fork_handler* const handler = [] {
      static fork_handler* const made = new fork_handler;  // never destroyed: threads may fork while the process ends
      pthread_atfork([] { made->prepare(); }, [] { made->parent(); }, [] { made->child(); });
      return made;
    }();
    return *handler;
  }

  static void enter(gate& to) {
    if (own_scopes++ > 0) {
      ++own_gate->inside;
      return;
    }
    own_gate = &to;
    to.enter();
  }
  static void leave() {
    --own_scopes;
    --own_gate->inside;
  }
  void hold(std::mutex& mutex) {
    const std::lock_guard lock(forks_);
    held_.push_back(&mutex);
  }

  gate whole, brief;

 private:
  static int own_in(const gate& g) { return own_gate == &g ? own_scopes : 0; }

  void prepare() {
    using namespace std::chrono_literals;
    forks_.lock();
    for (gate* g : {&whole, &brief}) {
      g->is_closed = true;
      const auto end = std::chrono::steady_clock::now() + 2s;
      while (g->inside > own_in(*g) && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(100us);
    }
    for (std::mutex* m : held_) m->lock();
  }
  void parent() {
    for (std::mutex* m : held_) m->unlock();
    for (gate* g : {&whole, &brief}) g->open();
    forks_.unlock();
  }
  void child() {
    for (gate* g : {&whole, &brief}) g->inside = own_in(*g);  // other threads are not here
    parent();
  }

  std::mutex forks_;  ///< held by the thread that forks
  std::vector<std::mutex*> held_;
};

/// Made while the library is loaded: a child whose parent made it at that moment would wait for it for ever.
[[maybe_unused]] const fork_handler& made_early = fork_handler::only();

}  // namespace

no_fork_scope::no_fork_scope() { fork_handler::enter(fork_handler::only().whole); }
no_fork_scope::~no_fork_scope() { fork_handler::leave(); }
brief_no_fork_scope::brief_no_fork_scope() { fork_handler::enter(fork_handler::only().brief); }
brief_no_fork_scope::~brief_no_fork_scope() { fork_handler::leave(); }

bool hold_across_forks(std::mutex& mutex) {
  fork_handler::only().hold(mutex);
  return true;
}

}  // namespace collage::inline v0::detail
