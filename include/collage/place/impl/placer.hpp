// Definitions of place.hpp: include it in exactly one file.
#pragma once

#include <algorithm>
#include <collage/error.hpp>
#include <collage/op/control.hpp>
#include <collage/op/movement.hpp>
#include <collage/place.hpp>
#include <collage/place/candidates.hpp>
#include <collage/place/compare.hpp>
#include <collage/place/costs.hpp>
#include <collage/place/processor.hpp>
#include <collage/run/engine.hpp>
#include <collage/search/alternatives.hpp>
#include <collage/search/exact.hpp>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <queue>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace collage::inline v0 {

namespace detail {
namespace {

/// One run of `place`: candidates and costs, from which placements over any subset of backends are searched.
class placer {
 public:
  placer(const graph& network, backend_table backends, const place_options& options)
      : network_(network), backends_(backends), options_(options), packed_(std::make_shared<packed_weights>()) {
    threads_ = options.threads > 0 ? options.threads : available_threads();
    choose_backends();
    for (const value_record& v : network.values())
      if (!v.type.dims.is_concrete())
        throw error(error_kind::invalid_argument, "has extents that are not known", "network " + options.network,
                    "bind every symbolic extent before placing");
    candidates_ = find_candidates(network, backends, use_);
    is_alias_.resize(network.nodes().size());
    for (std::uint32_t n = 0; n < is_alias_.size(); ++n) is_alias_[n] = is_alias(network.view(), n);
    owned_.resize(network.nodes().size());
  }

  plan run() {
    require_cover([](const place_candidate&) { return true; });
    plan made = options_.measure ? run_measured() : run_unmeasured();
    if (options_.report != nullptr) {
      report_refusals();
      report_.candidates = candidates_.list.size();
      report_.distinct = costs_.size();
      *options_.report = std::move(report_);
    }
    return made;
  }

 private:
  /// Who stands for a node that no candidate covers.
  static constexpr std::uint32_t alias_mark = match_record::nothing, control_mark = match_record::nothing - 1;

  plan start_plan() const {
    plan made;
    made.network = options_.network;
    made.fingerprint = network_.fingerprint();
    made.threads = threads_;
    made.processor = processor_name();
    for (std::uint32_t b = 0; b < backends_.size(); ++b) {
      if (!use_[b]) continue;
      const probe_result found = backends_[b].probe();
      made.backends.push_back({backends_[b].name, found.version, found.details});
    }
    return made;
  }

  plan run_measured() {
    const double start = now_ms();
    measure();
    place_owned();
    report_.measuring_s = (now_ms() - start) / 1e3;
    require_cover([this](const place_candidate& c) { return cost_of(c).refusal.empty(); });
    plan made = start_plan();
    const double search_start = now_ms();
    std::vector<std::uint32_t> who;
    const search::problem problem = to_problem(who);
    const search::placement best = search::exact(problem);
    made.chosen = to_placement("plan", problem, who, best);
    report_.search_ms = now_ms() - search_start;
    report_.states = best.states;
    report_.transitions = best.transitions;
    made.lower_bound_ms = best.lower_bound_ms;
    made.optimal = best.optimal;
    for (std::uint32_t b = 0; b < backends_.size(); ++b)
      if (use_[b]) made.singles.push_back(single(b));
    compare(made);
    return made;
  }

