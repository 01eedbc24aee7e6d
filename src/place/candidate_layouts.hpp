// The forms in which candidates read and write values, and the conversions that make them fit each other.
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

/// A conversion, with the candidate of `candidate_layouts::conversions` that makes it; none if no backend can.
using served_conversion = std::pair<needed_conversion, std::optional<std::uint32_t>>;

class candidate_layouts {
 public:
  /// Removes candidates and views with values that no backend can convert to plain and back. Each removed candidate gets a
  /// refusal. Views in forms that no kernel uses are removed, too.
  candidate_layouts(const place_task& task, allowed_candidates& left) : network_(task.network), known_(task.forms) {
    take_candidates(task, left.may_convert, left.candidates);
    for (std::uint32_t n = 0; n < left.views.size(); ++n)
      std::erase_if(left.views[n], [&](std::uint32_t order) { return order != 0 && !take_view(n, order); });
  }

  /// Empty if candidates read and write plain values only.
  std::optional<conversion_book>& conversions() { return conversions_; }
  const std::optional<conversion_book>& conversions() const { return conversions_; }

  /// The values that a candidate reads or writes in another form than plain, with these forms.
  const value_forms& borders_of(std::uint32_t candidate) const {
    static const value_forms nothing;  // for regions: they are added later, and read and write plain values
    return candidate < borders_.size() ? borders_[candidate] : nothing;
  }
  /// Notes a candidate that was added, and reads and writes values as another one does.
  void add(std::uint32_t candidate, std::uint32_t like) {
    if (like >= borders_.size()) return;  // plain values only
    const value_forms same = borders_[like];
    if (candidate >= borders_.size()) borders_.resize(candidate + 1);
    borders_[candidate] = same;
  }
  /// The same for a node that is a view in the form of this number; null if that is plain.
  const value_forms* borders_of_view(std::uint32_t node, std::uint32_t order) const {
    const auto known = view_borders_.find({node, order});
    return known == view_borders_.end() ? nullptr : &known->second;
  }
  /// Whether conversions can serve all other readers and writers of these values.
  bool can_be_converted(const value_forms& borders) const {
    return std::ranges::all_of(borders.list(),
                               [&](const auto& border) { return can_be_converted(border.first, border.second); });
  }

  /// The forms in which a value of numbers() may lie, by their numbers in the search. The first is plain on the host.
  const std::vector<form>& forms_of_value(std::uint32_t value) const { return forms_.at(value); }
  std::size_t number_of(std::uint32_t value, const form& stored) const {
    const std::vector<form>& list = forms_of_value(value);
    return static_cast<std::size_t>(std::ranges::find(list, stored) - list.begin());
  }
  /// The values that may lie in another form than plain, with their numbers in the search.
  const std::map<std::uint32_t, std::uint32_t>& numbers() const { return numbers_; }

  /// The conversions that are needed between groups of these nodes; `borders` as for conversions_between.
  std::vector<served_conversion> conversions_between_groups(const std::vector<std::vector<std::uint32_t>>& nodes,
                                                            const std::vector<const value_forms*>& borders) const {
    std::vector<served_conversion> list;
    if (!conversions_) return list;
    const std::vector<needed_conversion> needed = conversions_between(network_, nodes, borders);  // by value, ascending
    for (auto value = needed.begin(); value != needed.end();) {
      const auto end = std::find_if(value, needed.end(), [&](const auto& c) { return c.value != value->value; });
      const std::size_t first = list.size();
      const auto add = [&](const needed_conversion& c, std::optional<std::uint32_t> by) {
        const auto is_same = [&](const served_conversion& s) { return s.first.to == c.to; };
        if (std::none_of(list.begin() + static_cast<std::ptrdiff_t>(first), list.end(), is_same))
          list.emplace_back(c, by);
      };
      // Single conversions come first, because chains may begin with them.
      for (const std::size_t least : {std::size_t{1}, std::size_t{2}})
        for (auto c = value; c != end; ++c) {
          const std::vector<std::uint32_t> path = conversions_->path(c->value, c->from, c->to);
          if ((path.size() < 2) != (least == 1)) continue;
          if (path.empty()) add(*c, {});
          for (const std::uint32_t i : path)
            add({c->value, conversions_->ends_of(i).first, conversions_->ends_of(i).second}, i);
        }
      value = end;
    }
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
        if (known.size() + (is_new ? 2 : 1) > search::problem::most_forms)  // the plain form counts, too
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

  /// Adds a node as a view in another form than plain, and returns whether that is possible. It is if some kernel has each of its
  /// values in another form than plain, and conversions can serve all other readers and writers.
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
  /// Whether a value can be converted between this form and each other form in which some kernel has it. A conversion changes
  /// either the layout or the memory space. So forms in another space are reached through the plain forms of both spaces, and
  /// need no check here.
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
  const std::vector<form>& known_;  // by the numbers of views' forms
  std::optional<conversion_book> conversions_;
  std::map<std::uint32_t, std::vector<form>> met_;    // values that may lie in other forms than plain, with these forms
  std::vector<form> used_{form()};                    // those that some kernel has for some value
  std::map<std::uint32_t, std::vector<form>> forms_;  // by value: its forms by their numbers in the search
  std::vector<value_forms> borders_;                  // by candidate
  std::map<std::pair<std::uint32_t, std::uint32_t>, value_forms> view_borders_;  // by node and form, other than plain
  std::map<std::uint32_t, std::uint32_t> numbers_;                               // of values in the search
};

}  // namespace
}  // namespace detail
}  // namespace collage::inline v0
