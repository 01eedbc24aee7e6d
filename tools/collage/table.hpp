// Tables of text in the colours of the terminal.
#pragma once

#include "terminal.hpp"

#include <place/text.hpp>

#include <string>

namespace program {

using collage::detail::align;
using collage::detail::cell;
using collage::detail::column;

class table : public collage::detail::table {
 public:
  using collage::detail::table::table;
  std::string text() const { return collage::detail::table::text(paint); }
};

}  // namespace program
