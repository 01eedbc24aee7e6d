// Definitions of place.hpp and place/monitor.hpp: include it in exactly one file.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <collage/error.hpp>
#include <collage/measure/drift.hpp>
#include <collage/measure/store.hpp>
#include <collage/measure/time_source.hpp>
#include <collage/op/control.hpp>
#include <collage/op/movement.hpp>
#include <collage/place.hpp>
#include <collage/place/candidates.hpp>
#include <collage/place/compare.hpp>
#include <collage/place/costs.hpp>
#include <collage/place/impl/conversions.hpp>
#include <collage/place/impl/cost_book.hpp>
#include <collage/place/impl/fixed_work.hpp>
#include <collage/place/impl/kept_costs.hpp>
#include <collage/place/impl/neighbours.hpp>
#include <collage/place/impl/worker_client.hpp>
#include <collage/place/measuring.hpp>
#include <collage/place/monitor.hpp>
#include <collage/place/region_search.hpp>
#include <collage/place/regions.hpp>
#include <collage/run/engine.hpp>
#include <collage/run/processor.hpp>
#include <collage/run/views.hpp>
#include <collage/search/alternatives.hpp>
#include <collage/search/exact.hpp>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <queue>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace collage::inline v0 {

namespace detail {
namespace {

/// When the budget is used up or the caller says stop.
class deadline {
 public:
  explicit deadline(const place_options& options) : options_(options), start_ms_(now_ms()) {}
  bool is_over() const {
    return (options_.budget_s > 0 && now_ms() - start_ms_ > options_.budget_s * 1e3) ||
           (options_.stop && options_.stop());
  }
  double left_s() const { return options_.budget_s > 0 ? options_.budget_s - (now_ms() - start_ms_) / 1e3 : 1e9; }

 private:
  const place_options& options_;
  double start_ms_;
};

/// One run of `place`: candidates and costs, from which placements over any subset of backends are searched.
class placer {
 public:
  placer(const graph& network, backend_table backends, const place_options& options)
      : network_(network),
        backends_(backends),
        options_(options),
        deadline_(options),
        worker_(worker_options{options.worker_timeout_s}),
        neighbours_(backends.size()),
        packed_(std::make_shared<packed_weights>()) {
    threads_ = options.threads > 0 ? options.threads : available_threads();
    choose_backends();
    for (const value_record& v : network.values())
      if (!v.type.dims.is_concrete())
        throw error(error_kind::invalid_argument, "has extents that are not known", "network " + options.network,
                    "bind every symbolic extent before placing");
    candidates_ = find_candidates(network, backends, use_);
    for (std::uint32_t n = 0; n < network.nodes().size(); ++n) {
      is_alias_.push_back(is_alias(network.view(), n));
      may_be_alias_.push_back(!views_of(network, n).empty());
    }
    apply_rules();
    list_layouts();
    for (std::uint32_t i = 0; i < candidates_.list.size(); ++i)
      by_nodes_[candidates_.groups[candidates_.list[i].group].nodes].push_back(i);
    book_.emplace(network, backends, candidates_);
    add_allowed_regions();
    first_dynamic_ = static_cast<std::uint32_t>(candidates_.list.size());
    owned_.resize(network.nodes().size());
  }

  plan run() {
    require_cover([](const place_candidate&) { return true; });
    plan made = options_.measure ? run_measured() : run_unmeasured();
    if (options_.report != nullptr) {
      report_refusals();
      report_.candidates = candidates_.list.size();
      std::map<cost_key, bool> distinct;
      for (const place_candidate& c : candidates_.list) distinct[key_of(candidates_, c)] = true;
      report_.distinct = distinct.size();
      for (std::uint32_t from = 0; from < backends_.size(); ++from)
        for (std::uint32_t to = 0; to < backends_.size(); ++to)
          if (neighbours_.of(from, to) > 0)
            report_.switches.push_back(
                {backends_[from].name, backends_[to].name, neighbours_.of(from, to), neighbours_.kernels(from, to)});
      report_.skipped = distinct.size() - book_->table().size();
      report_.interrupted = interrupted_;
      *options_.report = std::move(report_);
    }
    return made;
  }

 private:
  /// What the search counts for conversions that no kernel needs and nobody makes.
  static constexpr double impossible_ms = 1e3;
  /// How much of a step's time its neighbours are taken to add at most.
  static constexpr double most_added = 0.9;
  /// By how much, as a part of the time end to end, the sum of costs may be off before what a kernel takes is told apart by
  /// whose results it reads.
  static constexpr double most_off = 0.02;
  /// Who stands for a node that no candidate covers.
  static constexpr std::uint32_t nobody = match_record::nothing;
  static constexpr std::uint32_t alias_mark = match_record::nothing, control_mark = match_record::nothing - 1;

  plan start_plan() const {
    plan made;
    made.network = options_.network;
    made.fingerprint = network_.fingerprint();
    made.threads = threads_;
    made.processor = processor_name();
    made.waiting = waiting_policy();
    for (std::uint32_t b = 0; b < backends_.size(); ++b) {
      if (!use_[b]) continue;
      const probe_result found = backends_[b].probe();
      made.backends.push_back({backends_[b].name, found.version, found.details});
    }
    return made;
  }

  plan run_measured() {
    if (!options_.store.empty())
      kept_.emplace(options_.store, network_, backends_, candidates_, use_, threads_, options_.regions_s > 0);
    if (!options_.store.empty() && conversions_)
      kept_conversions_.emplace(options_.store, conversions_->network(), backends_, conversions_->candidates(), use_,
                                threads_, false);
    drift_options drift = options_.drift;
    if (kept_ && drift.usual_ms <= 0) drift.usual_ms = kept_->usual_ms();
    monitor_.emplace(fixed_work(threads_), drift, options_.time);
    trusted_ms_ = monitor_->usual_ms();
    const double start = now_ms();
    measure_single_nodes();
    measure_largest_regions();
    if (options_.complete) measure_all([this](std::uint32_t) { return !deadline_.is_over(); });
    place_owned();
    require_cover([this](const place_candidate& c) { return can_be_used(c); });
    plan made = start_plan();
    const search_result first = search_placement();
    made.chosen = to_placement("plan", first);
    made.first_cost_ms = made.chosen.cost_ms;
    for (std::uint32_t b = 0; b < backends_.size(); ++b)
      if (use_[b]) made.singles.push_back(single(b));
    report_.measuring_s = (now_ms() - start) / 1e3;
    search_result last = first;
    if (may_be_endless(network_)) describe(made, last);
    else compare(made, last);
    replace_distrusted();
    for (const auto& [key, cost] : book_->table())
      ++(!cost.refusal.empty() ? report_.refused : cost.from_store ? report_.from_store : report_.measured);
    if (conversions_)
      for (const auto& [key, cost] : conversions_->book().table())
        ++(!cost.refusal.empty() ? report_.refused : cost.from_store ? report_.from_store : report_.measured);
    if (kept_ && report_.measured != 0) kept_->put_usual(monitor_->known_ms());
    if (kept_) report_.unstored = kept_->problem();
    report_.states = last.found.states;
    report_.transitions = last.found.transitions;
    report_.waited_s = (monitor_->waited_ms() + worker_.waited_ms()) / 1e3;
    return made;
  }

  /// The priority list over what can be built: kernels that were chosen are built, and where one refuses the choice is
  /// made again without it.
  plan run_unmeasured() {
    place_owned();
    for (const place_candidate& c : candidates_.list) book_->entry_of(c);
    plan made = start_plan();
    made.origin = "priority";
    std::map<cost_key, bool> built;
    for (bool settled = false; !settled;) {
      settled = true;
      require_cover([this](const place_candidate& c) { return can_be_used(c); });
      search_result by_rank = to_problem(true);
      by_rank.found = search::priority_list(by_rank.problem, ranks(by_rank, 0));
      for (const std::uint32_t chosen : by_rank.found.chosen) {
        if (by_rank.who[chosen] >= control_mark) continue;
        const place_candidate& c = candidates_.list[by_rank.who[chosen]];
        if (std::exchange(built[key_of(candidates_, c)], true)) continue;
        measured_cost& cost = book_->entry_of(c);
        try {
          build_context context(network_, threads_, *packed_);
          context.set_choice(c.choice);
          const thread_scope scope(backends_[c.backend], threads_);
          cost.kernel = build_candidate(network_, backends_, candidates_, c, context).name();
        } catch (const error& e) {
          cost.refusal = e.what();
          settled = false;
        }
      }
      for (const auto& [needed, how] : conversions_of(by_rank))
        settled = build_conversion_unmeasured(needed, *how) && settled;
      if (settled) made.chosen = to_placement("plan", by_rank);
    }
    made.chosen.cost_ms = 0;
    return made;
  }

  bool build_conversion_unmeasured(const needed_conversion& needed, std::uint32_t candidate) {
    const place_candidate& c = conversions_->candidates().list[candidate];
    if (conversions_->is_measured(candidate)) return true;
    measured_cost& cost = conversions_->book().entry_of(c);
    const backend_entry& b = backends_[c.backend];
    try {
      cost.kernel = build_conversion(network_, {needed.value, needed.from, needed.to, b.name, c.choice, {}, 0}, b,
                                     threads_, *packed_)
                        .name();
    } catch (const error& e) { cost.refusal = e.what(); }
    return cost.refusal.empty();
  }

  /// Places the sub-graphs of control flow, each as a network of its own.
  void place_owned() {
    for (std::uint32_t n = 0; n < owned_.size(); ++n)
      for (const std::shared_ptr<const graph>& body : network_.bodies_of(n)) {
        place_options inner = options_;
        inner.threads = threads_;
        inner.report = nullptr;
        inner.previous = nullptr;
        inner.rules = rules_in(*body, options_.rules);
        inner.network = options_.network + ", sub-graph of " + network_.node_name(n);
        owned_[n].push_back(placer(*body, backends_, inner).run());
      }
  }
  /// Those of the rules that name something in a sub-graph, or in those that it owns.
  std::vector<place_rule> rules_in(const graph& body, const std::vector<place_rule>& rules) const {
    std::vector<place_rule> list;
    for (const place_rule& rule : rules)
      if (is_named(body, rule.what) || is_pattern_of(rule)) list.push_back(rule);
    return list;
  }
  /// Whether a rule's word is the name of a node or an operator of a network or its sub-graphs.
  static bool is_named(const graph& network, const std::string& what) {
    for (std::uint32_t n = 0; n < network.nodes().size(); ++n) {
      if (network.node_name(n) == what || network.node(n).kind->name == what) return true;
      for (const std::shared_ptr<const graph>& body : network.bodies_of(n))
        if (is_named(*body, what)) return true;
    }
    return false;
  }
  bool is_pattern_of(const place_rule& rule) const {
    for (const backend_entry& b : backends_)
      if (rule.backend == b.name)
        return b.find(rule.what) != nullptr || (b.build_group != nullptr && rule.what == by_rule);
    return false;
  }