  /// The priority list over what can be built: kernels that were chosen are built, and where one refuses the choice is
  /// made again without it.
  plan run_unmeasured() {
    place_owned();
    for (const place_candidate& c : candidates_.list) costs_.try_emplace(key_of(candidates_, c));
    plan made = start_plan();
    made.origin = "priority";
    std::map<cost_key, bool> built;
    for (bool settled = false; !settled;) {
      settled = true;
      require_cover([this](const place_candidate& c) { return cost_of(c).refusal.empty(); });
      std::vector<std::uint32_t> who, rank;
      const search::problem p = to_problem(who);
      for (const std::uint32_t i : who) rank.push_back(i >= control_mark ? 0 : rank_of(candidates_.list[i], 0));
      const search::placement found = search::priority_list(p, rank);
      for (const std::uint32_t chosen : found.chosen) {
        if (who[chosen] >= control_mark) continue;
        const place_candidate& c = candidates_.list[who[chosen]];
        if (std::exchange(built[key_of(candidates_, c)], true)) continue;
        measured_cost& cost = costs_[key_of(candidates_, c)];
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
      if (settled) made.chosen = to_placement("plan", p, who, found);
    }
    return made;
  }

  /// Places the sub-graphs of control flow, each as a network of its own.
  void place_owned() {
    for (std::uint32_t n = 0; n < owned_.size(); ++n)
      for (const std::shared_ptr<const graph>& body : network_.bodies_of(n)) {
        place_options inner = options_;
        inner.threads = threads_;
        inner.report = nullptr;
        inner.network = options_.network + ", sub-graph of " + network_.node_name(n);
        owned_[n].push_back(placer(*body, backends_, inner).run());
      }
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
        const auto known = costs_.find(key_of(candidates_, c));
        const auto& nodes = candidates_.groups[c.group].nodes;
        if (known != costs_.end() && !known->second.refusal.empty() &&
            std::find(nodes.begin(), nodes.end(), n) != nodes.end())
          add(backends_[c.backend].name, known->second.refusal);
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

  const measured_cost& cost_of(const place_candidate& c) const { return costs_.at(key_of(candidates_, c)); }

  void measure() {
    // Small groups first: as soon as single operators have costs there is a placement, which then only gets better.
    std::vector<std::uint32_t> order(candidates_.structures.size());
    for (std::uint32_t s = 0; s < order.size(); ++s) order[s] = s;
    const auto size_of_structure = [&](std::uint32_t s) {
      return candidates_.groups[candidates_.structures[s].example].nodes.size();
    };
    std::stable_sort(order.begin(), order.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return size_of_structure(a) < size_of_structure(b); });
    double best = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (options_.progress)
        options_.progress({"measuring", candidates_.structures[order[i]].label, i, order.size() - i, best});
      measure_structure(network_, backends_, candidates_, order[i], threads_, options_.seed, *packed_, options_.timing,
                        costs_);
      if (options_.progress) best = best_so_far();
    }
    for (const auto& [key, cost] : costs_) report_.measured += cost.refusal.empty() ? 1U : 0U;
  }

  /// What `build` refused, then what `accepts` did, each reason once.
  void report_refusals() {
    for (const auto& [key, cost] : costs_) {
      const auto& [structure, b, p, choice] = key;
      if (cost.refusal.empty()) continue;
      report_.refusals.push_back(
          {backends_[b].name, pattern_name(backends_, b, p), candidates_.structures[structure].label, cost.refusal});
    }
    std::map<std::tuple<std::string, std::string, std::string>, bool> told;
    for (const place_refusal& r : candidates_.refusals)
      if (!std::exchange(told[{r.backend, r.pattern, r.reason}], true)) report_.refusals.push_back(r);
  }

  /// The cheapest placement over what has a cost by now; 0 while nodes lack one.
  double best_so_far() const {
    std::vector<std::uint32_t> who;
    const search::problem p = to_problem(who);
    if (!search::uncovered(p).empty()) return 0;
    return search::exact(p, {.states = 20000}).cost_ms;
  }

  /// The search's view: candidates that have a cost, then one for each alias and each node of control flow. `who` says
  /// which of our candidates each is.
  search::problem to_problem(std::vector<std::uint32_t>& who) const {
    search::problem p;
    const graph_view view = network_.view();
    p.nodes = network_.nodes().size();
    for (std::uint32_t n = 0; n < p.nodes; ++n)
      for (const std::uint32_t v : view.inputs_of(n))
        if (network_.at(v).producer >= 0) p.edges.emplace_back(static_cast<std::uint32_t>(network_.at(v).producer), n);
    for (const std::uint32_t v : network_.outputs())
      if (network_.at(v).producer >= 0) p.outputs.push_back(static_cast<std::uint32_t>(network_.at(v).producer));
    const auto add = [&](std::span<const std::uint32_t> nodes, double cost, std::uint32_t index) {
      p.candidates.push_back({search::node_set(nodes), cost, index});
      who.push_back(index);
    };
    for (std::uint32_t i = 0; i < candidates_.list.size(); ++i) {
      const auto cost = costs_.find(key_of(candidates_, candidates_.list[i]));
      if (cost == costs_.end() || !cost->second.refusal.empty()) continue;
      add(candidates_.groups[candidates_.list[i].group].nodes, cost->second.time.median_ms, i);
    }
    for (std::uint32_t n = 0; n < p.nodes; ++n) {
      const std::uint32_t nodes[] = {n};
      if (is_alias_[n]) add(nodes, 0.0, alias_mark);
      if (is_control(network_.view(), n)) add(nodes, cost_of_owned(n), control_mark);
    }
    return p;
  }

