// The contents of a drawing of a placement: boxes for groups, conversions, inputs and outputs, and the values between them.
#pragma once

#include <collage/graph/graph.hpp>
#include <collage/run/plan.hpp>
#include <collage/run/program.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace collage::inline v0::report {

/// One box of a drawing.
struct item {
  enum class kind : std::uint8_t { input, group, conversion, output, block };
  kind what = kind::group;
  std::uint32_t number = 0;  ///< of the input, group, conversion or output; of a block: in the list of blocks
};

/// A value in one form: the box that writes it, and those that read it.
struct item_net {
  std::uint32_t from = 0;
  std::vector<std::uint32_t> to;  ///< ascending, each once
  std::uint32_t value = 0;        ///< of the network
  std::string form;
};

/// Boxes in an order in which they can run, and the values between them. Constants are left out.
struct item_graph {
  std::vector<item> items;
  std::vector<item_net> nets;
};

/// The boxes of a placement. `code` is the program of its engine, which says in which form each group reads each value. If it is
/// null, the layouts of the groups decide.
item_graph items_of(const graph& network, const placement& placed, const program* code);

/// Equal parts of a network, one after the other.
struct repeated_block {
  std::uint32_t kind = 0;   ///< which parts are equal: 0, 1, ... by their first place
  std::uint32_t which = 0;  ///< 0, 1, ... among the equal ones
  std::uint32_t count = 0;  ///< how many equal ones there are
  std::vector<std::uint32_t> items;
};

/// Finds parts of a network that follow each other and are equal in operators, attributes, element types, ranks and connections
/// inside. Parts with equal extents are found first. Each has at least `least` nodes. A group that reaches over the end of a part belongs to the part of its last node.
std::vector<repeated_block> repeated_blocks(const graph& network, const placement& placed, const item_graph& items,
                                            std::uint32_t least = 4);

/// The drawing with each block as one box. The blocks must come from `repeated_blocks`.
item_graph collapsed(const item_graph& items, const std::vector<repeated_block>& blocks);

}  // namespace collage::inline v0::report
