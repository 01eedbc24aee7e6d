// Switches: the extra time of a kernel whose operand another backend wrote, learnt from steps within the network.
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

/// One step of a placement, with its time within the network.
struct observed_step {
  cost_key kernel;
  double ms = 0;
  /// The other backends whose values it reads, as other_writers returns them: one entry for each value.
  std::vector<std::uint32_t> from;
};

/// The costs of switches, for each pair of backends: how much longer a kernel of the second takes for an operand that the first
/// wrote. Threads of another pool still look for work or have to be woken, and data lies in the cache of another core.
///
/// They are learnt from kernels that ran both after their own backend and after another one, within one comparison. The cost is
/// the median of the differences if the 95 % confidence interval is above zero, and zero otherwise.
class neighbour_costs {
 public:
  explicit neighbour_costs(std::size_t backends)
      : backends_(backends), ms_(backends * backends, 0.0), kernels_(backends * backends, 0) {}

  void learn(std::span<const observed_step> steps) {
    std::map<cost_key, mean> at_home;
    std::map<std::pair<std::uint32_t, cost_key>, mean> behind;  // by the other backend: kernels that ran after it
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
      constexpr std::size_t enough = 6;  // with so few kernels, all must agree for a 95 % interval
      const timing found = summarise(std::move(differences[i]));
      ms_[i] = found.samples >= enough && found.sure_low_ms > 0 ? found.median_ms : 0;
      kernels_[i] = found.samples;
    }
  }

  double of(std::uint32_t from, std::uint32_t to) const { return ms_[from * backends_ + to]; }
  /// The number of kernels that it was learnt from.
  std::size_t kernels(std::uint32_t from, std::uint32_t to) const { return kernels_[from * backends_ + to]; }
  /// How much longer a kernel of `to` takes for operands from all of these.
  double of(std::span<const std::uint32_t> from, std::uint32_t to) const {
    double sum = 0;
    for (const std::uint32_t one : from) sum += of(one, to);
    return sum;
  }
  bool any() const {
    return std::ranges::any_of(ms_, [](double ms) { return ms > 0; });
  }
  /// The number under which the search knows each backend. Backends without known switches share number 0. If the search has too
  /// few numbers, the backends with the cheapest switches share it, too.
  std::vector<std::uint32_t> runtimes() const {
    std::vector<std::pair<double, std::size_t>>
        dearest;  // the largest cost of a backend's switches, negative, and the backend
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
