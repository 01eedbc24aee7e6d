// Checks patterns, and describes a fault in one sentence.
#pragma once

#include <collage/detail/sentence.hpp>
#include <collage/pattern/describe.hpp>
#include <collage/pattern/expression.hpp>
#include <collage/pattern/match_record.hpp>
#include <collage/pattern/node.hpp>
#include <cstddef>
#include <cstdint>

namespace collage::inline v0::detail {

/// The rule that a pattern breaks, and the node that breaks it; no rule if the pattern is sound.
struct pattern_fault {
  const char* rule = nullptr;
  std::size_t at = 0;
  std::size_t count = 0;  ///< the number that is too large; 0: none
};

/// The first node of the iterations. Iteration k, counted from 0, has the nodes [begin + k * stride, begin + (k + 1) * stride).
template <class Node>
constexpr std::size_t iterations_begin(const Node& repeat) {
  return repeat.child[1] + 1U - repeat.stride;
}
template <class Pattern>
constexpr bool is_repeated(const Pattern& pattern, std::size_t at, std::size_t repeat) {
  const auto& r = pattern[repeat];
  return r.role == pattern_role::repeat && at < repeat && at >= iterations_begin(r);
}
/// The same node in the first iteration of every repetition around it.
template <class Pattern>
constexpr std::size_t in_first_iteration(const Pattern& pattern, std::size_t at) {
  for (std::size_t r = pattern.size; r-- > at;)
    if (is_repeated(pattern, at, r)) {
      const std::size_t begin = iterations_begin(pattern[r]);
      at = begin + (at - begin) % pattern[r].stride;
    }
  return at;
}

/// Whether two nodes are in different alternatives of one either.
template <class Pattern>
constexpr bool are_alternatives(const Pattern& pattern, std::size_t a, std::size_t b) {
  for (std::size_t e = (a > b ? a : b) + 1; e < pattern.size; ++e) {
    const auto& p = pattern[e];
    if (p.role != pattern_role::either || p.first > a || p.first > b) continue;
    std::size_t of_a = p.children, of_b = p.children;
    for (std::size_t c = 0; c < p.children; ++c) {
      if (p.child[c] < p.first) continue;  // the previous iteration
      if (a <= p.child[c] && a >= pattern[p.child[c]].first) of_a = c;
      if (b <= p.child[c] && b >= pattern[p.child[c]].first) of_b = c;
    }
    if (of_a != of_b && of_a != p.children && of_b != p.children) return true;
  }
  return false;
}

/// Whether two nodes may capture the same name. They may if they are the same node of a step, or alternatives in the same
/// repetitions.
template <class Pattern>
constexpr bool can_share_name(const Pattern& pattern, std::size_t a, std::size_t b) {
  a = in_first_iteration(pattern, a);
  b = in_first_iteration(pattern, b);
  if (a == b) return true;
  for (std::size_t r = 0; r < pattern.size; ++r)
    if (pattern[r].most > 1 && is_repeated(pattern, a, r) != is_repeated(pattern, b, r)) return false;
  return are_alternatives(pattern, a, b);
}

constexpr bool is_value(pattern_role role) {
  return role == pattern_role::any || role == pattern_role::constant || role == pattern_role::variable ||
         role == pattern_role::input || role == pattern_role::scalar || role == pattern_role::same;
}

/// The most operators of fusion_kind::anchor that one match can hold. An operator of any kind counts as one.
template <class Pattern>
constexpr std::size_t count_anchors(const Pattern& pattern, std::size_t at) {
  const auto& p = pattern[at];
  std::size_t sum = 0, most = 0;
  for (std::size_t c = 0; c < p.children; ++c) {
    const std::size_t under = p.child[c] < p.first ? 0 : count_anchors(pattern, p.child[c]);
    sum += p.role == pattern_role::repeat && c == 1 ? under * p.most : under;
    most = under > most ? under : most;
  }
  if (p.role == pattern_role::either) return most;
  bool is_anchor = p.role == pattern_role::apply && p.kinds == 0;
  for (std::size_t i = 0; i < p.kinds; ++i) is_anchor = is_anchor || p.kind[i]->fusion == fusion_kind::anchor;
  return sum + (is_anchor ? 1 : 0);
}

/// Templates throughout, so that only includers that check patterns compile the bodies.
template <class Pattern, class Node>
class pattern_checker {
 public:
  constexpr explicit pattern_checker(const Pattern& pattern) : pattern_(pattern) {}

