// The pattern language: operators applied to sub-patterns, stored as a flat array.
//
//   op::relu(op::add(op::conv(any, constant), constant.as<"bias">()))
//
// A pattern reads like the operators that it matches. Every call makes an `expression<N>`, an array of up to N nodes in
// post-order. Nothing is nested, so a pattern of any depth is one small type. A pattern type can stand wherever an expression
// can. Alternatives, repetitions and several outputs are in pattern/combine.hpp.
#pragma once

#include <collage/detail/fixed_string.hpp>
#include <collage/detail/hash.hpp>
#include <collage/layout.hpp>
#include <collage/pattern/detail/condition.hpp>
#include <collage/pattern/node.hpp>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace collage::inline v0 {

namespace detail {
template <fixed_string Name>
inline constexpr const char* text_of = Name.text;
}  // namespace detail

/// A pattern: `count` nodes in post-order, the root last. Its members add requirements on the root's value. Each returns a
/// copy.
template <std::size_t N>
struct expression {
  pattern_node node[N];
  std::size_t count = N;

  constexpr pattern_node& root() { return node[count - 1]; }
  constexpr const pattern_node& root() const { return node[count - 1]; }
  constexpr const pattern_node* data() const { return node; }
  constexpr std::size_t size() const { return count; }

  /// Names the value, so that the match can return it: `m.get<"bias">()`.
  template <fixed_string Name>
  constexpr expression as() const {
    expression copy = *this;
    if (copy.root().capture != 0) copy.root().defect = "as<name>() is used twice for one value";
    copy.root().capture = detail::hash(Name.text);
    copy.root().capture_name = detail::text_of<Name>;
    return copy;
  }
  /// Allows the value to be read outside the match as well. It is then an output of the match.
  constexpr expression escaping() const {
    expression copy = *this;
    copy.root().may_escape = true;
    return copy;
  }
  /// Selects another output of the operator than the first. For same<"name">(): an output of the operator that computes the
  /// captured value.
  template <std::size_t Index>
  constexpr expression output() const {
    static_assert(Index < 64, "output<k>(): in a pattern k is at most 63");
    expression copy = *this;
    pattern_node& p = copy.root();
    if (p.role != pattern_role::apply && p.role != pattern_role::same)
      p.defect = "output<k>() is for operators and same<name>(); put it inside either, repeat and optional";
    p.output = static_cast<std::uint8_t>(Index);
    p.says_output = true;
    return copy;
  }
  /// Adds a user's condition: a lambda without captures that returns bool or verdict. It takes the attributes of the operator,
  /// the value's tensor_type, or its value_record. `text`, a literal, states the condition:
  /// `.where([](const ops::conv_attributes& a) { return a.groups == 1; }, "groups must be 1")`.
  template <class Predicate>
  constexpr expression where(Predicate, const char* text = nullptr) const {
    expression copy = *this;
    pattern_node& p = copy.root();
    if (p.conditions == pattern_node::max_conditions)
      p.defect = "a value takes at most 2 conditions where(...); join them with &&";
    else p.condition[p.conditions++] = detail::make_condition<Predicate>(text);
    p.is_restricted = true;
    return copy;
  }
  /// Requires one of these element types.
  template <class... Types>
    requires(sizeof...(Types) > 0 && (std::is_same_v<Types, dtype> && ...))
  constexpr expression of(Types... types) const {
    expression copy = *this;
    copy.root().types = (pattern_node::bit_of(types) | ...);
    copy.root().is_restricted = true;
    return copy;
  }
  /// Requires a number of dimensions.
  constexpr expression rank(int dimensions) const {
    expression copy = *this;
    if (dimensions < 0 || dimensions > static_cast<int>(shape::max_rank))
      copy.root().defect = "rank(n): no value has that rank";
    copy.root().rank = static_cast<std::int8_t>(dimensions);
    copy.root().is_restricted = true;
    return copy;
  }
};

namespace detail {
template <class E>
inline constexpr bool is_expression = false;
template <std::size_t N>
inline constexpr bool is_expression<expression<N>> = true;
template <std::size_t N>
inline constexpr bool is_expression<const expression<N>> = true;
}  // namespace detail

/// A pattern type: derived from `pattern<"name">`, with an expression called `expr`.
template <class P>
concept pattern_type = requires {
  static_cast<const char*>(P::name);
  requires detail::is_expression<decltype(P::expr)>;
};

/// An operand in a pattern: an expression or a pattern type.
template <class E> concept pattern_operand = detail::is_expression<E> || pattern_type<E>;

namespace detail {

template <std::size_t N>
constexpr const expression<N>& as_expression(const expression<N>& e) {
  return e;
}
template <pattern_type P>
constexpr const auto& as_expression(const P&) {
  return P::expr;
}
constexpr expression<1> leaf(pattern_role role) {
  expression<1> e{};
  e.node[0].role = role;
  return e;
}

}  // namespace detail

/// Patterns for one value.
inline constexpr expression<1> any = detail::leaf(pattern_role::any);
inline constexpr expression<1> constant = detail::leaf(pattern_role::constant);
inline constexpr expression<1> variable = detail::leaf(pattern_role::variable);
inline constexpr expression<1> input = detail::leaf(pattern_role::input);

/// A constant of one element whose value is `number`, within a relative tolerance.
constexpr expression<1> scalar(double number, double tolerance = 1e-6) {
  expression<1> e = detail::leaf(pattern_role::scalar);
  e.node[0].scalar = number;
  e.node[0].tolerance = tolerance;
  return e;
}