  /// Of a branch the dearer side, of a loop one round, or all of them where their number is known. There is one candidate
  /// for the node, so that nothing rests on it.
  double cost_of_owned(std::uint32_t node) const {
    double most = 0;
    for (const plan& body : owned_[node]) most = std::max(most, body.chosen.cost_ms);
    const std::uint32_t first = network_.view().inputs_of(node)[0];
    if (network_.node(node).kind->id != kind_id<struct ops::loop> || !network_.at(first).has_scalar) return most;
    if (from_words<ops::loop_attributes>(network_.view().words_of(node)).stops) return most;
    return most * std::clamp(network_.at(first).scalar, 0.0, 1e6);
  }

  void choose_backends() {
    for (const std::string& name : options_.backends)
      if (std::none_of(backends_.begin(), backends_.end(), [&](const backend_entry& b) { return name == b.name; })) {
        std::string known;
        for (const backend_entry& b : backends_) known += (known.empty() ? "" : ", ") + std::string(b.name);
        throw error(error_kind::invalid_argument, "there is no backend " + name, "backends",
                    "this program has " + known);
      }
    std::string missing;
    for (const backend_entry& b : backends_) {
      const bool wanted = options_.backends.empty() || std::find(options_.backends.begin(), options_.backends.end(),
                                                                 b.name) != options_.backends.end();
      const probe_result found = b.probe();
      use_.push_back(wanted && found.available);
      if (wanted && !found.available) {
        if (!options_.backends.empty())
          throw error(error_kind::environment, found.reason, std::string("backend ") + b.name);
        report_.refusals.push_back({b.name, "", "this machine", found.reason});
        missing += std::string("; ") + b.name + ": " + found.reason;
      }
    }
    if (std::none_of(use_.begin(), use_.end(), [](bool used) { return used; }))
      throw error(error_kind::environment, "no backend is available" + missing, "backends");
  }

  /// Takes away what rules forbid. Control flow and views have no candidates.
  void apply_rules() {
    forbidden_.assign(backends_.size(), std::vector<bool>(network_.nodes().size(), false));
    may_convert_ = use_;
    for (const place_rule& rule : options_.rules) {
      const bool pins = rule.act == place_rule::action::pin;
      const std::string where = std::string(pins ? "pin " : "exclude ") + rule.what;
      const auto backend = std::find_if(backends_.begin(), backends_.end(),
                                        [&](const backend_entry& b) { return rule.backend == b.name; });
      if (backend == backends_.end())
        throw error(error_kind::invalid_argument, "there is no backend " + rule.backend, where,
                    "name one of this program");
      const auto number = static_cast<std::uint32_t>(backend - backends_.begin());
      if (rule.what == decltype(ops::convert_layout)::name && backend->find(rule.what) != nullptr) {
        for (std::uint32_t b = 0; b < backends_.size(); ++b)
          if ((b == number) != pins) may_convert_[b] = false;
        continue;
      }
      std::vector<bool> named(network_.nodes().size());
      bool any = false;
      for (std::uint32_t n = 0; n < named.size(); ++n)
        if (network_.node_name(n) == rule.what || network_.node(n).kind->name == rule.what) any = named[n] = true;
      // Patterns of one operator have its name: it is the operator that is meant, in whatever group.
      const bool is_pattern = !any && !is_named(network_, rule.what) && is_pattern_of(rule);
      const auto has_pattern = [&](const place_candidate& c) {
        return is_pattern && c.backend == number && pattern_name(backends_, c.backend, c.pattern) == rule.what;
      };
      if (is_pattern && pins)  // where the pattern matches, nobody else runs the nodes
        for (const place_candidate& c : candidates_.list)
          if (has_pattern(c))
            for (const std::uint32_t n : candidates_.groups[c.group].nodes) named[n] = true;
      if (!any && !is_pattern && !is_named(network_, rule.what))
        throw error(error_kind::invalid_argument,
                    "is no node of the network, no operator in it and no pattern of " + rule.backend, where,
                    "see `collage inspect` and `collage backends`");
      forbid_regions(rule, number, named, is_pattern);
      for (std::uint32_t n = 0; pins && n < named.size(); ++n)
        if (named[n] && !is_alias_[n]) may_be_alias_[n] = false;
      std::erase_if(candidates_.list, [&](const place_candidate& c) {
        const auto& nodes = candidates_.groups[c.group].nodes;
        const bool touches = std::any_of(nodes.begin(), nodes.end(), [&](std::uint32_t n) { return named[n]; });
        if (is_pattern) return pins ? touches && !has_pattern(c) : has_pattern(c);
        return touches && (c.backend == number) != pins;
      });
    }
    if (!options_.rules.empty()) renumber_structures();
  }

  /// What a rule says of regions. `named` are the nodes that it names, or that the pattern which it pins matches.
  void forbid_regions(const place_rule& rule, std::uint32_t backend, const std::vector<bool>& named, bool is_pattern) {
    const bool pins = rule.act == place_rule::action::pin;
    const bool means_regions = is_pattern && rule.what == by_rule;
    for (std::uint32_t b = 0; b < backends_.size(); ++b)
      for (std::uint32_t n = 0; n < named.size(); ++n) {
        const bool is_meant = b == backend && (!is_pattern || means_regions);
        const bool is_named = named[n] || (means_regions && !pins);
        if (is_named && is_meant != pins) forbidden_[b][n] = true;
      }
  }

  /// Groups of one structure have the same candidates, also after rules took some away at some of their places.
  void renumber_structures() {
    std::map<std::uint32_t, std::vector<std::array<std::uint32_t, 3>>> left;  // by group
    for (const place_candidate& c : candidates_.list) left[c.group].push_back({c.backend, c.pattern, c.choice});
    std::vector<place_structure> structures;
    std::map<std::pair<std::uint32_t, std::vector<std::array<std::uint32_t, 3>>>, std::uint32_t> numbers;
    for (auto& [g, kernels] : left) {
      std::sort(kernels.begin(), kernels.end());
      std::uint32_t& structure = candidates_.groups[g].structure;
      const auto [number, is_new] =
          numbers.try_emplace({structure, kernels}, static_cast<std::uint32_t>(structures.size()));
      if (is_new) structures.push_back({g, candidates_.structures[structure].label, 0});
      ++structures[number->second].occurrences;
      structure = number->second;
    }
    candidates_.structures = std::move(structures);
  }

  /// Throws one error that names every node without a candidate, and who refused it and why.
  template <class Usable>
  void require_cover(Usable usable) {
    std::vector<bool> covered = is_alias_;
    for (std::uint32_t n = 0; n < covered.size(); ++n) covered[n] = covered[n] || is_control(network_.view(), n);
    for (const place_candidate& c : candidates_.list)
      if (usable(c))
        for (const std::uint32_t n : candidates_.groups[c.group].nodes) covered[n] = true;
    // Places that are alike, of which a network has dozens, are told together.
    std::vector<std::pair<std::string, std::vector<std::uint32_t>>> holes;
    for (std::uint32_t n = 0; n < covered.size(); ++n) {
      if (covered[n]) continue;
      std::string what = std::string(" (") + network_.node(n).kind->name;
      const auto operands = network_.view().inputs_of(n);
      for (const std::uint32_t v : operands.first(std::min<std::size_t>(operands.size(), 4)))
        what += " " + to_string(network_.type_of(v));
      if (operands.size() > 4) what += " ...";
      what += ")";
      std::string who;
      const auto add = [&who](const std::string& backend, const std::string& reason) {
        const std::string text = backend + " refuses: " + reason;
        if (who.find(text) == std::string::npos) who += (who.empty() ? "" : ", ") + text;
      };
      for (const place_refusal& r : candidates_.refusals)
        if (r.where == network_.node_name(n)) add(r.backend, r.reason);
      for (const place_candidate& c : candidates_.list) {
        const measured_cost* known = book_->find(c);
        const auto& nodes = candidates_.groups[c.group].nodes;
        if (known != nullptr && !known->refusal.empty() && std::find(nodes.begin(), nodes.end(), n) != nodes.end())
          add(backends_[c.backend].name, known->refusal);
      }
      what += who.empty() ? " is in no backend's patterns" : ", " + who;
      const auto alike = std::find_if(holes.begin(), holes.end(), [&](const auto& hole) { return hole.first == what; });
      if (alike == holes.end()) holes.emplace_back(std::move(what), std::vector<std::uint32_t>{n});
      else alike->second.push_back(n);
    }
    if (holes.empty()) return;
    constexpr std::size_t named = 3;
    std::string text;
    for (const auto& [what, nodes] : holes) {
      for (std::size_t i = 0; i < std::min(nodes.size(), named); ++i)
        text += (i != 0 ? ", " : text.empty() ? "" : "; ") + network_.node_name(nodes[i]);
      if (nodes.size() > named) text += " and " + std::to_string(nodes.size() - named) + " more";
      text += what;
    }
    throw error(error_kind::unsupported, "no backend takes " + text, "network " + options_.network,
                "add a backend that does");
  }

