// How far placing repeats itself: each network is placed several times, each time from an empty store, and then all plans
// and every single backend run against each other, in turns.
//
// usage: repeatability [--runs N] [--rounds N] [--threads N] [--plans FOLDER] [--json FILE] [--predictions] [NETWORK...]
//   --runs         placings of each network; 20
//   --rounds       rounds in which all run against each other; as many as two minutes hold, 30 at least and 300 at most
//   --plans        where plans are kept (repeatability-plans): those that are there are not made again
//   --predictions  nothing runs but the placings: only how well costs predict the time
// prints tables in Markdown (docs/repeatability.md says what they mean).
// needs: place io onednn openblas eigen stacked portable
#include <collage/error.hpp>
#include <collage/graph/graph.hpp>
#include <collage/io/file.hpp>
#include <collage/io/json.hpp>
#include <collage/io/plan_file.hpp>
#include <collage/measure/drift.hpp>
#include <collage/measure/statistics.hpp>
#include <collage/measure/time_source.hpp>
#include <collage/place.hpp>
#include <collage/place/compare.hpp>
#include <collage/place/monitor.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/buffers.hpp>
#include <collage/run/engine.hpp>
#include <collage/run/kernel.hpp>
#include <collage/run/plan.hpp>
#include <collage/run/processor.hpp>
#include <place/placement_race.hpp>
#include <place/round_quota.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "placing.hpp"

