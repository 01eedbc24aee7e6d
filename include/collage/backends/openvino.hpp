// OpenVINO: the library compiles the whole network, or any region of it, as a model of its own. It chooses the fusions
// and layouts inside.
//
// Declarations. The definitions are in collage/backends/impl/openvino.hpp, compiled in exactly one file (by default the
// target collage::openvino). No other file sees the library's headers.
//
// NaN: relu, clip, max, min, exp, hard_sigmoid, softmax, max_pool, reduce_max and reduce_min may lose it anywhere in a
// region. Infinity passes.
//
// The library has its own pool of threads (TBB); all other backends share the OpenMP team. Where a placement goes from
// one to the other, the threads of the former are still looking for work: see docs/openvino.md.
#pragma once

#include <collage/backend.hpp>
#include <collage/graph/graph.hpp>
#include <collage/pattern/pattern.hpp>
#include <collage/run/kernel.hpp>
#include <collage/run/node_group.hpp>
#include <collage/verdict.hpp>
#include <cstdint>

namespace collage::inline v0 {

struct openvino : backend<"openvino"> {
  using patterns = collage::patterns<>;
  static constexpr bool takes_regions = true;

  /// Whether it computes an operator: float32 of known shapes that are not empty, and integers for gather.
  static verdict takes(const graph& network, std::uint32_t node);
  /// Whether the library computes an operator rightly in one region with those that it reads (docs/openvino.md).
  static verdict joins(const graph& network, std::uint32_t node);

  /// Compiles the region with the hint latency, one stream, and float32 throughout. The kernel reads and writes the
  /// caller's memory. Weights are shared where the library does not keep a packed form of its own. Errors: the
  /// library's refusals.
  static kernel build(const node_group& group, build_context& context);

  static probe_result probe();
};

}  // namespace collage::inline v0