  /// In which layouts candidates read and write, and what would make them fit each other. What nobody can make plain is left
  /// out.
  void list_layouts() {
    std::map<std::uint32_t, std::vector<layout>> met;
    const auto add = [](std::vector<layout>& list, const layout& order) {
      if (std::ranges::find(list, order) == list.end()) list.push_back(order);
    };
    for (const place_candidate& c : candidates_.list) {
      const value_layouts borders = layouts_of(network_, backends_, c);
      for (const auto& [v, order] : borders.list()) add(met[v], order);
    }
    if (met.empty()) return;
    conversions_.emplace(network_, backends_, may_convert_, met, threads_);
    const auto fits = [&](const place_candidate& c) {
      const value_layouts borders = layouts_of(network_, backends_, c);
      for (const auto& [v, order] : borders.list())
        if (network_.at(v).role == value_role::constant || !can_be_converted(v, order)) return false;
      for (const auto& [v, order] : borders.list()) add(met_[v], order);
      return true;
    };
    const std::size_t before = candidates_.list.size();
    std::erase_if(candidates_.list, [&](const place_candidate& c) {
      if (fits(c)) return false;
      candidates_.refusals.push_back({backends_[c.backend].name, pattern_name(backends_, c.backend, c.pattern),
                                      network_.node_name(c.root),
                                      "nobody converts the layouts that it reads or writes"});
      return true;
    });
    if (candidates_.list.size() != before) renumber_structures();
    for (const place_candidate& c : candidates_.list) borders_.push_back(layouts_of(network_, backends_, c));
    for (const auto& [v, list] : met_) {
      search_number_.emplace(v, static_cast<std::uint32_t>(search_number_.size()));
      for (const layout& order : list) add(layouts_, order);
    }
  }
  /// Whether a value in a layout can be made over into, and from, each other in which some kernel has it.
  bool can_be_converted(std::uint32_t value, const layout& order) const {
    const auto is_there = [&](const layout& from, const layout& to) {
      return conversions_->best(value, from, to).has_value();
    };
    if (!is_there(plain, order) || !is_there(order, plain)) return false;
    const auto others = met_.find(value);
    return others == met_.end() || std::ranges::all_of(others->second, [&](const layout& other) {
             return other == order || (is_there(other, order) && is_there(order, other));
           });
  }
  bool can_be_converted(const value_layouts& borders) const {
    return std::ranges::all_of(borders.list(),
                               [&](const auto& border) { return can_be_converted(border.first, border.second); });
  }
  /// Whether a candidate has a kernel as far as is known, and whoever reads or writes its values otherwise can be served.
  bool can_be_used(const place_candidate& c) const {
    return book_->cost_of(c).state != cost_state::refused && can_be_converted(layouts_of(network_, backends_, c));
  }
  std::size_t number_of(const layout& order) const {
    return static_cast<std::size_t>(std::ranges::find(layouts_, order) - layouts_.begin());
  }
  const value_layouts& borders_of(std::uint32_t candidate) const {
    static const value_layouts nothing;  // regions, which are added later, read and write plain values
    return candidate < borders_.size() ? borders_[candidate] : nothing;
  }

  measuring_setup setup() {
    measuring_setup s;
    s.threads = threads_;
    s.seed = options_.seed;
    s.packed = packed_.get();
    s.timing = options_.timing;
    s.monitor = &*monitor_;
    s.stop = [this] { return deadline_.is_over(); };
    s.time = options_.time;
    return s;
  }

  std::uint32_t structure_of(std::uint32_t candidate) const {
    return candidates_.groups[candidates_.list[candidate].group].structure;
  }

  /// Learns the costs of a structure: from the store, or by measuring, which one process at a time does with a store.
  void measure(std::uint32_t structure) {
    const double start = now_ms();
    if (measure(network_, candidates_, *book_, kept_, structure)) measured_now_.push_back(structure);
    ++measured_structures_;
    measuring_ms_ += now_ms() - start;
  }
  /// Answers whether it was measured now.
  bool measure(const graph& network, const place_candidates& candidates, cost_book& book,
               std::optional<kept_costs>& kept, std::uint32_t structure) {
    recall(candidates, book, kept, structure);
    if (book.is_measured(structure)) return false;
    distrust_slow_start();
    tell("measuring", candidates.structures[structure].label);
    const measuring_lock lock = wait_for_turn();
    recall(candidates, book, kept, structure);
    if (book.is_measured(structure)) return false;
    const measuring_setup how = setup();
    book.measure(structure, [&](std::span<const std::uint32_t> asked) {
      if (options_.workers) return worker_.measure(network, backends_, candidates, asked, how);
      return measure_candidates(network, backends_, candidates, asked, how);
    });
    const std::string where = options_.workers ? worker_.where() : "in this process";
    if (report_.where.empty() || where != in_a_worker) report_.where = where;
    // What time did not suffice for is not kept.
    if (kept && !deadline_.is_over()) {
      std::vector<std::pair<place_candidate, measured_cost>> fresh;
      for (const std::uint32_t i : book.rivals_of(structure))
        if (const measured_cost* cost = book.find(candidates.list[i]); cost != nullptr && !cost->from_store)
          fresh.emplace_back(candidates.list[i], *cost);
      kept->put(fresh, where);
    }
    return true;
  }
  /// What was measured before the machine turned out to be faster than it began is not comparable with what comes now: it is
  /// forgotten, and measured again where it is needed. Answers whether that was found now.
  bool distrust_slow_start() {
    (void)monitor_->slowness();
    if (monitor_->usual_ms() * monitor_->options().calm >= trusted_ms_) return false;
    trusted_ms_ = monitor_->usual_ms();
    for (const std::uint32_t s : std::exchange(measured_now_, {})) {
      book_->forget(s);
      distrusted_.insert(s);
      --measured_structures_;
    }
    for (const std::uint32_t s : std::exchange(converted_now_, {})) {
      conversions_->book().forget(s);
      distrusted_conversions_.insert(s);
    }
    return true;
  }
  /// Measures again what a slow start made forgotten, so that the store and the plan have no such times.
  void replace_distrusted() {
    measure_all([this](std::uint32_t s) { return distrusted_.count(s) != 0 && !deadline_.is_over(); });
    for (std::uint32_t i = 0; conversions_ && i < conversions_->candidates().list.size() && !deadline_.is_over(); ++i)
      if (distrusted_conversions_.count(conversions_->structure_of(i)) != 0) measure_conversion(i);
  }

  /// The right to measure, where there is a store.
  measuring_lock wait_for_turn() {
    if (!kept_ || !kept_->problem().empty() || has_turn_) return {};
    return kept_->lock([&](const measuring_process& other) {
      tell("waiting", other.pid != 0 ? "process " + std::to_string(other.pid) + " measures with the same store"
                                     : "another process measures with the same store");
      return !deadline_.is_over();
    });
  }
  void recall(std::uint32_t structure) { recall(candidates_, *book_, kept_, structure); }
  void recall(const place_candidates& candidates, cost_book& book, const std::optional<kept_costs>& kept,
              std::uint32_t structure) const {
    if (!kept || (&book == &*book_ ? distrusted_ : distrusted_conversions_).count(structure) != 0) return;
    for (const std::uint32_t i : book.rivals_of(structure))
      if (book.find(candidates.list[i]) == nullptr)
        if (const std::optional<measured_cost> cost = kept->find(candidates.list[i]))
          book.recall(candidates.list[i], *cost);
  }
  void measure_conversion(std::uint32_t candidate) {
    const std::uint32_t structure = conversions_->structure_of(candidate);
    if (!conversions_->book().is_measured(structure))
      if (measure(conversions_->network(), conversions_->candidates(), conversions_->book(), kept_conversions_,
                  structure))
        converted_now_.push_back(structure);
  }

  void tell(const char* stage, const std::string& what) {
    if (!options_.progress) return;
    place_progress now;
    now.stage = stage;
    now.what = what;
    now.done = measured_structures_;
    now.remaining = candidates_.structures.size() - measured_structures_;
    if (measured_structures_ != 0)
      now.remaining_s =
          measuring_ms_ / static_cast<double>(measured_structures_) * static_cast<double>(now.remaining) / 1e3;
    now.best_ms = best_ms_;
    options_.progress(now);
  }

  /// Kernels of single operators come first: with them there is a placement, which then only gets better, and bounds for
  /// all others.
  void measure_single_nodes() {
    measure_all(
        [this](std::uint32_t s) { return candidates_.groups[candidates_.structures[s].example].nodes.size() == 1; });
  }
  /// Where a largest region has no kernel, single operators in it may be to blame, which are not worth the rest: each is
  /// tried alone, and the regions are made again without those that have none.
  void measure_largest_regions() {
    for (std::uint32_t b = 0; b < backends_.size(); ++b) {
      if (!use_[b] || !backends_[b].takes_regions) continue;
      const auto has_kernel = [&](std::uint32_t candidate) {
        if (!book_->is_measured(structure_of(candidate))) measure(structure_of(candidate));
        const measured_cost* cost = book_->find(candidates_.list[candidate]);
        return cost != nullptr && cost->refusal.empty();
      };
      bool all_have = true;
      for (std::uint32_t i = 0; i < first_dynamic_ && !deadline_.is_over(); ++i)
        if (candidates_.list[i].backend == b && is_region(candidates_.list[i])) all_have = has_kernel(i) && all_have;
      if (all_have) continue;
      for (std::uint32_t n = 0; n < is_alias_.size() && !deadline_.is_over(); ++n) {
        if (is_alias_[n] || !may_be_in_region(b, n)) continue;
        const std::optional<std::uint32_t> alone = add_region(b, {n});
        forbidden_[b][n] = !(alone && has_kernel(*alone));
      }
      add_largest_regions(b);
      first_dynamic_ = static_cast<std::uint32_t>(candidates_.list.size());
    }
  }

  /// Measures the structures that are wanted, until all of them are: a slow start may make it forget some.
  template <class Wanted>
  void measure_all(Wanted wanted) {
    for (bool again = true; again;) {
      again = false;
      for (std::uint32_t s = 0; s < candidates_.structures.size(); ++s) {
        if (!wanted(s) || book_->is_measured(s)) continue;
        measure(s);
        again = true;
      }
    }
  }

  /// Candidates with what the search is to know of them, and what it found.
  struct search_result {
    search::problem problem;
    std::vector<std::uint32_t> who;  ///< which of our candidates each of the problem's is, or a mark
    search::placement found;
  };

