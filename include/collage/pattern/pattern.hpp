// Patterns as types, and what a backend sees of a match.
#pragma once

#include <collage/pattern/expression.hpp>
#include <collage/pattern/match.hpp>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

namespace collage::inline v0 {

/// The base of a pattern type:
///
///   struct conv_bias_relu : pattern<"conv_bias_relu"> {
///     static constexpr auto expr = op::relu(op::add(op::conv(any, constant), constant.as<"bias">()));
///   };
template <fixed_string Name>
struct pattern {
  static constexpr auto name_text = Name;
  static constexpr const char* name = name_text.text;
};

namespace detail {
template <std::size_t N>
constexpr bool is_expression(const expression<N>&) {
  return true;
}

/// Each `same<"x">()` has a capture to mean.
constexpr bool same_is_captured(std::span<const pattern_node> nodes) {
  for (const pattern_node& p : nodes) {
    bool found = p.role != pattern_role::same;
    for (const pattern_node& other : nodes)
      found = found || (other.capture == p.capture && other.role != pattern_role::same);
    if (!found) return false;
  }
  return true;
}
/// No name captures two values.
constexpr bool captures_are_distinct(std::span<const pattern_node> nodes) {
  for (std::size_t i = 0; i < nodes.size(); ++i)
    for (std::size_t j = i + 1; j < nodes.size(); ++j)
      if (nodes[i].capture != 0 && nodes[i].capture == nodes[j].capture && nodes[i].role != pattern_role::same &&
          nodes[j].role != pattern_role::same)
        return false;
  return true;
}
/// Operands that may be missing stand last, and `many` stands behind them.
constexpr bool optional_operands_are_last(std::span<const pattern_node> nodes) {
  for (const pattern_node& p : nodes)
    for (std::size_t c = 0; c + 1 < p.children; ++c) {
      const pattern_count here = nodes[p.child[c]].count, next = nodes[p.child[c + 1]].count;
      if (here == pattern_count::many || (here == pattern_count::maybe && next == pattern_count::once)) return false;
    }
  return true;
}

/// Checks what an expression alone cannot: it is complete.
template <class P>
constexpr bool check_expression() {
  static_assert(P::expr.size <= match_record::max_pattern, "a pattern has at most 48 nodes");
  static_assert(P::expr.node[P::expr.size - 1].role == pattern_role::apply,
                "the root of a pattern must be an operator");
  static_assert(same_is_captured(P::expr.node),
                "same<\"name\">() must name what the pattern captures with as<\"name\">()");
  static_assert(captures_are_distinct(P::expr.node),
                "a pattern captures two values under one name; the same value again is written same<\"name\">()");
  static_assert(optional_operands_are_last(P::expr.node),
                "maybe(...) and many(...) must be the last operands of their operator");
  return true;
}

}  // namespace detail

/// A type that is a pattern.
template <class P>
concept pattern_type = requires {
  { P::name } -> std::convertible_to<const char*>;
  requires detail::is_expression(P::expr);
};

/// The patterns a backend declares.
template <pattern_type... P>
struct patterns {};

/// A value that a pattern bound.
struct bound_value {
  std::uint32_t value = match_record::nothing;
  dtype type = dtype::f32;
  shape out;  ///< the value's shape
  bool is_constant = false;
  bool has_scalar = false;  ///< a constant of one element whose value is known
  double scalar = 0;
  const kind_info* kind = nullptr;  ///< of the operator that computes it, if the pattern has matched that

  constexpr bool present() const { return value != match_record::nothing; }
};

/// A pattern matched at a place of a graph. `m[ops::conv]` are the attributes of the one operator of that kind;
/// `m.get<"bias">()` is the value captured under a name. Both are looked up at compile time.
template <class P>
class match {
 public:
  static_assert(detail::check_expression<P>());

  /// The record must outlive this.
  constexpr match(const graph_view& graph, const match_record& record) : graph_(graph), record_(&record) {}