namespace {

namespace c = collage;
namespace fs = std::filesystem;
using benchmarks::all_backends;

struct settings {
  std::size_t runs = 20, rounds = 0;  // 0: by the time they take
  int threads = 0;
  std::string folder, json_file;
  bool only_predictions = false;
  std::vector<std::string> networks;
};

/// What has to hold, and whether it does.
struct bar {
  std::string what;
  double value = 0, limit = 0;
  bool holds = false;
};

// ---- Placing ----------------------------------------------------------------------------------------------------------

std::vector<c::plan> plans_of(const std::string& name, const c::graph& network, const settings& given) {
  std::vector<c::plan> plans;
  for (std::size_t run = 1; run <= given.runs; ++run) {
    const std::string file = given.folder + "/" + name + "." + std::to_string(run) + ".json";
    if (!fs::exists(file)) {
      const std::string store = given.folder + "/" + name + ".db";
      const auto remove_store = [&store] {
        for (const char* part : {"", "-wal", "-shm", "-measuring"}) fs::remove(store + part);
      };
      remove_store();
      c::place_options how;
      how.network = name;
      how.threads = given.threads;
      how.store = store;
      const c::placed_plan made = c::place<all_backends>(network, how);
      const c::place_report& report = made.report;
      remove_store();
      std::fprintf(stderr, "%s, %zu of %zu: %.3f ms, predicted %.3f ms; %zu kernels in %.0f s, %s\n", name.c_str(), run,
                   given.runs, made.runs.empty() ? 0 : made.runs[0].median_ms, made.chosen.cost_ms, report.measured,
                   report.measuring_s + report.comparing_s, report.where.c_str());
      c::save_plan(made, network, file);
    }
    plans.push_back(c::load_plan(file, network));
    if (plans.back().threads != given.threads)
      throw c::error(c::error_kind::invalid_argument, "is a plan for another number of threads", file,
                     "name another folder with --plans");
  }
  return plans;
}

// ---- What plans have in common ----------------------------------------------------------------------------------------

/// A group: who runs which nodes how. Two plans have it in common or not.
using group_key = std::tuple<std::vector<std::uint32_t>, std::string, std::string>;

/// A kernel is told by its layouts as well: from these follow the conversions.
std::vector<group_key> groups_of(const c::placement& placed) {
  std::vector<group_key> list;
  for (const c::plan_group& g : placed.groups) {
    if (g.is_view()) continue;
    std::vector<std::uint32_t> nodes = g.nodes;
    std::ranges::sort(nodes);
    list.emplace_back(std::move(nodes), g.backend(), g.pattern() + ", " + g.layout);
  }
  std::ranges::sort(list);
  return list;
}

/// Nodes that two plans run differently, as few as possible: each plan has groups that cover these and nothing else.
struct region {
  std::vector<std::uint32_t> nodes;
  std::size_t groups = 0;  // of the plan that is compared with the first
};

std::vector<region> regions_between(const std::vector<group_key>& first, const std::vector<group_key>& other,
                                    std::size_t nodes) {
  std::vector<std::uint32_t> parent(nodes);
  std::iota(parent.begin(), parent.end(), 0U);
  const auto find = [&parent](std::uint32_t n) {
    while (parent[n] != n) n = parent[n] = parent[parent[n]];
    return n;
  };
  std::vector<group_key> ours, theirs;
  std::ranges::set_difference(first, other, std::back_inserter(ours));
  std::ranges::set_difference(other, first, std::back_inserter(theirs));
  for (const std::vector<group_key>* list : {&ours, &theirs})
    for (const group_key& g : *list)
      for (const std::uint32_t n : std::get<0>(g)) parent[find(n)] = find(std::get<0>(g)[0]);
  std::map<std::uint32_t, region> by_root;
  for (const group_key& g : theirs) {
    region& r = by_root[find(std::get<0>(g)[0])];
    ++r.groups;
    r.nodes.insert(r.nodes.end(), std::get<0>(g).begin(), std::get<0>(g).end());
  }
  std::vector<region> list;
  for (auto& [root, r] : by_root) {
    std::ranges::sort(r.nodes);
    list.push_back(std::move(r));
  }
  return list;
}

/// Placements run in turns, with a clock around each step.
class stepped_runs {
 public:
  stepped_runs(const c::graph& network, int threads, c::drift_monitor& monitor)
      : network_(network), threads_(threads), monitor_(monitor), memory_(network) {
    memory_.randomise(1);
  }
  void add(const c::placement& placed) {
    auto one =
        std::make_unique<runner>(c::dynamic_engine(network_, placed, c::table_of<all_backends>, threads_, packed_));
    for (const c::step_info& step : one->engine.steps())
      one->nodes.push_back(step.nodes.empty() ? nodes_at(step.output) : step.nodes);
    runners_.push_back(std::move(one));
  }
  void run(std::size_t rounds) {
    for (const auto& one : runners_)
      for (int call = 0; call < 2; ++call) one->context.run(memory_.inputs, memory_.outputs);
    std::vector<runner*> order;
    for (const auto& one : runners_) order.push_back(one.get());
    std::mt19937_64 random(1);
    for (std::size_t round = 0; round < rounds; ++round) {
      (void)monitor_.wait();
      std::ranges::shuffle(order, random);  // so that none always runs behind the same one
      for (runner* const next : order) {
        runner& one = *next;
        (void)c::call_for(clock_, c::detail::race_options{}.settling_ms,
                          [&] { one.context.run(memory_.inputs, memory_.outputs); });
        one.times.emplace_back();
        (void)c::time_call(clock_, 3, [&] {
          one.times.back().clear();
          one.context.run(memory_.inputs, memory_.outputs, {&one, &runner::before, &runner::after});
        });
      }
    }
  }
  /// What a placement's steps over these nodes take together, by round.
  std::vector<double> times_of(std::size_t which, const std::vector<std::uint32_t>& nodes) const {
    const runner& one = *runners_[which];
    std::vector<double> sums(one.times.size());
    for (std::size_t s = 0; s < one.nodes.size(); ++s) {
      if (!std::ranges::binary_search(nodes, one.nodes[s][0])) continue;
      for (std::size_t round = 0; round < sums.size(); ++round) sums[round] += one.times[round][s];
    }
    return sums;
  }

