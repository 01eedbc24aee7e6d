// Tuning the engines of a session while it serves runs: kernels are measured in a thread, and worker processes, of idle priority.
//
//   c::session session = c::make_session<backends>(source);
//   c::background_tuning tuning = c::tune_in_background<backends>(session, {.store = "costs.db", .budget_s = 60});
//
// A session makes its engines by estimated costs, within milliseconds (place/session.hpp). This measures kernels for those that take
// most time, one after another, and replaces the engines. Declarations. The definitions are in src/place/ (the target collage::place).
#pragma once

#include <collage/place.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/session.hpp>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

namespace collage::inline v0 {

namespace detail {
class tuning_thread;
struct end_tuning {
  void operator()(tuning_thread* thread) const;
};
}  // namespace detail

struct background_tuning_state {
  std::size_t improved = 0;       ///< engines that were replaced
  std::size_t failed = 0;         ///< engines whose tuning failed; they stay as they are
  std::string last_failure = {};  ///< why; empty: none
  std::string tuning = {};        ///< the values that the engine serves which is tuned now; empty: none is
};

/// A thread that tunes the engines of a session, those that took most time first, and each once. It waits for further engines when all
/// are tuned. Plans are made by a thread with the scheduling policy SCHED_IDLE, where there is one. Then this thread, its team and its
/// workers run only while processors would do nothing otherwise. Measuring goes on longer where processors are busy, within
/// `place_options::budget_s`. Building the engines has usual priority.
///
/// Two things may still be felt. The quota of a container counts idle work. OpenVINO's threads belong to the whole process, and have the
/// priority of the thread that first used it. Other calls of `place` with the same store wait for it.
///
/// A child of a fork has no such thread: there this object does nothing.
class background_tuning {
 public:
  /// Makes a plan, as a session_planner does. `cancel` becomes true when this object is destroyed.
  using planner = std::function<plan(const graph& network, const std::function<bool()>& cancel)>;

  /// Begins. Error (invalid_argument): no planner. Error (environment): the system gives no thread.
  background_tuning(const session& of, planner plans);
  background_tuning(background_tuning&&) noexcept;
  background_tuning& operator=(background_tuning&&) noexcept;
  /// Ends what is under way, which may take as long as one call of a kernel takes, and waits for it.
  ~background_tuning();

  background_tuning_state state() const;

 private:
  std::unique_ptr<detail::tuning_thread, detail::end_tuning> thread_;
};

/// Tunes the engines of a session by `how`, as `place` does. Costs that the store has at a shape are not measured again, and new ones are
/// added to it. `budget_s` is for each engine; 0: each is tuned to the end. Error (invalid_argument): `costs` is not
/// `measured`, or `previous`, `index` or `packed` is set.
background_tuning tune_in_background(const session& of, backend_table backends, const place_options& how = {});

/// The same over a backend set: `auto tuning = tune_in_background<backends>(session);`.
template <backend_set_type Set>
background_tuning tune_in_background(const session& of, const place_options& how = {}) {
  return tune_in_background(of, table_of<Set>, how);
}

}  // namespace collage::inline v0
