// The lock for measuring: one process at a time measures with a store.
#include "parts.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <collage/error.hpp>
#include <collage/measure/store.hpp>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <functional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

namespace collage::inline v0 {

namespace {

double now_s() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace

measuring_lock::measuring_lock(measuring_lock&& other) noexcept
    : file_(std::exchange(other.file_, -1)), held_(std::exchange(other.held_, false)) {}

measuring_lock& measuring_lock::operator=(measuring_lock&& other) noexcept {
  if (this != &other) {
    release();
    file_ = std::exchange(other.file_, -1);
    held_ = std::exchange(other.held_, false);
  }
  return *this;
}

measuring_lock::~measuring_lock() { release(); }

void measuring_lock::release() noexcept {
  if (file_ >= 0) {
    // The file stays: if it were removed, two processes could lock two files with the same name. A number left in it does no harm,
    // because only waiting processes read it. Unlocked before closing, because a worker that is just being started shares it.
    if (::ftruncate(file_, 0) != 0 || ::flock(file_, LOCK_UN) != 0) errno = 0;
    ::close(file_);
  }
  file_ = -1;
  held_ = false;
}

measuring_lock cost_store::measuring(const std::function<bool(const measuring_process&)>& go_on) const {
  if (!writable()) return measuring_lock(-1);
  const std::string name = state_->real + "-measuring";
  const auto fail = [&](const char* what, int why) {
    throw error(error_kind::environment, what + detail::store_parts::sentence_of(why), name,
                "give the store a folder where files can be created and locked");
  };
  // Workers are other programs and must not inherit the lock: it would outlive this process.
  int opened = ::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
  // Another user's file can be locked but not written.
  if (opened < 0 && errno == EACCES) opened = ::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (opened < 0) fail("cannot be opened: ", errno);
  struct closing {
    int file;
    ~closing() {
      if (file >= 0) ::close(file);
    }
  } file{opened};
  const double start = now_s();
  while (::flock(file.file, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) fail("cannot be locked: ", errno);
    measuring_process other;
    other.waited_s = now_s() - start;
    char text[24] = {};
    if (::pread(file.file, text, sizeof(text) - 1, 0) > 0) {
      const auto end = std::from_chars(text, text + std::strlen(text), other.pid);
      if (end.ec != std::errc() || other.pid < 0) other.pid = 0;
    }
    if (go_on && !go_on(other)) return {};
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  // Waiting processes show this number. The lock works without it.
  const std::string pid = std::to_string(::getpid()) + '\n';
  if (::ftruncate(file.file, 0) == 0 && ::pwrite(file.file, pid.data(), pid.size(), 0) < 0) errno = 0;
  return measuring_lock(std::exchange(file.file, -1));
}

}  // namespace collage::inline v0
