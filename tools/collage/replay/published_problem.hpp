// A published network as a placement problem. Its candidates come from the records of a table.
#pragma once

#include "placement_file.hpp"
#include "published_costs.hpp"
#include "rates.hpp"
#include "result.hpp"
#include "shape_rules.hpp"
#include "shapes.hpp"

#include <collage/error.hpp>
#include <collage/place/roofline.hpp>
#include <collage/place/table_costs.hpp>
#include <collage/search/checker.hpp>
#include <collage/search/problem.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace program::replay {

namespace detail {

/// Numbers values in the order of their first use.
template <class T>
class numbering {
 public:
  std::uint32_t operator[](const T& value) {
    return known_.emplace(value, static_cast<std::uint32_t>(known_.size())).first->second;
  }

 private:
  std::map<T, std::uint32_t> known_;
};

}  // namespace detail

/// A network and a table, prepared for lookups, ready to be placed repeatedly.
class published_problem {
 public:
  /// Infers the shapes and attributes that the placement lacks from the records of `tables`. The first table has the
  /// costs. Throws `collage::error` as `infer_shapes` and `roofline_of` do.
  published_problem(const placed_network& placed, std::span<const published_costs* const> tables)
      : calls_(infer_shapes(placed, tables)), model_(roofline_of(*tables.front(), calls_)), readers_(calls_.size()) {
    add_records(*tables.front());
    for (std::uint32_t n = 0; n < calls_.size(); ++n) {
      const operator_call& c = calls_[n];
      nodes_.push_back({op_number_[c.op], shape_number_[c.shapes[0]], attribute_number_[c.attributes]});
      by_root_.resize(std::max<std::size_t>(by_root_.size(), nodes_.back().op + 1));
      for (const std::int32_t o : c.operands) {
        if (o < 0) continue;
        const auto producer = static_cast<std::uint32_t>(o);
        edges_.emplace_back(producer, n);
        if (readers_[producer].empty() || readers_[producer].back() != n) readers_[producer].push_back(n);
      }
    }
    find_unrecorded();
    find_published();
  }

  /// The candidates are:
  /// - each record at each place that it matches;
  /// - for each operator without a record of its own, every backend at a modelled cost;
  /// - each group of the published placement without a record, so that the search can choose the published placement.
  ///
  /// A group without a record costs the sum of its operators by the same backend, recorded or modelled. A roofline of
  /// the whole group could cost less than the record of the convolution in it. `tag` is an index into `backends()`.
  collage::search::problem problem() const {
    collage::search::problem p;
    p.nodes = calls_.size();
    p.edges = edges_;
    p.candidates.reserve(most_candidates_);
    std::vector<std::uint32_t> at;
    std::vector<std::uint64_t> words;
    for (std::uint32_t n = 0; n < nodes_.size(); ++n)
      for (const std::uint32_t f : by_root_[nodes_[n].op])
        for (const collage::table_costs::record& r : records_at(forms_[f], n, at, words))
          p.candidates.push_back({.nodes = collage::search::node_set(at), .cost_ms = r.ms, .tag = r.backend});
    for (const modelled& m : modelled_)
      p.candidates.push_back({.nodes = m.nodes, .cost_ms = cost_of(m), .tag = m.backend});
    return p;
  }

  const std::vector<operator_call>& calls() const noexcept { return calls_; }
  const std::vector<std::string>& backends() const noexcept { return costs_.backends(); }
  const collage::roofline& model() const noexcept { return model_; }
  /// Share of the operators with a record of their own, by any backend, for their shape and attributes.
  double coverage() const {
    return calls_.empty() ? 0 : 1 - static_cast<double>(unrecorded_) / static_cast<double>(calls_.size());
  }
  /// The cost of the published placement on this table; nothing if the table lacks one of its backends.
  std::optional<double> published_ms() const noexcept { return published_ms_; }

 private:
  struct node {
    std::uint32_t op, shape, attributes;
  };
  /// A pattern with a fixed position for every operand, ready to be matched.
  struct form {
    std::uint32_t pattern = 0;  // its number, which forms that differ in positions share
    std::uint32_t data_operator = 0;
    struct step {
      std::uint32_t op, parent, position, operands;
    };
    std::vector<step> steps;
  };
  struct work {
    std::string rates;  // their name in the model
    double flops = 0, bytes = 0;
  };
  /// A group without a record.
  struct modelled {
    collage::search::node_set nodes;
    std::uint32_t backend = 0;
    double known_ms = 0;           // of the operators with records of their own
    std::vector<work> parts = {};  // the others
  };

