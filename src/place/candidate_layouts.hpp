// In which layouts candidates read and write, and what would make them fit each other.
#pragma once

#include <algorithm>
#include <collage/graph/graph.hpp>
#include <collage/layout.hpp>
#include <collage/place/candidates.hpp>
#include <collage/run/form.hpp>
#include <collage/run/kernel.hpp>
#include <collage/run/space.hpp>
#include <collage/run/views.hpp>
#include <collage/search/problem.hpp>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>
#include "candidate_index.hpp"
#include "conversions.hpp"
#include "place_rules.hpp"
#include "place_task.hpp"

namespace collage::inline v0 {

namespace detail {
namespace {

/// A conversion, and which candidate of `candidate_layouts::conversions` is to make it; nothing where nobody can.
using served_conversion = std::pair<needed_conversion, std::optional<std::uint32_t>>;

class candidate_layouts {
 public:
  /// Leaves out of candidates and views what nobody can make plain, of the former with a refusal for each; of views also those
  /// in layouts that kernels have no use for.
  candidate_layouts(const place_task& task, allowed_candidates& left) : network_(task.network), known_(task.forms) {
    take_candidates(task, left.may_convert, left.candidates);
    for (std::uint32_t n = 0; n < left.views.size(); ++n)
      std::erase_if(left.views[n], [&](std::uint32_t order) { return order != 0 && !take_view(n, order); });
  }

  /// Nothing where all that candidates read and write is plain.
  std::optional<conversion_book>& conversions() { return conversions_; }
  const std::optional<conversion_book>& conversions() const { return conversions_; }

  /// What each candidate reads and writes otherwise than plain.
  const value_forms& borders_of(std::uint32_t candidate) const {
    static const value_forms nothing;  // regions, which are added later, read and write plain values
    return candidate < borders_.size() ? borders_[candidate] : nothing;
  }
  /// The same of a node that is a view in the layout of this number; null where that is plain.
  const value_forms* borders_of_view(std::uint32_t node, std::uint32_t order) const {
    const auto known = view_borders_.find({node, order});
    return known == view_borders_.end() ? nullptr : &known->second;
  }
  /// Whether whoever else reads or writes these values can be served.
  bool can_be_converted(const value_forms& borders) const {
    return std::ranges::all_of(borders.list(),
                               [&](const auto& border) { return can_be_converted(border.first, border.second); });
  }

  /// The forms in which a value of numbers() may lie, by their numbers in the search: the plain one on the host first.
  const std::vector<form>& forms_of_value(std::uint32_t value) const { return forms_.at(value); }
  std::size_t number_of(std::uint32_t value, const form& stored) const {
    const std::vector<form>& list = forms_of_value(value);
    return static_cast<std::size_t>(std::ranges::find(list, stored) - list.begin());
  }
  /// The values that may lie otherwise than plain, with their numbers in the search.
  const std::map<std::uint32_t, std::uint32_t>& numbers() const { return numbers_; }

  /// The conversions that groups of these nodes need between them; `borders` as for conversions_between.
  std::vector<served_conversion> conversions_between_groups(const std::vector<std::vector<std::uint32_t>>& nodes,
                                                            const std::vector<const value_forms*>& borders) const {
    std::vector<served_conversion> list;
    if (!conversions_) return list;
    const auto add = [&](const needed_conversion& c, std::optional<std::uint32_t> by) {
      const auto is_same = [&](const served_conversion& s) { return s.first.value == c.value && s.first.to == c.to; };
      if (std::ranges::none_of(list, is_same)) list.emplace_back(c, by);
    };
    const std::vector<needed_conversion> needed = conversions_between(network_, nodes, borders);
    // Single conversions first: chains may begin with them.
    for (const std::size_t least : {std::size_t{1}, std::size_t{2}})
      for (const needed_conversion& c : needed) {
        const std::vector<std::uint32_t> path = conversions_->path(c.value, c.from, c.to);
        if ((path.size() < 2) != (least == 1)) continue;
        if (path.empty()) add(c, {});
        for (const std::uint32_t i : path)
          add({c.value, conversions_->ends_of(i).first, conversions_->ends_of(i).second}, i);
      }
    std::ranges::stable_sort(list, {}, [](const served_conversion& s) { return s.first.value; });
    return list;
  }