  /// Searches, measures what is in the placement found and was not measured yet, and again: until all of it has been
  /// measured. What was not measured counts with a bound from below, so that it could not be part of a better placement.
  template <class Search>
  search_result search_and_measure(Search search_over) {
    for (;;) {
      const bool is_over = deadline_.is_over();
      search_result result = to_problem(!is_over);
      if (is_over && !search::uncovered(result.problem).empty()) result = to_problem(true);
      if (!search::uncovered(result.problem).empty()) {
        require_cover([this](const place_candidate& c) { return can_be_used(c); });
        // A region is all that is left for some node. Otherwise it is the search that tells what is missing.
        if (std::exchange(operators_alone_, false)) continue;
      }
      const double start = now_ms();
      result.found = search_over(result);
      report_.search_ms += now_ms() - start;
      ++report_.searches;
      interrupted_ = interrupted_ || is_over;
      std::vector<std::uint32_t> wanted;
      for (const std::uint32_t chosen : result.found.chosen)
        if (result.who[chosen] < control_mark) {
          const place_candidate& c = candidates_.list[result.who[chosen]];
          const std::uint32_t s = candidates_.groups[c.group].structure;
          if (book_->find(c) == nullptr && std::find(wanted.begin(), wanted.end(), s) == wanted.end())
            wanted.push_back(s);
        }
      std::set<std::uint32_t> converted;
      for (const auto& [c, candidate] : conversions_of(result))
        if (candidate && !conversions_->is_measured(*candidate)) converted.insert(*candidate);
      if (wanted.empty() && converted.empty()) return result;
      for (const std::uint32_t s : wanted) measure(s);
      for (const std::uint32_t c : converted) measure_conversion(c);
    }
  }
  search_result search_placement() {
    search_result result = search_and_measure([](const search_result& r) { return search::exact(r.problem); });
    best_ms_ = result.found.cost_ms;
    return result;
  }

  /// What `build` refused, then what `accepts` did, each reason once.
  void report_refusals() {
    for (const auto& [key, cost] : book_->table()) {
      const auto& [structure, b, p, choice] = key;
      if (cost.refusal.empty()) continue;
      report_.refusals.push_back(
          {backends_[b].name, pattern_name(backends_, b, p), candidates_.structures[structure].label, cost.refusal});
    }
    std::map<std::tuple<std::string, std::string, std::string>, bool> told;
    if (conversions_)
      for (const auto& [key, cost] : conversions_->book().table())
        if (const auto& [structure, b, p, choice] = key; !cost.refusal.empty())
          report_.refusals.push_back({backends_[b].name, pattern_name(backends_, b, p),
                                      conversions_->candidates().structures[structure].label, cost.refusal});
    for (const place_refusal& r : candidates_.refusals)
      if (!std::exchange(told[{r.backend, r.pattern, r.reason}], true)) report_.refusals.push_back(r);
  }

  bool is_region(const place_candidate& c) const { return c.is_by_rule() && backends_[c.backend].takes_regions; }
  /// Of the regions that were tried, the last searches look at those that still run.
  void hide_regions_but_of(const end_to_end& arena, std::size_t winner) {
    hidden_.assign(candidates_.list.size(), false);
    for (std::uint32_t i = first_dynamic_; i < hidden_.size(); ++i) hidden_[i] = is_region(candidates_.list[i]);
    for (std::size_t r = 0; r < arena.size(); ++r)
      if (arena.can_run(r) || r == winner)
        for (const auto& who : candidates_in(arena.which(r)))
          if (who) hidden_[*who] = false;
  }

  /// The search's view: candidates that can be built, then one for each node that may be an alias or is control flow. With
  /// `all`, also those that were not measured yet.
  search_result to_problem(bool all, known_cost (cost_book::*counted)(const place_candidate&)
                                         const = &cost_book::price_of) const {
    search_result result;
    search::problem& p = result.problem;
    const graph_view view = network_.view();
    p.nodes = network_.nodes().size();
    for (std::uint32_t n = 0; n < p.nodes; ++n)
      for (const std::uint32_t v : view.inputs_of(n))
        if (network_.at(v).producer >= 0) p.edges.emplace_back(static_cast<std::uint32_t>(network_.at(v).producer), n);
    for (const std::uint32_t v : network_.outputs())
      if (network_.at(v).producer >= 0) p.outputs.push_back(static_cast<std::uint32_t>(network_.at(v).producer));
    const std::vector<std::uint32_t> runtimes = neighbours_.runtimes();
    p.runtimes = neighbours_.any() ? 1 + *std::ranges::max_element(runtimes) : 1;
    const auto add = [&](std::span<const std::uint32_t> nodes, double cost, std::uint32_t index,
                         std::uint32_t runtime = 0) {
      p.candidates.push_back({search::node_set(nodes), cost, index, runtime});
      result.who.push_back(index);
      if (index >= control_mark) return;
      std::vector<search::border>& borders = p.candidates.back().borders;
      for (const auto& [v, order] : borders_of(index).list())
        borders.push_back({search_number_.at(v), static_cast<std::uint32_t>(number_of(order))});
      std::ranges::sort(borders, {}, &search::border::value);
    };
    add_values(p);
    add_switches(p, runtimes);
    for (std::uint32_t i = 0; i < candidates_.list.size(); ++i) {
      const place_candidate& c = candidates_.list[i];
      if (is_region(c) && (operators_alone_ || (i < hidden_.size() && hidden_[i]))) continue;
      const known_cost cost = ((*book_).*counted)(c);
      if (cost.state == cost_state::refused || (cost.state == cost_state::bounded && !all)) continue;
      if (!can_be_converted(borders_of(i))) continue;
      add(candidates_.groups[c.group].nodes, cost.ms, i, runtimes[c.backend]);
    }
    // A view is whoever's reads it, and control flow nobody's.
    for (std::uint32_t runtime = 0; runtime < p.runtimes; ++runtime)
      for (std::uint32_t n = 0; n < p.nodes; ++n) {
        const std::uint32_t nodes[] = {n};
        if (may_be_alias_[n]) add(nodes, 0.0, alias_mark, runtime);
        if (is_control(network_.view(), n)) add(nodes, cost_of_owned(n), control_mark, runtime);
      }
    return result;
  }

  /// The values that some candidate reads or writes in another layout than the plain one, and what conversions cost.
  void add_values(search::problem& p) const {
    if (search_number_.empty()) return;
    p.layouts = static_cast<std::uint32_t>(layouts_.size());
    for (const auto& [v, number] : search_number_) {
      search::value at = to_search_value(v);
      for (const layout& from : layouts_)
        for (const layout& to : layouts_) {
          const auto how = from == to ? std::nullopt : conversions_->best(v, from, to);
          at.convert_ms.push_back(from == to ? 0 : how ? conversions_->cost_of(*how) : impossible_ms);
        }
      p.values.push_back(std::move(at));
    }
  }
  /// What it costs that values come from other backends. Values of which nothing else is known follow those of `add_values`.
  void add_switches(search::problem& p, std::span<const std::uint32_t> runtimes) const {
    if (p.runtimes == 1) return;
    p.switch_ms.assign(std::size_t{p.runtimes} * p.runtimes, 0.0);
    for (std::uint32_t from = 0; from < runtimes.size(); ++from)
      for (std::uint32_t to = 0; to < runtimes.size(); ++to)
        if (runtimes[from] != runtimes[to])
          p.switch_ms[runtimes[from] * p.runtimes + runtimes[to]] = neighbours_.of(from, to);
    for (std::uint32_t v = 0; v < network_.values().size(); ++v)
      if (network_.at(v).producer >= 0 && search_number_.count(v) == 0) p.values.push_back(to_search_value(v));
  }
  search::value to_search_value(std::uint32_t v) const {
    search::value at;
    if (network_.at(v).producer >= 0) at.producer = static_cast<std::uint32_t>(network_.at(v).producer);
    for (const use& reader : network_.view().uses_of(v)) at.readers.push_back(reader.node);
    std::ranges::sort(at.readers);
    const auto twins = std::ranges::unique(at.readers);
    at.readers.erase(twins.begin(), twins.end());
    at.is_output = network_.at(v).is_output;
    return at;
  }

  /// For each group of a placement that is no view: who wrote the values that it is the first of its backend to read, as far
  /// as that is another backend.
  std::vector<std::vector<std::uint32_t>> other_writers(const placement& p) const {
    std::vector<std::uint32_t> writer(network_.values().size(), nobody);
    std::vector<std::vector<std::uint32_t>> written(writer.size());  // of a view: the values that kernels wrote for it
    for (std::uint32_t v = 0; v < written.size(); ++v) written[v] = {v};
    std::set<std::pair<std::uint32_t, std::uint32_t>> read;  // value and reader's backend
    std::vector<std::vector<std::uint32_t>> list;
    for (const plan_group& g : p.groups) {
      if (g.backend == alias_backend) {
        std::vector<std::uint32_t>& seen = written[network_.view().output_of(g.nodes.back())];
        seen.clear();
        for (const std::uint32_t v : network_.view().inputs_of(g.nodes.back()))
          seen.insert(seen.end(), written[v].begin(), written[v].end());
        continue;
      }
      std::vector<std::uint32_t>& from = list.emplace_back();
      const std::uint32_t self = backend_number(g.backend);
      for (const std::uint32_t n : g.nodes)
        for (const std::uint32_t seen : network_.view().inputs_of(n))
          for (const std::uint32_t v : written[seen])
            if (writer[v] != nobody && self != nobody && writer[v] != self && read.emplace(v, self).second)
              from.push_back(writer[v]);
      for (const std::uint32_t n : g.nodes)
        for (std::uint32_t i = 0; i < network_.node(n).outputs; ++i) writer[network_.view().output_of(n, i)] = self;
    }
    return list;
  }
  /// `nobody` for control flow.
  std::uint32_t backend_number(const std::string& name) const {
    for (std::uint32_t b = 0; b < backends_.size(); ++b)
      if (name == backends_[b].name) return b;
    return nobody;
  }
  /// Adds to the costs of a placement's groups what it takes that values come from other backends. Answers the sum.
  double add_switches(placement& p) const {
    if (!neighbours_.any()) return 0;
    const auto writers = other_writers(p);
    double sum = 0;
    std::size_t at = 0;
    for (plan_group& g : p.groups) {
      if (g.backend == alias_backend) continue;
      for (const std::uint32_t from : writers[at]) g.switch_ms += neighbours_.of(from, backend_number(g.backend));
      for (double* part : {&g.cost_ms, &g.low_ms, &g.high_ms}) *part += g.switch_ms;
      sum += g.switch_ms;
      ++at;
    }
    return sum;
  }

