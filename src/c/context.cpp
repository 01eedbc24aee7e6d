// Contexts: they bind memory once and run engines.
#include "states.hpp"

#include <collage/dtype.hpp>
#include <collage/graph/graph.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace c_interface {

namespace c = collage;

constexpr std::size_t oldest_limits = offsetof(collage_run_limits, stop) + sizeof(void*);

c::run_limits limits_of(const call& here, const collage_run_limits* limits) {
  const collage_run_limits given = here.options(limits, "collage_run_limits", oldest_limits);
  if (std::isnan(given.seconds)) here.misuse("seconds is not a number", "give the seconds of a run, or 0 for no limit");
  static_assert(std::atomic<bool>::is_always_lock_free && sizeof(std::atomic<bool>) == 1);
  c::run_limits how;
  if (given.seconds != 0) how.seconds = given.seconds;
  // The caller's byte is written by another thread, in whatever language: as an atomic it is read in one piece.
  how.stop = reinterpret_cast<const std::atomic<bool>*>(const_cast<const unsigned char*>(given.stop));
  return how;
}

namespace {

constexpr std::size_t oldest_context_options = offsetof(collage_context_options, arena_bytes) + sizeof(std::size_t);

/// The inputs or the outputs of a context.
struct side {
  const char* thing;  ///< "input"
  std::span<const c::port> ports;
  std::vector<binding>& bindings;
  std::vector<std::uint32_t>& changed;
};
side inputs_of(context_state& s) { return {"input", s.engine->engine.inputs(), s.inputs, s.changed_inputs}; }
side outputs_of(context_state& s) { return {"output", s.engine->engine.outputs(), s.outputs, s.changed_outputs}; }

void set_memory(const side& of, std::size_t index, void* data) {
  binding& b = of.bindings[index];
  if (b.is_bound && b.data == data) return;
  b.data = data;
  b.is_bound = true;
  if (!std::exchange(b.is_changed, true)) of.changed.push_back(static_cast<std::uint32_t>(index));
}

std::string title(const side& of, std::size_t index) { return std::string(of.thing) + " " + of.ports[index].name; }

/// Binds memory of the caller. The memory of an input is only read.
void bind(const call& here, context_state& state, const side& of, std::size_t index, std::int32_t dtype, void* data,
          std::size_t bytes) {
  here.check_index(index, of.ports.size(), of.thing);
  const turn mine(here, state.is_busy);
  const c::tensor_type& type = of.ports[index].type;
  if (dtype != COLLAGE_DTYPE_ANY && dtype != static_cast<std::int32_t>(type.type)) {
    const char* given = collage_dtype_name(dtype);
    here.misuse(title(of, index) + " is " + c::name_of(type.type) + ", not " +
                    (*given == '\0' ? "element type " + std::to_string(dtype) + ", which does not exist" : given),
                "convert the elements, or export the model with that type");
  }
  if (bytes != type.bytes())
    here.misuse(title(of, index) + " has " + std::to_string(type.bytes()) + " bytes (" + c::detail::to_string(type) +
                    "), not " + std::to_string(bytes),
                "bind memory of that size, or load the network with other shapes");
  if (data == nullptr && bytes != 0)
    here.misuse(
        "the memory for " + title(of, index) + " is NULL",
        std::string("give an address, or call collage_context_") + of.thing + " for memory of the context's own");
  if (reinterpret_cast<std::uintptr_t>(data) % c::size_of(type.type) != 0)
    here.misuse("the memory for " + title(of, index) + " is not aligned to its elements of " +
                    std::to_string(c::size_of(type.type)) + " bytes",
                "copy it to aligned memory");
  set_memory(of, index, data);
}

/// Binds memory of the context, and allocates it at the first call.
void* bind_own(const side& of, std::size_t index) {
  binding& b = of.bindings[index];
  if (b.own == nullptr) {
    const std::size_t bytes = of.ports[index].type.bytes();
    b.own = c::allocate_bytes(bytes);
    std::memset(b.own.get(), 0, bytes);
  }
  set_memory(of, index, b.own.get());
  return b.data;
}

void* own_memory(const call& here, context_state& state, const side& of, std::size_t index) {
  here.check_index(index, of.ports.size(), of.thing);
  const turn mine(here, state.is_busy);
  return bind_own(of, index);
}

/// The memory of one input or output.
struct interval {
  std::uintptr_t first, last;  ///< the byte after the last one
  bool is_output;
  std::size_t index;
};
interval interval_of(const side& of, std::size_t index, bool is_output) {
  const auto first = reinterpret_cast<std::uintptr_t>(of.bindings[index].data);
  return {first, first + of.ports[index].type.bytes(), is_output, index};
}
bool overlap(const interval& a, const interval& b) {
  return a.first != a.last && b.first != b.last && a.first < b.last && b.first < a.last;
}

/// Checks that no output overlaps with another output or an input, because kernels write an output while others still read.
class memory_check {
 public:
  memory_check(const call& here, context_state& state)
      : here_(here), inputs_(inputs_of(state)), outputs_(outputs_of(state)) {}

