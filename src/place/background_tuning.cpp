#include <collage/error.hpp>
#include <collage/place/background_tuning.hpp>
#include <collage/run/log.hpp>

#include <unistd.h>
#if defined(__linux__)
#include <sched.h>
#endif

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

namespace collage::inline v0 {
namespace detail {
namespace {

/// For this thread, and the threads and processes that it starts.
void become_idle() {
#if defined(__linux__)
  const sched_param none = {};
  if (sched_setscheduler(0, SCHED_IDLE, &none) == 0) return;
#endif
  log(log_level::note, "the system does not give the scheduling policy SCHED_IDLE, so tuning competes with other work");
}

}  // namespace

/// The thread has usual priority: it builds engines, and others wait for locks that it holds meanwhile. Plans are made by another one of
/// idle priority.
class tuning_thread {
 public:
  tuning_thread(const session& of, background_tuning::planner plans) : session_(of), plans_(std::move(plans)) {
    try {
      thread_ = std::thread([this] { run(); });
    } catch (const std::system_error& e) {
      throw error(error_kind::environment, std::string("the system gives no thread: ") + e.what(), "background tuning");
    }
  }
  tuning_thread(const tuning_thread&) = delete;
  tuning_thread& operator=(const tuning_thread&) = delete;
  ~tuning_thread() {
    {
      const std::lock_guard lock(mutex_);
      is_ended_.store(true);
    }
    ended_.notify_all();
    thread_.join();
  }

  /// Whether the process is the one that has the thread.
  bool is_here() const { return getpid() == process_; }

  background_tuning_state state() const {
    if (!is_here()) return {};
    const std::lock_guard lock(mutex_);
    return state_;
  }

 private:
  void run() {
    while (!is_ended_.load()) {
      if (tune_one()) continue;
      std::unique_lock lock(mutex_);
      constexpr std::chrono::milliseconds until_next_look(100);
      ended_.wait_for(lock, until_next_look, [this] { return is_ended_.load(); });
    }
  }

  /// False: nothing is left to tune.
  bool tune_one() {
    std::string why;
    try {
      const std::optional<improved_engine> done = session_.improve(
          [this](const graph& network, const std::shared_ptr<packed_weights>&) { return plan_idly(network); });
      const std::lock_guard lock(mutex_);
      state_.tuning.clear();
      if (!done) return false;
      state_.improved += done->is_replaced ? 1 : 0;
      return true;
    } catch (const std::exception& e) { why = e.what(); } catch (...) {
      why = "something was thrown that is no exception of the standard library";
    }
    const std::lock_guard lock(mutex_);
    state_.tuning.clear();
    if (is_ended_.load()) return true;
    ++state_.failed;
    state_.last_failure = why;
    return true;
  }

  plan plan_idly(const graph& network) {
    set_tuned(network);
    std::optional<plan> made;
    std::exception_ptr failure;
    std::thread([&] {
      become_idle();
      try {
        made = plans_(network, [this] { return is_ended_.load(); });
      } catch (...) { failure = std::current_exception(); }
    }).join();
    // An engine whose tuning is cancelled because all ends may be tuned later.
    if (is_ended_.load()) throw error(error_kind::cancelled, "was ended", "background tuning");
    if (failure == nullptr) return *std::move(made);
    try {
      std::rethrow_exception(failure);
    } catch (const error& e) {
      if (e.kind() == error_kind::cancelled) throw error(error_kind::failure, e.what(), "background tuning");
      throw;
    }
  }

  void set_tuned(const graph& network) {
    std::string text;
    for (const std::uint32_t v : network.inputs())
      text += (text.empty() ? "" : ", ") + network.value_name(v) + " " + to_string(network.type_of(v));
    const std::lock_guard lock(mutex_);
    state_.tuning = std::move(text);
  }

  session session_;
  background_tuning::planner plans_;
  const pid_t process_ = getpid();
  mutable std::mutex mutex_;  ///< for state_
  std::condition_variable ended_;
  std::atomic<bool> is_ended_ = false;
  background_tuning_state state_;
  std::thread thread_;
};

// In the child of a fork, the thread is not there, and locks may be held for ever. So the object is left as it is.
void end_tuning::operator()(tuning_thread* thread) const {
  if (thread->is_here()) delete thread;
}

}  // namespace detail

background_tuning::background_tuning(const session& of, planner plans) {
  if (plans == nullptr) throw error(error_kind::invalid_argument, "needs a planner", "background tuning");
  thread_.reset(new detail::tuning_thread(of, std::move(plans)));
}
background_tuning::background_tuning(background_tuning&&) noexcept = default;
background_tuning& background_tuning::operator=(background_tuning&&) noexcept = default;
background_tuning::~background_tuning() = default;

background_tuning_state background_tuning::state() const {
  return thread_ == nullptr ? background_tuning_state() : thread_->state();
}

background_tuning tune_in_background(const session& of, backend_table backends, const place_options& how) {
  const char* fault = nullptr;
  if (how.costs != placing_costs::measured) fault = "measures, so that costs must be measured";
  else if (how.previous != nullptr || how.index != nullptr || how.packed != nullptr)
    fault = "tunes several networks, and takes no previous plan, index or packed weights of one";
  if (fault != nullptr) throw error(error_kind::invalid_argument, fault, "background tuning");
  return {of, [backends, how](const graph& network, const std::function<bool()>& cancel) -> plan {
            place_options own = how;
            own.cancel = [&how, &cancel] { return cancel() || (how.cancel && how.cancel()); };
            return place(network, backends, own);
          }};
}

}  // namespace collage::inline v0
