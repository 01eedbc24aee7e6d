// The iterations that a match went through, one after the other.
//
//   struct conv_chain : pattern<"conv_chain"> {
//     static constexpr auto step = either(op::add(previous, any.as<"addend">()).as<"sum">(), op::relu(previous));
//     static constexpr auto expr = repeat<1, 4>(step.as<"step">(), op::conv(any, constant));
//   };
//   for (const auto step : m.iterations<"step">())
//     if (step.is<"sum">()) add(step.get<"addend">());
//     else rectify();
#pragma once

#include <collage/detail/fixed_string.hpp>
#include <collage/detail/hash.hpp>
#include <collage/op/kind.hpp>
#include <collage/pattern/bound_value.hpp>
#include <collage/pattern/detail/captures.hpp>
#include <collage/pattern/detail/check.hpp>
#include <collage/pattern/expression.hpp>
#include <collage/pattern/match_record.hpp>
#include <collage/pattern/node.hpp>
#include <cstddef>
#include <cstdint>

namespace collage::inline v0 {

template <class P>
class match;
template <class P, std::size_t Repeat>
class match_iterations;

/// One iteration of a repetition in a match of pattern P. Names and kinds are looked up by the compiler, among those of the
/// step. It refers to the match. `Repeat` is the place of the repetition in the pattern.
template <class P, std::size_t Repeat>
class match_iteration {
 public:
  /// Which iteration it is, counted from 0 at the start.
  constexpr std::size_t index() const { return iteration_[outer.depth]; }
  /// The value that it computes.
  constexpr bound_value value() const { return match_->at(root()); }
  /// The value that it stands on: that of the iteration before, or at first of the start.
  constexpr bound_value previous() const {
    return match_->at(P::expr.node[Repeat + outer.offset(iteration_, outer.depth)].iteration(index()));
  }

  /// The value captured under a name in this iteration; not `present()` where it was optional and is missing, or another
  /// alternative was taken. Captures of a repetition within this one are named by its iteration.
  template <fixed_string Name, class... Inner>
  constexpr bound_value get(Inner... inner) const {
    constexpr detail::capture_place place = find<Name>();
    static_assert(place.count != 0, "step.get<name>(): the step captures nothing under this name");
    static_assert(place.count == 0 || place.depth == outer.depth + 1 + sizeof...(Inner),
                  "step.get<name>(...): give the iteration of each repetition within the step");
    std::size_t iterations[outer.depth + 1 + sizeof...(Inner)] = {}, given = 0;
    for (; given <= outer.depth; ++given) iterations[given] = iteration_[given];
    ((iterations[given++] = static_cast<std::size_t>(inner)), ...);
    return match_->find(place, detail::hash(Name.text), place.offset(iterations, given));
  }
  /// Whether the step matched something under this name; of an alternative that has it, whether that one was taken.
  template <fixed_string Name>
  constexpr bool is() const {
    return get<Name>().present();
  }
  /// Which alternative was taken, counted from 0, where the step is an either(...).
  constexpr std::size_t alternative() const {
    static_assert(
        P::expr.node[first_root].role == pattern_role::either,
        "step.alternative(): the step is no either(...); name an either within it and call m.alternative<name>(i)");
    return detail::taken_alternative(detail::view_of(P::expr), match_->record(), root());
  }

  /// Whether an operator of this kind computes the iteration's value.
  template <operator_kind K>
  constexpr bool is(const K& kind) const {
    return match_->is(value(), kind);
  }
  /// The attributes of the one operator of this kind in the step; the defaults where another was matched.
  template <operator_kind K>
  constexpr typename K::attributes operator[](const K&) const {
    constexpr detail::kind_place place =
        detail::find_kind(detail::view_of(P::expr), kind_id<K>, first, first_root + 1U);
    static_assert(place.count != 0, "step[kind]: the step has no operator of this kind");
    static_assert(
        !place.is_ambiguous,
        "step[kind]: the step has several operators of this kind; capture each with as<\"name\">() and read it "
        "with m.attributes<kind>(step.get<\"name\">())");
    for (std::size_t n = place.first; n <= first_root; ++n)
      if (detail::has_kind(P::expr.node[n], kind_id<K>) && match_->is_bound(n + offset()))
        return match_->template attributes<K>(match_->at(n + offset()));
    return {};
  }
  /// Operand `index` of the operator that computes the iteration's value; not `present()` beyond the last.
  constexpr bound_value operand(std::size_t index) const { return match_->operand(value(), index); }