  /// The conversions of what a search found, and which candidate each is.
  std::vector<std::pair<needed_conversion, std::optional<std::uint32_t>>> conversions_of(
      const search_result& from) const {
    std::vector<std::vector<std::uint32_t>> nodes;
    std::vector<const value_layouts*> borders;
    if (conversions_)
      for (const std::uint32_t chosen : from.found.chosen) {
        const search::node_set& members = from.problem.candidates[chosen].nodes;
        nodes.emplace_back(members.begin(), members.end());
        borders.push_back(from.who[chosen] < control_mark ? &borders_of(from.who[chosen]) : nullptr);
      }
    return conversions_of(nodes, borders);
  }
  std::vector<std::pair<needed_conversion, std::optional<std::uint32_t>>> conversions_of(
      const std::vector<std::vector<std::uint32_t>>& nodes, const std::vector<const value_layouts*>& borders) const {
    std::vector<std::pair<needed_conversion, std::optional<std::uint32_t>>> list;
    if (!conversions_) return list;
    for (const needed_conversion& c : conversions_between(network_, nodes, borders))
      list.emplace_back(c, conversions_->best(c.value, c.from, c.to));
    return list;
  }
  std::vector<std::pair<needed_conversion, std::optional<std::uint32_t>>> conversions_of(const placement& p) const {
    std::vector<std::vector<std::uint32_t>> nodes;
    std::vector<const value_layouts*> borders;
    const auto who = candidates_in(p);
    std::size_t at = 0;
    for (const plan_group& g : p.groups) {
      nodes.push_back(g.nodes);
      const std::optional<std::uint32_t> candidate = g.backend == alias_backend ? std::nullopt : who[at++];
      borders.push_back(candidate ? &borders_of(*candidate) : nullptr);
    }
    return conversions_of(nodes, borders);
  }
  /// Measures what is not known yet of the conversions that a placement needs. Answers whether all of them can be made.
  bool measure_conversions_of(const placement& p) {
    for (bool again = true; again;) {
      again = false;
      for (const auto& [needed, how] : conversions_of(p)) {
        if (!how) return false;
        if (conversions_->is_measured(*how)) continue;
        measure_conversion(*how);
        again = true;
      }
    }
    return true;
  }
  /// Gives a placement the conversions that its groups need, each by whoever is fastest at it. Answers what they cost.
  double add_conversions(placement& p) const {
    p.conversions.clear();
    double sum = 0;
    for (const auto& [needed, candidate] : conversions_of(p)) {
      plan_conversion c{needed.value, needed.from, needed.to, {}, 0, {}, 0};
      if (candidate) {
        const place_candidate& how = conversions_->candidates().list[*candidate];
        const measured_cost* known = conversions_->book().find(how);
        c.backend = backends_[how.backend].name;
        c.choice = how.choice;
        if (known != nullptr) c.kernel = known->kernel;
        c.cost_ms = conversions_->cost_of(*candidate);
      }
      sum += c.cost_ms;
      p.conversions.push_back(std::move(c));
    }
    return sum;
  }
  /// "blocked-16", or "plain to blocked-16" where a kernel reads one and writes the other.
  std::string layout_text(std::uint32_t candidate) const {
    const place_candidate& c = candidates_.list[candidate];
    const value_layouts& borders = borders_of(candidate);
    if (borders.list().empty()) return plain.name;
    const node_group values = values_of(network_, backends_, candidates_, c);
    layout reads;
    for (const std::uint32_t v : values.arguments)
      if (reads == plain) reads = borders.of(v);
    const layout& writes = borders.of(values.outputs.front());
    return reads == writes ? reads.name : std::string(reads.name) + " to " + writes.name;
  }

  plan_group to_group(std::uint32_t candidate) const {
    const place_candidate& c = candidates_.list[candidate];
    const measured_cost* cost = book_->find(c);
    plan_group g;
    g.backend = backends_[c.backend].name;
    g.pattern = pattern_name(backends_, c.backend, c.pattern);
    g.choice = c.choice;
    g.kernel = cost->kernel;
    g.layout = layout_text(candidate);
    g.nodes = candidates_.groups[c.group].nodes;
    if (!c.is_by_rule()) {
      const auto root = std::find(g.nodes.begin(), g.nodes.end(), c.root);
      std::rotate(root, root + 1, g.nodes.end());  // it stands last, where the others' order is that of the graph
    }
    g.cost_ms = book_->cost_of(c).ms;
    g.alone_ms = cost->alone_ms;
    const timing& t = cost->within.samples != 0 ? cost->within : cost->time;
    const double scale = t.median_ms > 0 ? g.cost_ms / t.median_ms : 1;
    g.low_ms = t.sure_low_ms * scale;
    g.high_ms = t.sure_high_ms * scale;
    g.runners_up = runners_up(candidate);
    return g;
  }

  plan_group to_group_without_kernel(std::uint32_t node, const std::string& placement_name) const {
    const bool alias = !is_control(network_.view(), node);
    plan_group g;
    g.backend = alias ? alias_backend : control_backend;
    g.pattern = network_.node(node).kind->name;
    g.kernel = alias ? "view" : g.pattern;
    g.nodes = {node};
    g.cost_ms = g.low_ms = g.high_ms = g.alone_ms = alias ? 0 : cost_of_owned(node);
    g.bodies = placements_of_owned(node, placement_name);
    return g;
  }

  placement to_placement(const std::string& name, const search_result& from) const {
    placement result;
    result.name = name;
    result.cost_ms = from.found.cost_ms;
    for (const std::uint32_t chosen : from.found.chosen)
      if (from.who[chosen] >= control_mark) {
        result.groups.push_back(to_group_without_kernel(from.problem.candidates[chosen].nodes.first(), name));
      } else {
        result.groups.push_back(to_group(from.who[chosen]));
        result.cost_ms -= from.problem.candidates[chosen].cost_ms - result.groups.back().cost_ms;  // the doubt
      }
    order_groups(result);
    (void)add_conversions(result);
    (void)add_switches(result);  // which the search has counted
    return result;
  }

  /// Which candidate each group of a placement is, views left out; nothing for control flow and what is no candidate.
  std::vector<std::optional<std::uint32_t>> candidates_in(const placement& p) const {
    std::vector<std::optional<std::uint32_t>> list;
    for (const plan_group& g : p.groups) {
      if (g.backend == alias_backend) continue;
      list.emplace_back();
      std::vector<std::uint32_t> nodes = g.nodes;
      std::sort(nodes.begin(), nodes.end());
      const auto there = by_nodes_.find(nodes);
      if (there == by_nodes_.end()) continue;
      for (const std::uint32_t i : there->second) {
        const place_candidate& c = candidates_.list[i];
        if (g.backend == backends_[c.backend].name && g.choice == c.choice &&
            g.pattern == pattern_name(backends_, c.backend, c.pattern) && (c.is_by_rule() || g.nodes.back() == c.root))
          list.back() = i;
      }
    }
    return list;
  }

  /// The sub-graphs' placements for a plan of the whole, or for the single backend of that name.
  std::vector<placement> placements_of_owned(std::uint32_t node, const std::string& name) const {
    std::vector<placement> list;
    for (const plan& body : owned_[node]) {
      const auto single =
          std::find_if(body.singles.begin(), body.singles.end(), [&](const placement& s) { return s.name == name; });
      list.push_back(single != body.singles.end() ? *single : body.chosen);
    }
    return list;
  }

  /// Other kernels for the same nodes, cheapest first, at most three.
  std::vector<plan_alternative> runners_up(std::uint32_t chosen) const {
    std::vector<plan_alternative> others;
    for (const std::uint32_t i : by_nodes_.at(candidates_.groups[candidates_.list[chosen].group].nodes)) {
      const place_candidate& c = candidates_.list[i];
      const measured_cost* cost = book_->find(c);
      if (i == chosen || cost == nullptr || !cost->refusal.empty()) continue;
      others.push_back({backends_[c.backend].name, pattern_name(backends_, c.backend, c.pattern), cost->kernel,
                        book_->cost_of(c).ms});
    }
    std::stable_sort(others.begin(), others.end(),
                     [](const plan_alternative& a, const plan_alternative& b) { return a.cost_ms < b.cost_ms; });
    if (others.size() > 3) others.resize(3);
    return others;
  }

  /// Groups in an order in which they can run: of those whose operands are there, the one with the lowest root first. Where
  /// groups have one exit each, that is the order of their roots.
  void order_groups(placement& p) const {
    std::vector<std::size_t> group_of(network_.nodes().size());
    for (std::size_t g = 0; g < p.groups.size(); ++g)
      for (const std::uint32_t n : p.groups[g].nodes) group_of[n] = g;
    std::vector<std::vector<std::size_t>> readers(p.groups.size());
    std::vector<std::size_t> missing(p.groups.size());
    for (std::uint32_t n = 0; n < group_of.size(); ++n)
      for (const std::uint32_t v : network_.view().inputs_of(n)) {
        if (network_.at(v).producer < 0) continue;
        const std::size_t from = group_of[static_cast<std::size_t>(network_.at(v).producer)];
        if (from == group_of[n]) continue;
        readers[from].push_back(group_of[n]);
        ++missing[group_of[n]];
      }
    const auto later = [&p](std::size_t a, std::size_t b) {
      return p.groups[a].nodes.back() > p.groups[b].nodes.back();
    };
    std::priority_queue<std::size_t, std::vector<std::size_t>, decltype(later)> ready(later);
    for (std::size_t g = 0; g < missing.size(); ++g)
      if (missing[g] == 0) ready.push(g);
    std::vector<plan_group> ordered;
    while (!ready.empty()) {
      const std::size_t g = ready.top();
      ready.pop();
      for (const std::size_t reader : readers[g])
        if (--missing[reader] == 0) ready.push(reader);
      ordered.push_back(std::move(p.groups[g]));
    }
    p.groups = std::move(ordered);
  }

  /// Where a candidate stands when `first` comes first and the others follow in the set's order; last resorts at the end.
  std::uint32_t rank_of(const place_candidate& c, std::uint32_t first) const {
    const std::size_t turn = (c.backend + backends_.size() - first) % backends_.size();
    const bool last = is_last_resort(backends_, c);
    return static_cast<std::uint32_t>(turn + (last ? backends_.size() : 0));
  }

  /// Ranks of the problem's candidates when the backend `first` comes first. Of a backend that takes regions it is not asked
  /// what an engine would be that has it and the others in this order, but what it gives where it can: all else goes to whoever
  /// is fastest.
  std::vector<std::uint32_t> ranks(const search_result& of, std::uint32_t first) const {
    std::vector<std::uint32_t> rank;
    for (const std::uint32_t i : of.who) {
      if (i >= control_mark) rank.push_back(0);
      else if (!backends_[first].takes_regions || !options_.measure)
        rank.push_back(rank_of(candidates_.list[i], first));
      else
        rank.push_back(candidates_.list[i].backend == first             ? 0
                       : is_last_resort(backends_, candidates_.list[i]) ? 2
                                                                        : 1);
    }
    return rank;
  }

