// Tables of text that fit a page.
#pragma once

#include "terminal.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace program {

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
  std::string text() const;

 private:
  std::vector<column> columns_;
  std::vector<std::vector<cell>> rows_;
};

}  // namespace program
