// The pattern language: operators applied to sub-patterns, stored as a flat array.
//
//   op::relu(op::add(op::conv(any, constant), constant.as<"bias">()))
//
// reads like what it matches. Every call makes an `expression<N>`, an array of N nodes in post-order; nothing is
// nested, so a pattern of any depth is one small type.
#pragma once

#include <collage/detail/hash.hpp>
#include <collage/graph/view.hpp>
#include <collage/op/kind.hpp>
#include <cstddef>
#include <cstdint>

namespace collage::inline v0 {

/// A string as a template argument: the name of a pattern, a backend, a capture.
template <std::size_t N>
struct fixed_string {
  char text[N] = {};
  consteval fixed_string(const char (&from)[N]) {
    for (std::size_t i = 0; i < N; ++i) text[i] = from[i];
  }
};

/// What a pattern node asks of a value.
enum class pattern_role : std::uint8_t {
  any,       ///< any value
  constant,  ///< a constant
  variable,  ///< anything but a constant
  scalar,    ///< a constant of one element with a given value
  same,      ///< the value captured under the same name elsewhere
  apply,     ///< the output of an operator
};

/// How often an operand may occur.
enum class pattern_count : std::uint8_t { once, maybe, many };

/// One node of a pattern.
struct pattern_node {
  static constexpr std::size_t max_children = 6;
  static constexpr std::size_t max_kinds = 10;

  pattern_role role = pattern_role::any;
  pattern_count count = pattern_count::once;
  bool may_escape = false;  ///< its value may also be read outside the match, if it is not the root
  std::uint8_t children = 0;
  std::uint8_t kinds = 0;  ///< `apply`: how many kinds are allowed, with the same operands each; none: any kind
  std::uint16_t child[max_children] = {};
  const kind_info* kind[max_kinds] = {};
  double scalar = 0;
  double tolerance = 0;       ///< relative
  std::uint64_t capture = 0;  ///< hash of the capture's name, 0 without one
  const char* capture_name = "";
};

/// A pattern: nodes in post-order, the root last.
template <std::size_t N>
struct expression {
  static constexpr std::size_t size = N;
  pattern_node node[N];

  /// Names what this pattern binds, to be asked of the match: `m.get<"bias">()`.
  template <fixed_string Name>
  constexpr expression as() const {
    expression copy = *this;
    copy.node[N - 1].capture = detail::hash(Name.text);
    copy.node[N - 1].capture_name = capture_text<Name>;
    return copy;
  }
  /// Allows the value to be read outside the match as well.
  constexpr expression escaping() const {
    expression copy = *this;
    copy.node[N - 1].may_escape = true;
    return copy;
  }

