// How steady decisions are: the same operators, measured twice on one card 11 days apart. In how many groups does the
// fastest backend change, and in how many what the library's rule decides? What does a change cost? And how often do both
// change by the noise within one measurement alone?
//
// usage: snapshots [REPETITIONS] [FOLDER]      prints tables in Markdown; 1000 repetitions where not told, and FOLDER has
//                                              the published costs (benchmarks/data/collage-costs where it is not named)
// needs: place io
#include "../tools/collage/replay/data_files.hpp"
#include "../tools/collage/replay/published_costs.hpp"

#include <collage/error.hpp>
#include <collage/measure/statistics.hpp>
#include <collage/measure/time_source.hpp>
#include <collage/measure/timing.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace program::replay {

/// Nothing is built in: the files are read from a folder.
std::span<const embedded_file> embedded_files() { return {}; }

}  // namespace program::replay

namespace {

namespace c = collage;
namespace replay = program::replay;

/// One kernel in both tables: mean and deviation.
struct kernel {
  std::string backend;
  double mean_ms[2], deviation_ms[2];
};
/// Kernels for one computation, at least two.
using group = std::vector<kernel>;

/// What is computed, as text.
std::string computation_of(const replay::cost_record& record) {
  std::string text = record.pattern;
  for (const std::int64_t extent : record.data) text += ' ' + std::to_string(extent);
  for (const replay::pattern_operator& o : record.operators) {
    text += ';' + o.name;
    for (const auto& [name, numbers] : o.attributes) {
      text += ',' + name;
      for (const std::int64_t n : numbers) text += ' ' + std::to_string(n);
    }
  }
  return text;
}

std::vector<group> groups_in_both(const std::string& folder) {
  const char* const files[] = {"operator-cost-desktop-a.json", "operator-cost-desktop-b.json"};
  std::map<std::string, std::map<std::string, kernel>> first;
  std::map<std::string, group> both;
  for (std::size_t when = 0; when < 2; ++when)
    for (const replay::cost_record& r :
         replay::read_published_costs(replay::published_file(folder, files[when]), files[when]).records) {
      auto& known = first[computation_of(r)];
      if (when == 0) {
        known[r.backend] = {r.backend, {r.mean_ms, 0}, {r.deviation_ms, 0}};
      } else if (const auto found = known.find(r.backend); found != known.end()) {
        found->second.mean_ms[1] = r.mean_ms;
        found->second.deviation_ms[1] = r.deviation_ms;
        both[computation_of(r)].push_back(found->second);
      }
    }
  std::vector<group> list;
  for (auto& [what, kernels] : both)
    if (kernels.size() > 1) list.push_back(std::move(kernels));
  return list;
}

std::size_t fastest_of(const std::vector<double>& times) {
  return static_cast<std::size_t>(std::ranges::min_element(times) - times.begin());
}

/// Who is taken of a group by the library's rule, in a race on a clock on which a call takes what `call_ms` answers: ties
/// cost the same, and who stands first in the set is taken. `rank` is by position in the group.
template <class Call>
std::size_t by_rule(const group& g, const std::vector<std::size_t>& rank, Call call_ms) {
  double now = 0;
  const c::time_source clock{[&now] { return now; }, [&now](double ms) { now += ms; }, [] { return std::uint64_t{0}; }};
  std::vector<std::function<void()>> calls;
  for (std::size_t i = 0; i < g.size(); ++i) calls.emplace_back([&now, &call_ms, i] { now += call_ms(i); });
  c::timing_options how;
  how.sample_ms = 0;  // a sample is one call: the recorded deviation is that of whatever was one reading then
  const c::rival_times found = c::time_rivals(calls, how, nullptr, clock);
  std::size_t taken = found.fastest;
  for (std::size_t i = 0; i < g.size(); ++i)
    if (found.cost_ms[i] == found.cost_ms[found.fastest] && rank[i] < rank[taken]) taken = i;
  return taken;
}

/// What changes between the tables, and what it costs to have decided by the other one.
struct steadiness {
  std::size_t changed = 0;
  double mean = 0, most = 0;        // how much dearer, in the groups that changed, as parts
  double mean_of_all = 0;           // over all groups
  double sum_ms = 0, least_ms = 0;  // of all groups: as decided by the other table, and at best

