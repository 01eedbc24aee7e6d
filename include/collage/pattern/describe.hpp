// Descriptions of patterns: "relu(add(conv(any, constant), constant as bias))".
#pragma once

#include <collage/detail/sentence.hpp>
#include <collage/dtype.hpp>
#include <collage/pattern/expression.hpp>
#include <collage/pattern/node.hpp>
#include <cstddef>
#include <cstdint>

namespace collage::inline v0 {

/// Text of `size` characters in `text`; longer texts are cut after 1023.
using pattern_text = detail::sentence;

namespace detail {

/// Writes a number with up to 7 significant digits: "0.5", "1.414214", "1e-12".
template <class Text, class Real>
constexpr void append_number(Text& out, Real x) {
  if (x != x) {
    out << "nan";
    return;
  }
  if (x < 0) out << "-";
  if (x < 0) x = -x;
  if (x > 1.7976931348623157e308) {
    out << "infinity";
    return;
  }
  if (x == 0) {
    out << "0";
    return;
  }
  int exponent = 0;
  for (; x >= 9.9999995; ++exponent) x /= 10;
  for (; x < 0.99999995; --exponent) x *= 10;
  auto digits = static_cast<std::int64_t>(x * 1e6 + 0.5);
  int count = 7;
  for (; digits % 10 == 0; --count) digits /= 10;
  char text[8] = {};
  for (int i = count; i > 0; digits /= 10) text[--i] = static_cast<char>('0' + digits % 10);
  const bool is_short = exponent > -5 && exponent < 15;
  const int point = is_short ? exponent : 0;  // the number of digits before the point, less 1
  if (point < 0) out << "0.";
  for (int i = -1; i > point; --i) out << "0";
  for (int i = 0; i < count || i <= point; ++i) {
    if (i > 0 && i == point + 1) out << ".";
    const char digit[] = {i < count ? text[i] : '0', '\0'};
    out << digit;
  }
  if (!is_short) out << "e" << exponent;
}

// Templates, so that only includers that describe patterns compile their bodies.
template <class Pattern, class Text>
constexpr void describe_node(const Pattern& pattern, std::size_t at, Text& out);

/// A child of a node. Within a repetition, a child before the node's first is the previous iteration.
template <class Pattern, class Node, class Text>
constexpr void describe_child(const Pattern& pattern, const Node& parent, std::size_t child, Text& out) {
  if (child < parent.first) out << "previous";
  else describe_node(pattern, child, out);
}
template <class Pattern, class Node, class Text>
constexpr void describe_children(const Pattern& pattern, const Node& p, const char* between, Text& out) {
  for (std::size_t i = 0; i < p.children; ++i) {
    if (i != 0) out << between;
    describe_child(pattern, p, p.child[i], out);
  }
}

template <class Pattern, class Node, class Text>
constexpr void describe_role(const Pattern& pattern, const Node& p, Text& out) {
  switch (p.role) {
    case pattern_role::any: out << "any"; break;
    case pattern_role::constant: out << "constant"; break;
    case pattern_role::variable: out << "variable"; break;
    case pattern_role::input: out << "input"; break;
    case pattern_role::previous: out << "previous"; break;
    case pattern_role::same: out << "same " << p.capture_name; break;
    case pattern_role::scalar:
      out << "scalar ";
      append_number(out, p.scalar);
      if (p.tolerance == 1e-6) break;
      out << " within ";
      append_number(out, p.tolerance);
      break;
    case pattern_role::apply:
      if (p.kinds == 0) out << "any operator";
      for (std::size_t i = 0; i < p.kinds; ++i) out << (i == 0 ? "" : "|") << p.kind[i]->name;
      out << "(";
      describe_children(pattern, p, ", ", out);
      out << ")";
      break;
    case pattern_role::either:
      out << "either(";
      describe_children(pattern, p, " or ", out);
      out << ")";
      break;
    case pattern_role::outputs:
      out << "outputs(";
      describe_children(pattern, p, " and ", out);
      out << ")";
      break;
    case pattern_role::repeat:
      out << (p.least == 0 && p.most == 1 ? "optional(" : "repeat(");
      describe_child(pattern, p, p.child[1], out);
      if (p.least == p.most) out << ", " << p.least << (p.least == 1 ? " time" : " times");
      else if (p.most != 1) out << ", " << p.least << " to " << p.most << " times";
      out << ", from ";
      describe_child(pattern, p, p.child[0], out);
      out << ")";
      break;
  }
}

template <class Node, class Text>
constexpr void describe_restrictions(const Node& p, Text& out) {
  const char* before = " of ";
  for (unsigned t = 0; t < 32; ++t) {
    if ((p.types >> t & 1U) == 0) continue;
    out << before << name_of(static_cast<dtype>(t));
    before = " or ";
  }
  if (p.rank >= 0) out << " of rank " << p.rank;
  for (std::size_t i = 0; i < p.conditions; ++i)
    out << " where " << (p.condition[i].text != nullptr ? p.condition[i].text : "a condition holds");
}

template <class Pattern, class Text>
constexpr void describe_node(const Pattern& pattern, std::size_t at, Text& out) {
  const auto& p = pattern[at];
  if (p.count == pattern_count::maybe) out << "maybe ";
  if (p.may_escape) out << "escaping ";
  if (p.says_output) out << "output " << p.output << " of ";
  describe_role(pattern, p, out);
  if (p.count == pattern_count::many) out << "...";
  if (p.is_restricted) describe_restrictions(p, out);
  if (p.capture != 0 && p.role != pattern_role::same) out << " as " << p.capture_name;
}

}  // namespace detail

/// Describes a pattern in words.
template <class Pattern = pattern_view>
constexpr pattern_text describe(pattern_view pattern) {
  const Pattern& whole = pattern;
  pattern_text out;
  detail::describe_node(whole, whole.size - 1, out);
  return out;
}
template <pattern_type P>
constexpr pattern_text describe(const P&) {
  return describe(detail::view_of(P::expr));
}

}  // namespace collage::inline v0
