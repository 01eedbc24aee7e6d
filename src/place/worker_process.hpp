// A worker as a process: starting it, sending it a request, waiting for a reply, and how it ended.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "request.hpp"
#include "wire.hpp"
#include "worker_program.hpp"

#include <collage/measure/time_source.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace collage::inline v0::detail {
namespace {

/// How a process ended; nothing if its status was read before.
using exit_status = std::optional<int>;

/// Signals that come from a person, the system or a shortage of memory rather than from a kernel's code.
bool is_from_outside(const exit_status& status) {
  if (!status || !WIFSIGNALED(*status)) return false;
  const int s = WTERMSIG(*status);
  return s == SIGKILL || s == SIGTERM || s == SIGHUP || s == SIGINT || s == SIGQUIT;
}

std::string signal_text(int signal) {
  switch (signal) {
    case SIGSEGV: return "SIGSEGV";
    case SIGBUS: return "SIGBUS";
    case SIGABRT: return "SIGABRT";
    case SIGFPE: return "SIGFPE";
    case SIGILL: return "SIGILL";
    case SIGSYS: return "SIGSYS";
    case SIGTRAP: return "SIGTRAP";
    case SIGKILL: return "SIGKILL";
    case SIGTERM: return "SIGTERM";
    default: return "signal " + std::to_string(signal);
  }
}

/// The end of a worker, as the predicate of a sentence.
std::string end_text(const exit_status& status) {
  if (!status) return "ended its process";
  if (!WIFSIGNALED(*status)) return "ended its process with exit status " + std::to_string(WEXITSTATUS(*status));
  return "crashed with " + signal_text(WTERMSIG(*status));
}
std::string end_text(const exit_status& status, measuring_step step) {
  std::string text = end_text(status) + " " + step_text(step);
  const int signal = status && WIFSIGNALED(*status) ? WTERMSIG(*status) : 0;
  if (step == measuring_step::first_call && (signal == SIGSEGV || signal == SIGBUS))
    text += ": it reads or writes outside its memory, or writes to its inputs";
  return text;
}

std::string seconds_text(double seconds) {
  char text[32];
  const auto [end, failed] = std::to_chars(text, text + sizeof text, seconds);
  return failed == std::errc() ? std::string(text, end) + " s" : "the time it had";
}

/// A file descriptor of ours.
class descriptor {
 public:
  explicit descriptor(int number = -1) : number_(number) {}
  descriptor(descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  descriptor& operator=(descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~descriptor() { reset(); }
  int get() const { return number_; }
  void reset() {
    if (number_ >= 0) close(number_);
    number_ = -1;
  }

 private:
  int number_;
};

/// A worker's process and the connection to it.
class worker_process {
 public:
  worker_process() = default;
  worker_process(const worker_process&) = delete;
  worker_process& operator=(const worker_process&) = delete;
  ~worker_process() { end(); }

  bool is_there() const { return pid_ > 0; }
  pid_t pid() const { return pid_; }
  int socket() const { return socket_.get(); }
  /// Whether workers are this program, and not an executable of their own.
  bool is_program() const { return executable_.path.empty(); }
  const std::string& executable() const { return executable_.path; }

  /// Starts the process; returns why it could not be started.
  std::string start() {
    int ends[2] = {-1, -1};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
      return std::string("no connection can be made: ") + std::strerror(errno);
    descriptor ours(ends[0]), theirs(ends[1]);
    // Out of the way of the standard streams, which the worker gives other meanings.
    if (theirs.get() <= STDERR_FILENO) theirs = descriptor(fcntl(theirs.get(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    executable_ = program().is_noted ? worker_executable() : used_worker_executable();
    int number = theirs.get();
    if (!is_program()) number = STDERR_FILENO + 1;
    posix_spawn_file_actions_adddup2(&actions, theirs.get(), number);  // survives exec
    // The program of a library's user may have left its files and sockets open for children. They are not meant for this one.
    if (!is_program()) posix_spawn_file_actions_addclosefrom_np(&actions, number + 1);
    // A process group of its own: Ctrl-C is for us, and what it started ends with it.
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setpgroup(&attributes, 0);
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attributes, &none);
    std::vector<std::string> words = {is_program() ? program().name : executable_.path, worker_mark,
                                      std::to_string(number)};
    words.insert(words.end(), executable_.arguments.begin(), executable_.arguments.end());
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    const auto spawn = [&](const char* path) {
      return posix_spawn(&pid_, path, &actions, &attributes, arguments.data(), environ);
    };
    int failed = spawn(is_program() ? "/proc/self/exe" : executable_.path.c_str());
    if (failed != 0 && is_program() && program().has_file())
      failed = spawn(program().path.c_str());  // there is no /proc
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    if (failed != 0) {
      pid_ = 0;
      return (is_program() ? "this program cannot be started again: " : executable_.path + " cannot be started: ") +
             std::strerror(failed);
    }
    socket_ = std::move(ours);
    return {};
  }

  /// Whether the process has ended. Its number stays taken, so that no other process can get it.
  bool has_ended() const {
    siginfo_t info{};
    const int failed = waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT);
    return failed == 0 ? info.si_pid != 0 : errno == ECHILD;
  }

  /// Lets the process end, kills it where it does not within `patience_ms`, and returns how it ended.
  exit_status end(double patience_ms = 0) {
    if (!is_there()) return {};
    socket_.reset();
    for (double waited = 0; !has_ended() && waited < patience_ms; ++waited)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    kill(-pid_, SIGKILL);  // the whole group: also what it has started itself
    int status = 0;
    pid_t found = 0;
    do found = waitpid(pid_, &status, 0);
    while (found < 0 && errno == EINTR);
    const bool is_ours = found == pid_;
    pid_ = 0;
    return is_ours ? exit_status(status) : exit_status();
  }

 private:
  pid_t pid_ = 0;
  descriptor socket_;
  worker_executable executable_;  ///< of the last start
};

/// A file in memory that holds a request; why not where it cannot be.
descriptor to_file(const request_file& request, std::string& why_not) {
  descriptor file(memfd_create("collage request", MFD_CLOEXEC));
  const auto fail = [&] {
    why_not = std::string("there is no memory for a request: ") + std::strerror(errno);
    return descriptor();
  };
  if (file.get() < 0 || ftruncate(file.get(), static_cast<off_t>(request.size)) != 0) return fail();
  const auto write_at = [&](std::size_t at, std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t done = pwrite(file.get(), bytes.data(), bytes.size(), static_cast<off_t>(at));
      if (done < 0 && errno == EINTR) continue;
      if (done <= 0) return false;
      at += static_cast<std::size_t>(done);
      bytes = bytes.subspan(static_cast<std::size_t>(done));
    }
    return true;
  };
  if (!write_at(0, request.head)) return fail();
  for (const request_file::part& part : request.parts)
    if (!write_at(part.at, part.bytes)) return fail();
  return file;
}

enum class waited : std::uint8_t { message, end, too_long };

/// Waits for a message; `tick` is called now and then. The time in which this process itself was stopped does not count.
template <class Tick>
waited wait_for(worker_process& process, packet& p, double patience_ms, Tick tick) {
  constexpr int slice_ms = 20;
  double before = now_ms();
  for (;;) {
    pollfd on{process.socket(), POLLIN, 0};
    const int ready = poll(&on, 1, slice_ms);
    if (ready > 0) {
      if (receive_packet(process.socket(), p, MSG_DONTWAIT) == received::packet) {
        if (p.file >= 0) close(p.file);
        return waited::message;
      }
      return waited::end;
    }
    tick();
    // A child of its own may hold the connection open.
    if (ready == 0 && process.has_ended()) {
      pollfd last{process.socket(), POLLIN, 0};
      if (poll(&last, 1, 0) <= 0) return waited::end;
    }
    const double now = now_ms();
    patience_ms -= std::min(now - before, 5.0 * slice_ms);
    before = now;
    if (patience_ms <= 0) return waited::too_long;
  }
}

}  // namespace
}  // namespace collage::inline v0::detail