  constexpr pattern_fault run(bool one_anchor) const {
    for (std::size_t i = 0; i < pattern_.size; ++i)
      if (pattern_[i].defect != nullptr) return {pattern_[i].defect, i};
    if (pattern_.size > match_record::max_pattern)
      return {"a pattern has at most 64 nodes, repetitions unrolled", pattern_.size - 1, pattern_.size};
    for (std::size_t i = 0; i < pattern_.size; ++i)
      if (const char* rule = judge(i, pattern_[i]); rule != nullptr) return {rule, i};
    if (const pattern_fault fault = judge_roots(); fault.rule != nullptr) return fault;
    if (const pattern_fault fault = judge_names(); fault.rule != nullptr) return fault;
    if (const std::size_t anchors = one_anchor ? count_anchors(pattern_, pattern_.size - 1) : 0; anchors > 1)
      return {"a pattern with more than one anchor where one is allowed (one_anchor); match the others on their own",
              pattern_.size - 1, anchors};
    return {};
  }

 private:
  /// Checks one node and its children.
  constexpr const char* judge(std::size_t at, const Node& p) const {
    if (p.role == pattern_role::previous) return "previous is used outside the step of a repetition";
    if (p.role == pattern_role::outputs && at + 1 != pattern_.size)
      return "outputs(...) is a whole pattern and cannot be part of another";
    if (p.role == pattern_role::outputs && (p.capture != 0 || p.is_restricted))
      return "outputs(...) takes no name and no condition; give them to its parts";
    if (p.may_escape && is_value(p.role))
      return "escaping() is only for operators: other values are not computed by the pattern";
    if (p.count == pattern_count::many && p.role == pattern_role::same)
      return "many(...) takes any, constant, variable, input or scalar";
    if (p.role != pattern_role::apply) {
      for (std::size_t c = 0; c < p.children; ++c)
        if (pattern_[p.child[c]].count != pattern_count::once)
          return "maybe(...) and many(...) stand for operands of an operator";
    } else {
      for (std::size_t c = 0; c + 1 < p.children; ++c) {
        const pattern_count here = pattern_[p.child[c]].count, next = pattern_[p.child[c + 1]].count;
        if (here == pattern_count::many || (here == pattern_count::maybe && next == pattern_count::once))
          return "maybe(...) and many(...) must be the last operands of their operator";
      }
      for (std::size_t i = 0; i < p.kinds; ++i)
        if (p.kind[i]->outputs != any_number && p.output >= p.kind[i]->outputs)
          return "output<k>(): the operator has fewer outputs, counted from 0";
    }
    for (std::size_t i = 0; i < p.conditions; ++i) {
      if (!p.condition[i].reads_attributes) continue;
      if (p.role != pattern_role::apply)
        return "where(...): the predicate reads attributes, so it must be put on one operator";
      bool fits = p.kinds != 0;
      for (std::size_t k = 0; k < p.kinds; ++k)
        fits = fits && p.kind[k]->attributes_tag == p.condition[i].attributes_tag;
      if (!fits) return "where(...): the predicate reads the attributes of another kind of operator";
    }
    return nullptr;
  }

