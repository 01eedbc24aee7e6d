// Parts of charts: lines, labels and ticks.
#pragma once

#include <cmath>
#include <string>
#include "markup.hpp"

namespace collage::inline v0::report {

/// A line from one point to another, in pixels. `look` is its class.
inline void add_line(html& to, html::literal look, double x1, double y1, double x2, double y2) {
  to.raw("<path class=\"")
      .raw(look)
      .raw("\" d=\"M")
      .length(x1)
      .raw(" ")
      .length(y1)
      .raw("L")
      .length(x2)
      .raw(" ")
      .length(y2)
      .raw("\"/>");
}
/// A text at a point.
inline void add_label(html& to, html::literal look, double x, double y, const std::string& text) {
  to.raw("<text class=\"")
      .raw(look)
      .raw("\" x=\"")
      .length(x)
      .raw("\" y=\"")
      .length(y)
      .raw("\">")
      .text(text)
      .raw("</text>");
}

/// A round number that is at most a quarter of a length, and more than a tenth of it.
inline double tick_of(double length) {
  const double decade = std::pow(10, std::floor(std::log10(length / 4)));
  for (const double factor : {5.0, 2.5, 2.0})
    if (decade * factor * 4 <= length) return decade * factor;
  return decade;
}

}  // namespace collage::inline v0::report
