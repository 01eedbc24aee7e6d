// Tables of a report.
#pragma once

#include <initializer_list>
#include <string>
#include "facts.hpp"
#include "markup.hpp"

#include <place/text.hpp>

namespace collage::inline v0::report {

/// A table under construction. The page's script sorts its rows by the column whose title is clicked.
class table {
 public:
  struct column {
    html::literal title;
    bool is_number = false;
  };

  table(html::literal look, std::initializer_list<column> columns);
  /// Begins a row of the group with this number, or of none (negative).
  void row(std::int64_t group = -1);
  void cell(const std::string& text);
  void cell(const html& contents);
  /// A number, at the right.
  void number(const std::string& text);
  html done() &&;

 private:
  html made_;
  bool is_open_ = false;
};

/// The groups of the plan with all figures of the page's first level.
html groups_table(const facts& all);
html conversions_table(const facts& all);
html runs_table(const facts& all);
html shares_table(const facts& all);
html missing_tables(const facts& all);
html refusals_table(const facts& all);
html difference_tables(const facts& all);
/// The backends of the plan: versions and how they were compiled.
html backends_table(const facts& all);
/// The nodes that each single backend leaves to others, the first of them by name. Empty if there are none.
html fallbacks_of(const facts& all);

using detail::count_of;
/// A time in milliseconds with four decimals.
std::string ms_text(double ms);

}  // namespace collage::inline v0::report