  double cost_of(const modelled& m) const {
    double ms = m.known_ms;
    for (const work& w : m.parts) ms += model_.cost_of({.backend = w.rates, .flops = w.flops, .bytes = w.bytes}).ms;
    return ms;
  }

  void add_records(const published_costs& table) {
    std::map<std::vector<std::tuple<std::string, std::uint32_t, std::uint32_t, bool, std::uint32_t>>, std::uint32_t>
        known;
    std::vector<std::uint64_t> words;
    for (const cost_record& r : table.records) {
      std::vector<std::tuple<std::string, std::uint32_t, std::uint32_t, bool, std::uint32_t>> key;
      for (const pattern_operator& o : r.operators)
        key.emplace_back(o.name, o.parent, o.position, o.commutes, o.operands);
      key.emplace_back("", r.data_operator, 0, false, 0);
      const auto [pattern, fresh] = known.emplace(key, static_cast<std::uint32_t>(known.size()));
      if (fresh) add_forms(r, pattern->second);
      words = {pattern->second, shape_number_[r.data]};
      for (const pattern_operator& o : r.operators) words.push_back(attribute_number_[o.attributes]);
      costs_.add(words, r.backend, r.mean_ms);
    }
  }

  void add_forms(const cost_record& r, std::uint32_t pattern) {
    std::vector<std::size_t> free;  // operators that may be in either position
    form made{.pattern = pattern, .data_operator = r.data_operator, .steps = {}};
    for (std::size_t i = 0; i < r.operators.size(); ++i) {
      const pattern_operator& o = r.operators[i];
      made.steps.push_back({op_number_[o.name], o.parent, o.position, o.operands});
      if (o.commutes) free.push_back(i);
    }
    const std::uint32_t root = made.steps[0].op;
    by_root_.resize(std::max<std::size_t>(by_root_.size(), root + 1));
    for (std::size_t choice = 0; choice < std::size_t{1} << std::min<std::size_t>(free.size(), 8); ++choice) {
      for (std::size_t i = 0; i < free.size() && i < 8; ++i)
        made.steps[free[i]].position = static_cast<std::uint32_t>(choice >> i & 1);
      by_root_[root].push_back(static_cast<std::uint32_t>(forms_.size()));
      forms_.push_back(made);
    }
  }

  /// The records of a form whose result is that of call `n`; sets `at` to the nodes of the match. Returns none if the
  /// form does not match there, or if a node outside reads an inner result.
  std::span<const collage::table_costs::record> records_at(const form& f, std::uint32_t n,
                                                           std::vector<std::uint32_t>& at,
                                                           std::vector<std::uint64_t>& words) const {
    at.assign(1, n);
    words.assign({f.pattern, 0, nodes_[n].attributes});
    for (std::size_t i = 0; i < f.steps.size(); ++i) {
      const form::step& s = f.steps[i];
      if (i != 0) {
        const operator_call& reader = calls_[at[s.parent]];
        if (s.position >= reader.operands.size() || reader.operands[s.position] < 0) return {};
        const auto member = static_cast<std::uint32_t>(reader.operands[s.position]);
        // If a value is added to itself, it is in both positions: one of the two matches is enough.
        if (nodes_[member].op != s.op || std::ranges::find(at, member) != at.end()) return {};
        if (s.position == 1 && reader.operands[0] == reader.operands[1]) return {};
        at.push_back(member);
        words.push_back(nodes_[member].attributes);
      }
      if (s.operands != 0 && calls_[at[i]].operands.size() != s.operands) return {};
    }
    for (std::size_t i = 1; i < at.size(); ++i)
      for (const std::uint32_t reader : readers_[at[i]])
        if (std::ranges::find(at, reader) == at.end()) return {};
    words[1] = nodes_[at[f.data_operator]].shape;
    return costs_.records_of(words);
  }