 private:
  /// To whom a conversion counts: who makes the value, or the first to read what the network is given.
  std::vector<std::uint32_t> nodes_at(std::uint32_t value) const {
    const std::int32_t producer = network_.at(value).producer;
    if (producer >= 0) return {static_cast<std::uint32_t>(producer)};
    return {network_.view().uses_of(value)[0].node};
  }
  struct runner {
    explicit runner(c::dynamic_engine built) : engine(std::move(built)), context(engine.context()) {}
    static void before(void* data, std::size_t) { static_cast<runner*>(data)->started_ms = c::detail::now_ms(); }
    static void after(void* data, std::size_t, const c::dynamic_context&) {
      auto& self = *static_cast<runner*>(data);
      self.times.back().push_back(c::detail::now_ms() - self.started_ms);
    }
    c::dynamic_engine engine;
    c::dynamic_context context;
    std::vector<std::vector<std::uint32_t>> nodes;  // by step
    std::vector<std::vector<double>> times;         // by round and step
    double started_ms = 0;
  };
  const c::graph& network_;
  int threads_;
  c::drift_monitor& monitor_;
  c::time_source clock_;
  c::run_buffers memory_;
  std::shared_ptr<c::packed_weights> packed_ = std::make_shared<c::packed_weights>();
  std::vector<std::unique_ptr<runner>> runners_;
};

// ---- One network ------------------------------------------------------------------------------------------------------

double median_of(std::vector<double> list) { return c::summarise(std::move(list)).median_ms; }

struct prediction {
  double first_ms = 0, cost_ms = 0, took_ms = 0;  // medians over the plans
  double before = 0, after = 0;                   // of the sizes of the errors
  double bias_before = 0, bias_after = 0;         // of the errors
  double worst_after = 0;
};

prediction prediction_of(const std::vector<c::plan>& plans) {
  std::vector<double> first, cost, took, before, after, bias_before, bias_after;
  for (const c::plan& p : plans) {
    if (p.runs.empty()) continue;
    first.push_back(p.first_cost_ms);
    cost.push_back(p.chosen.cost_ms);
    took.push_back(p.runs[0].median_ms);
    bias_before.push_back(p.first_cost_ms / took.back() - 1);
    bias_after.push_back(p.chosen.cost_ms / took.back() - 1);
    before.push_back(std::abs(bias_before.back()));
    after.push_back(std::abs(bias_after.back()));
  }
  if (took.empty()) return {};
  const double worst = *std::ranges::max_element(after);
  return {median_of(first), median_of(cost),        median_of(took),       median_of(before),
          median_of(after), median_of(bias_before), median_of(bias_after), worst};
}

struct single_figure {
  std::string name;
  double ms = 0;
  // Its time to a plan's: over the plans, the least median, the median one, and the least lower end of an interval.
  double least = 1e300, middle = 1, least_low = 1e300;
};

/// A machine is slow that takes so many times longer than usual: minutes of that kind the drift monitor may not see, as those
/// in which another machine uses up the memory's bandwidth.
constexpr double slow = 1.08;

/// A region that two plans run in different times.
struct untied_region {
  std::string nodes;
  double first_ms = 0, other_ms = 0;
};

struct network_figures {
  std::string name;
  std::size_t plans = 0, distinct = 0;
  std::vector<double> medians_ms;  // of the plans
  double least_ms = 0, most_ms = 0, spread = 0, paired_spread = 0, twin_spread = 0;
  std::vector<double> slowness;  // of the machine, while each plan was made
  double calm_spread = 0;        // as paired_spread, of the plans that were made while it was not slow
  double compared_slowness = 1;  // and while they were compared
  std::size_t regions = 0, tied_regions = 0;
  std::vector<untied_region> untied;
  double equal = 1, same = 1, least_same = 1;  // portions of groups, over the plans but the first
  std::vector<single_figure> singles;
  prediction predicted;
  bool is_calm = true;