  /// The same search for one backend alone: nodes that it refuses go to the next backend of the set that takes them,
  /// and are named.
  placement single(std::uint32_t backend) {
    // Whoever lacks an operator does not give the whole network away for it, where it has another choice.
    operators_alone_ = !backends_[backend].takes_regions && is_covered_by_operators();
    const search_result alone =
        search_and_measure([&](const search_result& r) { return search::exact_by_rank(r.problem, ranks(r, backend)); });
    operators_alone_ = false;
    placement result = to_placement(backends_[backend].name, alone);
    for (const plan_group& g : result.groups)
      if (g.backend != result.name && g.backend != alias_backend && g.backend != control_backend)
        for (const std::uint32_t n : g.nodes) result.borrowed.push_back(network_.node_name(n));
    return result;
  }

  bool is_covered_by_operators() {
    const bool before = std::exchange(operators_alone_, true);
    const bool covered = search::uncovered(to_problem(true).problem).empty();
    operators_alone_ = before;
    return covered;
  }

  /// The certificate of the last search, and why each group was chosen.
  void describe(plan& made, const search_result& last) const {
    made.lower_bound_ms = last.found.lower_bound_ms;
    made.optimal = last.found.optimal;
    explain_groups(made);
  }

  /// Whether a run may take any time: a loop ends by its data, and random ones may never end it.
  static bool may_be_endless(const graph& network) {
    for (std::uint32_t n = 0; n < network.nodes().size(); ++n) {
      for (const std::shared_ptr<const graph>& body : network.bodies_of(n))
        if (may_be_endless(*body)) return true;
      if (network.node(n).kind->id != kind_id<struct ops::loop>) continue;
      const value_record& rounds = network.at(network.view().inputs_of(n)[0]);
      if (!rounds.has_scalar || rounds.scalar > 1e6) return true;
    }
    return false;
  }

  /// Promise 1: what is handed out is never slower than the best single backend, nor than the previous plan, in a paired
  /// run. Within these runs each kernel is timed where it stands, and the search goes on with what that showed, until it
  /// finds nothing that has not run.
  void compare(plan& made, search_result& last) {
    const double start = now_ms();
    const plan begun = made;
    const auto recalled = [&] {
      if (!kept_ || options_.recheck) return false;
      std::optional<plan> known = kept_->find(begun);
      if (!known || !is_current(*known)) return false;
      known->network = options_.network;
      made = *std::move(known);
      report_.compared_before = true;
      return true;
    };
    if (!recalled()) {
      const measuring_lock lock = wait_for_turn();
      if (!recalled()) {   // another process may have done it meanwhile
        has_turn_ = true;  // what is measured meanwhile needs no other
        run_end_to_end(made, last);
        has_turn_ = false;
        describe(made, last);
        if (kept_ && !deadline_.is_over()) kept_->put(begun, made);
      }
    }
    best_ms_ = made.chosen.cost_ms;
    report_.comparing_s = (now_ms() - start) / 1e3;
  }

  /// Whether a plan from the store can be handed out: each of its kernels is still among the candidates and can be used, and
  /// the previous plan took part in its comparison.
  bool is_current(const plan& known) {
    add_regions_of(known.chosen);
    const auto who = candidates_in(known.chosen);
    std::size_t at = 0;
    for (const plan_group& g : known.chosen.groups) {
      if (g.backend == alias_backend) continue;
      const std::optional<std::uint32_t> candidate = who[at++];
      if (g.backend == control_backend) continue;
      if (!candidate) return false;
      recall(structure_of(*candidate));
      const measured_cost* cost = book_->find(candidates_.list[*candidate]);
      if (cost == nullptr || !cost->refusal.empty()) return false;
    }
    for (const plan_conversion& c : known.chosen.conversions) {
      const auto candidate = conversions_ ? conversions_->find(c) : std::nullopt;
      if (!candidate) return false;
      recall(conversions_->candidates(), conversions_->book(), kept_conversions_,
             conversions_->structure_of(*candidate));
      const measured_cost* cost = conversions_->book().find(conversions_->candidates().list[*candidate]);
      if (cost == nullptr || !cost->refusal.empty()) return false;
    }
    if (options_.previous == nullptr || options_.previous->fingerprint != network_.fingerprint()) return true;
    const placement& previous = options_.previous->chosen;
    return same_steps(previous, known.chosen) ||
           std::any_of(known.singles.begin(), known.singles.end(),
                       [&](const placement& s) { return same_steps(previous, s); });
  }

  void run_end_to_end(plan& made, search_result& last) {
    end_to_end arena(network_, backends_, threads_, options_.seed, packed_, &*monitor_, options_.time);
    std::size_t incumbent = arena.add(made.chosen);
    std::vector<std::size_t> singles;
    for (const placement& s : made.singles) singles.push_back(arena.add(s, true));
    std::optional<std::size_t> previous;
    if (options_.previous != nullptr) previous = add_previous(arena, *options_.previous);
    comparison_options how;
    const auto run = [&](double seconds, const std::string& what) {
      how.seconds = std::min(seconds, std::max(0.0, deadline_.left_s()));
      if (options_.progress) {
        place_progress now;
        now.stage = "comparing";
        now.what = what;
        now.remaining = 1;
        now.remaining_s = how.seconds;
        now.best_ms = best_ms_;
        options_.progress(now);
      }
      run_rounds(arena, how);
    };
    run(options_.compare_s, "the plan with every single backend, end to end");
    constexpr int most_searches = 4;
    for (int turn = 0; turn < most_searches && !deadline_.is_over(); ++turn) {
      incumbent = fastest_of(arena, incumbent);
      learn(arena, incumbent);
      last = search_placement();
      // What would gain less than runs can tell is not run.
      constexpr double telling = 0.995;
      if (last.found.cost_ms > telling * refreshed(arena.which(incumbent)).cost_ms) break;
      const std::size_t before = arena.size();
      if (arena.add(to_placement("plan", last)) < before) break;
      run(options_.compare_s / 2, "a placement that counts what kernels take within the network");
    }
    const std::optional<std::size_t> operators = search_regions(arena, incumbent);
    decide(made, arena, incumbent, singles, previous, operators, last);
  }

  /// Rounds of whole runs. Where the machine turns out to be faster than it began, all that was timed is timed again.
  void run_rounds(end_to_end& arena, const comparison_options& how) {
    const auto is_over = [this] { return deadline_.is_over(); };
    arena.run(how, is_over);
    while (!is_over() && distrust_slow_start()) {
      replace_distrusted();
      arena.forget_rounds();
      arena.run(how, is_over);
    }
  }

  /// The candidate for a region of a backend that takes regions, made where there is none yet; nothing where it does not take
  /// all of it. `nodes` are ascending.
  std::optional<std::uint32_t> add_region(std::uint32_t backend, const std::vector<std::uint32_t>& nodes) {
    for (const std::uint32_t i : by_nodes_[nodes])
      if (candidates_.list[i].backend == backend && candidates_.list[i].is_by_rule()) return i;
    for (const std::uint32_t n : nodes)
      if (!takes_node(backends_[backend], network_, n)) return {};
    const auto number = static_cast<std::uint32_t>(candidates_.list.size());
    const auto group = static_cast<std::uint32_t>(candidates_.groups.size());
    // Layers that are alike are one computation.
    const auto [known, is_new] = region_structures_.try_emplace(
        {backend, structure_key(network_, nodes)}, static_cast<std::uint32_t>(candidates_.structures.size()));
    if (is_new) candidates_.structures.push_back({group, structure_label(network_, nodes), 0});
    ++candidates_.structures[known->second].occurrences;
    candidates_.groups.push_back({nodes, known->second});
    candidates_.list.push_back({.backend = backend, .pattern = place_candidate::rule, .group = group});
    by_nodes_[nodes].push_back(number);
    if (is_new) book_->add(number);
    return number;
  }
  /// The largest regions that rules leave.
  void add_allowed_regions() {
    for (std::uint32_t b = 0; b < backends_.size() && !options_.rules.empty(); ++b)
      if (use_[b] && backends_[b].takes_regions) add_largest_regions(b);
  }
  void add_largest_regions(std::uint32_t backend) {
    std::vector<bool> taken(network_.nodes().size());
    for (std::uint32_t n = 0; n < taken.size(); ++n) taken[n] = may_be_in_region(backend, n);
    for (const std::vector<std::uint32_t>& nodes : largest_regions(network_, taken)) (void)add_region(backend, nodes);
  }
  bool may_be_in_region(std::uint32_t backend, std::uint32_t node) const {
    return !forbidden_[backend][node] && takes_node(backends_[backend], network_, node);
  }
  /// Makes the regions of a plan candidates, so that their costs can be looked up.
  void add_regions_of(const placement& p) {
    for (const plan_group& g : p.groups)
      for (std::uint32_t b = 0; b < backends_.size(); ++b)
        if (use_[b] && backends_[b].takes_regions && g.backend == backends_[b].name && g.pattern == by_rule &&
            std::all_of(g.nodes.begin(), g.nodes.end(), [&](std::uint32_t n) { return may_be_in_region(b, n); })) {
          std::vector<std::uint32_t> nodes = g.nodes;
          std::sort(nodes.begin(), nodes.end());
          (void)add_region(b, nodes);
        }
  }

  /// The search over regions, for each backend that takes them, from the best placement on the level of operators. Adds that,
  /// and the best that was found, to the comparison, and answers the number of the first; nothing where no backend takes
  /// regions.
  std::optional<std::size_t> search_regions(end_to_end& arena, std::size_t& incumbent) {
    std::optional<std::size_t> operators;
    for (std::uint32_t b = 0; b < backends_.size() && !deadline_.is_over(); ++b) {
      if (!use_[b] || !backends_[b].takes_regions) continue;
      if (!operators) {
        operators_alone_ = is_covered_by_operators();
        const search_result alone = search_and_measure([](const search_result& r) { return search::exact(r.problem); });
        operators = arena.add(to_placement(operators_run, alone), true);
        operators_alone_ = false;
        comparison_options how;
        how.seconds = std::min(options_.compare_s / 2, std::max(0.0, deadline_.left_s()));
        run_rounds(arena, how);
        incumbent = fastest_of(arena, incumbent);
      }
      before_regions_ = incumbent;
      if (options_.regions_s > 0) divide(arena, incumbent, *operators, b);
    }
    return operators;
  }

