// Placing a network through the C interface.
#include "plans.hpp"
#include "samples.hpp"
#include "states.hpp"

#include <collage/place.hpp>
#include <collage/place/refusal.hpp>
#include <collage/place/within_error.hpp>
#include <front_end.hpp>

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace c_interface {

namespace c = collage;

namespace {

/// The names in a list such as "onednn, eigen".
std::vector<std::string> names_in(const call& here, const char* list) {
  std::vector<std::string> names;
  if (list == nullptr) return names;
  const std::string text = here.text(list, "backends");
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::size_t first = std::min(text.find_first_not_of(' ', at), end);
    std::string name = text.substr(first, end - first);
    name.erase(name.find_last_not_of(' ') + 1);
    if (name.empty())
      here.misuse("the list backends is '" + text + "', in which a name is empty", "separate names by one comma");
    names.push_back(std::move(name));
    at = end + 1;
  }
  return names;
}

double checked_seconds(const call& here, double seconds, const char* name) {
  if (!std::isfinite(seconds) || seconds < 0)
    here.misuse(std::string(name) + " is " + std::to_string(seconds), "give a finite number of seconds, 0 or more");
  return seconds;
}

std::vector<c::place_rule> rules_in(const call& here, const collage_place_options& given) {
  here.check_list(given.rules, given.rule_count, "rules");
  std::vector<c::place_rule> rules;
  for (std::size_t i = 0; i < given.rule_count; ++i) {
    const collage_place_rule& r = given.rules[i];
    if (r.action != COLLAGE_RULE_PIN && r.action != COLLAGE_RULE_EXCLUDE)
      here.misuse(
          "rule " + std::to_string(i) + " has the action " + std::to_string(r.action) + ", which does not exist",
          "give one of collage_rule_action");
    rules.push_back({r.action == COLLAGE_RULE_PIN ? c::place_rule::action::pin : c::place_rule::action::exclude,
                     here.text(r.backend, "the backend of a rule"), here.text(r.what, "the `what` of a rule")});
  }
  return rules;
}

/// The caller's progress function, which may end placing.
class listener {
 public:
  listener(collage_progress_function function, void* data) : function_(function), data_(data) {}

  void tell(const c::place_progress& now) {
    stage_ = now.stage;
    what_ = now.what;
    now_ = {sizeof(collage_progress), nullptr, nullptr, now.done, now.remaining, now.remaining_s, now.best_ms};
    called_ = {};
    call_again();
  }
  /// Whether the caller ends placing, in either way.
  bool is_ended() {
    call_again();
    return result_ != COLLAGE_PROGRESS_CONTINUE;
  }
  /// Whether the caller wants what is under way to be abandoned.
  bool is_cancelled() {
    call_again();
    return result_ == COLLAGE_PROGRESS_CANCEL;
  }

 private:
  using clock = std::chrono::steady_clock;

  /// Calls the function with the last progress, if there is one and the last call was some time ago.
  void call_again() {
    if (function_ == nullptr || result_ != COLLAGE_PROGRESS_CONTINUE || stage_.empty() ||
        clock::now() - called_ < std::chrono::milliseconds(10))
      return;
    called_ = clock::now();
    now_.stage = stage_.c_str();
    now_.what = what_.c_str();
    result_ = function_(data_, &now_);
  }

  collage_progress_function function_;
  void* data_;
  std::string stage_, what_;
  collage_progress now_{};
  clock::time_point called_{};
  int result_ = COLLAGE_PROGRESS_CONTINUE;
};

/// One thread of the process measures at a time.
struct measuring_turns {
  const pid_t process = getpid();
  std::timed_mutex mutex;
  std::atomic<int> waiting = 0;  ///< calls that are not in the background
};

/// The child of a fork has turns of its own: a thread that measures is not there, and never gives its turn back.
measuring_turns& turns_to_measure() {
  static std::atomic<measuring_turns*> all = new measuring_turns;
  measuring_turns* now = all.load();
  if (now->process == getpid()) return *now;
  auto made = std::make_unique<measuring_turns>();
  if (all.compare_exchange_strong(now, made.get())) return *made.release();
  return *now;  // another thread was faster
}

/// Waits until no other thread measures, because threads would disturb each other's times. Returns early if the caller ends it.
std::unique_lock<std::timed_mutex> turn_to_measure(listener& user, const placing_request& by) {
  measuring_turns& turns = turns_to_measure();
  std::unique_lock lock(turns.mutex, std::try_to_lock);
  if (lock.owns_lock()) return lock;
  c::place_progress now;
  now.stage = "waiting";
  now.what = "another thread of this process is measuring";
  user.tell(now);
  const int counted = by.is_in_background ? 0 : 1;
  turns.waiting += counted;
  const auto is_ended = [&] { return user.is_ended() || (by.how.cancel && by.how.cancel()); };
  while (!is_ended() && !lock.try_lock_for(std::chrono::milliseconds(100))) continue;
  turns.waiting -= counted;
  return lock;
}

/// The state of measuring for lower precision, as progress.
c::place_progress precision_progress(const std::string& what, std::size_t done = 0, std::size_t all = 1) {
  c::place_progress now;
  now.stage = "precision";
  now.what = what;
  now.done = done;
  now.remaining = all - done;
  return now;
}

constexpr const char* ended_early = "the caller ended placing before a plan was confirmed";
[[noreturn]] void end_measuring() { throw c::error(c::error_kind::cancelled, ended_early, "precision"); }

/// The plan after the caller has ended placing: the best one that was confirmed. Without one, it is in float32, by the costs that the store
/// has by now. If these are too few, the error is that of `place`.
c::placed_within_error plan_so_far(const c::graph& network, c::place_options how, std::optional<c::plan> confirmed) {
  c::placed_within_error made;
  if (confirmed) {
    static_cast<c::plan&>(made) = *std::move(confirmed);
    made.report.interrupted = true;
    return made;
  }
  how.precision = {};
  how.autotune = {};
  how.improved = {};
  // Cancelled at once, placing would not read the store. So it is cancelled where it would begin to measure.
  bool begins = false;
  how.progress = [&begins](const c::place_progress& now) {
    const std::string_view stage = now.stage;
    begins = begins || stage == "measuring" || stage == "tuning" || stage == "comparing" || stage == "regions";
  };
  how.cancel = [&begins] { return begins; };
  how.stop = {};
  static_cast<c::placed_plan&>(made) = c::place(network, backends(), how);
  made.why_unrounded = ended_early;
  return made;
}

/// Places within an error bound. Errors: those of samples, as sample_fault; if the caller ends it.
c::placed_within_error place_confirmed(const placing_request& by, const c::graph& network, const c::place_options& how,
                                       listener& user) {
  (void)c::kept_nodes(network, how.kept);  // names are wrong before samples are read
  user.tell(precision_progress("reading samples"));
  caller_samples from(by.samples, network, [&user] {
    if (user.is_cancelled()) end_measuring();
  });
  c::within_error_options measuring;
  measuring.measuring.samples = from.spread().measured();
  measuring.held_back = from.spread().held_back();
  measuring.ranges = by.ranges;
  measuring.progress = [&user](const std::string& what) { user.tell(precision_progress(what)); };
  measuring.measuring.progress = [&user](std::size_t done, std::size_t all) {
    user.tell(precision_progress("measuring the errors of values", done, all));
    if (user.is_ended()) end_measuring();
  };
  const c::sample_source samples = [&from](std::size_t which, std::span<const c::tensor_view> inputs) {
    return from.read(which, inputs);
  };
  return c::place_within_error(network, backends(), how, samples, measuring);
}

/// The same. If the caller ends it, this is the plan so far.
c::placed_within_error place_rounding(const placing_request& by, const c::graph& network, c::place_options how,
                                      listener& user) {
  std::optional<c::plan> best;
  how.improved = [&best](const c::plan& made) { best = made; };
  try {
    return place_confirmed(by, network, how, user);
  } catch (const sample_fault& fault) { std::rethrow_exception(fault.what); } catch (const c::error& e) {
    if (e.kind() != c::error_kind::cancelled) throw;
    return plan_so_far(network, std::move(how), std::move(best));
  }
}

c::json placing_to_json(const c::place_report& report, const std::string& store, const std::string& unstored,
                        const std::string& why_unrounded) {
  c::json refusals = c::json::array();
  for (const c::merged_refusal& r : c::merged(report.refusals))
    refusals.push_back({{"backend", r.backend},
                        {"pattern", r.pattern},
                        {"reason", r.reason},
                        {"where", r.where},
                        {"places", r.places}});
  c::json placing = c::report_to_json(report, store);
  placing["unstored"] = unstored.empty() ? c::json() : c::json(unstored);
  placing["refusals"] = std::move(refusals);
  placing["why_unrounded"] = why_unrounded.empty() ? c::json() : c::json(why_unrounded);
  return placing;
}

/// The path of the store that the caller names, or the default path. If there is no default path, `problem` says why.
std::string store_of(const call& here, const collage_place_options& given, std::string& problem) {
  if (given.how == COLLAGE_PLACE_PRIORITY) return {};
  if (given.store == nullptr) return c::store_named(nullptr, problem);
  const std::string name = here.text(given.store, "store");
  return c::store_named(&name, problem);
}

c::algorithms algorithms_in(const call& here, std::int64_t which) {
  switch (which) {
    case COLLAGE_ALGORITHMS_ACCURATE: return c::algorithms::accurate;
    case COLLAGE_ALGORITHMS_DIRECT: return c::algorithms::direct;
    case COLLAGE_ALGORITHMS_ANY: return c::algorithms::all;
    default:
      here.misuse("algorithms is " + std::to_string(which) + ", which is no choice of algorithms",
                  "give one of collage_algorithms");
  }
}

c::placing_costs costs_in(const call& here, std::int64_t how) {
  switch (how) {
    case COLLAGE_PLACE_MEASURE: return c::placing_costs::measured;
    case COLLAGE_PLACE_PRIORITY: return c::placing_costs::none;
    case COLLAGE_PLACE_ESTIMATE: return c::placing_costs::estimated;
    default:
      here.misuse("how is " + std::to_string(how) + ", which is no placing method", "give one of collage_place_how");
  }
}

c::weight_bound memory_in(const call& here, const collage_place_options& given) {
  if (given.memory_ratio != 0 && given.memory_bytes != 0)
    here.misuse("memory_ratio and memory_bytes are both given", "set one of them to 0");
  if (given.memory_ratio != 0 && !(given.memory_ratio > 0 && given.memory_ratio <= std::numeric_limits<double>::max()))
    here.misuse("memory_ratio is " + std::to_string(given.memory_ratio) + ", which is no ratio above 0",
                "give a ratio such as 1.5, or 0");
  c::weight_bound bound;
  if (given.memory_ratio != 0) bound.ratio = given.memory_ratio;
  if (given.memory_bytes != 0) bound.bytes = given.memory_bytes;
  return bound;
}

}  // namespace