  std::size_t made_slowly() const {
    return static_cast<std::size_t>(std::ranges::count_if(slowness, [](double s) { return s > slow; }));
  }
  double ratio() const {
    double least = 1e300;
    for (const single_figure& s : singles) least = std::min(least, s.least);
    return singles.empty() ? 1 : least;
  }
  double ratio_low() const {
    double least = 1e300;
    for (const single_figure& s : singles) least = std::min(least, s.least_low);
    return singles.empty() ? 1 : least;
  }
  std::vector<bar> bars() const {
    const auto at_most = [](const char* what, double value, double limit) {
      return bar{what, value, limit, value <= limit};
    };
    const auto at_least = [](const char* what, double value, double limit) {
      return bar{what, value, limit, value >= limit};
    };
    return {at_most("plans apart, at most", paired_spread, 0.02),
            at_least("groups equal or tied, at least", same, 0.95),
            at_least("every single backend to every plan, at least", ratio(), 0.99),
            at_least("and the lower end of the interval", ratio_low(), 0.97),
            at_most("the sum of costs off by, at most", predicted.after, 0.05)};
  }
};

/// How many times longer than usual the fastest single backend took while each plan was made. What is usual is the lower
/// quartile over the plans.
std::vector<double> slowness_of(const std::vector<c::plan>& plans) {
  std::vector<double> list;
  for (const c::plan& p : plans) {
    const std::size_t best = c::best_single(p.runs);
    list.push_back(best == 0 ? 0 : p.runs[best].median_ms);
  }
  std::vector<double> sorted = list;
  std::ranges::sort(sorted);
  const double usual = sorted[sorted.size() / 4];
  for (double& ms : list) ms = usual > 0 ? ms / usual : 1;
  return list;
}

/// Small networks need many rounds: 20 plans that take the same, each with times that scatter by 5 %, have medians of 30
/// rounds that are 4 % apart.
std::size_t rounds_for(const std::vector<c::plan>& plans, const settings& given) {
  if (given.rounds != 0) return given.rounds;
  constexpr double calls = 2, two_minutes_ms = 120e3;
  double ms = 0;
  for (const c::plan& p : plans)
    if (!p.runs.empty())
      ms += calls * p.runs[0].median_ms + std::max(c::detail::race_options{}.settling_ms, p.runs[0].median_ms);
  return static_cast<std::size_t>(std::clamp(ms > 0 ? two_minutes_ms / ms : 30.0, 30.0, 300.0));
}

void compare_groups(const c::graph& network, const std::vector<c::plan>& plans, const settings& given,
                    c::drift_monitor& monitor, network_figures& out) {
  const std::vector<group_key> first = groups_of(plans[0].chosen);
  std::map<std::vector<group_key>, std::vector<region>> others;  // by what a plan consists of
  for (std::size_t k = 1; k < plans.size(); ++k) {
    std::vector<group_key> groups = groups_of(plans[k].chosen);
    std::vector<region> regions = regions_between(first, groups, network.nodes().size());
    others.try_emplace(std::move(groups), std::move(regions));
  }
  stepped_runs runs(network, given.threads, monitor);
  runs.add(plans[0].chosen);
  std::map<std::vector<group_key>, std::size_t> number;
  for (const auto& [groups, regions] : others) {
    if (regions.empty()) continue;
    const auto plan = std::ranges::find_if(plans, [&](const c::plan& p) { return groups_of(p.chosen) == groups; });
    number[groups] = number.size() + 1;
    runs.add(plan->chosen);
  }
  if (!number.empty()) runs.run(rounds_for(plans, given));
  std::map<std::vector<group_key>, std::pair<double, double>> portions;
  for (const auto& [groups, regions] : others) {
    std::size_t differ = 0, tied = 0;
    for (const region& r : regions) {
      const std::vector<double> ours = runs.times_of(0, r.nodes), theirs = runs.times_of(number.at(groups), r.nodes);
      const double ratio = c::compare_paired(theirs, ours).median;
      const double apart_ms = std::abs(median_of(theirs) - median_of(ours));
      const bool is_tied = (ratio <= 1.02 && ratio >= 1 / 1.02) || apart_ms <= 0.002 * out.least_ms;
      differ += r.groups;
      tied += is_tied ? r.groups : 0;
      ++out.regions;
      out.tied_regions += is_tied;
      if (is_tied) continue;
      std::string names;
      for (const std::uint32_t n : r.nodes) names += (names.empty() ? "" : " ") + network.node_name(n);
      out.untied.push_back({std::move(names), median_of(ours), median_of(theirs)});
    }
    const auto all = static_cast<double>(groups.size());
    portions[groups] = {1 - static_cast<double>(differ) / all, 1 - static_cast<double>(differ - tied) / all};
  }
  if (plans.size() < 2) return;
  out.equal = out.same = 0;
  for (std::size_t k = 1; k < plans.size(); ++k) {
    const auto& [equal, same] = portions.at(groups_of(plans[k].chosen));
    out.equal += equal / static_cast<double>(plans.size() - 1);
    out.same += same / static_cast<double>(plans.size() - 1);
    out.least_same = std::min(out.least_same, same);
  }
}

void compare_times(const c::graph& network, const std::vector<c::plan>& plans, const settings& given,
                   c::drift_monitor& monitor, network_figures& out) {
  c::detail::placement_race race(network, c::table_of<all_backends>, given.threads, 1,
                                 std::make_shared<c::packed_weights>(), &monitor);
  std::vector<std::size_t> number;
  for (const c::plan& p : plans) number.push_back(race.add(p.chosen));
  out.distinct = race.size();
  std::vector<std::size_t> twins{number[0]};
  for (int i = 0; i < 4; ++i) twins.push_back(race.add(plans[0].chosen, c::detail::race_role::replica));
  std::vector<std::pair<std::string, std::size_t>> singles;
  for (const c::placement& s : plans[0].singles) singles.emplace_back(s.name, race.add(s));
  c::detail::race_options how;
  how.least_rounds = how.most_rounds = rounds_for(plans, given);
  how.seconds = 240;  // for rounds that are taken again; the others are counted
  how.behind = 1e9;   // what is a little slower is what this is about
  constexpr int most_tries = 5;
  for (int tries = 1;; ++tries) {
    race.run(how);
    // Against what each plan took when it was made.
    std::vector<double> slowness;
    for (std::size_t k = 0; k < plans.size(); ++k)
      if (!plans[k].runs.empty()) slowness.push_back(race.time_of(number[k]).median_ms / plans[k].runs[0].median_ms);
    out.compared_slowness = slowness.empty() ? 1 : median_of(slowness);
    if (out.compared_slowness <= slow || tries == most_tries) break;
    std::fprintf(stderr, "%s: all take %.2f times as long as when they were made; once more in a minute\n",
                 out.name.c_str(), out.compared_slowness);
    race.forget_rounds();
    c::time_source{}.sleep_ms(60e3);
  }
  out.is_calm = race.log().is_undisturbed() && out.compared_slowness <= slow;
  out.plans = plans.size();
  out.slowness = slowness_of(plans);
  std::vector<double>& medians = out.medians_ms;
  std::vector<double> ratios, calm_ratios;
  for (std::size_t k = 0; k < plans.size(); ++k) {
    medians.push_back(race.time_of(number[k]).median_ms);
    ratios.push_back(race.ratio(number[k], number[0]).median);
    if (out.slowness[k] <= slow) calm_ratios.push_back(ratios.back());
  }
  std::vector<double> of_twins;
  for (const std::size_t n : twins) of_twins.push_back(race.ratio(n, number[0]).median);
  out.twin_spread = *std::ranges::max_element(of_twins) / *std::ranges::min_element(of_twins) - 1;
  out.least_ms = *std::ranges::min_element(medians);
  out.most_ms = *std::ranges::max_element(medians);
  out.spread = out.most_ms / out.least_ms - 1;
  out.paired_spread = *std::ranges::max_element(ratios) / *std::ranges::min_element(ratios) - 1;
  if (!calm_ratios.empty())
    out.calm_spread = *std::ranges::max_element(calm_ratios) / *std::ranges::min_element(calm_ratios) - 1;
  for (const auto& [name, n] : singles) {
    single_figure figure{name, race.time_of(n).median_ms};
    std::vector<double> medians_of_ratios;
    for (const std::size_t plan : number) {
      const c::plan_run r = c::detail::run_of(race, n, plan, name);
      medians_of_ratios.push_back(r.ratio);
      figure.least = std::min(figure.least, r.ratio);
      figure.least_low = std::min(figure.least_low, r.ratio_low);
    }
    figure.middle = median_of(medians_of_ratios);
    out.singles.push_back(std::move(figure));
  }
}

network_figures figures_of(const std::string& name, const settings& given) {
  const c::graph network = benchmarks::network_called(name);
  const std::vector<c::plan> plans = plans_of(name, network, given);
  network_figures out;
  out.name = name;
  out.plans = plans.size();
  out.predicted = prediction_of(plans);
  if (given.only_predictions || plans.empty()) return out;
  c::drift_monitor monitor = c::watch_machine(given.threads);
  compare_times(network, plans, given, monitor, out);
  compare_groups(network, plans, given, monitor, out);
  return out;
}

// ---- Tables -----------------------------------------------------------------------------------------------------------

void print_tables(const std::vector<network_figures>& all, const settings& given) {
  std::printf("%d thread%s of %s, %zu placings of each network, each from an empty store.\n", given.threads,
              given.threads == 1 ? "" : "s", c::processor_name().c_str(), given.runs);
  if (!given.only_predictions) {
    std::printf(
        "\n| network | plans, distinct | medians ms | apart | paired | made slowly | paired, without | twins | groups equal | "
        "equal or tied | least | regions tied | calm |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
    for (const network_figures& n : all)
      std::printf(
          "| %s | %zu, %zu | %.3f to %.3f | %.2f %% | %.2f %% | %zu | %.2f %% | %.2f %% | %.1f %% | %.1f %% | %.1f %% | "
          "%zu of %zu | %s |\n",
          n.name.c_str(), n.plans, n.distinct, n.least_ms, n.most_ms, 100 * n.spread, 100 * n.paired_spread,
          n.made_slowly(), 100 * n.calm_spread, 100 * n.twin_spread, 100 * n.equal, 100 * n.same, 100 * n.least_same,
          n.tied_regions, n.regions, n.is_calm ? "yes" : "no");
    std::printf(
        "\n| network | single backend | ms | to the plans, median | least | least lower end |\n"
        "|---|---|---|---|---|---|\n");
    for (const network_figures& n : all)
      for (const single_figure& s : n.singles)
        std::printf("| %s | %s | %.3f | %.3f | %.3f | %.3f |\n", n.name.c_str(), s.name.c_str(), s.ms, s.middle,
                    s.least, s.least_low);
  }
  std::printf(
      "\n| network | first prediction ms | prediction ms | end to end ms | error before | error after | off by, "
      "before | after | worst after |\n|---|---|---|---|---|---|---|---|---|\n");
  for (const network_figures& n : all) {
    const prediction& p = n.predicted;
    std::printf("| %s | %.3f | %.3f | %.3f | %+.1f %% | %+.1f %% | %.1f %% | %.1f %% | %.1f %% |\n", n.name.c_str(),
                p.first_ms, p.cost_ms, p.took_ms, 100 * p.bias_before, 100 * p.bias_after, 100 * p.before,
                100 * p.after, 100 * p.worst_after);
  }
  if (given.only_predictions) return;
  std::printf("\n| network | what | is | bar | holds |\n|---|---|---|---|---|\n");
  for (const network_figures& n : all)
    for (const bar& b : n.bars())
      std::printf("| %s | %s | %.4f | %.2f | %s |\n", n.name.c_str(), b.what.c_str(), b.value, b.limit,
                  b.holds ? "yes" : "**no**");
}

c::json to_json(const network_figures& n, bool only_predictions) {
  const prediction& p = n.predicted;
  c::json predicted{{"first_cost_ms", c::rounded(p.first_ms)}, {"cost_ms", c::rounded(p.cost_ms)},
                    {"end_to_end_ms", c::rounded(p.took_ms)},  {"error_before", c::rounded(p.bias_before)},
                    {"error_after", c::rounded(p.bias_after)}, {"off_before", c::rounded(p.before)},
                    {"off_after", c::rounded(p.after)},        {"worst_after", c::rounded(p.worst_after)}};
  c::json out{{"network", n.name}, {"plans", n.plans}, {"prediction", std::move(predicted)}};
  if (only_predictions) return out;
  out["distinct"] = n.distinct;
  for (const double ms : n.medians_ms) out["medians_ms"].push_back(c::rounded(ms));
  out["least_ms"] = c::rounded(n.least_ms);
  out["most_ms"] = c::rounded(n.most_ms);
  out["spread"] = c::rounded(n.spread);
  out["paired_spread"] = c::rounded(n.paired_spread);
  for (const double times : n.slowness) out["slowness"].push_back(c::rounded(times));
  out["calm_spread"] = c::rounded(n.calm_spread);
  out["compared_slowness"] = c::rounded(n.compared_slowness);
  out["twin_spread"] = c::rounded(n.twin_spread);
  out["groups_equal"] = c::rounded(n.equal);
  out["groups_equal_or_tied"] = c::rounded(n.same);
  out["least_equal_or_tied"] = c::rounded(n.least_same);
  out["regions"] = n.regions;
  out["regions_tied"] = n.tied_regions;
  out["untied"] = c::json::array();
  for (const untied_region& r : n.untied)
    out["untied"].push_back(
        {{"nodes", r.nodes}, {"first_ms", c::rounded(r.first_ms)}, {"other_ms", c::rounded(r.other_ms)}});
  out["calm"] = n.is_calm;
  for (const single_figure& s : n.singles)
    out["singles"].push_back({{"name", s.name},
                              {"ms", c::rounded(s.ms)},
                              {"ratio", c::rounded(s.middle)},
                              {"least_ratio", c::rounded(s.least)},
                              {"least_ratio_low", c::rounded(s.least_low)}});
  for (const bar& b : n.bars())
    out["bars"].push_back({{"what", b.what}, {"value", c::rounded(b.value)}, {"limit", b.limit}, {"holds", b.holds}});
  return out;
}

int measure(int count, const char* const* words) {
  settings given;
  benchmarks::command_line line(count, words);
  given.runs = line.number("--runs", 20);
  given.rounds = line.number("--rounds", 0);
  given.threads = static_cast<int>(line.number("--threads", static_cast<std::size_t>(c::available_threads())));
  given.folder = line.text("--plans", "repeatability-plans");
  given.json_file = line.text("--json", "");
  given.only_predictions = line.flag("--predictions");
  given.networks = line.rest();
  if (given.networks.empty()) given.networks = {"bert-paper", "mobilenet-v2", "dcgan-paper", "resnext50-paper"};
  if (given.runs == 0 || given.threads == 0)
    throw c::error(c::error_kind::invalid_argument, "is 0", "--runs or --threads", "give at least 1");
  for (const std::string& name : given.networks) (void)benchmarks::network_called(name);  // before hours of work
  fs::create_directories(given.folder);
  std::vector<network_figures> all;
  c::json out = c::json::array();
  for (const std::string& name : given.networks) {
    all.push_back(figures_of(name, given));
    out.push_back(to_json(all.back(), given.only_predictions));
    if (!given.json_file.empty())
      c::write_file(given.json_file, c::to_text({{"threads", given.threads},
                                                 {"processor", c::processor_name()},
                                                 {"runs", given.runs},
                                                 {"rounds", given.rounds},
                                                 {"networks", out}}));
  }
  print_tables(all, given);
  return 0;
}

}  // namespace

int main(int count, char** words) { return benchmarks::run("repeatability", measure, count, words); }
