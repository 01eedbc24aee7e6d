// Tries which parts of the best placement without regions are faster as regions, for backends that take regions.
#pragma once

#include <algorithm>
#include <cmath>
#include <collage/graph/graph.hpp>
#include <collage/measure/statistics.hpp>
#include <collage/measure/time_source.hpp>
#include <collage/place.hpp>
#include <collage/place/region_search.hpp>
#include <collage/run/plan.hpp>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include "cost_measurer.hpp"
#include "placement_race.hpp"
#include "placement_search.hpp"
#include "placement_writer.hpp"
#include "placing_state.hpp"
#include "policy.hpp"
#include "region_candidates.hpp"
#include "round_quota.hpp"
#include "whole_runs.hpp"

namespace collage::inline v0 {

namespace detail {
namespace {

class region_trials {
 public:
  region_trials(const placing_state& known, region_candidates& regions, cost_measurer& measurer, whole_runs& runs)
      : known_(known), regions_(regions), measurer_(measurer), runs_(runs), writer_(known) {}

  /// Searches over regions for each backend that takes them, starting from the best placement without regions. Adds this
  /// placement and the best division found to the race.
  void run(placement_search& search) {
    const place_options& options = known_.task.options;
    double left_ms = options.regions.seconds * 1e3;  // which the backends share
    const std::vector<std::uint32_t> backends = promising_backends();
    std::size_t left = backends.size();
    for (const std::uint32_t b : backends) {
      if (known_.task.until.is_over()) break;
      if (!operators_) {
        const search_result operators = search.best_of_operators();
        if (!search.keeps_bound(operators)) return;
        operators_ = runs_.race().add(writer_.write(operators_run, operators), race_role::baseline);
        race_options how = runs_.options();
        how.seconds = std::min(options.comparing.seconds / 2, std::max(0.0, known_.task.until.left_s()));
        runs_.run(how);
        runs_.find_fastest();
      }
      if (!before_) before_ = runs_.incumbent();
      const double start = now_ms();
      if (left_ms > 0) divide(*operators_, b, left_ms / static_cast<double>(left--));
      left_ms -= now_ms() - start;
    }
  }

  /// The number in the race of the best placement without regions; nothing if no backend takes regions.
  std::optional<std::size_t> operators() const { return operators_; }
  /// The number of the fastest placement before divisions were tried; nothing if none were tried.
  std::optional<std::size_t> before() const { return before_; }
  /// The divisions that were tried. `ratio` is not set, because it is known only at the end of placing.
  const region_report& report() const { return report_; }

 private:
  /// Tries divisions for `most_ms`.
  void divide(std::size_t operators, std::uint32_t backend, double most_ms) {
    placement_race& race = runs_.race();
    const placement base = race.which(operators);
    const double end = now_ms() + most_ms;
    const auto is_over = [&] { return known_.task.until.is_over() || now_ms() > end; };
    region_search search(known_.task.network, units_of(base, backend), {.seed = known_.task.options.seed});
    std::size_t number = 0;
    // In each engine, libraries may keep packed weights of their own. So the engines of a generation are not all built at once.
    const std::size_t together = engines_together();
    const auto evaluate = [&](const std::vector<region_search::regions>& fresh) {
      std::vector<double> times(fresh.size(), std::numeric_limits<double>::infinity());
      for (std::size_t first = 0; first < fresh.size(); first += together) {
        std::vector<std::pair<std::size_t, std::size_t>> joined;  // index in `fresh`, number in the race
        for (std::size_t i = first; i < std::min(first + together, fresh.size()) && !is_over(); ++i) {
          tell(++number, end);
          if (const auto added = add(base, fresh[i], backend)) joined.emplace_back(i, *added);
        }
        if (joined.empty()) continue;
        race_options how = runs_.options();
        how.seconds = known_.task.options.comparing.seconds / 3;
        how.least_rounds = 3;
        runs_.run(how);
        // Times are relative to the placement that was the fastest before, because it ran in every round.
        const std::size_t before = runs_.incumbent();
        for (const auto& [i, ran] : joined) {
          const paired_ratio r = race.ratio(ran, before);
          if (ran == before) times[i] = level_;
          else if (r.rounds != 0) times[i] = level_ * r.median;
        }
        runs_.find_fastest();
        const std::size_t now = runs_.incumbent();
        if (const paired_ratio r = race.ratio(now, before); now != before && r.rounds != 0) level_ *= r.median;
        joined.emplace_back(fresh.size(), before);
        for (const auto& [i, ran] : joined)
          if (ran != now && !race.is_baseline(ran)) race.release(ran);
      }
      return times;
    };
    const region_search_result result = search.run(evaluate, is_over);
    report_.tried += number;
    for (const double time : result.by_generation)
      if (std::isfinite(time)) report_.by_generation.push_back(time);
    report_.is_saturated = (report_.is_saturated || !any_divided_) && result.is_saturated;
    any_divided_ = true;
  }

