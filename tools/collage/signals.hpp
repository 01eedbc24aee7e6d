// Signals that end the program: SIGINT (Ctrl-C), SIGTERM and SIGHUP.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace program {

/// From now on, each of these signals ends the program at once, with a line on stderr that says so. Files that are not finished are
/// removed. A signal that is ignored when the program starts, as SIGHUP by nohup, stays ignored.
void handle_signals();

/// The signal that wants the end of the work under way (`finishing`); 0: none.
int ending_signal() noexcept;

/// Ends the program by the signal that wanted its end.
[[noreturn]] void end_by_signal() noexcept;

/// While an object exists, the first signal does not end the program: it wants the work under way to finish soon. A second
/// signal ends the program at once.
class finishing {
 public:
  /// If the work does not finish within a second after a signal, `late` is called in another thread; it must end the program.
  explicit finishing(std::function<void()> late);
  finishing(const finishing&) = delete;
  finishing& operator=(const finishing&) = delete;
  ~finishing();

  /// The work has finished, and `late` is not called any more. Does not return if it runs already.
  void done();

 private:
  void watch(const std::function<void()>& late);

  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_done_ = false, is_late_ = false;
  std::thread watcher_;
};

}  // namespace program