/// The value captured under this name elsewhere in the pattern; in a repetition, in the same iteration.
template <fixed_string Name>
constexpr expression<1> same() {
  expression<1> e = detail::leaf(pattern_role::same);
  e.node[0].capture = detail::hash(Name.text);
  e.node[0].capture_name = detail::text_of<Name>;
  return e;
}

/// An operator of any kind with any operands, for backends that take everything.
inline constexpr expression<2> any_operator{
    {{.count = pattern_count::many}, {.role = pattern_role::apply, .is_open = true, .children = 1}}};

/// An operand that may be missing. Only operands that may be missing or `many` can follow it.
template <pattern_operand E>
constexpr auto maybe(const E& operand) {
  auto e = detail::as_expression(operand);
  e.root().count = pattern_count::maybe;
  return e;
}

/// All operands from here on, however many. It must be the last operand of its operator, and a pattern for one value. It counts
/// as one where the number of operands is checked. For two or more, write `op::matmul(any, many(any))`.
constexpr expression<1> many(expression<1> e) {
  e.root().count = pattern_count::many;
  return e;
}

namespace detail {

/// Appends the nodes of `from` to those of `to`; returns the index of the root.
template <std::size_t To, std::size_t From>
constexpr std::uint16_t append(expression<To>& to, const expression<From>& from) {
  const std::size_t offset = to.count;
  for (std::size_t i = 0; i < from.count; ++i) {
    pattern_node& copy = to.node[to.count++];
    copy = from.node[i];
    copy.first = static_cast<std::uint16_t>(copy.first + offset);
    for (std::size_t c = 0; c < copy.children; ++c) copy.child[c] = static_cast<std::uint16_t>(copy.child[c] + offset);
  }
  return static_cast<std::uint16_t>(to.count - 1);
}

/// An expression whose root has these children, in order.
template <std::size_t... N>
constexpr expression<(1 + ... + N)> join(pattern_role role, const expression<N>&... operands) {
  expression<(1 + ... + N)> whole{};
  pattern_node root;
  root.role = role;
  whole.count = 0;
  ((root.child[root.children++] = append(whole, operands)), ...);
  whole.node[whole.count++] = root;
  return whole;
}

/// Turns the root, whose children are in place, into an operator of one of these kinds; without kinds, of any kind.
template <std::size_t N>
constexpr void settle_operator(expression<N>& whole, const kind_info* const* kinds, std::size_t count) {
  pattern_node& root = whole.root();
  root.kind = kinds;
  root.kinds = static_cast<std::uint16_t>(count);
  if (count != 0) root.kind_bits = 0;
  bool matters = false;  // whether the order in which operands are tried has an effect
  for (std::size_t i = 0; i < root.children; ++i) {
    const pattern_node& child = whole.node[root.child[i]];
    root.least_operands = static_cast<std::uint8_t>(root.least_operands + (child.count == pattern_count::once ? 1 : 0));
    root.is_open = root.is_open || child.count == pattern_count::many;
    matters = matters || child.role != pattern_role::any || child.capture != 0 || child.is_restricted;
  }
  for (std::size_t i = 0; i < count; ++i) {
    root.kind_bits |= pattern_node::bit_of(*kinds[i]);
    root.may_commute = root.may_commute || (matters && root.children > 1 && kinds[i]->commutative);
  }
}

template <std::size_t... N>
constexpr auto apply(const kind_info* const* kinds, std::size_t count, const expression<N>&... operands) {
  constexpr bool fits = sizeof...(N) <= pattern_node::max_children;
  static_assert(fits, "an operator in a pattern takes at most 6 operand patterns; write many(any) for the rest");
  if constexpr (!fits) {
    return any_operator;
  } else {
    auto whole = join(pattern_role::apply, operands...);
    settle_operator(whole, kinds, count);
    return whole;
  }
}

template <class... K>
inline constexpr const kind_info* allowed_kinds[] = {&kind_of<K>...};

}  // namespace detail

/// Applies an operator to sub-patterns; `op::relu(any)` calls it. A pattern that can never match does not compile.
template <operator_kind K, class... Operands>
constexpr auto make_pattern(const K&, const Operands&... operands) {
  constexpr bool takes = (pattern_operand<Operands> && ...);
  static_assert(takes, "an operator in a pattern is applied to expressions and to types derived from collage::pattern");
  constexpr bool fits = sizeof...(Operands) >= K::inputs.least && sizeof...(Operands) <= K::inputs.most;
  static_assert(
      fits || !takes,
      "this operator kind does not take that many operands; an optional one is written maybe(...), the rest many(any)");
  if constexpr (takes && fits) return detail::apply(detail::allowed_kinds<K>, 1, detail::as_expression(operands)...);
  else return any_operator;  // avoids errors that follow from this one
}

/// One of several operator kinds, with the same operands: `one_of(op::relu, op::sigmoid)(any)`.
template <operator_kind... K>
struct one_of_kinds {
  template <pattern_operand... Operands>
  constexpr auto operator()(const Operands&... operands) const {
    constexpr bool fits =
        sizeof...(K) > 0 && ((sizeof...(Operands) >= K::inputs.least && sizeof...(Operands) <= K::inputs.most) && ...);
    static_assert(fits || sizeof...(K) == 0, "one of these operator kinds does not take that many operands");
    if constexpr (fits)
      return detail::apply(detail::allowed_kinds<K...>, sizeof...(K), detail::as_expression(operands)...);
    else return any_operator;
  }
};
template <operator_kind... K>
constexpr one_of_kinds<K...> one_of(const K&...) {
  static_assert(sizeof...(K) > 0, "one_of needs at least one operator kind");
  return {};
}

}  // namespace collage::inline v0