  /// The backends that take regions, the fastest first by their largest ones. Those that are much slower are left out: parts of
  /// them are slower than the same parts in a smaller element type, too.
  std::vector<std::uint32_t> promising_backends() const {
    std::vector<std::pair<double, std::uint32_t>> list;
    for (std::uint32_t b = 0; b < known_.task.backends.size(); ++b)
      if (regions_.takes_regions(b)) list.emplace_back(regions_.cost_of_largest(b), b);
    std::ranges::sort(list);
    std::vector<std::uint32_t> backends;
    for (const auto& [ms, b] : list)
      if (!std::isfinite(ms) || ms <= thresholds.most_slower_regions * list.front().first) backends.push_back(b);
    return backends;
  }
  /// The groups of a placement as units of the search over regions.
  std::vector<region_unit> units_of(const placement& base, std::uint32_t backend) const {
    std::vector<region_unit> units;
    std::map<std::uint64_t, std::uint32_t> alike;
    const auto who = known_.candidates.in(base);
    std::size_t at = 0;
    for (const plan_group& g : base.groups) {
      region_unit u;
      u.nodes = g.nodes;
      const bool runs = !g.is_view();
      // A concat may join values from inside and outside a region. So it is chosen by itself, even if it is a view.
      u.is_view = !runs && known_.task.is_alias[g.nodes[0]];
      u.is_taken = std::ranges::all_of(g.nodes, [&](std::uint32_t n) { return regions_.may_hold(backend, n); });
      const std::optional<std::uint32_t> candidate = runs ? who[at++] : std::nullopt;
      // A group that is no candidate is like no other group.
      const std::uint64_t kind =
          candidate ? known_.candidates.structure_of(*candidate) : (std::uint64_t{1} << 32) + units.size();
      u.alike = alike.try_emplace(kind, static_cast<std::uint32_t>(alike.size())).first->second;
      units.push_back(std::move(u));
    }
    return units;
  }

  /// The number of engines that exist at the same time while divisions are tried: more if the network has few weights.
  std::size_t engines_together() const {
    const graph& network = known_.task.network;
    std::size_t bytes = 0;
    for (std::uint32_t v = 0; v < network.values().size(); ++v)
      if (network.at(v).role == value_role::constant) bytes += network.type_of(v).bytes();
    constexpr std::size_t most = std::size_t{1} << 30;
    return std::clamp<std::size_t>(most / std::max<std::size_t>(bytes, 1), 1, 16);
  }

  void tell(std::size_t number, double end) const {
    const place_options& options = known_.task.options;
    if (!options.progress) return;
    place_progress now;
    now.stage = "regions";
    now.what = "division " + std::to_string(number) + " of the network";
    now.remaining = 1;
    now.remaining_s = std::max(0.0, (end - now_ms()) / 1e3);
    now.best_ms = runs_.race().time_of(runs_.incumbent()).median_ms;
    options.progress(now);
  }

  /// Adds `base` to the race, with these regions in place of the groups that they hold. Returns its number, or nothing if a region
  /// has no kernel, or the placement cannot be built or exceeds the bound on weights.
  std::optional<std::size_t> add(const placement& base, const region_search::regions& regions, std::uint32_t backend) {
    std::vector<plan_group> made;
    for (const std::vector<std::uint32_t>& nodes : regions) {
      const std::optional<std::uint32_t> candidate = regions_.add(backend, nodes);
      if (!candidate || !measurer_.has_kernel(*candidate)) return {};
      made.push_back(writer_.group_of(*candidate));
    }
    placement p = writer_.replaced(base, made);
    p.name = regions_run;
    if (!known_.weights.keeps(p)) return {};
    if (!measurer_.measure_conversions([&] { return writer_.conversions_of(p); })) return {};
    p.cost_ms += writer_.add_conversions(p) + writer_.add_switches(p);
    if (!known_.errors.keeps(p)) return {};
    return runs_.add_if_possible(p);
  }

  const placing_state& known_;
  region_candidates& regions_;
  cost_measurer& measurer_;
  whole_runs& runs_;
  placement_writer writer_;
  std::optional<std::size_t> operators_, before_;
  region_report report_;
  double level_ = 1;  // time of the fastest placement, relative to the fastest before the search
  bool any_divided_ = false;
};

}  // namespace
}  // namespace detail
}  // namespace collage::inline v0