  /// All memory, in the order of its addresses.
  void check_all() const {
    std::vector<interval> all;
    for (std::size_t i = 0; i < inputs_.ports.size(); ++i) add(interval_of(inputs_, i, false), all);
    for (std::size_t i = 0; i < outputs_.ports.size(); ++i) add(interval_of(outputs_, i, true), all);
    std::ranges::sort(all, {}, &interval::first);
    const interval *output = nullptr, *any = nullptr;  // those that reach farthest so far
    for (const interval& now : all) {
      const interval* const before = now.is_output ? any : output;
      if (before != nullptr && overlap(*before, now)) refuse(*before, now);
      if (any == nullptr || now.last > any->last) any = &now;
      if (now.is_output && (output == nullptr || now.last > output->last)) output = &now;
    }
  }
  /// The memory that changed, with all other memory.
  void check_changed() const {
    for (const std::uint32_t i : outputs_.changed) {
      const interval now = interval_of(outputs_, i, true);
      for (std::size_t k = 0; k < inputs_.ports.size(); ++k) check(now, interval_of(inputs_, k, false));
      for (std::size_t k = 0; k < outputs_.ports.size(); ++k)
        if (k != i) check(now, interval_of(outputs_, k, true));
    }
    for (const std::uint32_t i : inputs_.changed)
      for (std::size_t k = 0; k < outputs_.ports.size(); ++k)
        check(interval_of(outputs_, k, true), interval_of(inputs_, i, false));
  }

 private:
  static void add(const interval& one, std::vector<interval>& to) {
    if (one.first != one.last) to.push_back(one);
  }
  void check(const interval& a, const interval& b) const {
    if (overlap(a, b)) refuse(a, b);
  }
  [[noreturn]] void refuse(const interval& a, const interval& b) const {
    // An output comes first, of two outputs the later one.
    const bool is_swapped = !a.is_output || (b.is_output && a.index < b.index);
    const interval &first = is_swapped ? b : a, &second = is_swapped ? a : b;
    here_.misuse("the memory of " + title(outputs_, first.index) + " overlaps with that of " +
                     title(second.is_output ? outputs_ : inputs_, second.index),
                 "bind memory of its own to each");
  }

  const call& here_;
  side inputs_, outputs_;
};

/// Checks that everything is bound. Outputs that are not bound get memory of the context.
void complete(const call& here, context_state& state) {
  const side inputs = inputs_of(state), outputs = outputs_of(state);
  for (std::size_t i = 0; i < inputs.ports.size(); ++i)
    if (!inputs.bindings[i].is_bound)
      here.misuse("nothing is bound to " + title(inputs, i),
                  "call collage_context_bind_input or collage_context_input for it");
  for (std::size_t i = 0; i < outputs.ports.size(); ++i)
    if (!outputs.bindings[i].is_bound) (void)bind_own(outputs, i);
  state.input_views.resize(inputs.ports.size());
  state.output_views.resize(outputs.ports.size());
  state.is_complete = true;
}

}  // namespace

// Only views of bindings that have changed are made: a network may have thousands of inputs, of which a caller binds one anew.
void prepare(const call& here, context_state& state) {
  if (!state.is_complete) complete(here, state);
  const side inputs = inputs_of(state), outputs = outputs_of(state);
  const std::size_t changed = inputs.changed.size() + outputs.changed.size();
  if (changed == 0) return;
  constexpr std::size_t few = 8;
  if (const memory_check check(here, state); changed <= few) check.check_changed();
  else check.check_all();
  for (const std::uint32_t i : inputs.changed) state.input_views[i] = {inputs.bindings[i].data, inputs.ports[i].type};
  for (const std::uint32_t i : outputs.changed)
    state.output_views[i] = {outputs.bindings[i].data, outputs.ports[i].type};
  for (const side& of : {inputs, outputs}) {
    for (const std::uint32_t i : of.changed) of.bindings[i].is_changed = false;
    of.changed.clear();
  }
}

namespace {

/// Writes the time of each step.
struct stop_watch {
  using clock = std::chrono::steady_clock;

  double* step_ms;
  clock::time_point started{};

