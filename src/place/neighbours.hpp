// What it costs that a kernel's operands come from another backend: learnt from the steps of whole runs.
#pragma once

#include <algorithm>
#include <collage/measure/statistics.hpp>
#include <collage/place/costs.hpp>
#include <collage/search/problem.hpp>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

namespace collage::inline v0 {

namespace detail {
namespace {

/// One step of a placement within its whole runs.
struct observed_step {
  cost_key kernel;
  double ms = 0;
  /// Who wrote the values that it is the first of its backend to read, as far as that is another backend.
  std::vector<std::uint32_t> from;
};

/// For each pair of backends, by how much a kernel of the second takes longer for an operand that the first wrote: threads of
/// another pool that still look for work or have to be woken, data in the cache of another core.
///
/// Known from kernels that ran both ways, behind their own backend and behind another one, within the runs of one comparison:
/// it is the median of the differences, where all that chance allows for (95 %) is above nothing, and else nothing.
class neighbour_costs {
 public:
  explicit neighbour_costs(std::size_t backends)
      : backends_(backends), ms_(backends * backends, 0.0), kernels_(backends * backends, 0) {}

  void learn(std::span<const observed_step> steps) {
    std::map<cost_key, mean> at_home;
    std::map<std::pair<std::uint32_t, cost_key>, mean> behind;  // by the other backend
    for (const observed_step& s : steps) {
      if (s.from.empty()) at_home[s.kernel].add(s.ms);
      if (s.from.empty() || std::ranges::count(s.from, s.from.front()) != std::ssize(s.from)) continue;
      behind[{s.from.front(), s.kernel}].add(s.ms, static_cast<double>(s.from.size()));
    }
    std::vector<std::vector<double>> differences(ms_.size());
    for (const auto& [which, there] : behind)
      if (const auto home = at_home.find(which.second); home != at_home.end())
        differences[which.first * backends_ + std::get<1>(which.second)].push_back(
            (there.value() - home->second.value()) / (there.operands / there.count));
    for (std::size_t i = 0; i < ms_.size(); ++i) {
      constexpr std::size_t enough = 6;  // kernels of which all but none must agree for an interval of 95 %
      const timing found = summarise(std::move(differences[i]));
      ms_[i] = found.samples >= enough && found.sure_low_ms > 0 ? found.median_ms : 0;
      kernels_[i] = found.samples;
    }
  }

  double of(std::uint32_t from, std::uint32_t to) const { return ms_[from * backends_ + to]; }
  /// How many kernels tell it.
  std::size_t kernels(std::uint32_t from, std::uint32_t to) const { return kernels_[from * backends_ + to]; }
  /// What a kernel of `to` takes longer for operands from all of these.
  double of(std::span<const std::uint32_t> from, std::uint32_t to) const {
    double sum = 0;
    for (const std::uint32_t one : from) sum += of(one, to);
    return sum;
  }
  bool any() const {
    return std::ranges::any_of(ms_, [](double ms) { return ms > 0; });
  }
  /// By backend, the number under which the search knows it: those that nothing is known of are one, and so are those that the
  /// search has no number for, which have the least to tell.
  std::vector<std::uint32_t> runtimes() const {
    std::vector<std::pair<double, std::size_t>> dearest;  // what is known of a backend, and which it is
    for (std::size_t b = 0; b < backends_; ++b) {
      double most = 0;
      for (std::size_t other = 0; other < backends_; ++other)
        most = std::max({most, ms_[b * backends_ + other], ms_[other * backends_ + b]});
      if (most > 0) dearest.emplace_back(-most, b);
    }
    std::ranges::sort(dearest);
    std::vector<std::uint32_t> number(backends_, 0);
    for (std::size_t i = 0; i < std::min<std::size_t>(dearest.size(), search::problem::most_runtimes - 1); ++i)
      number[dearest[i].second] = static_cast<std::uint32_t>(i + 1);
    return number;
  }

 private:
  struct mean {
    double sum = 0, count = 0, operands = 0;
    void add(double ms, double from = 0) {
      sum += ms;
      operands += from;
      ++count;
    }
    double value() const { return sum / count; }
  };

  std::size_t backends_;
  std::vector<double> ms_;  // [from * backends + to]
  std::vector<std::size_t> kernels_;
};

}  // namespace
}  // namespace detail
}  // namespace collage::inline v0
