// Drawings of a plan: the layered network as SVG.
#pragma once

#include <cstddef>
#include <string>
#include "facts.hpp"
#include "layout.hpp"
#include "markup.hpp"

namespace collage::inline v0::report {

/// How many patterns tell backends apart besides their colours; they repeat after as many.
inline constexpr std::size_t runner_styles = 9;

/// Patterns that the drawings of a page refer to. It must be in the page, and not hidden.
html pattern_definitions();
/// The swatch of a backend: its colour and its pattern.
html swatch_of(const facts& all, std::size_t runner);
/// The name of the class of a backend's colours.
html class_of(const facts& all, std::size_t runner);

/// A drawing of boxes, and its sizes.
struct drawn {
  html svg;
  std::size_t boxes = 0, crossings = 0;
};

/// The drawing of a scene: of its own boxes, or of others (`folded`). `name` is its `data-view`. A hidden one waits until the page's
/// script shows it.
drawn draw(const facts& all, const scene& of, const html& name, bool is_hidden, const item_graph* folded = nullptr);

/// A time with its unit, as in "0.369 ms".
std::string time_text(double ms);

}  // namespace collage::inline v0::report
