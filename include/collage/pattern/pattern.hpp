// Patterns as types, and their matches as backends see them.
#pragma once

#include <collage/graph/view.hpp>
#include <collage/list_view.hpp>
#include <collage/pattern/bound_value.hpp>
#include <collage/pattern/combine.hpp>
#include <collage/pattern/describe.hpp>
#include <collage/pattern/detail/captures.hpp>
#include <collage/pattern/detail/check.hpp>
#include <collage/pattern/expression.hpp>
#include <collage/pattern/iteration.hpp>
#include <collage/pattern/match.hpp>
#include <collage/pattern/match_record.hpp>
#include <collage/pattern/node.hpp>
#include <collage/pattern/operand.hpp>
#include <cstddef>
#include <cstdint>

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

/// The nodes of a pattern type. A pattern that is not sound does not compile.
template <pattern_type P>
inline constexpr pattern_view nodes_of = detail::check_expression<P>() ? pattern_view(P::expr) : pattern_view();

/// Whether no match of the pattern can hold two operators of fusion_kind::anchor (conv, matmul, ...). A pattern type with
/// `static constexpr bool one_anchor = true;` must satisfy this wherever it is used.
template <class P>
concept at_most_one_anchor =
    pattern_type<P> && detail::count_anchors(detail::view_of(P::expr), P::expr.size() - 1) <= 1;

/// The patterns a backend declares.
template <pattern_type... P>
struct patterns {};

namespace detail {

/// Whether all patterns of a list are sound, and the sentence about the first that is not.
template <class... P>
consteval bool are_sound(const patterns<P...>&) {
  const bool sound[] = {fault_of_pattern<P>.rule == nullptr..., true};
  for (const bool s : sound)
    if (!s) return false;
  return true;
}
template <class... P>
constexpr sentence tell_unsound(const patterns<P...>&) {
  sentence out;
  const auto tell = [&out]<class Q>(const Q*) {
    if constexpr (fault_of_pattern<Q>.rule != nullptr)
      if (out.empty()) out = pattern_check<Q>::why();
  };
  (tell(static_cast<const P*>(nullptr)), ...);
  return out;
}

}  // namespace detail

/// Whether a pattern type captures a value under a name. It lets one function serve different patterns.
template <class P, fixed_string Name>
concept captures_name =
    pattern_type<P> && detail::find_capture(detail::view_of(P::expr), detail::hash(Name.text)).count != 0;

/// A match of pattern P at one node of a graph. The compiler looks up names and operator kinds:
///
///   m[ops::conv]                   the attributes of the one operator of that kind
///   m.get<"bias">()                the value captured under a name
///   m.get<"weights">(i)            the value captured in iteration i of a repetition
///   m.iterations<"weights">()      the iterations of the repetition
template <class P>
class match {
 public:
  static_assert(detail::check_expression<P>());

  /// The record must outlive the match.
  constexpr match(const graph_view& graph, const match_record& record) : graph_(graph), record_(&record) {}

