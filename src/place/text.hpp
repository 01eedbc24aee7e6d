// Pages of text: paragraphs and tables of at most page_width columns.
#pragma once

#include <cstddef>
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

/// Breaks text into lines of at most page_width columns. The first is indented by `first`, the others by `indent`.
std::string wrap(std::string_view text, std::size_t indent, std::size_t first = 0);

/// Formats a number like printf: format_number("%.1f", 1.25).
std::string format_number(const char* format, double number);

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
