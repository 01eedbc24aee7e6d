// Comparing placements of one network end to end, in the target collage::place.
#include <algorithm>
#include <collage/place/compare.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>
#include "placement_race.hpp"

namespace collage::inline v0 {

bool same_step(const plan_step& a, const plan_step& b) {
  if (a.index() != b.index()) return false;
  const auto is_equal = [&](const auto& x) {
    using step = std::remove_cvref_t<decltype(x)>;
    const step& y = std::get<step>(b);
    if constexpr (std::is_same_v<step, control_step>)
      return std::ranges::equal(x.bodies, y.bodies,
                                [](const placement& p, const placement& q) { return same_steps(p, q); });
    else return x == y;
  };
  return std::visit(is_equal, a);
}

bool same_steps(const placement& a, const placement& b) {
  return std::ranges::equal(a.groups, b.groups,
                            [](const plan_group& x, const plan_group& y) {
                              return same_step(x.step, y.step) && x.nodes == y.nodes;
                            }) &&
         std::ranges::equal(a.conversions, b.conversions, [](const plan_conversion& x, const plan_conversion& y) {
           return x.value == y.value && x.step == y.step;
         });
}

std::vector<plan_run> compare_placements(const graph& network, const std::vector<const placement*>& placements,
                                         backend_table backends, int threads, double seconds, std::uint64_t seed,
                                         const std::shared_ptr<packed_weights>& packed, drift_monitor* monitor) {
  detail::placement_race race(network, backends, threads, seed, packed, monitor);
  std::vector<std::size_t> number;
  for (const placement* p : placements) number.push_back(race.add(*p));
  detail::race_options how;
  how.seconds = seconds;
  how.behind = how.beaten;  // the user wants figures of all placements
  race.run(how);
  std::vector<plan_run> runs;
  for (std::size_t i = 0; i < placements.size(); ++i)
    runs.push_back(run_of(race, number[i], number[0], placements[i]->name));
  return runs;
}

std::size_t best_single(const std::vector<plan_run>& runs) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < runs.size(); ++i)
    if (runs[i].name != previous_run && runs[i].name != operators_run && runs[i].name != unrounded_run &&
        (best == 0 || runs[i].median_ms < runs[best].median_ms))
      best = i;
  return best;
}

}  // namespace collage::inline v0
