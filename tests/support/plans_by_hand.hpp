// Plans that tests write by hand, without placing.
#pragma once

#include <collage/graph/graph.hpp>
#include <collage/run/plan.hpp>
#include <cstdint>

namespace collage_test {

/// A group of one node, which the first of the two backends below runs.
inline collage::plan_group group_of_one(const collage::graph& network, std::uint32_t node) {
  collage::plan_group g;
  g.step = collage::kernel_step{"first", network.node(node).kind->name, "0"};
  g.kernel = "loops";
  g.nodes = {node};
  return g;
}

/// A plan of the backends "first" and "second".
inline collage::plan plan_by_hand(const collage::graph& network, const collage::placement& chosen) {
  collage::plan made;
  made.network = "by hand";
  made.fingerprint = network.fingerprint();
  made.processor = "none";
  made.backends = {{"first", "1", ""}, {"second", "2", ""}};
  made.chosen = chosen;
  return made;
}

}  // namespace collage_test