  static void before(void* data, std::size_t) { static_cast<stop_watch*>(data)->started = clock::now(); }
  static void after(void* data, std::size_t step, const c::dynamic_context&) {
    const auto& self = *static_cast<stop_watch*>(data);
    self.step_ms[step] = std::chrono::duration<double, std::milli>(clock::now() - self.started).count();
  }
};

collage_context* new_context(const call& here, const std::shared_ptr<const engine_state>& engine,
                             const collage_context_options& given) {
  const c::dynamic_engine& e = engine->engine;
  if (given.arena == nullptr && given.arena_bytes != 0)
    here.misuse("arena is NULL, but has " + std::to_string(given.arena_bytes) + " bytes",
                "give its address, or set arena_bytes to 0: the context then allocates its arena");
  if (given.arena != nullptr && given.arena_bytes < e.arena_bytes())
    here.misuse("arena has " + std::to_string(given.arena_bytes) + " bytes, but " + std::to_string(e.arena_bytes()) +
                    " are needed",
                "allocate arena_bytes of collage_engine_info");
  if (reinterpret_cast<std::uintptr_t>(given.arena) % 64 != 0)
    here.misuse("arena is not aligned to 64 bytes", "allocate it with aligned_alloc(64, ...)");
  const std::span<std::byte> arena(static_cast<std::byte*>(given.arena), given.arena_bytes);
  std::shared_ptr<context_state> state(new context_state{engine,
                                                         given.arena == nullptr ? e.context() : e.context(arena),
                                                         std::vector<binding>(e.inputs().size()),
                                                         std::vector<binding>(e.outputs().size()),
                                                         {},
                                                         {},
                                                         {},
                                                         {},
                                                         false,
                                                         {}});
  return new collage_context(std::move(state));
}

}  // namespace
}  // namespace c_interface

using c_interface::call;
using c_interface::guarded;

collage_status collage_context_create(const collage_engine* engine, const collage_context_options* options,
                                      collage_context** context) noexcept {
  return guarded(__func__, [&](const call& here) {
    const auto& state = here.shared_state_of(engine);
    const auto given = here.options(options, "collage_context_options", c_interface::oldest_context_options);
    collage_context*& to = here.target(context, "context");
    to = c_interface::new_context(here, state, given);
  });
}

void collage_context_release(collage_context* context) noexcept { c_interface::release(__func__, context); }

collage_status collage_context_bind_input(collage_context* context, std::size_t index, std::int32_t dtype,
                                          const void* data, std::size_t bytes) noexcept {
  return guarded(__func__, [&](const call& here) {
    auto& state = here.state_of(context);
    // Inputs and outputs share one type of binding. No code writes through an input's pointer.
    c_interface::bind(here, state, c_interface::inputs_of(state), index, dtype, const_cast<void*>(data), bytes);
  });
}

collage_status collage_context_bind_output(collage_context* context, std::size_t index, std::int32_t dtype, void* data,
                                           std::size_t bytes) noexcept {
  return guarded(__func__, [&](const call& here) {
    auto& state = here.state_of(context);
    c_interface::bind(here, state, c_interface::outputs_of(state), index, dtype, data, bytes);
  });
}

collage_status collage_context_input(collage_context* context, std::size_t index, void** data) noexcept {
  return guarded(__func__, [&](const call& here) {
    auto& state = here.state_of(context);
    void*& to = here.target(data, "data");
    to = c_interface::own_memory(here, state, c_interface::inputs_of(state), index);
  });
}

collage_status collage_context_output(collage_context* context, std::size_t index, void** data) noexcept {
  return guarded(__func__, [&](const call& here) {
    auto& state = here.state_of(context);
    void*& to = here.target(data, "data");
    to = c_interface::own_memory(here, state, c_interface::outputs_of(state), index);
  });
}

collage_status collage_context_run(collage_context* context) noexcept {
  return guarded(__func__, [&](const call& here) {
    auto& state = here.state_of(context);
    const c_interface::turn mine(here, state.is_busy);
    c_interface::prepare(here, state);
    state.context.run(state.input_views, state.output_views);
  });
}

collage_status collage_context_run_limited(collage_context* context, const collage_run_limits* limits) noexcept {
  return guarded(__func__, [&](const call& here) {
    auto& state = here.state_of(context);
    const collage::run_limits how = c_interface::limits_of(here, limits);
    const c_interface::turn mine(here, state.is_busy);
    c_interface::prepare(here, state);
    state.context.run(state.input_views, state.output_views, how);
  });
}

collage_status collage_context_run_profiled(collage_context* context, double* step_ms, std::size_t count) noexcept {
  return guarded(__func__, [&](const call& here) {
    auto& state = here.state_of(context);
    const std::size_t steps = state.engine->engine.steps().size();
    if (count != steps)
      here.misuse("count is " + std::to_string(count) + ", but the engine has " + std::to_string(steps) +
                      (steps == 1 ? " step" : " steps"),
                  "give a list with as many entries as collage_engine_get_info reports steps");
    here.check_list(step_ms, count, "step_ms");
    const c_interface::turn mine(here, state.is_busy);
    c_interface::prepare(here, state);
    c_interface::stop_watch watch{step_ms};
    state.context.run(
        state.input_views, state.output_views,
        {.data = &watch, .before = &c_interface::stop_watch::before, .after = &c_interface::stop_watch::after});
  });
}
