// The result of a replay, and the timing of its search.
#pragma once

#include <collage/search/exact.hpp>
#include <collage/search/problem.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace program::replay {

/// One network placed on one table of costs.
struct result {
  std::string name;
  std::string table;      ///< of costs; "roofline" if they are modelled
  double coverage = 0;    ///< share of the operators with a record of their own in the table
  std::size_t nodes = 0;  ///< operators
  std::size_t candidates = 0;
  double optimum_ms = 0;
  double lower_bound_ms = 0;
  double gap = 0;
  std::optional<double> published_ms;  ///< the published placement on the same table
  double search_ms = 0;                ///< median time of making the candidates and searching
};

/// How often a search is repeated to time it.
inline constexpr std::size_t repeats = 20;

/// Makes and searches the problem `repeats` times. Returns the last problem, its placement, and the median time in ms.
template <class MakeProblem>
auto timed_search(const MakeProblem& make) {
  struct {
    collage::search::problem problem;
    collage::search::placement plan;
    double median_ms = 0;
  } done;
  std::vector<double> times;
  for (std::size_t i = 0; i < repeats; ++i) {
    const auto start = std::chrono::steady_clock::now();
    collage::search::problem problem = make();
    collage::search::placement plan = collage::search::exact(problem);
    const auto end = std::chrono::steady_clock::now();
    times.push_back(std::chrono::duration<double, std::milli>(end - start).count());
    done.problem = std::move(problem);
    done.plan = std::move(plan);
  }
  std::ranges::sort(times);
  done.median_ms = (times[(repeats - 1) / 2] + times[repeats / 2]) / 2;
  return done;
}

}  // namespace program::replay
