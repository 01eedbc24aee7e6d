// The passes together, in the order that suits inference.
#pragma once

#include <array>
#include <collage/graph/graph.hpp>
#include <collage/pass/cancel_movement.hpp>
#include <collage/pass/fold_constants.hpp>
#include <collage/pass/fold_scales.hpp>
#include <collage/pass/move_quantisation.hpp>
#include <collage/pass/remove_dead.hpp>
#include <collage/pass/remove_duplicates.hpp>
#include <cstddef>
#include <cstdint>
#include <string>

namespace collage::inline v0 {

/// The effect of one pass, over all rounds.
struct pass_effect {
  const char* pass = "";
  std::size_t nodes = 0;  ///< how many nodes fewer the graph has; subgraphs are not counted
};

/// The effects of `optimise`.
struct optimise_report {
  std::size_t nodes_before = 0, nodes_after = 0;
  std::size_t rounds = 0;  ///< how often the passes ran; in the last round nothing changed
  std::array<pass_effect, 6> effects{{{"remove_dead"},
                                      {"fold_constants"},
                                      {"cancel_movement"},
                                      {"fold_scales"},
                                      {"remove_duplicates"},
                                      {"move_quantisation"}}};
};

/// One line: "232 nodes became 180: fold_constants 4, fold_scales 48".
inline std::string to_string(const optimise_report& report) {
  std::string text = std::to_string(report.nodes_before) + " nodes became " + std::to_string(report.nodes_after);
  const char* before = ": ";
  for (const pass_effect& effect : report.effects) {
    if (effect.nodes == 0) continue;
    text += before + std::string(effect.pass) + ' ' + std::to_string(effect.nodes);
    before = ", ";
  }
  return text;
}

/// Returns the graph after all passes, one after the other until none of them changes anything. It gives the same
/// outputs under the same names, up to rounding. In the end `split_dequantisation` gives nodes that work on integers of 8 bits
/// dequantize_linear nodes of their own. Passes compute with loaded constants: call `fill_constants` first.
inline graph optimise(const graph& network, optimise_report* report = nullptr) {
  optimise_report found;
  found.nodes_before = network.nodes().size();
  graph result = network;
  // Nodes whose values nothing reads after a pass are removed at once. They count among the nodes that the pass removed.
  const auto run = [&](std::size_t which, graph (*pass)(const graph&)) {
    const std::size_t before = result.nodes().size();
    result = remove_dead(pass(result));
    found.effects[which].nodes += before - result.nodes().size();
  };
  const auto state = [&] { return detail::combine(result.fingerprint(), result.values().size()); };
  run(0, [](const graph& g) { return g; });
  for (std::uint64_t before = 0; before != state() || found.rounds == 0; ++found.rounds) {
    before = state();
    run(1, [](const graph& g) { return fold_constants(g); });
    run(2, [](const graph& g) { return cancel_movement(g); });
    run(3, [](const graph& g) { return fold_scales(g); });
    run(4, [](const graph& g) { return remove_duplicates(g); });
    run(5, [](const graph& g) { return move_quantisation(g); });
  }
  result = split_dequantisation(result);  // adds nodes, so it counts among no pass
  found.nodes_after = result.nodes().size();
  if (report != nullptr) *report = found;
  return result;
}

}  // namespace collage::inline v0
