#include "terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <collage/error.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

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

std::size_t columns_of(int file) {
  winsize size{};
  return ioctl(file, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

void print(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) return;
  const int why = errno;
  std::clearerr(stdout);
  if (why == EPIPE) return;
  throw collage::error(collage::error_kind::invalid_argument, std::string("cannot be written: ") + std::strerror(why),
                       "standard output", "send it to a file or pipe that can be written to");
}

void complain(std::string_view text) {
  std::string line = "collage: " + std::string(text);
  for (std::size_t i = 0; i < line.size(); ++i) {
    const auto c = static_cast<unsigned char>(line[i]);
    const bool list = c == '\n' && line.compare(i + 1, 2, "  ") == 0;  // the loader's: a line for each node it refuses
    if ((c < 0x20 || c == 0x7F) && !list) line[i] = ' ';
  }
  line += '\n';
  std::fflush(stdout);
  std::fputs(line.c_str(), stderr);
}

std::string paint(colour c, std::string_view text) {
  if (c == colour::none || !colourful()) return std::string(text);
  return escape_of(c) + std::string(text) + "\033[0m";
}

progress_line::progress_line(bool quiet) : quiet_(quiet), moving_(understands_escapes(STDERR_FILENO)) {}

void progress_line::show(const std::string& text) {
  if (quiet_) return;
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
