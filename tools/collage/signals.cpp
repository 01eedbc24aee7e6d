#include "signals.hpp"

#include <semaphore.h>
#include <unistd.h>

#include <collage/io/file.hpp>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace program {

namespace {

constexpr int ending_signals[] = {SIGINT, SIGTERM, SIGHUP};

// Read and written by the handler.
std::atomic<bool> finishes{false};  // the first signal lets the work under way finish
std::atomic<int> wanted{0};         // the first signal
std::atomic<bool> on_terminal{false};
sem_t heard;
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

const char* name_of(int signal) {
  switch (signal) {
    case SIGINT: return "SIGINT";
    case SIGTERM: return "SIGTERM";
    default: return "SIGHUP";
  }
}

/// Writes a line to stderr, over a line of progress that may be there. Only uses what a handler may use.
void say(int signal, const char* what) {
  char line[128];
  std::size_t size = 0;
  for (const char* part : {on_terminal ? "\r\033[K" : "", "collage: ", name_of(signal), what, "\n"})
    for (; *part != '\0' && size < sizeof line; ++part) line[size++] = *part;
  if (::write(STDERR_FILENO, line, size) < 0) errno = 0;
}

/// Ends this process as the signal does by default, so that a shell or supervisor sees which signal it was.
[[noreturn]] void end_by(int signal) {
  collage::remove_unfinished_files();
  struct sigaction plain{};
  plain.sa_handler = SIG_DFL;
  sigaction(signal, &plain, nullptr);
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, signal);
  pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
  ::raise(signal);
  _exit(128 + signal);  // the first process of a container has no default action
}

void handle(int signal) {
  const int before = errno;
  int none = 0;
  if (finishes && wanted.compare_exchange_strong(none, signal)) {
    say(signal, ": finishing with the best plan so far; a second signal ends the program at once");
    sem_post(&heard);
    errno = before;
    return;
  }
  say(signal, ": ended");
  end_by(signal);
}

}  // namespace

void handle_signals() {
  sem_init(&heard, 0, 0);
  const char* kind = std::getenv("TERM");
  on_terminal = isatty(STDERR_FILENO) != 0 && (kind == nullptr || std::strcmp(kind, "dumb") != 0);
  struct sigaction how{};
  how.sa_handler = handle;
  how.sa_flags = SA_RESTART;
  sigemptyset(&how.sa_mask);
  for (const int signal : ending_signals) sigaddset(&how.sa_mask, signal);  // one handler at a time
  for (const int signal : ending_signals) {
    struct sigaction before{};
    if (sigaction(signal, nullptr, &before) == 0 && before.sa_handler != SIG_IGN) sigaction(signal, &how, nullptr);
  }
}

int ending_signal() noexcept { return wanted; }

void end_by_signal() noexcept { end_by(wanted); }

finishing::finishing(std::function<void()> late) {
  // The watcher takes no signal: the handler may run in any other thread.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  watcher_ = std::thread([this, late = std::move(late)] { watch(late); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  finishes = true;
}

finishing::~finishing() {
  done();
  finishes = false;
  watcher_.join();
}

void finishing::done() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !is_late_; });  // for ever: `late` ends the program
  if (std::exchange(is_done_, true)) return;
  changed_.notify_all();
  sem_post(&heard);
}

void finishing::watch(const std::function<void()>& late) {
  constexpr auto longest = std::chrono::seconds(1);
  while (sem_wait(&heard) != 0 && errno == EINTR) continue;
  {
    std::unique_lock lock(mutex_);
    if (changed_.wait_for(lock, longest, [this] { return is_done_; })) return;
    is_late_ = true;
  }
  late();
}

}  // namespace program