  /// The iterations of a repetition within the step, found by a name that it captures.
  template <fixed_string Name>
  constexpr auto iterations() const {
    constexpr detail::capture_place place = find<Name>();
    static_assert(place.depth > outer.depth + 1,
                  "step.iterations<name>(): the name is captured in no repetition within the step");
    constexpr std::size_t within = place.depth > outer.depth + 1 ? outer.depth + 1 : 0;
    return match_iterations<P, place.repeat[within]>(*match_, iteration_);
  }

 private:
  friend class match_iterations<P, Repeat>;
  static constexpr detail::capture_place outer = detail::find_repetitions(detail::view_of(P::expr), Repeat);
  // The nodes of the first iteration.
  static constexpr std::size_t first = detail::iterations_begin(P::expr.node[Repeat]);
  static constexpr std::size_t first_root = P::expr.node[Repeat].child[1];

  /// Empty where the name is captured outside of the step.
  template <fixed_string Name>
  static consteval detail::capture_place find() {
    const detail::capture_place place = detail::find_capture(detail::view_of(P::expr), detail::hash(Name.text));
    return place.depth > outer.depth && place.repeat[outer.depth] == Repeat ? place : detail::capture_place{};
  }
  /// How far the nodes of this iteration lie behind those of the first.
  constexpr std::size_t offset() const {
    return outer.offset(iteration_, outer.depth) + index() * P::expr.node[Repeat].stride;
  }
  constexpr std::size_t root() const { return first_root + offset(); }

  const match<P>* match_ = nullptr;
  std::size_t iteration_[detail::capture_place::max_depth] = {};  // of each repetition, the outermost first
};

/// The iterations of a repetition that were matched, the one next to the start first; for a range-based `for`.
template <class P, std::size_t Repeat>
class match_iterations {
 public:
  /// Those for the given iterations of the repetitions around, the outermost first. The match must outlive this.
  constexpr match_iterations(const match<P>& m, const std::size_t* outer) {
    step_.match_ = &m;
    for (std::size_t d = 0; d < around.depth; ++d) step_.iteration_[d] = outer[d];
    const std::size_t offset = around.offset(outer, around.depth);
    if (offset == match_record::nothing) return;
    const pattern_node& repetition = P::expr.node[Repeat];
    while (size_ < repetition.most && m.is_bound(repetition.iteration(size_ + 1) + offset)) ++size_;
  }

  /// How many there are.
  constexpr std::size_t size() const { return size_; }
  /// Iteration `index`, which must be less than size().
  constexpr match_iteration<P, Repeat> operator[](std::size_t index) const {
    match_iteration<P, Repeat> step = step_;
    step.iteration_[around.depth] = index;
    return step;
  }

  /// Goes through the iterations.
  class iterator {
   public:
    constexpr iterator(const match_iterations& list, std::size_t index) : list_(list), index_(index) {}
    constexpr match_iteration<P, Repeat> operator*() const { return list_[index_]; }
    constexpr iterator& operator++() {
      ++index_;
      return *this;
    }
    constexpr bool operator==(const iterator& other) const { return index_ == other.index_; }

   private:
    match_iterations list_;
    std::size_t index_;
  };
  constexpr iterator begin() const { return {*this, 0}; }
  constexpr iterator end() const { return {*this, size_}; }

 private:
  static constexpr detail::capture_place around = detail::find_repetitions(detail::view_of(P::expr), Repeat);

  match_iteration<P, Repeat> step_;
  std::size_t size_ = 0;
};

}  // namespace collage::inline v0