  void divide(end_to_end& arena, std::size_t& incumbent, std::size_t operators, std::uint32_t backend) {
    const placement base = arena.which(operators);
    std::vector<region_unit> units;
    std::map<std::uint64_t, std::uint32_t> alike;
    const auto who = candidates_in(base);
    std::size_t at = 0;
    for (const plan_group& g : base.groups) {
      region_unit u;
      u.nodes = g.nodes;
      const bool runs = g.backend != alias_backend;
      // What a concat joins may come from inside and from outside, so that it is chosen by itself.
      u.is_view = !runs && is_alias_[g.nodes[0]];
      u.is_taken =
          std::all_of(g.nodes.begin(), g.nodes.end(), [&](std::uint32_t n) { return may_be_in_region(backend, n); });
      const std::optional<std::uint32_t> candidate = runs ? who[at++] : std::nullopt;
      // Groups that are no candidates are like none.
      const std::uint64_t kind = candidate ? structure_of(*candidate) : (std::uint64_t{1} << 32) + units.size();
      u.alike = alike.try_emplace(kind, static_cast<std::uint32_t>(alike.size())).first->second;
      units.push_back(std::move(u));
    }
    const double start = now_ms();
    const auto is_over = [&] { return deadline_.is_over() || now_ms() - start > options_.regions_s * 1e3; };
    region_search search(network_, std::move(units), {.seed = options_.seed});
    std::size_t number = 0;
    double level = 1;  // the fastest's time, as a part of what it was before
    // Libraries keep packed weights of their own for each: those of a generation need not all be there at once.
    const std::size_t together = engines_together();
    const auto evaluate = [&](const std::vector<region_search::regions>& fresh) {
      std::vector<double> times(fresh.size(), std::numeric_limits<double>::infinity());
      for (std::size_t first = 0; first < fresh.size(); first += together) {
        std::vector<std::pair<std::size_t, std::size_t>> joined;  // which of them, and its number in the comparison
        for (std::size_t i = first; i < std::min(first + together, fresh.size()) && !is_over(); ++i) {
          tell_regions(++number, arena, incumbent, start);
          if (const auto added = try_regions(arena, base, fresh[i], backend)) joined.emplace_back(i, *added);
        }
        if (joined.empty()) continue;
        comparison_options how;
        how.seconds = options_.compare_s / 3;
        how.least_rounds = 3;
        run_rounds(arena, how);
        // Against who was the fastest, and so ran in every round.
        for (const auto& [i, ran] : joined) {
          const paired_ratio r = arena.ratio(ran, incumbent);
          if (ran == incumbent) times[i] = level;
          else if (r.rounds != 0) times[i] = level * r.median;
        }
        const std::size_t before = std::exchange(incumbent, fastest_of(arena, incumbent));
        if (const paired_ratio r = arena.ratio(incumbent, before); incumbent != before && r.rounds != 0)
          level *= r.median;
        joined.emplace_back(fresh.size(), before);
        for (const auto& [i, ran] : joined)
          if (ran != incumbent && !arena.stays(ran)) arena.release(ran);
      }
      return times;
    };
    const region_search_result result = search.run(evaluate, is_over);
    report_.regions.tried += number;
    for (const double time : result.by_generation)
      if (std::isfinite(time)) report_.regions.by_generation.push_back(time);
    report_.regions.is_saturated = result.is_saturated;
  }
  /// How many engines of this network are built side by side while divisions are tried.
  std::size_t engines_together() const {
    std::size_t bytes = 0;
    for (std::uint32_t v = 0; v < network_.values().size(); ++v)
      if (network_.at(v).role == value_role::constant) bytes += network_.type_of(v).bytes();
    constexpr std::size_t most = std::size_t{1} << 30;
    return std::clamp<std::size_t>(most / std::max<std::size_t>(bytes, 1), 1, 16);
  }
  void tell_regions(std::size_t number, const end_to_end& arena, std::size_t incumbent, double start) {
    if (!options_.progress) return;
    place_progress now;
    now.stage = "regions";
    now.what = "division " + std::to_string(number) + " of the network";
    now.remaining = 1;
    now.remaining_s = std::max(0.0, options_.regions_s - (now_ms() - start) / 1e3);
    now.best_ms = arena.time_of(incumbent).median_ms;
    options_.progress(now);
  }
  /// Adds the base with these regions in place of the groups that they hold; nothing where one of them has no kernel.
  std::optional<std::size_t> try_regions(end_to_end& arena, const placement& base,
                                         const region_search::regions& regions, std::uint32_t backend) {
    placement p = base;
    p.name = regions_run;
    std::vector<bool> replaced(network_.nodes().size());
    std::vector<plan_group> made;
    for (const std::vector<std::uint32_t>& nodes : regions) {
      const std::optional<std::uint32_t> candidate = add_region(backend, nodes);
      if (!candidate) return {};
      if (!book_->is_measured(structure_of(*candidate))) measure(structure_of(*candidate));
      const measured_cost* cost = book_->find(candidates_.list[*candidate]);
      if (cost == nullptr || !cost->refusal.empty()) return {};
      made.push_back(to_group(*candidate));
      for (const std::uint32_t n : nodes) replaced[n] = true;
    }
    std::erase_if(p.groups, [&](const plan_group& g) { return replaced[g.nodes.front()]; });
    p.groups.insert(p.groups.end(), made.begin(), made.end());
    p.cost_ms = 0;
    for (plan_group& g : p.groups) {
      for (double* part : {&g.cost_ms, &g.low_ms, &g.high_ms}) *part -= g.switch_ms;
      g.switch_ms = 0;
      p.cost_ms += g.cost_ms;
    }
    order_groups(p);
    if (!measure_conversions_of(p)) return {};
    p.cost_ms += add_conversions(p) + add_switches(p);
    try {
      return arena.add(p);
    } catch (const error&) { return {}; } catch (const std::bad_alloc&) {
      return {};
    }
  }

  /// Takes over what kernels took within the runs, the fastest of which is that of `incumbent`; what their neighbours add only
  /// where the sum of costs is off without.
  void learn(const end_to_end& arena, std::size_t incumbent) {
    learn_kernels(arena);
    const double took = arena.time_of(incumbent).median_ms;
    if (!neighbours_count_ && took > 0 && std::abs(refreshed(arena.which(incumbent)).cost_ms / took - 1) > most_off)
      neighbours_count_ = true;
    if (neighbours_count_) {
      std::vector<observed_step> all;
      for (std::size_t i = 0; i < arena.size(); ++i) {
        const std::vector<observed_step> steps = observed(arena, i);
        all.insert(all.end(), steps.begin(), steps.end());
      }
      neighbours_.learn(all);
      learn_kernels(arena);
    }
    book_->favour(candidates_in(arena.which(incumbent)));
    if (!conversions_) return;
    conversions_->book().learn_anew();
    for (std::size_t i = 0; i < arena.size(); ++i) {
      std::vector<std::optional<std::uint32_t>> who;
      for (const std::size_t c : arena.conversions_in(i))
        who.push_back(conversions_->find(arena.which(i).conversions[c]));
      conversions_->book().learn(who, arena.conversion_steps_of(i));
    }
  }

  /// The steps of a placement's runs whose kernels are candidates.
  std::vector<observed_step> observed(const end_to_end& arena, std::size_t i) const {
    std::vector<observed_step> list;
    const auto who = candidates_in(arena.which(i));
    const auto writers = other_writers(arena.which(i));
    const std::vector<timing> steps = arena.steps_of(i);
    for (std::size_t s = 0; s < who.size(); ++s)
      if (who[s] && steps[s].samples != 0)
        list.push_back({key_of(candidates_, candidates_.list[*who[s]]), steps[s].median_ms, writers[s]});
    return list;
  }
  /// What steps took, without what their neighbours add.
  void learn_kernels(const end_to_end& arena) {
    book_->learn_anew();
    for (std::size_t i = 0; i < arena.size(); ++i) {
      std::vector<timing> steps = arena.steps_of(i);
      if (neighbours_.any()) {
        const auto who = candidates_in(arena.which(i));
        const auto writers = other_writers(arena.which(i));
        for (std::size_t s = 0; s < who.size(); ++s) {
          if (!who[s]) continue;
          const double added =
              neighbours_.of({key_of(candidates_, candidates_.list[*who[s]]), steps[s].median_ms, writers[s]});
          const double left = 1 - std::min(added / steps[s].median_ms, most_added);
          for (double* part : {&steps[s].median_ms, &steps[s].low_ms, &steps[s].high_ms, &steps[s].sure_low_ms,
                               &steps[s].sure_high_ms})
            *part *= left;
        }
      }
      book_->learn(candidates_in(arena.which(i)), steps);
    }
  }

  /// Adds the previous plan to the comparison; nothing where it cannot be built any more.
  std::optional<std::size_t> add_previous(end_to_end& arena, const plan& previous) {
    if (previous.fingerprint != network_.fingerprint() || !is_over_our_backends(previous.chosen)) return {};
    // Its kernels are to have costs, too.
    add_regions_of(previous.chosen);
    (void)measure_conversions_of(previous.chosen);
    for (const auto& who : candidates_in(previous.chosen))
      if (who && book_->find(candidates_.list[*who]) == nullptr) measure(structure_of(*who));
    try {
      return arena.add(previous.chosen);
    } catch (const error&) { return {}; }
  }

  /// Whether all that a placement runs is on backends that may be used now.
  bool is_over_our_backends(const placement& p) const {
    const auto is_ours = [this](const std::string& name) {
      for (std::uint32_t b = 0; b < backends_.size(); ++b)
        if (name == backends_[b].name) return bool{use_[b]};
      return name == alias_backend || name == control_backend;
    };
    return std::ranges::all_of(p.groups,
                               [&](const plan_group& g) {
                                 return is_ours(g.backend) && std::ranges::all_of(g.bodies, [&](const placement& body) {
                                          return is_over_our_backends(body);
                                        });
                               }) &&
           std::ranges::all_of(p.conversions, [&](const plan_conversion& c) { return is_ours(c.backend); });
  }

  /// The fastest of what ran, by the paired rounds; `first` where nothing is faster. Ratios of different pairs come from
  /// different rounds, and on a restless machine they may go round in a circle: it is the one that loses least to whoever
  /// it loses most to, among those that can go on running.
  static std::size_t fastest_of(const end_to_end& arena, std::size_t first) {
    const auto most_behind = [&arena](std::size_t i) {
      double most = 0;
      for (std::size_t j = 0; j < arena.size() && arena.can_run(i); ++j)
        if (const paired_ratio r = arena.ratio(i, j); j != i && arena.can_run(j) && r.rounds != 0)
          most = std::max(most, r.median);
      return most > 0 ? most : std::numeric_limits<double>::infinity();  // of what ran beside nobody nothing is known
    };
    std::size_t fastest = first;
    double behind = most_behind(first);
    for (std::size_t i = 0; i < arena.size(); ++i)
      if (const double other = most_behind(i); other < behind) fastest = i, behind = other;
    return fastest;
  }

