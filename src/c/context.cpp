// Contexts: they bind memory once and run engines.
#include "states.hpp"

#include <collage/dtype.hpp>
#include <collage/graph/graph.hpp>

#include <algorithm>
#include <chrono>
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

namespace {

constexpr std::size_t oldest_options = offsetof(collage_context_options, arena_bytes) + sizeof(std::size_t);

/// Reserves the context for one call.
class turn {
 public:
  turn(const call& here, context_state& of) : of_(of) {
    if (of.is_busy.test_and_set(std::memory_order_acquire))
      here.misuse("the context is in use by another thread", "create a context for each thread");
  }
  turn(const turn&) = delete;
  turn& operator=(const turn&) = delete;
  ~turn() { of_.is_busy.clear(std::memory_order_release); }

 private:
  context_state& of_;
};

/// The inputs or the outputs of a context.
struct side {
  const char* thing;  ///< "input"
  std::span<const c::port> ports;
  std::vector<binding>& bindings;
};
side inputs_of(context_state& s) { return {"input", s.engine->engine.inputs(), s.inputs}; }
side outputs_of(context_state& s) { return {"output", s.engine->engine.outputs(), s.outputs}; }

std::string title(const side& of, std::size_t index) { return std::string(of.thing) + " " + of.ports[index].name; }

/// Binds memory of the caller. The memory of an input is only read.
void bind(const call& here, context_state& state, const side& of, std::size_t index, std::int32_t dtype, void* data,
          std::size_t bytes) {
  here.check_index(index, of.ports.size(), of.thing);
  const turn mine(here, state);
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
  of.bindings[index].data = data;
  of.bindings[index].is_bound = true;
  state.is_ready = false;
}

/// Binds memory of the context, and allocates it at the first call.
void* bind_own(context_state& state, const side& of, std::size_t index) {
  binding& b = of.bindings[index];
  if (b.own == nullptr) {
    const std::size_t bytes = of.ports[index].type.bytes();
    b.own = c::allocate_bytes(bytes);
    std::memset(b.own.get(), 0, bytes);
  }
  if (!b.is_bound || b.data != b.own.get()) state.is_ready = false;
  b.data = b.own.get();
  b.is_bound = true;
  return b.data;
}

void* own_memory(const call& here, context_state& state, const side& of, std::size_t index) {
  here.check_index(index, of.ports.size(), of.thing);
  const turn mine(here, state);
  return bind_own(state, of, index);
}

bool overlap(const void* a, std::size_t a_bytes, const void* b, std::size_t b_bytes) {
  const auto first = reinterpret_cast<std::uintptr_t>(a), second = reinterpret_cast<std::uintptr_t>(b);
  return a_bytes != 0 && b_bytes != 0 && first < second + b_bytes && second < first + a_bytes;
}

/// Throws if an output overlaps with one of the first `count` others, because kernels write an output while others still read.
void check_apart(const call& here, const side& outputs, std::size_t index, const side& others, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    if (overlap(outputs.bindings[index].data, outputs.ports[index].type.bytes(), others.bindings[i].data,
                others.ports[i].type.bytes()))
      here.misuse("the memory of " + title(outputs, index) + " overlaps with that of " + title(others, i),
                  "bind memory of its own to each");
}

/// Makes the views that a run passes to the engine, after a binding has changed.
void prepare(const call& here, context_state& state) {
  if (state.is_ready) return;
  const side inputs = inputs_of(state), outputs = outputs_of(state);
  for (std::size_t i = 0; i < inputs.ports.size(); ++i)
    if (!inputs.bindings[i].is_bound)
      here.misuse("nothing is bound to " + title(inputs, i),
                  "call collage_context_bind_input or collage_context_input for it");
  for (std::size_t i = 0; i < outputs.ports.size(); ++i)
    if (!outputs.bindings[i].is_bound) (void)bind_own(state, outputs, i);
  for (std::size_t i = 0; i < outputs.ports.size(); ++i) {
    check_apart(here, outputs, i, inputs, inputs.ports.size());
    check_apart(here, outputs, i, outputs, i);
  }
  state.input_views.clear();
  state.output_views.clear();
  for (std::size_t i = 0; i < inputs.ports.size(); ++i)
    state.input_views.emplace_back(inputs.bindings[i].data, inputs.ports[i].type);
  for (std::size_t i = 0; i < outputs.ports.size(); ++i)
    state.output_views.push_back({outputs.bindings[i].data, outputs.ports[i].type});
  state.is_ready = true;
}

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
    const auto given = here.options(options, "collage_context_options", c_interface::oldest_options);
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
    const c_interface::turn mine(here, state);
    c_interface::prepare(here, state);
    state.context.run(state.input_views, state.output_views);
  });
}

collage_status collage_context_run_profiled(collage_context* context, double* step_ms, std::size_t count) noexcept {
  return guarded(__func__, [&](const call& here) {
    auto& state = here.state_of(context);
    const std::size_t steps = state.engine->engine.steps().size();
    if (count != steps)
      here.misuse("count is " + std::to_string(count) + ", but there are " + std::to_string(steps) + " steps",
                  "give a list with as many entries as collage_engine_get_info reports steps");
    here.check_list(step_ms, count, "step_ms");
    const c_interface::turn mine(here, state);
    c_interface::prepare(here, state);
    c_interface::stop_watch watch{step_ms};
    state.context.run(
        state.input_views, state.output_views,
        {.data = &watch, .before = &c_interface::stop_watch::before, .after = &c_interface::stop_watch::after});
  });
}
