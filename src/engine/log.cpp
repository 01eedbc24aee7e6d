// The library's log.
#include <collage/run/log.hpp>

#include <atomic>
#include <mutex>

namespace collage::inline v0 {

namespace {

struct log_target {
  std::mutex mutex;
  std::atomic<log_function> function = nullptr;
  void* data = nullptr;
};
log_target& target() {
  static log_target one;
  return one;
}

}  // namespace

void set_log(log_function function, void* data) {
  log_target& to = target();
  const std::lock_guard lock(to.mutex);
  to.function = function;
  to.data = data;
}

namespace detail {

bool has_log() { return target().function.load(std::memory_order_relaxed) != nullptr; }

void log(log_level level, const char* text) {
  log_target& to = target();
  const std::lock_guard lock(to.mutex);
  if (const log_function function = to.function) function(to.data, level, text);
}

}  // namespace detail
}  // namespace collage::inline v0
