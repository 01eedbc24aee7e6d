// The library's log: sentences about what it does that no result of a call says. Without a function nothing is logged.
#pragma once

#include <cstdint>

namespace collage::inline v0 {

enum class log_level : std::uint8_t {
  note,  ///< what was done, and which kernels cannot be used
  warning,  ///< something works less well than it could: costs that are not stored, kernels that are measured without a worker
};

/// Gets one sentence. `text` is valid until the function returns. Calls come from the threads that call the library, one at a time.
/// The function must not throw and must not call the library.
using log_function = void (*)(void* data, log_level level, const char* text);

/// Sets the function that gets the log of all threads; null for none, as at first. When this returns, the function before is not
/// called any more.
void set_log(log_function function, void* data = nullptr);

namespace detail {
/// Whether there is a function, so that texts are only made where they are read.
bool has_log();
void log(log_level level, const char* text);
}  // namespace detail

}  // namespace collage::inline v0
