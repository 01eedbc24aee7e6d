// Traces.
#include "sessions.hpp"
#include "states.hpp"
#include "traces.hpp"

#include <collage/io/trace.hpp>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace c_interface {

namespace {

constexpr std::size_t oldest_trace_options = offsetof(collage_trace_options, most_events) + sizeof(std::uint64_t);
constexpr std::size_t oldest_trace_info = offsetof(collage_trace_info, dropped_runs) + sizeof(std::uint64_t);
constexpr std::uint64_t default_most_events = 1'000'000;

}  // namespace
}  // namespace c_interface

using c_interface::call;
using c_interface::guarded;

namespace {

/// A run of a context. `run` gets the call, the context's state, the trace and the limits.
template <class Context, class Run>
collage_status run_traced(const char* function, Context* context, const collage_run_limits* limits,
                          collage_trace* trace, Run run) noexcept {
  return guarded(function, [&](const call& here) {
    auto& state = here.state_of(context);
    auto& to = here.state_of(trace);
    const collage::run_limits how = c_interface::limits_of(here, limits);
    const c_interface::turn mine(here, state.is_busy);
    run(here, state, to.trace, how);
  });
}

}  // namespace

collage_status collage_trace_create(const collage_trace_options* options, collage_trace** trace) noexcept {
  return guarded(__func__, [&](const call& here) {
    const collage_trace_options given =
        here.options(options, "collage_trace_options", c_interface::oldest_trace_options);
    collage_trace*& to = here.target(trace, "trace");
    const std::size_t most = given.most_events != 0 ? given.most_events : c_interface::default_most_events;
    const std::string process = given.process != nullptr ? given.process : program_invocation_short_name;
    to = new collage_trace(
        std::shared_ptr<c_interface::trace_state>(new c_interface::trace_state{collage::run_trace(most), process, {}}));
  });
}

void collage_trace_release(collage_trace* trace) noexcept { c_interface::release(__func__, trace); }

collage_status collage_context_run_traced(collage_context* context, const collage_run_limits* limits,
                                          collage_trace* trace) noexcept {
  return run_traced(__func__, context, limits, trace,
                    [](const call& here, auto& state, collage::run_trace& to, const collage::run_limits& how) {
                      c_interface::prepare(here, state);
                      to.run(state.context, state.engine->described, state.input_views, state.output_views, how);
                    });
}

collage_status collage_session_context_run_traced(collage_session_context* context, const collage_tensor* inputs,
                                                  std::size_t count, const collage_run_limits* limits,
                                                  collage_trace* trace) noexcept {
  return run_traced(__func__, context, limits, trace,
                    [&](const call& here, auto& state, collage::run_trace& to, const collage::run_limits& how) {
                      const c_interface::traced_runs traced(state.context, to);
                      c_interface::run_session(here, state, inputs, count, how);
                    });
}

collage_status collage_trace_get_info(const collage_trace* trace, collage_trace_info* info) noexcept {
  return guarded(__func__, [&](const call& here) {
    const collage::trace_contents held = here.state_of(trace).trace.contents();
    collage_trace_info found{};
    found.runs = held.runs.size();
    for (const auto& run : held.runs) found.events += run->events.size();
    found.dropped_runs = held.dropped_runs;
    here.answer(info, found, "collage_trace_info", c_interface::oldest_trace_info);
  });
}

collage_status collage_trace_json(collage_trace* trace, const char** json) noexcept {
  return guarded(__func__, [&](const call& here) {
    auto& state = here.state_of(trace);
    const char*& to = here.target(json, "json");
    state.json = collage::to_text(state.trace, state.process);
    to = state.json.c_str();
  });
}

collage_status collage_trace_save(const collage_trace* trace, const char* path) noexcept {
  return guarded(__func__, [&](const call& here) {
    const auto& state = here.state_of(trace);
    collage::save_trace(here.text(path, "path"), state.trace, state.process);
  });
}
