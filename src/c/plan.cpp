// Plans: reads and writes plan files, and describes plans as JSON.
#include "plans.hpp"
#include "states.hpp"

#include <collage_precision.h>
#include <collage/io/plan_file.hpp>
#include <collage/run/plan_fit.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace c_interface {

namespace c = collage;

namespace {

constexpr std::size_t oldest_plan_error = offsetof(collage_plan_error, why_unrounded) + sizeof(const char*);
constexpr std::size_t oldest_load_options =
    offsetof(collage_plan_load_options, accept_version_change) + sizeof(std::int32_t);

/// Null for a plan that rounds nothing.
c::json error_of(const c::plan& made) {
  if (!made.error) return {};
  return {{"most", made.error->most},
          {"predicted", made.error->predicted},
          {"measured", made.error->measured},
          {"upper", made.error->upper},
          {"samples", made.error->samples}};
}

std::string summary_of(const network_state& network, const c::plan& made, const c::json& placing) {
  c::json backends = c::json::array();
  for (const c::plan_backend& b : made.backends) {
    std::size_t groups = 0;
    double cost_ms = 0;
    for (const c::plan_group& g : made.chosen.groups)
      if (g.backend() == b.name) {
        ++groups;
        cost_ms += g.cost_ms;
      }
    for (const c::plan_conversion& x : made.chosen.conversions)
      if (x.step.backend == b.name) cost_ms += x.cost_ms;
    backends.push_back({{"name", b.name},
                        {"version", b.version},
                        {"details", b.details},
                        {"groups", groups},
                        {"cost_ms", c::rounded(cost_ms)}});
  }
  c::json memory;  // null in plans of a time when it was not known
  if (made.memory)
    memory = {{"weights", made.memory->weights}, {"network", made.memory->network}, {"bound", made.memory->bound}};
  return c::to_text({{"network", made.network},
                     {"fingerprint", c::detail::hex_of(network.fingerprint)},
                     {"threads", made.threads},
                     {"precision", made.precision},
                     {"error", error_of(made)},
                     {"processor", made.processor},
                     {"waiting", made.waiting},
                     {"origin", made.origin},
                     {"cost_ms", c::rounded(made.chosen.cost_ms)},
                     {"lower_bound_ms", c::rounded(made.lower_bound_ms)},
                     {"optimal", made.optimal},
                     {"memory", memory},
                     {"backends", backends},
                     {"runs", c::runs_to_json(made.runs)},
                     {"placing", placing}});
}

/// Reads a plan file. One model may stand for several networks of the same name. If the plan is for another one, the error says so.
c::plan read_plan(const network_state& network, const std::string& file) {
  try {
    return c::load_plan(file, network.graph);
  } catch (const c::error&) {
    const c::json plan = c::read_plan_file(file);
    const c::json_place about(plan, file, c::detail::new_plan);
    if (about["network"].text() != network.name ||
        about["fingerprint"].text() == c::detail::hex_of(network.fingerprint))
      throw;
    throw c::error(c::error_kind::invalid_argument, "is a plan for another network of this name", file,
                   "load the model with the shapes and the requantise of the plan, or place this network");
  }
}

}  // namespace

collage_plan* new_plan(std::shared_ptr<const network_state> network, c::plan made, const c::json& placing,
                       std::string why_unrounded) {
  auto state = std::make_shared<plan_state>();
  state->summary = summary_of(*network, made, placing);
  state->network = std::move(network);
  state->made = std::move(made);
  state->why_unrounded = std::move(why_unrounded);
  return new collage_plan(std::move(state));
}

int checked_threads(const call& here, std::int32_t threads) {
  constexpr auto most = static_cast<std::int32_t>(c::detail::most_threads);  // of a plan
  if (threads < 0 || threads > most)
    here.misuse("threads is " + std::to_string(threads),
                "give 0 for all processors, or a number up to " + std::to_string(most));
  return threads;
}

}  // namespace c_interface

using c_interface::call;
using c_interface::guarded;

collage_status collage_plan_load(const collage_network* network, const char* path,
                                 const collage_plan_load_options* options, collage_plan** plan) noexcept {
  return guarded(__func__, [&](const call& here) {
    namespace c = collage;
    const auto& state = here.shared_state_of(network);
    const std::string file = here.text(path, "path");
    const auto given = here.options(options, "collage_plan_load_options", c_interface::oldest_load_options);
    collage_plan*& to = here.target(plan, "plan");
    c::plan made = c_interface::read_plan(*state, file);
    c::plan_fit_options must;
    must.threads = c_interface::checked_threads(here, given.threads);
    must.accept_version_change = given.accept_version_change != 0;
    c::check_plan_fits(made, state->graph, c_interface::backends(), must, file);
    to = c_interface::new_plan(state, std::move(made), {});
  });
}

collage_status collage_plan_save(const collage_plan* plan, const char* path) noexcept {
  return guarded(__func__, [&](const call& here) {
    const auto& state = here.state_of(plan);
    collage::save_plan(state.made, state.network->graph, here.text(path, "path"));
  });
}

void collage_plan_release(collage_plan* plan) noexcept { c_interface::release(__func__, plan); }

collage_status collage_plan_json(const collage_plan* plan, const char** json) noexcept {
  return guarded(__func__, [&](const call& here) { here.target(json, "json") = here.state_of(plan).summary.c_str(); });
}

collage_status collage_plan_get_error(const collage_plan* plan, collage_plan_error* error) noexcept {
  return guarded(__func__, [&](const call& here) {
    const auto& state = here.state_of(plan);
    collage_plan_error found{};
    if (const std::optional<collage::plan_error>& e = state.made.error)
      found = {0, e->samples, e->most, e->predicted, e->measured, e->upper, nullptr};
    found.why_unrounded = state.why_unrounded.c_str();
    here.answer(error, found, "collage_plan_error", c_interface::oldest_plan_error);
  });
}