placing_request placing_of(const call& here, const collage_place_options& given) {
  placing_request by;
  c::place_options& how = by.how;
  how.backends = names_in(here, given.backends);
  how.rules = rules_in(here, given);
  how.threads = checked_threads(here, given.threads);
  how.costs = costs_in(here, given.how);
  constexpr double usual_budget_s = 20;
  if (!(given.budget_s < 0)) how.budget_s = checked_seconds(here, given.budget_s, "budget_s");
  if (given.budget_s == 0) how.budget_s = usual_budget_s;
  if (const double seconds = checked_seconds(here, given.compare_s, "compare_s"); seconds > 0)
    how.comparing.seconds = seconds;
  if (given.regions_s < 0) how.regions.seconds = 0;
  else if (const double seconds = checked_seconds(here, given.regions_s, "regions_s"); seconds > 0)
    how.regions.seconds = seconds;
  how.autotune.seconds = checked_seconds(here, given.autotune_s, "autotune_s");
  if (given.seed != 0) how.seed = given.seed;
  how.comparing.recheck = given.recheck != 0;
  how.measuring.complete = given.complete != 0;
  how.keep_non_finite = given.keep_non_finite != 0;
  how.algorithms = algorithms_in(here, given.algorithms);
  how.memory = memory_in(here, given);
  how.precision = precision_of(here, given, by.samples, how.kept);
  how.store = store_of(here, given, by.no_store);
  how.store_is_optional = given.store == nullptr;
  by.progress = given.progress;
  by.progress_data = given.progress_data;
  return by;
}

