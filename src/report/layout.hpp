// Layered layout of directed graphs without cycles: boxes stand in ranks, and every connection leads downwards.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace collage::inline v0::report {

/// The size of a box, in pixels.
struct layered_box {
  double width = 0, height = 0;
};

/// A connection from one box to all boxes that read the same value. Its way is shared for as long as possible.
struct layered_net {
  std::uint32_t from = 0;
  std::vector<std::uint32_t> to;
};

/// The numbers of boxes are a topological order: each net leads from a box to boxes with higher numbers.
struct layered_graph {
  std::vector<layered_box> boxes;
  std::vector<layered_net> nets;
};

struct layered_gaps {
  double between_boxes = 22, between_ways = 12, between_ranks = 34, margin = 16;
  /// The most bends of all nets together. Beyond it, the longest nets lead straight to their readers, across boxes.
  std::size_t most_bends = 60000;
};

/// A piece of a net's way: straight down inside a rank, or a curve from one rank to the next.
struct layered_piece {
  double x1 = 0, y1 = 0, x2 = 0, y2 = 0;
};

/// Where everything lies. The origin is the upper left corner.
struct layered_drawing {
  struct place {
    double x = 0, y = 0;  ///< the upper left corner of the box
    std::uint32_t rank = 0;
  };
  std::vector<place> boxes;
  std::vector<std::vector<layered_piece>> ways;  ///< of each net
  std::vector<bool> is_straight;  ///< of each net: its way crosses boxes, because there are too many bends
  std::size_t crossings = 0;      ///< of ways between ranks
  double width = 0, height = 0;
};

/// Lays out a graph by the method of Sugiyama, Tagawa and Toda (1981). Ranks come from longest paths, and orders from barycentres.
/// A net has a bend in each rank that it passes. Coordinates come from isotonic regression in each rank. The same graph has the
/// same drawing. Throws `std::invalid_argument` for a net that does not lead to a higher number.
layered_drawing lay_out(const layered_graph& graph, const layered_gaps& gaps = {});

}  // namespace collage::inline v0::report