 private:
  void take_candidates(const place_task& task, const std::vector<bool>& may_convert, place_candidates& candidates) {
    std::map<std::uint32_t, std::vector<form>> met;
    const auto add = [](std::vector<form>& list, const form& order) {
      if (std::ranges::find(list, order) == list.end()) list.push_back(order);
    };
    for (const place_candidate& c : candidates.list) {
      const value_forms borders = forms_of(network_, task.backends, candidates, c);
      for (const auto& [v, order] : borders.list()) {
        add(met[v], order);
        if (const form home(plain, *order.space); home != plain) add(met[v], home);
      }
    }
    if (met.empty()) return;
    conversions_.emplace(network_, task.backends, may_convert, met, task.threads, task.may_split());
    const auto why_not = [&](const place_candidate& c) -> const char* {  // null: it fits
      const value_forms borders = forms_of(network_, task.backends, candidates, c);
      for (const auto& [v, order] : borders.list()) {
        if (network_.at(v).role == value_role::constant || !can_be_converted(v, order))
          return "no backend converts the forms that it reads or writes";
        const std::vector<form>& known = met_[v];
        const bool is_new = std::ranges::find(known, order) == known.end();
        if (known.size() + (is_new ? 2 : 1) > search::problem::most_forms)  // one more is the plain form
          return "the search allows at most 16 forms of a value, and this kernel needs another one";
      }
      for (const auto& [v, order] : borders.list()) add(met_[v], order);
      return nullptr;
    };
    const std::size_t before = candidates.list.size();
    std::erase_if(candidates.list, [&](const place_candidate& c) {
      const char* const reason = why_not(c);
      if (reason == nullptr) return false;
      candidates.refusals.push_back({task.backends[c.backend].name, pattern_name(task.backends, c.backend, c.pattern),
                                     network_.node_name(c.root), reason});
      return true;
    });
    if (candidates.list.size() != before) renumber_structures(candidates);
    for (const place_candidate& c : candidates.list)
      borders_.push_back(forms_of(network_, task.backends, candidates, c));
    for (const auto& [v, list] : met_) {
      if (list.empty()) continue;
      numbers_.emplace(v, static_cast<std::uint32_t>(numbers_.size()));
      std::vector<form>& mine = forms_[v] = {form()};
      for (const form& stored : list) {
        add(mine, stored);
        add(used_, stored);
      }
    }
  }

  /// Whether a node can be a view in another layout than the plain one: some kernel has each of its values otherwise than plain,
  /// and all other readers and writers can be served.
  bool take_view(std::uint32_t node, std::uint32_t order) {
    value_forms borders;
    for (const value_view& v : views_of(network_, node, known_[order]))
      for (const std::uint32_t end : {v.value, v.of}) borders.set(end, known_[order]);
    for (const auto& [v, its] : borders.list())
      if (network_.at(v).role == value_role::constant || !numbers_.contains(v) || !is_used(its) ||
          !can_be_converted(v, its) || !has_room_for(v, its))
        return false;
    for (const auto& [v, its] : borders.list())
      if (number_of(v, its) == forms_of_value(v).size()) forms_[v].push_back(its);
    view_borders_.emplace(std::pair(node, order), std::move(borders));
    return true;
  }
  bool is_used(const form& stored) const { return std::ranges::find(used_, stored) != used_.end(); }
  bool has_room_for(std::uint32_t value, const form& stored) const {
    const std::size_t count = forms_of_value(value).size();
    return number_of(value, stored) < count || count < search::problem::most_forms;
  }
  /// Whether a value in a layout can be made over into, and from, each other in which some kernel has it. Of those in another
  /// memory that holds for the plain ones alone: a conversion changes the memory or the arrangement.
  bool can_be_converted(std::uint32_t value, const form& order) const {
    const auto is_there = [&](const form& from, const form& to) {
      return !conversions_->path(value, from, to).empty();
    };
    const auto can_become = [&](const form& a, const form& b) { return a == b || (is_there(a, b) && is_there(b, a)); };
    const form home(plain, *order.space);
    if (!can_become(plain, home) || !can_become(home, order)) return false;
    const auto others = met_.find(value);
    return others == met_.end() || std::ranges::all_of(others->second, [&](const form& other) {
             return *other.space != *order.space || can_become(other, order);
           });
  }

  const graph& network_;
  const std::vector<form>& known_;  // by the numbers of views
  std::optional<conversion_book> conversions_;
  std::map<std::uint32_t, std::vector<form>> met_;    // values that may lie otherwise than plain, and how
  std::vector<form> used_{form()};                    // in which some kernel has some value
  std::map<std::uint32_t, std::vector<form>> forms_;  // by value: those of the search, by number
  std::vector<value_forms> borders_;                  // by candidate
  std::map<std::pair<std::uint32_t, std::uint32_t>, value_forms> view_borders_;  // by node and layout, other than plain
  std::map<std::uint32_t, std::uint32_t> numbers_;                               // of values in the search
};

}  // namespace
}  // namespace detail
}  // namespace collage::inline v0
