// End-to-end comparison: several placements of one network run in interleaved rounds.
#pragma once

#include <algorithm>
#include <cmath>
#include <collage/measure/drift.hpp>
#include <collage/measure/statistics.hpp>
#include <collage/measure/time_source.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/buffers.hpp>
#include <collage/run/engine.hpp>
#include <collage/run/plan.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace collage::inline v0 {

bool same_steps(const placement& a, const placement& b);

/// True when two steps run the same.
inline bool same_step(const plan_step& a, const plan_step& b) {
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

/// True when two placements run the same kernels on the same nodes.
inline bool same_steps(const placement& a, const placement& b) {
  return std::ranges::equal(a.groups, b.groups,
                            [](const plan_group& x, const plan_group& y) {
                              return same_step(x.step, y.step) && x.nodes == y.nodes;
                            }) &&
         std::ranges::equal(a.conversions, b.conversions, [](const plan_conversion& x, const plan_conversion& y) {
           return x.value == y.value && x.step == y.step;
         });
}

/// How long placements are compared.
struct comparison_options {
  double seconds = 3;  ///< of running; waiting for a calm machine comes on top
  /// For so long calls behind another placement are not counted: behind one of Eigen or OpenBLAS they take up to a fifth
  /// longer at first, and threads of a library's own pool look for work for about as long (docs/measuring.md).
  double settling_ms = 15;
  std::size_t least_rounds = 5, most_rounds = 200;
  /// A placement that all of two rounds have shown to be this many times slower than another runs no more, nor one that
  /// all of five rounds, or later the confidence interval, have shown to be slower by the second factor. Where one kind of
  /// times is still to be seen (end_to_end), it is presumed to take as long as the other in that.
  double beaten = 1.5, behind = 1.03;
  /// For so long, in the end, the processors are kept at work until they are apart (end_to_end), where they were not by
  /// themselves: hosts move virtual processors that are busy for some seconds away from each other, and back as soon as they
  /// rest.
  double parting_s = 0;
  /// true: rounds in which processors are apart are all that is wanted.
  bool apart_alone = false;
};

/// Placements of one network that run end to end against each other. Placements may join later; a round in which one did
/// not run counts for no pair with it.
///
/// Where the threads' processors share a cache at times and none at others, as those of virtual machines do, rounds are of two
/// kinds, which suit placements differently: what a network runs in later may be either. Times are of rounds in which a cache
/// was shared, and ratios of both kinds as soon as there are some of each (docs/measuring.md).
class end_to_end {
 public:
  /// Refers to the network, the table and the monitor, which may be null.
  end_to_end(const graph& network, backend_table backends, int threads, std::uint64_t seed,
             std::shared_ptr<packed_weights> packed, drift_monitor* monitor = nullptr, time_source time = {})
      : network_(&network),
        backends_(backends),
        threads_(threads),
        packed_(std::move(packed)),
        monitor_(monitor),
        time_(std::move(time)),
        memory_(network) {
    memory_.randomise(seed);
  }

  /// Answers the placement's number; those with identical steps share one, which runs again if it had been released. Of
  /// those that stay, the fastest goes on running when it is only somewhat slower than others, so that these can be
  /// compared with it. One that is a `twin` runs beside another with identical steps, which shows how far such times are
  /// apart.
  std::size_t add(const placement& p, bool stays = false, bool twin = false) {
    for (std::size_t i = 0; i < runners_.size() && !twin; ++i)
      if (same_steps(*runners_[i]->which, p)) {
        runners_[i]->stays = runners_[i]->stays || stays;
        if (!can_run(i)) build(*runners_[i]);
        return i;
      }
    auto r = std::make_unique<runner>(p);
    build(*r);
    r->samples.assign(rounds_, absent);
    r->steps.resize(r->engine->steps().size());
    for (const step_info& s : r->engine->steps()) {
      r->is_conversion.push_back(s.nodes.empty());
      if (s.nodes.empty())
        r->conversions.push_back(
            static_cast<std::size_t>(find_conversion(p, s.output, to_text(s.written)) - p.conversions.data()));
    }
    r->stays = stays;
    runners_.push_back(std::move(r));
    return runners_.size() - 1;
  }

  /// Runs everyone in turns. `stop` ends it after the round under way; it is asked from the second round on.
  void run(const comparison_options& how = {}, const std::function<bool()>& stop = {}) {
    for (const auto& r : runners_)  // first calls: page faults and one-time work of libraries
      for (int call = r->warm || !r->context ? 2 : 0; call < 2; ++call) {
        r->context->run(memory_.inputs, memory_.outputs);
        r->warm = true;
      }
    // By the clock: a number of rounds fixed beforehand would rest on one call, which a busy machine makes many times longer.
    const double most_ms = how.seconds * 1e3;
    double counted_ms = 0, apart_ms = 0, discarded_ms = 0, parting_s = how.parting_s;
    bool gave_up_apart = false;
    expects_apart_ = met_apart_ || (how.parting_s > 0 && threads_ > 1 && monitor_ != nullptr);
    std::size_t counted = 0, apart = 0;
    for (;;) {
      const bool stopped = stop && stop();
      if (stopped && counted + apart > 0) break;
      const auto is_wanted = [&](std::size_t rounds, double took_ms) {
        return rounds < how.least_rounds || (rounds < how.most_rounds && took_ms < most_ms);
      };
      const bool is_due = !how.apart_alone && is_wanted(counted, counted_ms);
      // Such rounds are of use where there are some, unless rounds are so long that they cost too much.
      const bool has_enough_apart = !is_wanted(apart, apart_ms) || apart_ms >= 3 * most_ms || gave_up_apart;
      const bool wants_apart = how.apart_alone ? is_wanted(apart, apart_ms) : apart < how.least_rounds;
      if (!is_due && (!wants_apart || !part(parting_s, stop))) break;
      bool is_apart = !is_due || processors_are_apart(), counts = !is_apart, was_calm = true;
      if (is_apart && is_due && (has_enough_apart || stays_apart_)) {  // enough of these: resting ends it
        was_calm = monitor_->wait(stop);
        is_apart = !was_calm && processors_are_apart();
        stays_apart_ = is_apart;
        counts = true;
      } else if (!is_apart && monitor_ != nullptr) {
        was_calm = monitor_->wait(stop);
        is_apart = !was_calm && processors_are_apart();
      }
      const double start_ms = time_.now_ms() - waited_ms();
      take_round(how, stop, is_apart);
      const double took_ms = time_.now_ms() - waited_ms() - start_ms;
      // A round in which the machine became slow is taken again, until as much time was lost as is given. One in which
      // processors came together counts in no case.
      const bool is_calm = round_is_calm_ && is_still(is_apart);
      if (was_calm && !is_calm && !stopped && (!counts || discarded_ms < most_ms)) {
        discarded_ms += took_ms;
        drop_round();
        if (!counts && discarded_ms >= most_ms) {
          if (!is_due) break;
          gave_up_apart = true;
        }
        continue;
      }
      calm_ = calm_ && was_calm && is_calm;
      (counts ? counted_ms : apart_ms) += took_ms;
      ++(counts ? counted : apart);
      met_apart_ = met_apart_ || is_apart;
    }
  }

  /// Keeps the processors at work until they are apart, or `most_s` has been used up, from which it takes what it took. `stop`
  /// ends it. Answers whether they are.
  bool part(double& most_s, const std::function<bool()>& stop = {}) {
    const auto at_work =
        std::find_if(runners_.begin(), runners_.end(), [](const auto& r) { return r->context.has_value(); });
    if (most_s <= 0 || threads_ == 1 || monitor_ == nullptr || at_work == runners_.end()) return false;
    double last_ms = time_.now_ms();
    constexpr int most_calls = 100'000;  // where the clock stands still
    for (int call = 0; !processors_are_apart(); ++call) {
      if (most_s <= 0 || call == most_calls || (stop && stop())) return false;
      (*at_work)->context->run(memory_.inputs, memory_.outputs);
      const double now_ms = time_.now_ms();
      most_s -= (now_ms - std::exchange(last_ms, now_ms)) / 1e3;
    }
    return true;
  }

  /// Forgets all rounds so far: they are not comparable with those to come.
  void forget_rounds() {
    for (const auto& r : runners_) {
      r->samples.clear();
      r->traced_ms.clear();
      r->traced_apart.clear();
      for (std::vector<double>& s : r->steps) s.clear();
    }
    apart_.clear();
    rounds_ = 0;
    calm_ = true;
    met_apart_ = stays_apart_ = false;
  }

  /// A placement runs no more, and its kernels and memory are given back; what it showed stays known.
  void release(std::size_t i) {
    runners_[i]->context.reset();
    runners_[i]->engine.reset();
  }

  /// Whether it has not been released.
  bool can_run(std::size_t i) const { return runners_[i]->context.has_value(); }
  /// Whether it was added to run on whatever happens.
  bool stays(std::size_t i) const { return runners_[i]->stays; }

  /// What a placement takes of a round, about.
  double turn_ms(std::size_t i, const comparison_options& how) const {
    const double call_ms = time_of(i).median_ms;
    const double settling_ms = goes_without_settling(call_ms) ? 0 : std::max(how.settling_ms, call_ms);
    return settling_ms + (are_traced_at_once(call_ms) ? 1 : 2) * counted_calls(call_ms) * call_ms;
  }

  /// Whether the machine was calm in all rounds that count.
  bool is_calm() const { return calm_; }
  std::size_t size() const { return runners_.size(); }
  const placement& which(std::size_t i) const { return *runners_[i]->which; }
  /// Milliseconds by round; NaN where it did not run.
  const std::vector<double>& samples(std::size_t i) const { return runners_[i]->samples; }
  /// Whether the processors were apart at times.
  bool met_apart() const { return met_apart_; }
  /// The same by round.
  const std::vector<bool>& apart() const { return apart_; }
  /// In how many rounds of the kind that `time_of` looks at a placement ran.
  std::size_t rounds(std::size_t i) const { return rounds(i, counts_apart(i)); }
  /// In how many of one kind.
  std::size_t rounds(std::size_t i, bool apart) const {
    const std::vector<double>& all = samples(i);
    std::size_t count = 0;
    for (std::size_t k = 0; k < all.size(); ++k) count += apart_[k] == apart && all[k] == all[k];
    return count;
  }
  /// Whether a placement's times are of rounds in which processors were apart, as there are hardly any others.
  bool counts_apart(std::size_t i) const {
    return rounds(i, false) < enough_of_a_kind && rounds(i, true) > rounds(i, false);
  }
  /// What a placement takes, over the rounds in which it was not disturbed: those in which it did not take over 1.1 times
  /// as long as in the fastest quarter of its rounds. What happens on the machine beside it comes and goes within seconds
  /// and only ever makes it slower: where a third of all times is a third too long, the median of 15 ratios is off by some
  /// 5 %, and that of the others by 1 %. Over all rounds where less than a third, or less than three, were undisturbed. Of
  /// rounds in which processors were apart only where there are hardly any others.
  timing time_of(std::size_t i) const { return time_of(i, counts_apart(i)); }
  /// How a placement's time compares with another's, over the rounds in which neither was disturbed; over all that they have
  /// in common where these are few. The geometric mean of both kinds of rounds where there are enough of each, otherwise of
  /// the kind of which there are more.
  paired_ratio ratio(std::size_t i, std::size_t to) const { return joined(ratio(i, to, false), ratio(i, to, true)); }
  /// The times of a placement's groups within whole runs, those without a kernel left out, in the order of the engine's
  /// steps. Steps are timed in some rounds alone, and the machine may have been slow just then: they count by how the
  /// whole run of that round compares with the median of all, and that by what placement `beside`, which mostly ran in
  /// more rounds, took in the same ones. Of rounds in which processors were `apart` they count as if `beside` took as long
  /// then as otherwise. No samples where there are not enough.
  std::vector<timing> steps_of(std::size_t i, std::size_t beside, bool apart) const {
    return times_of(i, beside, apart, false);
  }
  /// Those of its conversions, in the order of `conversions_in`.
  std::vector<timing> conversion_steps_of(std::size_t i, std::size_t beside, bool apart) const {
    return times_of(i, beside, apart, true);
  }
  /// The conversions of a placement in the order in which the engine runs them: positions in its list.
  const std::vector<std::size_t>& conversions_in(std::size_t i) const { return runners_[i]->conversions; }

  /// So many rounds of a kind are enough for it to count.
  static constexpr std::size_t enough_of_a_kind = 4;

 private:
  static constexpr int tries = 3;
  static constexpr std::ptrdiff_t most_traced = 30;  // calls whose steps are timed, of each kind of rounds
  static constexpr double absent = std::numeric_limits<double>::quiet_NaN();

  struct runner {
    explicit runner(const placement& p) : which(std::make_unique<placement>(p)) {}
    std::unique_ptr<placement> which;
    std::optional<dynamic_engine> engine;  // nothing once it has been released
    std::optional<dynamic_context> context;
    std::vector<double> samples;
    std::vector<std::vector<double>> steps;  // by step, in the rounds in which they were timed
    std::vector<double> traced_ms;           // what the whole took in those rounds
    std::vector<bool> traced_apart;          // and of which kind they were
    std::vector<bool> is_conversion;         // by step
    std::vector<std::size_t> conversions;
    double call_ms = 0;  // what a call takes, about; 0 where that is not known
    bool warm = false, stays = false;
    std::size_t traced_last = 0;  // calls of the last round whose steps were timed
  };

  /// Stamps the steps of a run.
  struct stamps {
    const time_source* time;
    std::vector<double>* steps;
    double started_ms = 0;
    static void before(void* data, std::size_t) {
      auto& self = *static_cast<stamps*>(data);
      self.started_ms = self.time->now_ms();
    }
    static void after(void* data, std::size_t, const dynamic_context&) {
      auto& self = *static_cast<stamps*>(data);
      self.steps->push_back(self.time->now_ms() - self.started_ms);
    }
  };

  timing time_of(std::size_t i, bool apart) const {
    std::vector<double> all = present(samples_of(i, apart)), calm = present(calm_samples(i, apart));
    return summarise(are_enough(calm.size(), all.size()) ? std::move(calm) : std::move(all));
  }
  static paired_ratio joined(const paired_ratio& shared, const paired_ratio& apart) {
    if (std::min(shared.rounds, apart.rounds) < enough_of_a_kind) return shared.rounds >= apart.rounds ? shared : apart;
    return {std::sqrt(shared.median * apart.median), std::sqrt(shared.low * apart.low),
            std::sqrt(shared.high * apart.high), shared.rounds + apart.rounds};
  }
  paired_ratio ratio(std::size_t i, std::size_t to, bool apart) const {
    const paired_ratio all = compare_paired(samples_of(i, apart), samples_of(to, apart));
    const paired_ratio calm = compare_paired(calm_samples(i, apart), calm_samples(to, apart));
    const bool would_drop_a_kind = met_apart_ && calm.rounds < std::min(all.rounds, enough_of_a_kind);
    return are_enough(calm.rounds, all.rounds) && !would_drop_a_kind ? calm : all;
  }
  /// A placement's median over one kind of rounds, as if `beside` had taken its own median in those in which both ran
  /// undisturbed. Of few rounds that would say more about chance than about the machine.
  double usual_ms(std::size_t i, std::size_t beside, bool apart) const {
    const std::vector<double> own = calm_samples(i, apart), other = calm_samples(beside, apart);
    std::vector<double> there;
    for (std::size_t k = 0; k < rounds_; ++k)
      if (own[k] == own[k] && other[k] == other[k]) there.push_back(other[k]);
    constexpr std::size_t enough = 5;
    const bool tells = there.size() >= enough;
    const double own_ms = time_of(i, apart).median_ms, met_ms = summarise(std::move(there)).median_ms;
    return tells && met_ms > 0 ? own_ms * (time_of(beside, apart).median_ms / met_ms) : own_ms;
  }
  std::vector<timing> times_of(std::size_t i, std::size_t beside, bool apart, bool conversions) const {
    const runner& r = *runners_[i];
    double usual = usual_ms(i, beside, apart);
    bool tells = true;
    if (apart) {
      const double shared_ms = time_of(beside, false).median_ms;
      tells = shared_ms == 0 || rounds(beside, true) >= enough_of_a_kind;
      if (const double apart_ms = time_of(beside, true).median_ms; shared_ms > 0 && apart_ms > 0)
        usual *= shared_ms / apart_ms;
    }
    std::vector<timing> list;
    for (std::size_t s = 0; s < r.steps.size(); ++s) {
      if (r.is_conversion[s] != conversions) continue;
      std::vector<double> times;
      for (std::size_t k = 0; k < r.steps[s].size(); ++k)
        if (r.traced_apart[k] == apart)
          times.push_back(r.steps[s][k] * (r.traced_ms[k] > 0 ? usual / r.traced_ms[k] : 1));
      const bool are_enough = !apart || times.size() >= enough_of_a_kind;
      list.push_back(tells && are_enough ? summarise(std::move(times)) : timing{});
    }
    return list;
  }
  void build(runner& r) const {
    r.engine.emplace(*network_, *r.which, backends_, threads_, packed_);
    r.context.emplace(r.engine->context());
    r.warm = false;
  }
  static std::vector<double> present(const std::vector<double>& samples) {
    std::vector<double> there;
    for (const double s : samples)
      if (s == s) there.push_back(s);
    return there;
  }
  static bool are_enough(std::size_t calm, std::size_t all) { return calm >= 3 && 3 * calm >= all; }
  /// Milliseconds by round; NaN where it did not run, or the round is of the other kind.
  std::vector<double> samples_of(std::size_t i, bool apart) const {
    std::vector<double> list = runners_[i]->samples;
    for (std::size_t k = 0; k < list.size(); ++k)
      if (apart_[k] != apart) list[k] = absent;
    return list;
  }
  /// NaN where it was disturbed, too.
  std::vector<double> calm_samples(std::size_t i, bool apart) const {
    constexpr double clearly = 1.1;
    std::vector<double> list = samples_of(i, apart), sorted = present(list);
    if (sorted.empty()) return list;
    std::sort(sorted.begin(), sorted.end());
    const double most = clearly * detail::quantile(sorted, 0.25);
    std::replace_if(list.begin(), list.end(), [most](double ms) { return ms > most; }, absent);
    return list;
  }
  /// Whether another was faster by this factor in every round that both ran, or is by all that chance allows. Of rounds of one
  /// kind where there are two, half is presumed to be equal.
  bool is_slower(std::size_t i, std::size_t rounds, double factor) const {
    const bool met_shared = met_apart_ && std::find(apart_.begin(), apart_.end(), false) != apart_.end();
    for (std::size_t other = 0; other < runners_.size(); ++other) {
      // One that ran while processors were apart alone was there to show that and no more.
      if (other == i || (counts_apart(other) && !counts_apart(i))) continue;
      const paired_ratio shared = ratio(i, other, false), apart = ratio(i, other, true);
      const bool is_half =
          shared.rounds < enough_of_a_kind ? met_shared : apart.rounds < enough_of_a_kind && expects_apart_;
      const paired_ratio r = joined(shared, apart);
      if (r.rounds >= rounds && (is_half ? std::sqrt(r.low) : r.low) > factor) return true;
    }
    return false;
  }
  /// Who runs in the next round.
  std::vector<bool> still_running(const comparison_options& how) const {
    std::size_t best = runners_.size();
    for (std::size_t i = 0; i < runners_.size(); ++i)
      if (runners_[i]->stays && runners_[i]->context &&
          (best == runners_.size() || time_of(i).median_ms < time_of(best).median_ms))
        best = i;
    std::vector<bool> runs(runners_.size());
    for (std::size_t i = 0; i < runs.size(); ++i)
      runs[i] = runners_[i]->context && !is_slower(i, 2, how.beaten) && (i == best || !is_slower(i, 5, how.behind));
    return runs;
  }

  double waited_ms() const { return monitor_ != nullptr ? monitor_->waited_ms() : 0; }
  bool processors_are_apart() const { return threads_ > 1 && monitor_ != nullptr && monitor_->is_apart(); }
  /// Whether the machine is as it was when a round began.
  bool is_still(bool apart) const {
    if (monitor_ == nullptr) return true;
    return apart ? processors_are_apart() : monitor_->is_calm();
  }

  /// How many calls a round counts: having settled, of short ones several.
  static int counted_calls(double call_ms) {
    constexpr double enough_ms = 10;
    return call_ms > 0 ? static_cast<int>(std::clamp(enough_ms / call_ms, 1.0, 3.0)) : 1;
  }
  /// Whether a call is so long that the clock around its steps adds nothing to speak of, some 0.1 us for each.
  static bool are_traced_at_once(double call_ms) {
    constexpr double long_ms = 20;
    return call_ms >= long_ms;
  }
  /// Whether what another placement leaves behind is nothing beside what a call takes.
  static bool goes_without_settling(double call_ms) {
    constexpr double long_ms = 225;
    return call_ms > long_ms;
  }

  void take_round(const comparison_options& how, const std::function<bool()>& stop, bool is_apart) {
    apart_.push_back(is_apart);
    round_is_calm_ = true;
    const std::vector<bool> runs = still_running(how);
    // In another order each time: whoever always ran behind the same one would always find what that one leaves behind.
    std::vector<std::size_t> order(runners_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::shuffle(order.begin(), order.end(), std::mt19937_64(rounds_));
    for (const std::size_t i : order) {
      runner& r = *runners_[i];
      if (!runs[i]) {
        r.traced_last = 0;
        r.samples.push_back(absent);
        continue;
      }
      bool is_calm = take_turn(r, how);
      // Another machine on the same cores comes and goes within tenths of a second: a round is too long to be taken again for
      // that. Where there is no patience left, what is far from the others' rounds is left out in the end. Processors that are
      // apart would not be so after waiting.
      if (!is_apart && monitor_ != nullptr && !monitor_->is_calm(drift_sign::walk) && !(stop && stop())) {
        if (monitor_->wait(stop)) {
          drop_turn(r);
          is_calm = take_turn(r, how);
        } else {
          calm_ = false;
        }
      }
      round_is_calm_ = round_is_calm_ && is_calm;
    }
    ++rounds_;
  }
  void drop_round() {
    --rounds_;
    apart_.pop_back();
    for (const auto& r : runners_) drop_turn(*r);
  }

  /// Runs a placement, and answers whether others left it the processors.
  bool take_turn(runner& r, const comparison_options& how) {
    if (!goes_without_settling(r.call_ms))
      r.call_ms = call_for(time_, how.settling_ms, [&] { r.context->run(memory_.inputs, memory_.outputs); });
    const int calls = counted_calls(r.call_ms);
    const bool traced = is_traced(r), at_once = are_traced_at_once(r.call_ms);
    bool is_calm = true;
    std::vector<double> times;
    std::vector<std::vector<double>> steps;
    for (int call = 0; call < calls; ++call) {
      const timed_call whole = traced && at_once
                                   ? time_steps(r, steps)
                                   : time_call(time_, tries, [&] { r.context->run(memory_.inputs, memory_.outputs); });
      times.push_back(whole.ms);
      is_calm = is_calm && !whole.disturbed;
    }
    for (int call = 0; traced && !at_once && call < calls; ++call) (void)time_steps(r, steps);
    r.call_ms = summarise(std::move(times)).median_ms;
    r.samples.push_back(r.call_ms);
    r.traced_last = steps.size();
    for (const std::vector<double>& times_of_one : steps) {
      for (std::size_t k = 0; k < times_of_one.size(); ++k) r.steps[k].push_back(times_of_one[k]);
      r.traced_ms.push_back(r.call_ms);
      r.traced_apart.push_back(apart_.back());
    }
    return is_calm;
  }
  /// Whether the steps of a placement are still to be timed.
  bool is_traced(const runner& r) const {
    return std::count(r.traced_apart.begin(), r.traced_apart.end(), apart_.back()) < most_traced;
  }
  /// Runs a placement and adds what its steps took. Of the tries the last one counts: each clears what the one before noted.
  timed_call time_steps(runner& r, std::vector<std::vector<double>>& taken) {
    taken.emplace_back();
    stamps s{&time_, &taken.back()};
    return time_call(time_, tries, [&] {
      taken.back().clear();
      r.context->run(memory_.inputs, memory_.outputs, {&s, &stamps::before, &stamps::after});
    });
  }
  static void drop_turn(runner& r) {
    r.samples.pop_back();
    for (; r.traced_last > 0; --r.traced_last) {
      for (std::vector<double>& s : r.steps) s.pop_back();
      r.traced_ms.pop_back();
      r.traced_apart.pop_back();
    }
  }

  const graph* network_;
  backend_table backends_;
  int threads_;
  std::shared_ptr<packed_weights> packed_;
  drift_monitor* monitor_;
  time_source time_;
  run_buffers memory_;
  std::vector<std::unique_ptr<runner>> runners_;
  std::size_t rounds_ = 0;
  std::vector<bool> apart_;  // by round
  bool round_is_calm_ = true, calm_ = true;
  bool met_apart_ = false, expects_apart_ = false, stays_apart_ = false;  // the last: whoever rests too
};

/// An end-to-end figure of placement `i`, compared with placement `to`. Two that never ran in the same round are compared
/// by their medians and what these are sure to lie between.
inline plan_run run_of(const end_to_end& all, std::size_t i, std::size_t to, const std::string& name) {
  const timing time = all.time_of(i), other = all.time_of(to);
  paired_ratio r = all.ratio(i, to);
  if (r.rounds == 0 && other.median_ms > 0)
    r = {time.median_ms / other.median_ms, time.sure_low_ms / other.sure_high_ms, time.sure_high_ms / other.sure_low_ms,
         0};
  return {name, time.median_ms, time.low_ms, time.high_ms, time.samples, r.median, r.low, r.high};
}

/// Runs placements end to end, interleaved; one figure for each, in their order, compared with the first.
inline std::vector<plan_run> compare_placements(const graph& network, const std::vector<const placement*>& placements,
                                                backend_table backends, int threads, double seconds, std::uint64_t seed,
                                                const std::shared_ptr<packed_weights>& packed,
                                                drift_monitor* monitor = nullptr) {
  end_to_end all(network, backends, threads, seed, packed, monitor);
  std::vector<std::size_t> number;
  for (const placement* p : placements) number.push_back(all.add(*p));
  comparison_options how;
  how.seconds = seconds;
  how.behind = how.beaten;  // a user who compares wants to see all of them to the end
  all.run(how);
  std::vector<plan_run> runs;
  for (std::size_t i = 0; i < placements.size(); ++i)
    runs.push_back(run_of(all, number[i], number[0], placements[i]->name));
  return runs;
}

/// The fastest of the runs but the first; 0 where there is no other.
inline std::size_t best_single(const std::vector<plan_run>& runs) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < runs.size(); ++i)
    if (runs[i].name != previous_run && runs[i].name != operators_run &&
        (best == 0 || runs[i].median_ms < runs[best].median_ms))
      best = i;
  return best;
}

}  // namespace collage::inline v0