  /// The fastest, after as many rounds as it takes to be sure: of what joined late there are few yet.
  std::size_t surely_fastest_of(end_to_end& arena, std::size_t first) {
    comparison_options how;
    how.seconds = options_.compare_s / 2;
    constexpr std::size_t enough = 15;
    std::size_t fastest = fastest_of(arena, first);
    for (int more = 0; more < 2 && !deadline_.is_over(); ++more) {
      const std::size_t ran = arena.time_of(fastest).samples;
      if (ran >= enough) break;
      how.most_rounds = enough - ran;
      run_rounds(arena, how);
      fastest = fastest_of(arena, fastest);
    }
    return fastest;
  }

  void decide(plan& made, end_to_end& arena, std::size_t incumbent, const std::vector<std::size_t>& singles,
              const std::optional<std::size_t>& previous, const std::optional<std::size_t>& operators,
              search_result& last) {
    const std::size_t winner = surely_fastest_of(arena, incumbent);
    if (before_regions_ && winner != *before_regions_)
      if (const paired_ratio r = arena.ratio(winner, *before_regions_); r.rounds != 0) report_.regions.ratio = r.median;
    hide_regions_but_of(arena, winner);
    // Costs, runners-up and the certificate as they are known now.
    learn(arena, winner);
    last = search_placement();
    placement found = to_placement("plan", last);
    std::vector<placement> ran;
    for (std::size_t i = 0; i < arena.size(); ++i) ran.push_back(refreshed(arena.which(i)));
    for (std::size_t s = 0; s < singles.size(); ++s) {
      placement& single = made.singles[s];
      single.groups = ran[singles[s]].groups;
      single.conversions = ran[singles[s]].conversions;
      single.cost_ms = ran[singles[s]].cost_ms;
    }
    made.origin = "search";
    if (same_steps(found, arena.which(winner))) {
      made.chosen = std::move(found);
    } else {
      const auto single = std::find(singles.begin(), singles.end(), winner);
      made.chosen = ran[winner];
      if (single != singles.end()) made.origin = made.singles[static_cast<std::size_t>(single - singles.begin())].name;
      else if (previous == winner) made.origin = previous_run;
      else if (operators == winner) made.origin = operators_run;
      else if (arena.which(winner).name == regions_run) made.origin = regions_run;
      made.chosen.name = "plan";
      made.chosen.borrowed.clear();
    }
    made.runs.clear();
    made.runs.push_back(run_of(arena, winner, winner, "plan"));
    for (std::size_t i = 0; i < singles.size(); ++i)
      made.runs.push_back(run_of(arena, singles[i], winner, made.singles[i].name));
    if (operators) made.runs.push_back(run_of(arena, *operators, winner, operators_run));
    if (previous) made.runs.push_back(run_of(arena, *previous, winner, previous_run));
  }

  /// A placement with the costs that are known now.
  placement refreshed(const placement& p) const {
    placement result = p;
    result.cost_ms = 0;
    const auto who = candidates_in(p);
    std::size_t at = 0;
    for (plan_group& g : result.groups) {
      if (g.backend == alias_backend) continue;
      if (const auto candidate = who[at++]; candidate && book_->find(candidates_.list[*candidate]) != nullptr) {
        plan_group now = to_group(*candidate);
        now.bodies = std::move(g.bodies);
        g = std::move(now);
      }
      result.cost_ms += g.cost_ms;
    }
    result.cost_ms += add_switches(result);
    for (plan_conversion& c : result.conversions) {
      const auto candidate = conversions_ ? conversions_->find(c) : std::nullopt;
      if (candidate && conversions_->is_measured(*candidate)) c.cost_ms = conversions_->cost_of(*candidate);
      result.cost_ms += c.cost_ms;
    }
    return result;
  }

  /// For each group of the plan: what the best placement without it would cost, who would run its nodes, and in words why it
  /// was chosen. Networks whose searches take long get this for as many groups as a count of transitions allows.
  void explain_groups(plan& made) const {
    std::size_t tried = 0;
    const auto who = candidates_in(made.chosen);
    std::size_t at = 0;
    if (made.origin != "search") {
      for (plan_group& g : made.chosen.groups)
        if (g.backend != alias_backend) g.why = "part of the placement that ran fastest end to end";
      return;
    }
    search_result known = to_problem(false, &cost_book::cost_of);  // without doubts
    known.found = search::exact(known.problem);
    std::vector<bool> is_best(candidates_.list.size());
    for (const std::uint32_t chosen : known.found.chosen)
      if (known.who[chosen] < control_mark) is_best[known.who[chosen]] = true;
    for (plan_group& g : made.chosen.groups) {
      if (g.backend == alias_backend) continue;
      const auto candidate = who[at++];
      if (!candidate) continue;
      constexpr std::size_t most_transitions = 500'000;  // by count: the same plan has the same explanations
      if (!is_best[*candidate]) {
        tell_instead(g, *candidate, known);
        g.regret_ms = 0;
        g.why = "with " + g.instead + " the costs say less, by so little that runs do not tell";
        continue;
      }
      if (tried < most_transitions) tried += find_instead(g, *candidate, known);
      g.why = why_chosen(g);
    }
  }
  /// Answers how many transitions the search took.
  std::size_t find_instead(plan_group& g, std::uint32_t candidate, const search_result& known) const {
    search_result without;
    without.problem = known.problem;
    without.problem.candidates.clear();
    for (std::size_t i = 0; i < known.who.size(); ++i) {
      if (known.who[i] == candidate) continue;
      without.problem.candidates.push_back(known.problem.candidates[i]);
      without.who.push_back(known.who[i]);
    }
    if (!search::uncovered(without.problem).empty()) return 0;
    without.found = search::exact(without.problem, {.states = 20000});
    if (!without.found.optimal) return without.found.transitions;
    g.regret_ms = std::max(0.0, without.found.cost_ms - known.found.cost_ms);
    tell_instead(g, candidate, without);
    return without.found.transitions;
  }
  /// Who runs a group's nodes in another placement.
  void tell_instead(plan_group& g, std::uint32_t candidate, const search_result& other) const {
    const search::node_set mine(candidates_.groups[candidates_.list[candidate].group].nodes);
    for (const std::uint32_t chosen : other.found.chosen) {
      if (!other.problem.candidates[chosen].nodes.intersects(mine) || other.who[chosen] >= control_mark) continue;
      const place_candidate& c = candidates_.list[other.who[chosen]];
      const std::vector<std::uint32_t>& nodes = candidates_.groups[c.group].nodes;
      constexpr std::size_t named = 16;
      std::string kinds;
      for (const std::uint32_t n : std::span(nodes).first(std::min(nodes.size(), named)))
        kinds += (kinds.empty() ? "" : "+") + std::string(network_.node(n).kind->name);
      if (nodes.size() > named) kinds += "+... (" + std::to_string(nodes.size()) + " operators)";
      g.instead += (g.instead.empty() ? "" : ", ") + std::string(backends_[c.backend].name) + " " + kinds;
    }
  }
  static std::string why_chosen(const plan_group& g) {
    if (g.regret_ms < 0) return "no other kernel runs these nodes";
    if (g.regret_ms == 0) return "as good as " + g.instead + ", and first in the order of the set";
    return "without it the network costs more, with " + g.instead;
  }

  const graph& network_;
  backend_table backends_;
  const place_options& options_;
  deadline deadline_;
  int threads_ = 1;
  std::vector<bool> use_;
  std::vector<bool> is_alias_;            // by node: a view and nothing else
  std::vector<bool> may_be_alias_;        // or a view if the search wants it to
  std::vector<std::vector<plan>> owned_;  // by node: of its sub-graphs
  place_candidates candidates_;
  std::map<std::vector<std::uint32_t>, std::vector<std::uint32_t>> by_nodes_;  // candidates by what they cover
  std::vector<layout> layouts_{plain};                                         // those of the search, by number
  std::vector<value_layouts> borders_;                                         // by candidate
  std::map<std::uint32_t, std::vector<layout>> met_;      // values that may lie otherwise than plain, and how
  std::map<std::uint32_t, std::uint32_t> search_number_;  // of these values in the search
  std::vector<bool> may_convert_;                         // by backend
  std::optional<conversion_book> conversions_;            // nothing where all are plain
  std::optional<kept_costs> kept_conversions_;
  std::optional<cost_book> book_;
  std::optional<drift_monitor> monitor_;
  std::optional<kept_costs> kept_;
  worker_client worker_;
  neighbour_costs neighbours_;
  std::shared_ptr<packed_weights> packed_;
  std::vector<std::uint32_t> measured_now_;   // structures
  std::set<std::uint32_t> distrusted_;        // structures whose costs in the store are from a slow start
  std::vector<std::uint32_t> converted_now_;  // the same of conversions
  std::set<std::uint32_t> distrusted_conversions_;
  double trusted_ms_ = 0;  // the drift monitor's usual time while those were measured
  std::size_t measured_structures_ = 0;
  double measuring_ms_ = 0, best_ms_ = 0;
  bool interrupted_ = false, has_turn_ = false;
  bool neighbours_count_ = false;    // costs depend on whose results a kernel reads
  std::uint32_t first_dynamic_ = 0;  // of the candidates: those from here on were added by the search over regions
  std::optional<std::size_t> before_regions_;  // the fastest before divisions were tried
  std::vector<bool> hidden_;                   // by candidate: the search leaves it out
  std::map<std::pair<std::uint32_t, std::vector<std::uint64_t>>, std::uint32_t>
      region_structures_;                     // by backend and key
  bool operators_alone_ = false;              // the search leaves out regions
  std::vector<std::vector<bool>> forbidden_;  // by backend and node: rules say so
  place_report report_;
};

}  // namespace
}  // namespace detail

drift_monitor watch_machine(int threads, const drift_options& options) {
  return drift_monitor(detail::fixed_work(threads), options);
}

plan place(const graph& network, backend_table backends, const place_options& options) {
  check_contents(network);
  return detail::placer(network, backends, options).run();
}

}  // namespace collage::inline v0
