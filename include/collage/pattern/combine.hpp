// Patterns made of patterns: alternatives, repetitions, optional operators, several outputs.
//
//   repeat<1, 3>(op::relu(op::conv(previous, constant)), any)
//
// A repetition is unrolled into the array, once for each iteration. Every number of iterations is one way through it.
#pragma once

#include <collage/detail/hash.hpp>
#include <collage/pattern/expression.hpp>
#include <cstddef>
#include <cstdint>

namespace collage::inline v0 {

/// In the step of a repetition: the value of the previous iteration, or of the start in the first iteration. All its
/// occurrences in a step are the same value.
inline constexpr expression<1> previous = detail::leaf(pattern_role::previous);

namespace detail {

/// The fault of a step; null if there is none.
template <std::size_t N>
constexpr const char* judge_step(const expression<N>& step) {
  if (step.root().role == pattern_role::previous) return "the step of a repetition must be more than previous itself";
  bool found = false;
  for (std::size_t i = 0; i < step.count; ++i) {
    const pattern_node& p = step.node[i];
    if (p.role != pattern_role::previous) continue;
    found = true;
    if (p.count != pattern_count::once) return "previous cannot be maybe(...) or many(...): every iteration needs it";
    if (p.capture != 0 || p.is_restricted || p.may_escape)
      return "previous takes no name and no condition; give them to the step and to the start";
  }
  return found ? nullptr : "the step of a repetition must contain previous, where the iteration before goes";
}

/// Appends one more iteration, with the node `before` in place of `previous`. Names captured in the step mean the values of
/// this iteration.
template <std::size_t To, std::size_t N>
constexpr std::uint16_t append_iteration(expression<To>& to, const expression<N>& step, std::uint16_t before,
                                         std::uint64_t scope) {
  std::uint16_t place[N + 1] = {};  // the index in `to` of each node of the step
  std::uint16_t next = static_cast<std::uint16_t>(to.count);
  for (std::size_t i = 0; i < step.count; ++i) {
    place[i] = next;
    next = static_cast<std::uint16_t>(next + (step.node[i].role == pattern_role::previous ? 0 : 1));
  }
  for (std::size_t i = 0; i < step.count; ++i) {
    if (step.node[i].role == pattern_role::previous) continue;
    pattern_node& copy = to.node[to.count++];
    copy = step.node[i];
    copy.first = place[copy.first];
    for (std::size_t c = 0; c < copy.children; ++c) {
      const bool is_before = step.node[copy.child[c]].role == pattern_role::previous;
      copy.child[c] = is_before ? before : place[copy.child[c]];
    }
    if (scope != 0 && copy.capture != 0 && captures(step.node, step.count, copy.capture, copy.scope))
      copy.scope = combine(copy.scope, scope);
  }
  return static_cast<std::uint16_t>(to.count - 1);
}

/// Fills an expression with a repetition.
template <std::size_t N, std::size_t S, std::size_t T>
constexpr void settle_repetition(expression<N>& whole, const expression<S>& step, const expression<T>& start,
                                 std::size_t least, std::size_t most) {
  whole.count = 0;
  pattern_node root;
  root.role = pattern_role::repeat;
  root.least = static_cast<std::uint8_t>(least);
  root.most = static_cast<std::uint8_t>(most);
  root.children = 2;
  root.child[0] = append(whole, start);
  root.defect = judge_step(step);
  if (root.defect != nullptr) {
    root.child[1] = append(whole, step);  // so that it can be described
  } else {
    std::uint16_t last = root.child[0];
    for (std::size_t k = 1; k <= most; ++k) {
      last = append_iteration(whole, step, last, most > 1 ? k : 0);
      if (k == 1) {
        root.child[1] = last;
        root.stride = static_cast<std::uint16_t>(last - root.child[0]);
      }
    }
    root.kind_bits = step.root().kind_bits | (least == 0 ? start.root().kind_bits : 0);
    root.output = step.root().output;
  }
  whole.node[whole.count++] = root;
}

template <std::size_t Least, std::size_t Most, std::size_t S, std::size_t T>
constexpr expression<T + Most * S + 1> unroll(const expression<S>& step, const expression<T>& start) {
  expression<T + Most * S + 1> whole{};
  settle_repetition(whole, step, start, Least, Most);
  return whole;
}

/// Turns the root, whose children are in place, into a choice between them.
template <std::size_t N>
constexpr void settle_either(expression<N>& whole) {
  pattern_node& root = whole.root();
  root.kind_bits = 0;
  for (std::size_t i = 0; i < root.children; ++i) root.kind_bits |= whole.node[root.child[i]].kind_bits;
  root.output = whole.node[root.child[0]].output;
}
/// Turns the root, whose children are in place, into several outputs.
template <std::size_t N>
constexpr void settle_outputs(expression<N>& whole) {
  pattern_node& root = whole.root();
  root.kind_bits = whole.node[root.child[0]].kind_bits;
  root.output = whole.node[root.child[0]].output;
}

}  // namespace detail

/// The first alternative that leads to a match. Several alternatives may capture the same name, which then is the value of the
/// alternative that was taken.
template <pattern_operand... E>
constexpr auto either(const E&... alternatives) {
  static_assert(sizeof...(E) > 0, "either() of nothing matches nothing; give it alternatives");
  static_assert(sizeof...(E) <= pattern_node::max_children,
                "either takes at most 6 alternatives; the last can be another either");
  if constexpr (sizeof...(E) == 0 || sizeof...(E) > pattern_node::max_children) {
    return any_operator;
  } else {
    auto whole = detail::join(pattern_role::either, detail::as_expression(alternatives)...);
    detail::settle_either(whole);
    return whole;
  }
}

/// `step` applied between Min and Max times, first to `start`. The match with the most iterations is
/// taken. Captures of the step are bound for each iteration: m.get<"name">(i), where 0 is the iteration next to the start.
template <std::size_t Min, std::size_t Max, pattern_operand Step, pattern_operand Start>
constexpr auto repeat(const Step& step, const Start& start) {
  static_assert(Max >= Min, "repeat<Min, Max>: the maximum is below the minimum");
  static_assert(Max > 0 || Max < Min, "repeat<Min, Max>: a maximum of 0 repeats nothing");
  static_assert(Max <= 32 || Max < Min,
                "repeat<Min, Max>: the maximum is above 32, and a pattern has at most 64 nodes");
  if constexpr (Max < Min || Max == 0 || Max > 32) return any_operator;
  else return detail::unroll<Min, Max>(detail::as_expression(step), detail::as_expression(start));
}

/// `step` applied to `start`, or `start` alone.
template <pattern_operand Step, pattern_operand Start>
constexpr auto optional(const Step& step, const Start& start) {
  return detail::unroll<0, 1>(detail::as_expression(step), detail::as_expression(start));
}

/// Several values at once, each computed by an operator. The first pattern gives the match's place and its first outputs. Each
/// of the others must share a value with the patterns before it, because the matcher finds it from there. The earlier pattern
/// captures the value, and the later pattern names it by same<"name">().
template <pattern_operand First, pattern_operand... Others>
constexpr auto outputs(const First& first, const Others&... others) {
  static_assert(sizeof...(Others) > 0, "outputs(...) of one pattern is that pattern itself");
  static_assert(sizeof...(Others) < pattern_node::max_children, "outputs(...) takes at most 6 patterns");
  if constexpr (sizeof...(Others) == 0 || sizeof...(Others) >= pattern_node::max_children) {
    return detail::as_expression(first);
  } else {
    auto whole = detail::join(pattern_role::outputs, detail::as_expression(first), detail::as_expression(others)...);
    detail::settle_outputs(whole);
    return whole;
  }
}

}  // namespace collage::inline v0