 private:
  template <fixed_string Name>
  static constexpr const char* capture_text = Name.text;
};

/// Patterns that are one value.
inline constexpr expression<1> any{{pattern_node{}}};
inline constexpr expression<1> constant = [] {
  expression<1> e{};
  e.node[0].role = pattern_role::constant;
  return e;
}();
inline constexpr expression<1> variable = [] {
  expression<1> e{};
  e.node[0].role = pattern_role::variable;
  return e;
}();

/// A constant of one element whose value is `number`, up to a relative tolerance.
constexpr expression<1> scalar(double number, double tolerance = 1e-6) {
  expression<1> e{};
  e.node[0].role = pattern_role::scalar;
  e.node[0].scalar = number;
  e.node[0].tolerance = tolerance;
  return e;
}

/// The value captured under this name elsewhere in the pattern.
template <fixed_string Name>
constexpr expression<1> same() {
  expression<1> e = any.as<Name>();
  e.node[0].role = pattern_role::same;
  return e;
}

/// An operand that may be missing; only as the last of its operator's operands.
template <std::size_t N>
constexpr expression<N> maybe(expression<N> e) {
  e.node[N - 1].count = pattern_count::maybe;
  return e;
}

/// All operands from here on, however many; only as the last of its operator's operands, and only of a single value.
constexpr expression<1> many(expression<1> e) {
  e.node[0].count = pattern_count::many;
  return e;
}

namespace detail {

template <std::size_t To, std::size_t From>
constexpr std::uint16_t append(expression<To>& to, std::size_t& at, const expression<From>& from) {
  const auto offset = static_cast<std::uint16_t>(at);
  for (std::size_t i = 0; i < From; ++i) {
    pattern_node copy = from.node[i];
    for (std::size_t c = 0; c < copy.children; ++c) copy.child[c] = static_cast<std::uint16_t>(copy.child[c] + offset);
    to.node[at++] = copy;
  }
  return static_cast<std::uint16_t>(at - 1);
}

template <std::size_t... N>
constexpr expression<(1 + ... + N)> apply(const kind_info* const* kinds, std::size_t count,
                                          const expression<N>&... operands) {
  static_assert(sizeof...(N) <= pattern_node::max_children,
                "an operator in a pattern takes at most 6 operand patterns; write many(any) for the rest");
  expression<(1 + ... + N)> whole{};
  pattern_node& root = whole.node[whole.size - 1];
  root.role = pattern_role::apply;
  root.kinds = static_cast<std::uint8_t>(count);
  for (std::size_t i = 0; i < count; ++i) root.kind[i] = kinds[i];
  std::size_t at = 0;
  ((root.child[root.children++] = append(whole, at, operands)), ...);
  return whole;
}

}  // namespace detail

/// An operator applied to sub-patterns; what `op::relu(any)` calls. A pattern that can never match does not compile.
template <operator_kind K, std::size_t... N>
constexpr auto make_pattern(const K&, const expression<N>&... operands) {
  static_assert(
      sizeof...(N) >= K::inputs.least && sizeof...(N) <= K::inputs.most,
      "this operator kind does not take that many operands; an optional one is written maybe(...), the rest many(any)");
  const kind_info* const kinds[] = {&kind_of<K>};
  return detail::apply(kinds, 1, operands...);
}

/// Any one of several operator kinds with the same operands: `one_of(op::relu, op::sigmoid)(any)`.
template <operator_kind... K>
struct one_of_kinds {
  static_assert(sizeof...(K) <= pattern_node::max_kinds, "one_of takes at most 10 operator kinds");
  template <std::size_t... N>
  constexpr auto operator()(const expression<N>&... operands) const {
    static_assert(((sizeof...(N) >= K::inputs.least && sizeof...(N) <= K::inputs.most) && ...),
                  "one of these operator kinds does not take that many operands");
    const kind_info* const kinds[] = {&kind_of<K>...};
    return detail::apply(kinds, sizeof...(K), operands...);
  }
};
template <operator_kind... K>
constexpr one_of_kinds<K...> one_of(const K&...) {
  return {};
}

/// An operator of whichever kind, with any operands: what a backend declares that takes everything.
inline constexpr expression<2> any_operator = detail::apply(nullptr, 0, many(any));

/// A pattern in words, as in "relu(add(conv(any, constant), constant 'bias'))". At most 383 characters.
struct pattern_text {
  char text[384] = {};
  std::size_t size = 0;
  constexpr void append(const char* more) {
    while (*more != '\0' && size + 1 < sizeof(text)) text[size++] = *more++;
    text[size] = '\0';
  }
};

namespace detail {

constexpr void describe(std::span<const pattern_node> nodes, std::size_t at, pattern_text& out) {
  const pattern_node& p = nodes[at];
  if (p.count == pattern_count::maybe) out.append("maybe ");
  switch (p.role) {
    case pattern_role::any: out.append("any"); break;
    case pattern_role::constant: out.append("constant"); break;
    case pattern_role::variable: out.append("variable"); break;
    case pattern_role::scalar: out.append("scalar"); break;
    case pattern_role::same: out.append("same"); break;
    case pattern_role::apply:
      if (p.kinds == 0) out.append("any operator");
      for (std::size_t i = 0; i < p.kinds; ++i) {
        if (i != 0) out.append("|");
        out.append(p.kind[i]->name);
      }
      out.append("(");
      for (std::size_t i = 0; i < p.children; ++i) {
        if (i != 0) out.append(", ");
        describe(nodes, p.child[i], out);
      }
      out.append(")");
      break;
  }
  if (p.count == pattern_count::many) out.append("...");
  if (p.capture != 0) {
    out.append(" '");
    out.append(p.capture_name);
    out.append("'");
  }
}

}  // namespace detail

constexpr pattern_text describe(std::span<const pattern_node> nodes) {
  pattern_text out;
  detail::describe(nodes, nodes.size() - 1, out);
  return out;
}

}  // namespace collage::inline v0
