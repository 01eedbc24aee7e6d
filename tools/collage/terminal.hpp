// Results on stdout, progress and notes on stderr, colours where a person reads them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace program {

/// What no table or paragraph exceeds.
inline constexpr std::size_t page_width = 100;

enum class colour { none, bold, dim, red, green, yellow };

/// Writes to stdout. A reader that went away (`collage explain ... | head`) is no mistake; any other failure is an
/// error.
void print(std::string_view text);

/// One line on stderr: "collage: ...". Control characters, which file names and plans may hold, become spaces.
void complain(std::string_view text);

/// The text in a colour if stdout is a terminal and NO_COLOR is not set.
std::string paint(colour c, std::string_view text);

/// Text broken into lines of at most page_width columns: the first indented by `first`, the others by `indent`.
std::string wrap(std::string_view text, std::size_t indent, std::size_t first = 0);

/// A number as printf writes it: format_number("%.1f", 1.25).
std::string format_number(const char* format, double number);

/// What is going on, on stderr: one moving line on a terminal, elsewhere a line every few seconds, nothing when quiet.
class progress_line {
 public:
  explicit progress_line(bool quiet);
  progress_line(const progress_line&) = delete;
  progress_line& operator=(const progress_line&) = delete;
  ~progress_line() { clear(); }

  void show(const std::string& text);
  /// Takes the moving line away.
  void clear();

 private:
  bool quiet_;
  bool moving_;
  bool shown_ = false;
  double next_s_ = 0;
};

}  // namespace program
