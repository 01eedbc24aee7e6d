// Our own plain loops: operators of every element type, so that a network never fails for want of a backend.
//
// Declarations. The definitions are in collage/backends/impl/portable.hpp, compiled in exactly one file (by default the
// target collage::portable).
#pragma once

#include <collage/backend.hpp>
#include <collage/backends/any_match.hpp>
#include <collage/backends/portable_bytes.hpp>
#include <collage/backends/portable_dynamic_quantise.hpp>
#include <collage/backends/portable_quantised.hpp>
#include <collage/backends/portable_weights.hpp>
#include <collage/pattern/single.hpp>
#include <cstddef>

namespace collage::inline v0 {

namespace portable_patterns {

/// One operator with loops written for it: elementwise kinds, what moves elements, recurrent cells.
struct loops : pattern<"loops"> {
  static constexpr auto expr = any_operator;
};

/// Any operator that has a reference: runs it in double precision on converted copies. Slow, and complete: user-defined
/// kinds included.
struct from_reference : pattern<"from_reference"> {
  static constexpr auto expr = any_operator;
  static constexpr bool last_resort = true;
};

}  // namespace portable_patterns

/// Needs no library and is always there. A kernel made from the reference allocates while it runs, and throws where its
/// data break a rule, an index out of range.
struct portable : backend<"portable"> {
  using patterns = collage::patterns<portable_patterns::loops, portable_patterns::quantised_function,
                                     portable_patterns::quantised_pair, portable_patterns::quantised_mean,
                                     portable_patterns::dynamic_quantize, portable_patterns::byte_function,
                                     portable_patterns::byte_gate, portable_patterns::byte_pair,
                                     portable_patterns::product_by_integers, portable_patterns::from_reference>;

  static constexpr verdict accepts(const any_match& m);
  static kernel build(const any_match& m, build_context& context);
  /// Loops on integers of 8 bits may have a second variant, for images with channels last. Variants on float32 values that a plan
  /// stores as uint8 follow.
  static std::size_t choices(const any_match& m);
  static void layouts(const any_match& m, std::size_t choice, value_forms& to);
  static kept_constants weights(const any_match& m, const configuration& how);
  static probe_result probe();
  static int enter(int threads);
  static void leave(int token);
};

constexpr verdict portable::accepts(const any_match& m) {
  const std::uint32_t node = m.nodes().back();
  if (detail::is_dynamic_quantize(m)) return detail::accepts_dynamic_quantize(m, node);
  const kind_info& kind = m.kind_of(node);
  if (kind.bodies != 0) return {false, "control flow is run by the engine itself"};
  if (!kind.has_reference && !kind.has_body) return {false, "its kind has no reference"};
  for (std::uint32_t i = 0; i < m.graph().nodes[node].outputs; ++i)
    if (!m.type_of(m.graph().output_of(node, i)).dims.is_concrete()) return {false, "its shapes must be known"};
  for (const std::uint32_t v : m.arguments())
    if (!m.type_of(v).dims.is_concrete()) return {false, "its shapes must be known"};
  if (detail::host::is_product_by_integers(m)) return detail::host::accepts_product_by_integers(m);
  if (detail::host::is_of_reals_on_bytes(m)) return detail::host::accepts_reals_on_bytes(m);
  if (m.nodes().size() > 1) return detail::host::accepts_quantised(m);
  return {};
}

}  // namespace collage::inline v0
