// Pages of text: paragraphs and tables of at most page_width columns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace collage::inline v0 {

namespace detail {

/// The widest line of a table or paragraph, in columns.
inline constexpr std::size_t page_width = 100;

enum class colour { none, bold, dim, red, green, yellow };

/// Colours a text, or returns it as it is.
using painter = std::string (*)(colour, std::string_view);
std::string plain_text(colour c, std::string_view text);

/// A text as a terminal may show it: each control character as \u001b, which is right within JSON, too. Names of networks may have
/// any character, and a terminal would obey some. Line breaks stay, and so do the colours of `painted`.
std::string visible(std::string_view text);

/// A text between the marks of a colour. `visible` keeps the marks, and a terminal's output replaces them.
std::string painted(colour c, std::string_view text);
/// The colour of the mark that begins here; nothing if there is none. colour::none is the mark that ends a colour.
std::optional<colour> mark_at(std::string_view text);
/// The bytes of a mark.
inline constexpr std::size_t mark_size = 2;

/// Breaks text into lines of at most page_width columns. The first is indented by `first`, the others by `indent`.
std::string wrap(std::string_view text, std::size_t indent, std::size_t first = 0);

/// Formats a number like printf: format_number("%.1f", 1.25). A number that is rounded to zero has no sign. Above
/// 1e15, a format with a number of decimals gives three digits and an exponent.
std::string format_number(const char* format, double number);

/// A ratio of two times: "1.250". It stays short for a plan file that was edited by hand and may have any ratio.
std::string ratio_text(double ratio);

/// A number with what it counts: "1 group", "5 groups".
std::string count_of(std::size_t number, const char* one);

/// A size in bytes with its unit, rounded up: "0.3 KB", "51.21 MB".
std::string size_text(std::uint64_t bytes);

/// The unit of times: milliseconds, or microseconds where the largest time is below 0.01 ms.
struct time_unit {
  const char* name = "ms";
  double in_one_ms = 1;

  explicit time_unit(double largest_ms);
  /// "0.0123", with this number of decimals.
  std::string number(double ms, int decimals) const;
};
/// A time with its unit: "1.234 ms", "0.451 µs".
std::string format_time(double ms);

/// One field, in a colour.
struct cell {
  std::string text;
  colour ink = colour::none;

  cell(const char* words) : text(words) {}
  cell(std::string words, colour c = colour::none) : text(std::move(words)), ink(c) {}
};

enum class align { left, right };

struct column {
  std::string title;
  align side = align::left;
  std::size_t least = 0;  ///< not 0: the column may be narrowed to this width where the table would not fit
  bool wraps = false;     ///< what does not fit continues in the next line; else it is cut
};

/// Rows under titles. Where a table is wider than the page, columns that may be narrowed are.
class table {
 public:
  explicit table(std::vector<column> columns) : columns_(std::move(columns)) {}
  void add(std::vector<cell> row) { rows_.push_back(std::move(row)); }
  std::string text(painter paint) const;

 private:
  std::vector<column> columns_;
  std::vector<std::vector<cell>> rows_;
};

}  // namespace detail
}  // namespace collage::inline v0