  /// The defaults where the operator was optional and is missing, or another of several kinds was matched.
  template <operator_kind K>
  constexpr typename K::attributes operator[](const K&) const {
    constexpr std::size_t found = count_kind<K>();
    static_assert(found != 0, "m[kind]: the pattern has no operator of this kind");
    static_assert(
        found < 2,
        "m[kind]: the pattern has several operators of this kind; capture each with as<\"name\">() and read it with m.attributes<kind>(m.get<\"name\">())");
    return attributes<K>(at(find_kind<K>()));
  }
  /// The attributes of the operator that computes a bound value; the defaults where that is not of kind K.
  template <operator_kind K>
  constexpr typename K::attributes attributes(const bound_value& v) const {
    if (!v.present() || graph_.values[v.value].producer < 0) return {};
    const auto producer = static_cast<std::uint32_t>(graph_.values[v.value].producer);
    if (graph_.kind_id_of(producer) != kind_id<K>) return {};
    return from_words<typename K::attributes>(graph_.words_of(producer));
  }
  /// The value captured under a name; not `present()` where it was optional and is missing.
  template <fixed_string Name>
  constexpr bound_value get() const {
    constexpr std::size_t index = find_capture<Name>();
    static_assert(index < P::expr.size, "m.get<name>(): the pattern captures nothing under this name");
    return at(index);
  }
  /// Whether the operator was matched with this kind, where the pattern allows several.
  template <operator_kind K>
  constexpr bool is(const bound_value& v, const K&) const {
    return v.kind != nullptr && v.kind->id == kind_id<K>;
  }

  /// The operators of the match in pattern order, the root last: indices of graph nodes.
  constexpr std::span<const std::uint32_t> nodes() const { return record_->node_list(); }
  /// The root's output: what the kernel writes.
  constexpr bound_value output() const { return at(P::expr.size - 1); }
  /// The values a kernel reads, in the order of its arguments.
  constexpr std::size_t arguments() const { return record_->arguments; }
  constexpr bound_value argument(std::size_t index) const { return describe(record_->argument[index]); }
  /// Which argument of the kernel a bound value is.
  constexpr std::size_t index_of(const bound_value& v) const {
    for (std::uint32_t i = 0; i < record_->arguments; ++i)
      if (record_->argument[i] == v.value) return i;
    return match_record::nothing;
  }
  /// Operand `index` of the operator that computes a bound value; not `present()` beyond the last.
  constexpr bound_value operand(const bound_value& of, std::size_t index) const {
    const auto producer = static_cast<std::uint32_t>(graph_.values[of.value].producer);
    const std::span<const std::uint32_t> list = graph_.inputs_of(producer);
    return index < list.size() ? describe(list[index]) : bound_value{};
  }
  constexpr const graph_view& graph() const { return graph_; }
  constexpr const match_record& record() const { return *record_; }

 private:
  template <class K>
  static constexpr std::size_t count_kind() {
    std::size_t count = 0;
    for (const pattern_node& p : P::expr.node)
      for (std::size_t i = 0; i < p.kinds; ++i) count += p.kind[i]->id == kind_id<K> ? 1U : 0U;
    return count;
  }
  template <class K>
  static constexpr std::size_t find_kind() {
    for (std::size_t n = 0; n < P::expr.size; ++n)
      for (std::size_t i = 0; i < P::expr.node[n].kinds; ++i)
        if (P::expr.node[n].kind[i]->id == kind_id<K>) return n;
    return P::expr.size;
  }
  template <fixed_string Name>
  static constexpr std::size_t find_capture() {
    for (std::size_t n = 0; n < P::expr.size; ++n)
      if (P::expr.node[n].capture == detail::hash(Name.text) && P::expr.node[n].role != pattern_role::same) return n;
    return P::expr.size;
  }
  constexpr bound_value at(std::size_t pattern_index) const {
    bound_value v = describe(record_->bound[pattern_index]);
    if (v.present() && P::expr.node[pattern_index].role == pattern_role::apply)
      v.kind = graph_.nodes[static_cast<std::size_t>(graph_.values[v.value].producer)].kind;
    return v;
  }
  constexpr bound_value describe(std::uint32_t value) const {
    bound_value v;
    if (value == match_record::nothing) return v;
    const value_record& r = graph_.values[value];
    v.value = value;
    v.type = r.type.type;
    v.out = r.type.dims;
    v.is_constant = r.role == value_role::constant;
    v.has_scalar = r.has_scalar;
    v.scalar = r.scalar;
    return v;
  }

  graph_view graph_;
  const match_record* record_;
};

}  // namespace collage::inline v0