  void add(const group& g, std::size_t before, std::size_t after) {
    if (before != after) ++changed;
    const std::size_t by_other[] = {after, before};  // decided by the second table and run by the first, and so on
    for (std::size_t when = 0; when < 2; ++when) {
      double best = g[0].mean_ms[when];
      for (const kernel& k : g) best = std::min(best, k.mean_ms[when]);
      const double took = g[by_other[when]].mean_ms[when];
      mean_of_all += (took / best - 1) / 2;
      sum_ms += took;
      least_ms += best;
      if (before == after) continue;
      mean += (took / best - 1) / 2;
      most = std::max(most, took / best - 1);
    }
  }
  void print(const char* name, std::size_t groups) const {
    std::printf("| %s | %zu of %zu | %.1f %% | %.1f %% | %.2f %% | %.2f %% |\n", name, changed, groups,
                changed == 0 ? 0 : 100 * mean / static_cast<double>(changed), 100 * most,
                100 * mean_of_all / static_cast<double>(groups), 100 * (sum_ms / least_ms - 1));
  }
};

std::vector<std::size_t> ranks(const group& g, const std::vector<std::string>& order) {
  std::vector<std::size_t> rank;
  for (const kernel& k : g)
    rank.push_back(static_cast<std::size_t>(std::ranges::find(order, k.backend) - order.begin()));
  return rank;
}

void print_two_tables(const std::vector<group>& groups, std::vector<std::string> order) {
  std::printf(
      "| who is taken | changes | when it does, dearer on average | at most | all groups, on average | sum |\n"
      "|---|---|---|---|---|---|\n");
  steadiness plain;
  for (const group& g : groups) {
    std::size_t who[2];
    for (std::size_t when = 0; when < 2; ++when) {
      std::vector<double> times;
      for (const kernel& k : g) times.push_back(k.mean_ms[when]);
      who[when] = fastest_of(times);
    }
    plain.add(g, who[0], who[1]);
  }
  plain.print("the fastest", groups.size());
  std::vector<std::pair<steadiness, std::string>> by_order;
  std::ranges::sort(order);
  do {
    steadiness ours;
    for (const group& g : groups) {
      std::size_t who[2];
      for (std::size_t when = 0; when < 2; ++when)
        who[when] = by_rule(g, ranks(g, order), [&](std::size_t i) { return g[i].mean_ms[when]; });
      ours.add(g, who[0], who[1]);
    }
    std::string name;
    for (const std::string& backend : order) name += (name.empty() ? "" : ", ") + backend;
    by_order.emplace_back(ours, name);
  } while (std::ranges::next_permutation(order).found);
  std::ranges::stable_sort(by_order, {}, [](const auto& entry) { return entry.first.changed; });
  by_order.front().first.print(("by the rule, " + by_order.front().second).c_str(), groups.size());
  by_order.back().first.print(("by the rule, " + by_order.back().second).c_str(), groups.size());
  std::printf("\nOf the %zu orders of a set:", by_order.size());
  std::map<std::size_t, std::size_t> count;
  for (const auto& [ours, name] : by_order) ++count[ours.changed];
  const char* comma = "";
  for (const auto& [changed, orders] : count) {
    std::printf("%s %zu changes in %zu", comma, changed, orders);
    comma = ",";
  }
  std::printf(".\n");
}

/// How often a decision is not the one that is made most of the time, when every reading has the recorded deviation.
struct noise_result {
  std::size_t groups = 0;  // in which it is ever another
  double share = 0;        // of all decisions
  double most = 0;         // in one group
};
void add(noise_result& to, const std::map<std::size_t, std::size_t>& taken, std::size_t repetitions) {
  std::size_t usual = 0;
  for (const auto& [who, times] : taken) usual = std::max(usual, times);
  const double other = 1 - static_cast<double>(usual) / static_cast<double>(repetitions);
  to.groups += usual != repetitions;
  to.share += other;
  to.most = std::max(to.most, other);
}

void print_noise(const std::vector<group>& groups, const std::vector<std::string>& order, std::size_t repetitions) {
  std::printf(
      "\n| table | who is taken | groups in which it is not always the same | decisions other than usual | in one "
      "group |\n|---|---|---|---|---|\n");
  for (std::size_t when = 0; when < 2; ++when) {
    std::mt19937_64 random(1);
    noise_result one, nine, ours;
    for (const group& g : groups) {
      const auto reading = [&](std::size_t i) {
        std::normal_distribution<double> noise(g[i].mean_ms[when], g[i].deviation_ms[when]);
        return std::max(noise(random), 0.1 * g[i].mean_ms[when]);
      };
      const std::vector<std::size_t> rank = ranks(g, order);
      std::map<std::size_t, std::size_t> by_one, by_nine, by_race;
      for (std::size_t turn = 0; turn < repetitions; ++turn) {
        std::vector<double> first, median;
        for (std::size_t i = 0; i < g.size(); ++i) {
          std::vector<double> samples;
          for (int k = 0; k < 9; ++k) samples.push_back(reading(i));
          first.push_back(samples[0]);
          median.push_back(c::summarise(std::move(samples)).median_ms);
        }
        ++by_one[fastest_of(first)];
        ++by_nine[fastest_of(median)];
        ++by_race[by_rule(g, rank, reading)];
      }
      add(one, by_one, repetitions);
      add(nine, by_nine, repetitions);
      add(ours, by_race, repetitions);
    }
    const std::pair<const char*, noise_result> rows[] = {
        {"the fastest by one reading", one}, {"the fastest by the median of nine", nine}, {"by the rule", ours}};
    for (const auto& [name, r] : rows)
      std::printf("| %s | %s | %zu of %zu | %.3f %% | %.1f %% |\n", when == 0 ? "first" : "second", name, r.groups,
                  groups.size(), 100 * r.share / static_cast<double>(groups.size()), 100 * r.most);
  }
}

}  // namespace

int main(int count, char** arguments) {
  try {
    const std::size_t repetitions = count > 1 ? std::strtoul(arguments[1], nullptr, 10) : 1000;
    if (repetitions == 0)
      throw c::error(c::error_kind::invalid_argument, "is not a number of repetitions", arguments[1],
                     "give a whole number, as in 1000");
    const std::vector<group> groups = groups_in_both(count > 2 ? arguments[2] : "benchmarks/data/collage-costs");
    std::set<std::string> backends;
    for (const group& g : groups)
      for (const kernel& k : g) backends.insert(k.backend);
    const std::vector<std::string> order(backends.begin(), backends.end());
    print_two_tables(groups, order);
    print_noise(groups, order, repetitions);
  } catch (const c::error& e) {
    std::fprintf(stderr, "snapshots: %s\n", e.what());
    return 1;
  }
}
