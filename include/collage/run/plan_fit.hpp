// Whether a plan fits this program and this machine: its kernels exist here, and its costs hold here.
#pragma once

#include <algorithm>
#include <collage/backend.hpp>
#include <collage/error.hpp>
#include <collage/graph/graph.hpp>
#include <collage/run/algorithm.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/plan.hpp>
#include <collage/run/plan_algorithms.hpp>
#include <collage/run/processor.hpp>
#include <collage/run/waiting.hpp>
#include <collage/set/algebra.hpp>
#include <cstdint>
#include <optional>
#include <set>
#include <string>

namespace collage::inline v0 {

/// The requirements on a plan.
struct plan_fit_options {
  int threads = 0;  ///< it will run with this many; 0: as many as it was made for
  /// Required; fp32 that keeps NaN and infinity is fp32 as well, and fp32 serves where values may be rounded. Empty: fp32, or one that
  /// rounds values within an error that the plan states.
  std::string precision = {};
  std::string processor = processor_name();  ///< it will run on this processor
  /// Which algorithms its kernels may compute by. A plan that was chosen from fewer fits.
  collage::algorithms algorithms = collage::algorithms::all;
  /// true: every backend that was available at placing must fit; false: only backends that run something in the plan.
  bool all_backends = false;
  /// true: a library may have another version than at placing, and its adapter may report other details. The same kernels are
  /// then requested, but neither their speed nor the alternatives to them are known any more.
  bool accept_version_change = false;
};

/// The first reason why a plan does not fit.
struct plan_misfit {
  enum class kind : std::uint8_t {
    network,
    precision,
    algorithm,
    threads,
    processor,
    backend,
    version
  } of = kind::network;
  std::string what;    ///< to be read after the plan's name: "was made with onednn 3.2.0, and 3.3.0 is here"
  std::string remedy;  ///< the remedy
};

namespace detail {

/// Adds the backends that run something in a placement, and in the subgraphs of its groups.
inline void add_backends_of(const placement& p, std::set<std::string>& to) {
  for (const plan_group& g : p.groups) {
    if (g.has_kernel()) to.insert(g.backend());
    for (const placement& body : g.bodies()) add_backends_of(body, to);
  }
  for (const plan_conversion& c : p.conversions) to.insert(c.step.backend);
}

inline std::string count_of_threads(int threads) {
  return std::to_string(threads) + (threads == 1 ? " thread" : " threads");
}

/// Describes the change of a backend; empty if it has not changed.
inline std::string version_change(const plan_backend& made, const probe_result& now) {
  const std::string before = made.name + (made.version.empty() ? " of an unknown version" : " " + made.version);
  if (made.version != now.version)
    return before + ", but " + (*now.version == '\0' ? "an unknown version" : now.version) + " is installed";
  if (made.details != now.details)
    return before + " (" + made.details + "), but the installed build is another (" + now.details + ")";
  return {};
}

}  // namespace detail

/// The reason why a plan does not fit; nothing if it fits. A reason that can be accepted comes last, so that a caller that
/// accepts it needs to check nothing else.
inline std::optional<plan_misfit> misfit_of(const plan& made, const graph& network, backend_table backends,
                                            const plan_fit_options& options = {}) {
  using kind = plan_misfit::kind;
  const std::string again = "place the network again";
  if (made.fingerprint != network.fingerprint())
    return plan_misfit{kind::network, "is a plan for another network, " + made.network,
                       "load that network, or place this one"};
  const std::string precision = options.precision.empty() ? fp32 : options.precision;
  if (!serves(made.precision, precision) && !(options.precision.empty() && made.error))
    return plan_misfit{kind::precision, "is a plan in " + made.precision + ", not in " + precision, again};
  if (const kernel_algorithm a = unwanted_algorithm_of(made, network, backends, options.algorithms); !a.is_direct())
    return plan_misfit{kind::algorithm,
                       std::string("has a kernel that computes by the algorithm ") + a.name + ", and " +
                           name_of(options.algorithms) + " kernels are wanted",
                       again};
  if (options.threads != 0 && made.threads != options.threads && made.threads != concurrent_threads(options.threads))
    return plan_misfit{
        kind::threads,
        "is a plan for " + detail::count_of_threads(made.threads) + ", not " + std::to_string(options.threads),
        "run it with " + std::to_string(made.threads) + ", or " + again + " for " + std::to_string(options.threads)};
  if (made.processor != options.processor)
    return plan_misfit{
        kind::processor,
        "was measured on " + made.processor + "; this is " + options.processor + ", for which its costs do not hold",
        again + " here"};

  std::set<std::string> wanted;
  detail::add_backends_of(made.chosen, wanted);
  if (options.all_backends)
    for (const plan_backend& b : made.backends) wanted.insert(b.name);
  std::string changes;
  for (const std::string& name : wanted) {
    const backend_entry* const here = find_backend(backends, name);
    if (here == nullptr)
      return plan_misfit{kind::backend, "needs backend " + name + ", which is not in this program's set",
                         "build the program with it, or " + again + " without it"};
    const probe_result found = here->probe();
    if (!found.available)
      return plan_misfit{kind::backend, "needs backend " + name + ", which is not available here: " + found.reason,
                         again + " without it"};
    const auto recorded =
        std::find_if(made.backends.begin(), made.backends.end(), [&](const plan_backend& b) { return name == b.name; });
    if (recorded == made.backends.end())
      return plan_misfit{kind::backend, "does not say with which version of backend " + name + " it was made", again};
    if (const std::string change = detail::version_change(*recorded, found); !change.empty())
      changes += (changes.empty() ? "was made with " : "; with ") + change;
  }
  if (!changes.empty() && !options.accept_version_change)
    return plan_misfit{kind::version, changes, again + ", or accept the change of version"};
  return {};
}

/// Throws an error of one sentence if a plan does not fit. It may be for another network, precision, number of threads or
/// processor. It may need a missing backend, or another version of a library. `where` names the plan, for
/// example by its file.
inline void check_plan_fits(const plan& made, const graph& network, backend_table backends,
                            const plan_fit_options& options = {}, const std::string& where = "plan") {
  if (const std::optional<plan_misfit> wrong = misfit_of(made, network, backends, options))
    throw error(error_kind::invalid_argument, wrong->what, where, wrong->remedy);
}

/// The same for a backend set: `check_plan_fits<backends>(plan, network);`.
template <backend_set_type Set>
void check_plan_fits(const plan& made, const graph& network, const plan_fit_options& options = {},
                     const std::string& where = "plan") {
  check_plan_fits(made, network, table_of<Set>, options, where);
}

}  // namespace collage::inline v0
