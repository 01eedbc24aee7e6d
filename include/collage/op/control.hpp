// Control flow: nodes that own subgraphs. While they run, they decide which subgraph runs, or how often.
//
// A subgraph reads its inputs only. Values of the enclosing network are operands of the node, after its other operands.
#pragma once

#include <collage/op/kind.hpp>

namespace collage::inline v0::detail {

/// Whether `t` is one element of `type`, in a tensor of any rank. Unknown extents may be 1.
constexpr bool is_single(const tensor_type& t, dtype type) {
  if (t.type != type) return false;
  for (const std::int64_t extent : t.dims)
    if (extent >= 0 && extent != 1) return false;
  return true;
}

}  // namespace collage::inline v0::detail

namespace collage::inline v0::ops {

/// branch(condition, captured...): runs the first subgraph if the condition (one boolean) holds, else the second. Both
/// take all captured values and return values of the same types.
inline constexpr struct branch : kind<branch> {
  static constexpr char name[] = "branch";
  static constexpr bool takes_small_types = true;
  static constexpr fusion_kind fusion = fusion_kind::opaque;
  static constexpr arity inputs{1, any_number};
  static constexpr std::uint32_t outputs = any_number;
  static constexpr std::uint32_t bodies = 2;

  static constexpr std::size_t count_outputs(const attributes&, list_view<const body_signature> owned) {
    return owned.empty() ? 0 : owned[0].out.size();
  }
  static constexpr verdict infer(const attributes&, auto& io) {
    if (io.bodies.size() != 2) return {false, "it must own two subgraphs"};
    if (!detail::is_single(io.in[0], dtype::boolean)) return {false, "its condition must be one boolean", 0};
    for (std::size_t b = 0; b < 2; ++b) {
      const body_signature& body = io.bodies[b];
      if (body.in.size() + 1 != io.in.size())
        return {false, "its subgraphs must have one input for each captured value"};
      for (std::size_t i = 0; i < body.in.size(); ++i)
        if (body.in[i] != io.in[i + 1])
          return {false, "its subgraphs must take the types of the captured values", static_cast<std::int32_t>(i + 1)};
      if (body.out.size() != io.out.size()) return {false, "its subgraphs must have as many outputs as the node"};
      for (std::size_t i = 0; i < io.out.size(); ++i)
        if (body.out[i] != io.bodies[0].out[i]) return {false, "its subgraphs must return the same types and shapes"};
    }
    for (std::size_t i = 0; i < io.out.size(); ++i) io.out[i] = io.bodies[0].out[i];
    return {};
  }
  static void reference(const attributes& a, const reference_call& call);
} branch{};

struct loop_attributes {
  std::int64_t carried = 0;  ///< how many values go from one round to the next
  bool stops = true;         ///< whether the subgraph's condition may end it before the last round
  template <class Self, class Visitor>
  static constexpr void visit(Self& self, Visitor&& visitor) {
    visitor("carried", self.carried);
    visitor("stops", self.stops);
  }
};

/// loop(rounds, condition, carried..., captured...): runs its subgraph while the condition (one boolean) holds, at most
/// `rounds` (one int64) times. The subgraph takes (round, condition, carried..., captured...) and returns (condition,
/// carried..., stacked...).
///
/// Outputs: the carried values after the last round, then the stacked values. A stacked output joins the values of all
/// rounds along a new first dimension. It needs a known number of rounds and a loop that neither stops early nor is skipped.
inline constexpr struct loop : kind<loop> {
  static constexpr char name[] = "loop";
  static constexpr bool takes_small_types = true;
  static constexpr fusion_kind fusion = fusion_kind::opaque;
  static constexpr arity inputs{2, any_number};
  static constexpr std::uint32_t outputs = any_number;
  static constexpr std::uint32_t bodies = 1;
  using attributes = loop_attributes;

  static constexpr std::size_t count_outputs(const attributes&, list_view<const body_signature> owned) {
    return owned.empty() || owned[0].out.empty() ? 0 : owned[0].out.size() - 1;
  }
  static constexpr verdict infer(const attributes& a, auto& io) {
    if (io.bodies.size() != 1) return {false, "it must own one subgraph"};
    const body_signature& body = io.bodies[0];
    if (!detail::is_single(io.in[0], dtype::i64)) return {false, "its number of iterations must be one int64", 0};
    if (!detail::is_single(io.in[1], dtype::boolean)) return {false, "its condition must be one boolean", 1};
    if (a.carried < 0 || static_cast<std::uint64_t>(a.carried) > io.in.size() - 2)
      return {false, "it must have one operand for each carried value"};
    const auto carried = static_cast<std::size_t>(a.carried);
    if (body.in.size() != io.in.size()) return {false, "its subgraph must have one input for each operand"};
    if (body.out.size() < carried + 1) return {false, "its subgraph must return a condition and all carried values"};
    if (!detail::is_single(body.in[0], dtype::i64) || !detail::is_single(body.in[1], dtype::boolean) ||
        !detail::is_single(body.out[0], dtype::boolean))
      return {false,
              "its subgraph must take an iteration number (one int64) and a condition (one boolean), and return a "
              "condition (one boolean)"};
    for (std::size_t i = 2; i < io.in.size(); ++i)
      if (body.in[i] != io.in[i])
        return {false, "its subgraph must take the types of its operands", static_cast<std::int32_t>(i)};
    for (std::size_t i = 0; i < carried; ++i) {
      if (body.out[i + 1] != body.in[i + 2])
        return {false, "a carried value must keep its type and shape", static_cast<std::int32_t>(i + 2)};
      io.out[i] = body.out[i + 1];
    }
    const list_view<const std::int64_t> rounds = io.integers(0);
    for (std::size_t i = carried; i + 1 < body.out.size(); ++i) {
      const tensor_type& one = body.out[i + 1];
      if (a.stops || rounds.size() != 1 || rounds[0] < 0)
        return {false, "stacked outputs need a known number of iterations, and a loop that does not stop early"};
      if (one.rank() == shape::max_rank) return {false, "a stacked output would have more than 8 dimensions"};
      io.out[i].type = one.type;
      io.out[i].dims = {rounds[0]};
      for (const std::int64_t extent : one.dims) io.out[i].dims.push_back(extent);
    }
    return {};
  }
  static void reference(const attributes& a, const reference_call& call);
} loop{};

}  // namespace collage::inline v0::ops
