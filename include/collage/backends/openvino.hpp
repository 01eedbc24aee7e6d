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
#include <collage/backends/openvino_rounding.hpp>
#include <collage/detail/fixed_string.hpp>
#include <collage/dtype.hpp>
#include <collage/graph/graph.hpp>
#include <collage/pattern/pattern.hpp>
#include <collage/run/kernel.hpp>
#include <collage/run/node_group.hpp>
#include <collage/run/precision.hpp>
#include <collage/run/value_scales.hpp>
#include <collage/verdict.hpp>
#include <cstdint>
#include <vector>

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

/// Regions of openvino that compute in a smaller element type, for plans in lower precision. They read and write float32.
template <fixed_string Name, dtype Element>
struct openvino_variant : backend<Name> {
  using patterns = collage::patterns<>;
  using variant_of = openvino;
  static constexpr bool takes_regions = true;
  static constexpr dtype rounds_to = Element;

  static verdict takes(const graph& network, std::uint32_t node) {
    if (const verdict v = openvino::takes(network, node); !v) return v;
    return detail::openvino_rounds_rightly(network, node);
  }
  static verdict joins(const graph& network, std::uint32_t node) { return openvino::joins(network, node); }
  static std::vector<rounded_value> rounds(const graph& network, const node_group& group, const value_scales* scales) {
    return detail::openvino_rounding(network, group, scales).all_to(Element);
  }
};

/// The same in bfloat16. The library stores values and weights in it, and adds in float32.
struct openvino_bf16 : openvino_variant<"openvino-bf16", dtype::bf16> {
  static kernel build(const node_group& group, build_context& context);
  /// Not available on processors without instructions for bfloat16.
  static probe_result probe();
};

/// The same with integers of 8 bits. The model has quantised operands, by the scales of their values, and int8 weights
/// (detail::openvino_rounding says which). The library multiplies these, and decides itself what else it stores so.
struct openvino_int8 : openvino_variant<"openvino-int8", dtype::u8> {
  /// Errors: those of openvino; weights that contain NaN or infinity.
  static kernel build(const node_group& group, build_context& context);
  /// Not available on processors without VNNI, where products of integers saturate.
  static probe_result probe();
};

}  // namespace collage::inline v0