  constexpr pattern_fault judge_roots() const {
    // For each node: whether it is an operator for every choice, and which output of it; 255 if choices differ.
    bool is_operator[match_record::max_pattern] = {};
    std::uint8_t output[match_record::max_pattern] = {};
    for (std::size_t i = 0; i < pattern_.size; ++i) {
      const auto& p = pattern_[i];
      is_operator[i] = p.role == pattern_role::apply || p.is_choice();
      output[i] = p.output;
      if (!p.is_choice()) continue;
      output[i] = output[p.alternative(0)];
      for (std::size_t a = 0; a < p.alternatives(); ++a) {
        is_operator[i] = is_operator[i] && is_operator[p.alternative(a)];
        if (output[p.alternative(a)] != output[i]) output[i] = 255;
      }
    }
    const std::size_t last = pattern_.size - 1;
    const auto& root = pattern_[last];
    if (root.count != pattern_count::once) return {"maybe(...) and many(...) stand for operands of an operator", last};
    const bool several = root.role == pattern_role::outputs;
    for (std::size_t c = 0; c < (several ? root.children : 1U); ++c) {
      const std::size_t at = several ? root.child[c] : last;
      if (!is_operator[at])
        return {several ? "each of outputs(...) must be computed by an operator"
                        : "the root of a pattern must be an operator",
                at};
      if (c == 0 && output[at] == 255)
        return {"the root of a pattern must be the same output for every alternative", at};
      bool escapes = pattern_[at].may_escape;
      if (pattern_[at].role == pattern_role::either)
        for (std::size_t a = 0; a < pattern_[at].children; ++a)
          escapes = escapes || pattern_[pattern_[at].child[a]].may_escape;
      if (escapes) return {"the root of a pattern is read outside anyway; escaping() is for inner operators", at};
      if (c > 0 && !shares(at))
        return {
            "outputs(...) must share values: capture one with as<name>(), and name it with same<name>() in those "
            "after it",
            at};
    }
    return {};
  }
  /// Whether the nodes under a further root name a value that is captured before them.
  constexpr bool shares(std::size_t root) const {
    for (std::size_t i = pattern_[root].first; i < root; ++i)
      if (pattern_[i].role == pattern_role::same &&
          captures(pattern_.node, pattern_[root].first, pattern_[i].capture, pattern_[i].scope))
        return true;
    return false;
  }

  /// Whether an operator that may compute the captured value has the output that `same` requires.
  constexpr bool has_output(const Node& same) const {
    for (std::size_t i = 0; i < pattern_.size; ++i) {
      const auto& p = pattern_[i];
      if (p.capture != same.capture || p.scope != same.scope || p.role == pattern_role::same) continue;
      if (p.role != pattern_role::apply || p.kinds == 0) return true;  // its outputs are not known yet
      for (std::size_t k = 0; k < p.kinds; ++k)
        if (p.kind[k]->outputs == any_number || same.output < p.kind[k]->outputs) return true;
    }
    return false;
  }

  constexpr pattern_fault judge_names() const {
    for (std::size_t i = 0; i < pattern_.size; ++i) {
      const auto& p = pattern_[i];
      if (p.capture == 0) continue;
      bool captured = false;
      for (std::size_t j = 0; j < pattern_.size; ++j) {
        const auto& other = pattern_[j];
        if (other.capture != p.capture || other.role == pattern_role::same) continue;
        captured = true;
        if (p.role != pattern_role::same && j > i && !can_share_name(pattern_, i, j))
          return {"a pattern captures two values under one name; use same<name>() for the same value", j};
      }
      if (p.role != pattern_role::same) continue;
      if (captures(pattern_.node, pattern_.size, p.capture, p.scope)) {
        if (!p.says_output || has_output(p)) continue;
        return {"output<k>(): the operator that computes the captured value has fewer outputs, counted from 0", i};
      }
      return {captured ? "same<name>() stands outside of the repetition that captures the name, one value for each "
                         "iteration"
                       : "same<name>() must name what the pattern captures with as<name>()",
              i};
    }
    return {};
  }

  Pattern pattern_;
};

template <class P>
constexpr bool wants_one_anchor() {
  if constexpr (requires { P::one_anchor; }) return P::one_anchor;
  else return false;
}

template <class Pattern>
constexpr pattern_fault find_fault(const Pattern& pattern, bool one_anchor) {
  return pattern_checker<Pattern, pattern_node>(pattern).run(one_anchor);
}
template <class P>
inline constexpr pattern_fault fault_of_pattern = find_fault(view_of(P::expr), wants_one_anchor<P>());

/// The sentence about an unsound pattern.
template <class P>
struct pattern_check {
  static constexpr sentence why() {
    constexpr pattern_fault fault = fault_of_pattern<P>;
    sentence out;
    out << "pattern " << P::name << ": " << fault.rule;
    if (fault.count != 0) return out << "; this one has " << fault.count;
    out << " (at ";
    describe_node(view_of(P::expr), fault.at, out);
    return out << ")";
  }
};

/// A compile error if the pattern is not sound.
template <class P>
constexpr bool check_expression() {
  if constexpr (fault_of_pattern<P>.rule != nullptr) static_assert(holds<conclusion<pattern_check<P>>>);
  return true;
}

}  // namespace collage::inline v0::detail