  placement to_placement(const std::string& name, const search::problem& p, const std::vector<std::uint32_t>& who,
                         const search::placement& found) const {
    placement result;
    result.name = name;
    result.cost_ms = found.cost_ms;
    for (const std::uint32_t chosen : found.chosen) {
      if (who[chosen] >= control_mark) {
        const std::uint32_t node = p.candidates[chosen].nodes.first();
        const bool alias = who[chosen] == alias_mark;
        const char* kind = network_.node(node).kind->name;
        const double cost = alias ? 0 : cost_of_owned(node);
        result.groups.push_back({alias ? alias_backend : control_backend,
                                 kind,
                                 0,
                                 alias ? "view" : kind,
                                 {node},
                                 cost,
                                 cost,
                                 cost,
                                 {},
                                 placements_of_owned(node, name)});
        continue;
      }
      const place_candidate& c = candidates_.list[who[chosen]];
      const measured_cost& cost = cost_of(c);
      plan_group g;
      g.backend = backends_[c.backend].name;
      g.pattern = pattern_name(backends_, c.backend, c.pattern);
      g.choice = c.choice;
      g.kernel = cost.kernel;
      g.nodes = candidates_.groups[c.group].nodes;
      if (!c.is_by_rule()) {
        const auto root = std::find(g.nodes.begin(), g.nodes.end(), c.root);
        std::rotate(root, root + 1, g.nodes.end());  // it stands last, where the others' order is that of the graph
      }
      g.cost_ms = cost.time.median_ms;
      g.low_ms = cost.time.low_ms;
      g.high_ms = cost.time.high_ms;
      g.runners_up = runners_up(who[chosen]);
      result.groups.push_back(std::move(g));
    }
    order_groups(result);
    return result;
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
    for (std::uint32_t i = 0; i < candidates_.list.size(); ++i) {
      const place_candidate& c = candidates_.list[i];
      if (i == chosen || c.group != candidates_.list[chosen].group) continue;
      const measured_cost& cost = cost_of(c);
      if (!cost.refusal.empty()) continue;
      others.push_back(
          {backends_[c.backend].name, pattern_name(backends_, c.backend, c.pattern), cost.kernel, cost.time.median_ms});
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

  /// The same search for one backend alone: nodes that it refuses go to the next backend of the set that takes them,
  /// and are named.
  placement single(std::uint32_t backend) const {
    std::vector<std::uint32_t> who;
    const search::problem p = to_problem(who);
    std::vector<std::uint32_t> rank;
    for (const std::uint32_t i : who) rank.push_back(i >= control_mark ? 0 : rank_of(candidates_.list[i], backend));
    placement result = to_placement(backends_[backend].name, p, who, search::exact_by_rank(p, rank));
    for (const plan_group& g : result.groups)
      if (g.backend != result.name && g.backend != alias_backend && g.backend != control_backend)
        for (const std::uint32_t n : g.nodes) result.borrowed.push_back(network_.node_name(n));
    return result;
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

  /// Promise 1: what is handed out is never slower than the best single backend in a paired run. A network whose loops may
  /// run for ever on random data is not run.
  void compare(plan& made) {
    if (may_be_endless(network_)) return;
    if (options_.progress)
      options_.progress({"comparing", "the plan with every single backend, end to end", 0, 1, made.chosen.cost_ms});
    const double start = now_ms();
    std::vector<const placement*> all{&made.chosen};
    for (const placement& s : made.singles) all.push_back(&s);
    const comparison c =
        compare_placements(network_, all, backends_, threads_, options_.compare_s, options_.seed, packed_);
    made.runs = c.runs;
    const comparison_ratio r = ratio_of(c);
    // Only a difference that the paired rounds show counts; within 1 % the plan with the certificate stays.
    if (r.best_single != 0 && r.ratio < 0.99) {
      made.origin = all[r.best_single]->name;
      std::string name = made.chosen.name;
      made.chosen = *all[r.best_single];
      made.chosen.name = std::move(name);
      made.runs[0] = made.runs[r.best_single];
      made.runs[0].name = made.chosen.name;
    }
    report_.comparing_s = (now_ms() - start) / 1e3;
    if (options_.progress) options_.progress({"comparing", "done", 1, 0, made.chosen.cost_ms});
  }

  const graph& network_;
  backend_table backends_;
  const place_options& options_;
  int threads_ = 1;
  std::vector<bool> use_;
  std::vector<bool> is_alias_;
  std::vector<std::vector<plan>> owned_;  // by node: of its sub-graphs
  place_candidates candidates_;
  cost_table costs_;
  std::shared_ptr<packed_weights> packed_;
  place_report report_;
};

}  // namespace
}  // namespace detail

plan place(const graph& network, backend_table backends, const place_options& options) {
  check_contents(network);
  return detail::placer(network, backends, options).run();
}

}  // namespace collage::inline v0