  /// The arithmetic and traffic of one operator, and the rates of one backend for it.
  work work_of(std::uint32_t n, std::uint32_t backend) const {
    const operator_call& c = calls_[n];
    double elements = elements_of(c.result);
    for (std::size_t i = 0; i < c.operands.size(); ++i) {
      const auto before = c.operands.begin() + static_cast<std::ptrdiff_t>(i);
      if (c.operands[i] >= 0 && std::find(c.operands.begin(), before, c.operands[i]) != before) continue;
      elements += elements_of(c.shapes[i]);
    }
    std::string rates = rates_name(costs_.backends()[backend], c.op);
    if (std::ranges::find(model_.backends(), rates, &collage::roofline_rates::backend) == model_.backends().end())
      rates = costs_.backends()[backend];
    return {std::move(rates), c.flops, element_bytes * elements};
  }

  void find_unrecorded() {
    std::vector<std::uint32_t> at;
    std::vector<std::uint64_t> words;
    for (std::uint32_t n = 0; n < nodes_.size(); ++n) {
      bool recorded = false;
      for (const std::uint32_t f : by_root_[nodes_[n].op])
        recorded = recorded || (forms_[f].steps.size() == 1 && !records_at(forms_[f], n, at, words).empty());
      if (recorded) continue;
      ++unrecorded_;
      for (std::uint32_t b = 0; b < costs_.backends().size(); ++b)
        modelled_.push_back({.nodes = {n}, .backend = b, .parts = {work_of(n, b)}});
    }
  }

  /// Prices the published groups. The groups without a record become candidates too.
  void find_published() {
    const auto known = problem();
    most_candidates_ = known.candidates.size();
    std::map<std::pair<std::vector<std::uint32_t>, std::uint32_t>, double> price;
    for (const collage::search::candidate& c : known.candidates) {
      const auto [at, fresh] =
          price.emplace(std::pair(std::vector<std::uint32_t>(c.nodes.begin(), c.nodes.end()), c.tag), c.cost_ms);
      at->second = std::min(at->second, c.cost_ms);
    }
    std::map<std::pair<std::uint32_t, std::string>, std::vector<std::uint32_t>> groups;
    for (std::uint32_t n = 0; n < calls_.size(); ++n) groups[{calls_[n].group, calls_[n].backend}].push_back(n);
    const auto& names = costs_.backends();
    std::vector<modelled> unpriced;
    double sum = 0;
    for (const auto& [key, nodes] : groups) {
      const auto b = static_cast<std::uint32_t>(std::ranges::find(names, key.second) - names.begin());
      if (b == names.size()) return;  // the table lacks a backend of the placement
      const auto known_price = price.find({nodes, b});
      if (known_price != price.end()) {
        sum += known_price->second;
        continue;
      }
      modelled group{.nodes = collage::search::node_set(nodes), .backend = b};
      for (const std::uint32_t n : nodes) {
        const auto part = price.find({{n}, b});
        if (part != price.end()) group.known_ms += part->second;
        else group.parts.push_back(work_of(n, b));
      }
      unpriced.push_back(std::move(group));
      sum += cost_of(unpriced.back());
    }
    published_ms_ = sum;
    modelled_.insert(modelled_.end(), unpriced.begin(), unpriced.end());
    most_candidates_ += unpriced.size();
  }

  detail::numbering<std::string> op_number_;
  detail::numbering<extents> shape_number_;
  detail::numbering<attribute_list> attribute_number_;
  std::vector<operator_call> calls_;
  collage::roofline model_;
  collage::table_costs costs_;
  std::vector<form> forms_;
  std::vector<std::vector<std::uint32_t>> by_root_;  // forms, by the operator that writes the result
  std::vector<node> nodes_;
  std::vector<std::vector<std::uint32_t>> readers_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges_;
  std::vector<modelled> modelled_;
  std::size_t unrecorded_ = 0, most_candidates_ = 0;
  std::optional<double> published_ms_;
};

/// Places a published network on a table, and prices the published placement.
inline result replay_published(const std::string& name, const std::string& table, const published_problem& p) {
  const auto done = timed_search([&] { return p.problem(); });
  if (const auto wrong = collage::search::violation(done.problem, done.plan))
    throw collage::error(collage::error_kind::failure, "the search returned an invalid placement: " + *wrong, name,
                         "please report it");
  return {.name = name,
          .table = table,
          .coverage = p.coverage(),
          .nodes = done.problem.nodes,
          .candidates = done.problem.candidates.size(),
          .optimum_ms = done.plan.cost_ms,
          .lower_bound_ms = done.plan.lower_bound_ms,
          .gap = done.plan.gap(),
          .published_ms = p.published_ms(),
          .search_ms = done.median_ms};
}

}  // namespace program::replay
