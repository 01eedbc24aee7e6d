// OpenVINO: the whole network, or any region of it, compiled by the library as a model of its own, with the fusions and
// layouts that it chooses there.
//
// Declarations. The definitions are in collage/backends/impl/openvino.hpp, compiled in exactly one file (by default the
// target collage::openvino), which is the only one that sees the library's headers.
//
// NaN: relu, clip, max, min, exp, hard_sigmoid, softmax, max_pool, reduce_max and reduce_min may lose it, wherever in a region.
// Infinity passes.
//
// The library has a pool of threads of its own (TBB); all other backends share the team of OpenMP. Where a placement goes
// from one to the other, each finds the other's threads still looking for work: docs/openvino.md.
#pragma once

#include <collage/backend.hpp>
#include <collage/graph/graph.hpp>
#include <collage/pattern/pattern.hpp>
#include <collage/run/kernel.hpp>
#include <collage/run/node_group.hpp>
#include <cstdint>

namespace collage::inline v0 {

struct openvino : backend<"openvino"> {
  using patterns = collage::patterns<>;
  static constexpr bool takes_regions = true;

  /// Whether it computes an operator: float32 of known shapes that hold something, and for gather integers.
  static bool takes(const graph& network, std::uint32_t node);

  /// Compiles the region: hint latency, one stream, float32 throughout. Reads and writes the caller's memory; weights are
  /// shared where the library does not keep a packed form of its own. Errors: what the library refuses.
  static kernel build(const node_group& group, build_context& context);

  static probe_result probe();
};

}  // namespace collage::inline v0
