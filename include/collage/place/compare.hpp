// End-to-end comparison: several placements of one network run in interleaved rounds.
#pragma once

#include <algorithm>
#include <collage/measure/timing.hpp>
#include <collage/place/costs.hpp>
#include <collage/run/buffers.hpp>
#include <collage/run/engine.hpp>
#include <functional>
#include <string>
#include <vector>

namespace collage::inline v0 {

/// True when two placements run the same kernels on the same nodes.
inline bool same_steps(const placement& a, const placement& b) {
  if (a.groups.size() != b.groups.size()) return false;
  for (std::size_t i = 0; i < a.groups.size(); ++i) {
    const plan_group& x = a.groups[i];
    const plan_group& y = b.groups[i];
    if (x.backend != y.backend || x.pattern != y.pattern || x.choice != y.choice || x.nodes != y.nodes) return false;
    for (std::size_t k = 0; k < std::min(x.bodies.size(), y.bodies.size()); ++k)
      if (!same_steps(x.bodies[k], y.bodies[k])) return false;
  }
  return true;
}

struct comparison {
  std::vector<plan_run> runs;                ///< one per placement, in their order
  std::vector<std::vector<double>> samples;  ///< by placement, in rounds; equal placements share their samples
};

/// Runs placements of one network end to end, interleaved, for about `seconds`; placements with identical steps run
/// once and share the figure. At least five rounds; a placement that two rounds have shown to be far behind runs no more.
inline comparison compare_placements(const graph& network, const std::vector<const placement*>& placements,
                                     backend_table backends, int threads, double seconds, std::uint64_t seed,
                                     const std::shared_ptr<packed_weights>& packed) {
  std::vector<std::size_t> runs_as(placements.size());
  std::vector<std::size_t> distinct;
  for (std::size_t i = 0; i < placements.size(); ++i) {
    runs_as[i] = distinct.size();
    for (std::size_t d = 0; d < distinct.size(); ++d)
      if (same_steps(*placements[distinct[d]], *placements[i])) runs_as[i] = d;
    if (runs_as[i] == distinct.size()) distinct.push_back(i);
  }
  run_buffers memory(network);
  memory.randomise(seed);
  std::vector<dynamic_context> contexts;
  for (const std::size_t d : distinct)
    contexts.push_back(dynamic_engine(network, *placements[d], backends, threads, packed).context());

  for (dynamic_context& context : contexts)  // first calls: page faults and one-time work of libraries
    for (int call = 0; call < 2; ++call) context.run(memory.inputs, memory.outputs);
  // By the clock: a number of rounds fixed beforehand would rest on one call, which a busy machine makes many times longer.
  constexpr std::size_t least_rounds = 5, most_rounds = 200;
  const double start_ms = detail::now_ms();
  std::vector<std::vector<double>> samples(distinct.size());
  const auto best_of = [&](std::size_t d) { return *std::min_element(samples[d].begin(), samples[d].end()); };
  const auto beaten = [&](std::size_t d) {
    if (samples[d].size() < 2) return false;
    double fastest = best_of(d);
    for (std::size_t other = 0; other < samples.size(); ++other)
      if (samples[other].size() >= 2) fastest = std::min(fastest, best_of(other));
    return best_of(d) > 2 * fastest;
  };
  for (std::size_t round = 0;
       round < least_rounds || (round < most_rounds && detail::now_ms() - start_ms < seconds * 1e3); ++round)
    for (std::size_t turn = 0; turn < distinct.size(); ++turn) {
      const std::size_t d = (turn + round) % distinct.size();
      if (d != 0 && beaten(d)) continue;
      // One call that is not counted: the rival before leaves its own data in the caches.
      contexts[d].run(memory.inputs, memory.outputs);
      const double start = detail::now_ms();
      contexts[d].run(memory.inputs, memory.outputs);
      samples[d].push_back(detail::now_ms() - start);
    }
  comparison result;
  for (std::size_t i = 0; i < placements.size(); ++i) {
    const timing t = summarise(samples[runs_as[i]]);
    result.runs.push_back({placements[i]->name, t.median_ms, t.low_ms, t.high_ms, t.samples});
    result.samples.push_back(samples[runs_as[i]]);
  }
  return result;
}

/// The single-backend placement with the lowest median, and the median over rounds of its time divided by the plan's:
/// above 1 the plan is faster. The plan is the first of the comparison.
struct comparison_ratio {
  std::size_t best_single = 0;  ///< index into the comparison; 0 where there is no single
  double ratio = 1;
};
inline comparison_ratio ratio_of(const comparison& c) {
  comparison_ratio r;
  for (std::size_t i = 1; i < c.runs.size(); ++i)
    if (r.best_single == 0 || c.runs[i].median_ms < c.runs[r.best_single].median_ms) r.best_single = i;
  if (r.best_single != 0) r.ratio = paired_ratio(c.samples[r.best_single], c.samples[0]);
  return r;
}

}  // namespace collage::inline v0