c::placed_within_error place_by(const placing_request& by, const c::graph& network) {
  c::place_options how = by.how;
  listener user(by.progress, by.progress_data);
  if (by.progress != nullptr) {
    how.progress = [&user](const c::place_progress& now) { user.tell(now); };
    how.stop = [&user] { return user.is_ended(); };
    how.cancel = [&user, &by] { return user.is_cancelled() || (by.how.cancel && by.how.cancel()); };
  }
  if (by.is_in_background) how.stop = [stop = how.stop] { return turns_to_measure().waiting > 0 || (stop && stop()); };
  wait_briefly_unless_chosen();
  offer_worker();
  std::unique_lock<std::timed_mutex> alone;
  if (how.costs == c::placing_costs::measured) alone = turn_to_measure(user, by);
  if (by.may_round()) return place_rounding(by, network, std::move(how), user);
  c::placed_within_error made;
  static_cast<c::placed_plan&>(made) = c::place(network, backends(), how);
  return made;
}

namespace {

collage_plan* place(const call& here, const std::shared_ptr<const network_state>& network,
                    const collage_place_options& given) {
  placing_request by = placing_of(here, given);
  by.how.network = network->name;
  by.ranges = network->ranges;
  if (given.previous != nullptr) {
    const plan_state& previous = here.state_of(given.previous);
    if (previous.made.fingerprint != network->fingerprint)
      here.misuse("previous is a plan for another network, " + previous.made.network,
                  "give a plan for this network, or NULL");
    by.how.previous = &previous.made;
  }
  c::placed_within_error made = place_by(by, graph_with_weights(*network));
  const c::place_report report = std::move(made.report);
  const std::string why = std::move(made.why_unrounded);
  return new_plan(network, std::move(made),
                  placing_to_json(report, by.how.store, by.no_store.empty() ? report.unstored : by.no_store, why), why);
}

}  // namespace
}  // namespace c_interface

using c_interface::call;
using c_interface::guarded;

collage_status collage_plan_place(const collage_network* network, const collage_place_options* options,
                                  collage_plan** plan) noexcept {
  return guarded(__func__, [&](const call& here) {
    const auto& state = here.shared_state_of(network);
    const auto given = here.options(options, "collage_place_options", c_interface::oldest_place_options);
    collage_plan*& to = here.target(plan, "plan");
    to = c_interface::place(here, state, given);
  });
}