  /// The attributes of the one operator of kind K. The defaults if it was optional and is missing, or if another of several
  /// kinds was matched.
  template <operator_kind K>
  constexpr typename K::attributes operator[](const K&) const {
    constexpr detail::kind_place place = detail::find_kind(detail::view_of(P::expr), kind_id<K>);
    static_assert(place.count != 0, "m[kind]: the pattern has no operator of this kind");
    static_assert(
        !place.is_ambiguous,
        "m[kind]: the pattern has several operators of this kind; capture each with as<\"name\">() and read it with m.attributes<kind>(m.get<\"name\">())");
    if constexpr (place.count != 0) {
      for (std::size_t n = place.first; n < P::expr.size(); ++n)
        if (is_bound(n) && detail::has_kind(P::expr.node[n], kind_id<K>)) return attributes<K>(at(n));
    }
    return {};
  }
  /// The attributes of the operator that computes a bound value; the defaults if it is not of kind K.
  template <operator_kind K>
  constexpr typename K::attributes attributes(const bound_value& v) const {
    if (!v.present() || graph_.values[v.value].producer < 0) return {};
    const auto producer = static_cast<std::uint32_t>(graph_.values[v.value].producer);
    if (graph_.kind_id_of(producer) != kind_id<K>) return {};
    return from_words<typename K::attributes>(graph_.words_of(producer));
  }
  /// The value captured under a name. It is not `present()` if it was optional and is missing, or if another alternative was
  /// taken. For captures in repetitions, give the iteration of each, counted from 0 at the start and the outermost first. The
  /// value of an iteration that did not take place is not `present()`.
  template <fixed_string Name, class... Iteration>
  constexpr bound_value get(Iteration... iteration) const {
    constexpr detail::capture_place place = detail::find_capture(detail::view_of(P::expr), detail::hash(Name.text));
    static_assert(place.count != 0, "m.get<name>(): the pattern captures nothing under this name");
    static_assert(place.count == 0 || sizeof...(Iteration) >= place.depth,
                  "m.get<name>(): the name is captured in a repetition; give its iteration, m.get<name>(i)");
    static_assert(place.count == 0 || sizeof...(Iteration) <= place.depth,
                  "m.get<name>(i): the name is captured in fewer repetitions than there are indices");
    const std::size_t iterations[] = {static_cast<std::size_t>(iteration)..., 0};
    return find(place, detail::hash(Name.text), place.offset(iterations, sizeof...(Iteration)));
  }
  /// The matched iterations of the innermost repetition around a name, the one next to the start first:
  /// `for (const auto step : m.iterations<"step">())`; see match_iteration. For a repetition within another, give the outer
  /// iteration, or call `iterations` of that iteration.
  template <fixed_string Name, class... Iteration>
  constexpr auto iterations(Iteration... iteration) const& {
    constexpr detail::capture_place place = detail::find_capture(detail::view_of(P::expr), detail::hash(Name.text));
    static_assert(place.count != 0, "m.iterations<name>(): the pattern captures nothing under this name");
    static_assert(place.count == 0 || place.depth != 0,
                  "m.iterations<name>(): the name is captured outside of repetitions, or in an optional step");
    static_assert(place.depth == 0 || sizeof...(Iteration) + 1 == place.depth,
                  "m.iterations<name>(...): say the iterations of all repetitions around the innermost");
    constexpr std::size_t innermost = place.depth == 0 ? 0 : place.depth - 1;
    const std::size_t outer[] = {static_cast<std::size_t>(iteration)..., 0};
    return match_iterations<P, place.repeat[innermost]>(*this, outer);
  }
  template <fixed_string Name, class... Iteration>
  constexpr auto iterations(Iteration...) const&& = delete;  // the list refers to the match
  /// The alternative that was taken of the either(...) captured under a name, counted from 0. match_record::nothing if that
  /// either was not matched. In repetitions, give the iteration of each.
  template <fixed_string Name, class... Iteration>
  constexpr std::size_t alternative(Iteration... iteration) const {
    constexpr detail::capture_place place = detail::find_capture(detail::view_of(P::expr), detail::hash(Name.text));
    static_assert(place.count != 0, "m.alternative<name>(): the pattern captures nothing under this name");
    static_assert(place.count == 0 || (place.count == 1 && P::expr.node[place.first].role == pattern_role::either),
                  "m.alternative<name>(): the name is not that of one either(...)");
    static_assert(place.count == 0 || sizeof...(Iteration) == place.depth,
                  "m.alternative<name>(...): say the iteration of each repetition around the either");
    const std::size_t iterations[] = {static_cast<std::size_t>(iteration)..., 0};
    const std::size_t offset = place.offset(iterations, sizeof...(Iteration));
    if (offset == match_record::nothing) return offset;
    return detail::taken_alternative(detail::view_of(P::expr), *record_, place.first + offset);
  }
  /// The number of matched iterations of the repetition that captures a name. For a name captured outside of repetitions: 1 if
  /// it is bound, otherwise 0. For a repetition within another, give the outer iteration.
  template <fixed_string Name, class... Iteration>
  constexpr std::size_t count(Iteration... iteration) const {
    constexpr detail::capture_place place = detail::find_capture(detail::view_of(P::expr), detail::hash(Name.text));
    static_assert(place.count != 0, "m.count<name>(): the pattern captures nothing under this name");
    if constexpr (place.depth == 0) {
      static_assert(sizeof...(Iteration) == 0, "m.count<name>(i): the name is captured outside of repetitions");
      return get<Name>().present() ? 1 : 0;
    } else {
      static_assert(sizeof...(Iteration) + 1 == place.depth,
                    "m.count<name>(...): say the iterations of all repetitions around the innermost");
      const std::size_t iterations[] = {static_cast<std::size_t>(iteration)..., 0};
      return match_iterations<P, place.repeat[place.depth - 1]>(*this, iterations).size();
    }
  }
  /// Whether the operator that computes a bound value is of this kind, where the pattern allows several.
  template <operator_kind K>
  constexpr bool is(const bound_value& v, const K&) const {
    return v.kind_id == kind_id<K>;
  }

