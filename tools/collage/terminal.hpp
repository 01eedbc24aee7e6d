// Prints results to stdout, progress and notes to stderr; in colour on a terminal.
#pragma once

#include <place/text.hpp>

#include <string>
#include <string_view>

namespace program {

using collage::detail::colour;
using collage::detail::count_of;
using collage::detail::format_number;
using collage::detail::format_time;
using collage::detail::page_width;
using collage::detail::time_unit;
using collage::detail::wrap;

/// Writes to stdout. Control characters are shown as \u001b and the like: names in networks may contain them. Ignores a
/// closed pipe (`collage explain ... | head`); any other failure throws `collage::error`.
void print(std::string_view text);

/// Prints one line to stderr: "collage: ...". Control characters are shown as by `print`, line breaks as spaces.
void complain(std::string_view text);

/// Colours the text if stdout is a terminal and NO_COLOR is not set.
std::string paint(colour c, std::string_view text);

/// Shows progress on stderr. On a terminal it updates one line; elsewhere it prints a line at most every five seconds.
/// If quiet, it prints nothing.
class progress_line {
 public:
  explicit progress_line(bool quiet);
  progress_line(const progress_line&) = delete;
  progress_line& operator=(const progress_line&) = delete;
  ~progress_line() { clear(); }

  void show(const std::string& what);
  /// Removes the line from the terminal.
  void clear();

 private:
  bool quiet_;
  bool moving_;
  bool shown_ = false;
  double next_s_ = 0;
};

}  // namespace program
