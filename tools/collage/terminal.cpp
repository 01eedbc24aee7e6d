#include "terminal.hpp"

#include "signals.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <collage/error.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>

namespace program {

namespace {

double now_s() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

const char* escape_of(colour c) {
  switch (c) {
    case colour::bold: return "\033[1m";
    case colour::dim: return "\033[2m";
    case colour::red: return "\033[31m";
    case colour::green: return "\033[32m";
    case colour::yellow: return "\033[33m";
    case colour::none: break;
  }
  return "";
}

bool understands_escapes(int file) {
  const char* kind = std::getenv("TERM");
  return isatty(file) != 0 && (kind == nullptr || std::strcmp(kind, "dumb") != 0);
}

bool colourful() {
  const char* refused = std::getenv("NO_COLOR");
  return understands_escapes(STDOUT_FILENO) && (refused == nullptr || *refused == '\0');
}

/// Replaces the marks of colours by the terminal's escapes.
std::string with_escapes(std::string_view text) {
  std::string made;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::optional<colour> mark = collage::detail::mark_at(text.substr(i));
    if (!mark) {
      made += text[i];
      continue;
    }
    made += *mark == colour::none ? "\033[0m" : escape_of(*mark);
    i += collage::detail::mark_size - 1;
  }
  return made;
}

std::size_t columns_of(int file) {
  winsize size{};
  return ioctl(file, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

void print(std::string_view text) {
  const std::string shown = with_escapes(collage::detail::visible(text));
  if (std::fwrite(shown.data(), 1, shown.size(), stdout) == shown.size() && std::fflush(stdout) == 0) return;
  const int why = errno;
  std::clearerr(stdout);
  if (why == EPIPE || (why == EIO && ending_signal() != 0)) return;  // SIGHUP says that the terminal is gone
  const bool is_full = why == ENOSPC || why == EDQUOT || why == EFBIG;
  throw collage::error(is_full ? collage::error_kind::environment : collage::error_kind::invalid_argument,
                       std::string("cannot be written: ") + std::strerror(why), "standard output",
                       is_full ? "free some space, or send it to a file on a device that has more"
                               : "send it to a file or pipe that can be written to");
}

void complain(std::string_view text) {
  std::string line = "collage: " + collage::detail::visible(text);
  for (std::size_t i = 0; i < line.size(); ++i) {
    const bool list = line.compare(i + 1, 2, "  ") == 0;  // the loader's: a line for each node it refuses
    if (line[i] == '\n' && !list) line[i] = ' ';
  }
  line += '\n';
  std::fflush(stdout);
  std::fputs(line.c_str(), stderr);
}

std::string paint(colour c, std::string_view text) {
  if (c == colour::none || !colourful()) return std::string(text);
  return collage::detail::painted(c, text);
}

progress_line::progress_line(bool quiet) : quiet_(quiet), moving_(understands_escapes(STDERR_FILENO)) {}

void progress_line::show(const std::string& what) {
  if (quiet_) return;
  const std::string text = collage::detail::visible(what);
  const double now = now_s();
  if (moving_) {
    // One column stays free: some terminals break the line when the last one is written.
    const std::string line = "\r\033[K" + text.substr(0, columns_of(STDERR_FILENO) - 1);
    std::fputs(line.c_str(), stderr);
    std::fflush(stderr);
    shown_ = true;
  } else if (now >= next_s_) {
    std::fputs((text + '\n').c_str(), stderr);
    next_s_ = now + 5;
  }
}

void progress_line::clear() {
  if (!shown_) return;
  std::fputs("\r\033[K", stderr);
  std::fflush(stderr);
  shown_ = false;
}

}  // namespace program