  /// The operators of the match in an order in which they can be computed, as indices of graph nodes. The root is the last,
  /// unless the pattern has several outputs.
  constexpr list_view<const std::uint32_t> nodes() const { return record_->node_list(); }
  /// The root's output, which is output 0 of the match.
  constexpr bound_value output() const { return output(0); }
  /// The number of values that a kernel writes: all that are read outside or are outputs of the graph.
  constexpr std::size_t outputs() const { return std::size_t{record_->outputs} + record_->more_outputs; }
  /// Output `index`; not `present()` beyond the last.
  constexpr bound_value output(std::size_t index) const {
    if (index < record_->outputs) return bind(record_->output[index]);
    return index < outputs() ? bind(find_output(index - record_->outputs)) : bound_value{};
  }
  /// The values that a kernel reads, in the order of its arguments.
  constexpr std::size_t arguments() const { return record_->arguments; }
  constexpr bound_value argument(std::size_t index) const { return bind(record_->argument[index]); }
  /// The index of a bound value among the kernel's arguments.
  constexpr std::size_t index_of(const bound_value& v) const { return record_->index_of(v.value); }
  /// Operand `index` of the operator that computes a bound value. It is not `present()` beyond the last, or if no operator
  /// computes the value.
  constexpr bound_value operand(const bound_value& of, std::size_t index) const {
    if (!of.present() || graph_.values[of.value].producer < 0) return {};
    const node_record& node = graph_.nodes[static_cast<std::size_t>(graph_.values[of.value].producer)];
    return index < node.inputs ? bind(graph_.operands[node.first_input + index]) : bound_value{};
  }
  /// The node that computes a bound value; match_record::nothing if that is no node of the match.
  constexpr std::uint32_t node_of(const bound_value& v) const {
    return v.kind == nullptr ? match_record::nothing : static_cast<std::uint32_t>(graph_.values[v.value].producer);
  }

  /// Reads a bound value in a kernel, with its element type. Make it once, `const auto left = m.in<float>(v)`, and use it in
  /// each call: `left(call)`. It is null for an absent value. Errors: `unsupported` if the element type is another.
  template <class T>
  constexpr kernel_input<T> in(const bound_value& v) const {
    return detail::input_of<T>(P::name, "an operand", graph_, *record_, v.value);
  }
  /// The same for the value captured under a name: `m.in<"left", float>()`; in repetitions with the iteration.
  template <fixed_string Name, class T, class... Iteration>
  constexpr kernel_input<T> in(Iteration... iteration) const {
    return detail::input_of<T>(P::name, Name.text, graph_, *record_, get<Name>(iteration...).value);
  }
  /// Writes output `index` of the match in a kernel, with its element type. Make it once, `const auto y = m.out<float>()`, and
  /// use it in each call: `y(call)`. Errors: `unsupported` if the element type is another.
  template <class T>
  constexpr kernel_output<T> out(std::size_t index = 0) const {
    return detail::output_of<T>(P::name, graph_, *record_, output(index).value);
  }
  constexpr const graph_view& graph() const { return graph_; }
  constexpr const match_record& record() const { return *record_; }

 private:
  template <class, std::size_t>
  friend class match_iteration;
  template <class, std::size_t>
  friend class match_iterations;

  constexpr bool is_bound(std::size_t pattern_index) const {
    return record_->bound[pattern_index] != match_record::nothing;
  }
  constexpr bound_value find(const detail::capture_place& place, std::uint64_t name, std::size_t offset) const {
    if (offset == match_record::nothing) return {};
    for (std::size_t n = place.first; n <= place.last; ++n) {
      const pattern_node& p = P::expr.node[n];
      if (p.capture == name && p.role != pattern_role::same && is_bound(n + offset)) return at(n + offset);
    }
    return {};
  }
  /// An output of the root's operator that the record has no room for.
  constexpr std::uint32_t find_output(std::size_t after) const {
    std::uint32_t v = record_->output[match_record::max_outputs - 1];
    do ++v;
    while (v == record_->output[0] || !is_read_outside(v) || after-- != 0);
    return v;
  }
  constexpr bool is_read_outside(std::uint32_t value) const {
    if (graph_.values[value].is_output) return true;
    for (const use& u : graph_.uses_of(value))
      if (!record_->contains(u.node)) return true;
    return false;
  }
  constexpr bound_value at(std::size_t pattern_index) const { return bind(record_->bound[pattern_index]); }
  constexpr bound_value bind(std::uint32_t value) const {
    bound_value v;
    if (value == match_record::nothing) return v;
    const value_record& r = graph_.values[value];
    v.value = value;
    v.type = r.type.type;
    v.out = r.type.dims;
    v.is_constant = r.role == value_role::constant;
    v.has_scalar = r.has_scalar;
    v.scalar = r.scalar;
    if (r.producer >= 0 && record_->contains(static_cast<std::uint32_t>(r.producer)))
      v.kind = graph_.nodes[static_cast<std::size_t>(r.producer)].kind, v.kind_id = v.kind->id;
    return v;
  }

  graph_view graph_;
  const match_record* record_;
};

}  // namespace collage::inline v0
