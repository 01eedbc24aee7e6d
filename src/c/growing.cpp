// Contexts of sessions whose caches grow.
#include "networks.hpp"
#include "sessions.hpp"
#include "states.hpp"
#include "traces.hpp"

#include <collage/run/growing.hpp>
#include <collage/run/tensor.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace c_interface {

namespace c = collage;

struct growing_state {
  std::shared_ptr<const session_state> session;
  c::growing_context context;
  std::vector<c::const_tensor_view> inputs;    ///< of the run under way
  std::span<const c::session_output> outputs;  ///< of the last run that succeeded
  std::map<std::string, c::tensor> copies;     ///< of caches, by the names of inputs
  mutable std::atomic_flag is_busy;            ///< set during a call
};

namespace {

constexpr std::size_t oldest_growing_options = offsetof(collage_growing_options, mask_count) + sizeof(std::size_t);
constexpr std::size_t oldest_growing_info = offsetof(collage_growing_info, capacity) + sizeof(std::int64_t);

c::growing_options growing_options_of(const call& here, const collage_growing_options& given) {
  c::growing_options how;
  here.check_list(given.caches, given.cache_count, "caches");
  here.check_list(given.capacities, given.capacity_count, "capacities");
  here.check_list(given.masks, given.mask_count, "masks");
  for (std::size_t i = 0; i < given.cache_count; ++i) {
    const collage_cache& from = given.caches[i];
    c::growing_cache cache{here.text(from.input, "the input of a cache"),
                           here.text(from.output, "the output of a cache"),
                           from.dimension,
                           {}};
    if (from.rank > COLLAGE_MAX_RANK) here.misuse("cache " + cache.input + " has too many extents", "give at most 8");
    here.check_list(from.extents, from.rank, "extents");
    std::vector<std::int64_t> extents(from.extents, from.extents + from.rank);
    if (from.dimension < extents.size()) extents[from.dimension] = 0;  // it does not count
    cache.dims = shape_of(here, "cache " + cache.input, extents.data(), extents.size());
    how.caches.push_back(std::move(cache));
  }
  for (std::size_t i = 0; i < given.capacity_count; ++i) how.capacities.push_back(given.capacities[i]);
  for (std::size_t i = 0; i < given.mask_count; ++i)
    how.masks.push_back(
        {here.text(given.masks[i].input, "the input of a mask"), given.masks[i].dimension, given.masks[i].value});
  return how;
}

}  // namespace
}  // namespace c_interface

struct collage_growing_context
    : c_interface::handle<c_interface::handle_kind::growing_context, c_interface::growing_state> {
  using handle::handle;
};

using c_interface::call;
using c_interface::guarded;

namespace {

/// A run. `record` makes an object that lives as long as it.
template <class Record>
void run_growing(const call& here, c_interface::growing_state& state, const collage_tensor* inputs, std::size_t count,
                 const collage_run_limits* limits, Record record) {
  const collage::run_limits how = c_interface::limits_of(here, limits);
  const c_interface::turn mine(here, state.is_busy);
  c_interface::take_inputs(here, state.context.inputs(), inputs, count, "collage_growing_context_input", state.inputs);
  state.outputs = {};  // a run that fails may write over them
  [[maybe_unused]] const auto recorded = record();
  c_interface::in_our_words([&] { state.outputs = state.context.run(state.inputs, how); });
}

}  // namespace

collage_status collage_growing_context_create(const collage_session* session, const collage_growing_options* options,
                                              collage_growing_context** context) noexcept {
  return guarded(__func__, [&](const call& here) {
    const auto& of = here.shared_state_of(session);
    collage_growing_context*& to = here.target(context, "context");
    const auto given = here.options(options, "collage_growing_options", c_interface::oldest_growing_options);
    std::shared_ptr<c_interface::growing_state> state(new c_interface::growing_state{
        of, {of->session, c_interface::growing_options_of(here, given)}, {}, {}, {}, {}});
    to = new collage_growing_context(std::move(state));
  });
}

void collage_growing_context_release(collage_growing_context* context) noexcept {
  c_interface::release(__func__, context);
}

collage_status collage_growing_context_get_info(const collage_growing_context* context,
                                                collage_growing_info* info) noexcept {
  return guarded(__func__, [&](const call& here) {
    const auto& state = here.state_of(context);
    const c_interface::turn mine(here, state.is_busy);
    collage_growing_info now{};
    now.inputs = state.context.inputs().size();
    now.outputs = state.context.outputs().size();
    now.length = state.context.length();
    now.capacity = state.context.capacity();
    here.answer(info, now, "collage_growing_info", c_interface::oldest_growing_info);
  });
}

collage_status collage_growing_context_input(const collage_growing_context* context, std::size_t index,
                                             collage_open_port* port) noexcept {
  return guarded(__func__, [&](const call& here) {
    c_interface::answer_open_port(here, here.state_of(context).context.inputs(), index, "input", port);
  });
}

collage_status collage_growing_context_run(collage_growing_context* context, const collage_tensor* inputs,
                                           std::size_t count, const collage_run_limits* limits) noexcept {
  return guarded(__func__, [&](const call& here) {
    run_growing(here, here.state_of(context), inputs, count, limits, [] { return 0; });
  });
}

collage_status collage_growing_context_run_traced(collage_growing_context* context, const collage_tensor* inputs,
                                                  std::size_t count, const collage_run_limits* limits,
                                                  collage_trace* trace) noexcept {
  return guarded(__func__, [&](const call& here) {
    auto& state = here.state_of(context);
    collage::run_trace& to = here.state_of(trace).trace;
    run_growing(here, state, inputs, count, limits, [&] { return c_interface::traced_runs(state.context, to); });
  });
}

collage_status collage_growing_context_output(const collage_growing_context* context, std::size_t index,
                                              const char** name, collage_tensor* output) noexcept {
  return guarded(__func__, [&](const call& here) {
    const auto& state = here.state_of(context);
    collage_tensor& to = here.target(output, "output");
    const c_interface::turn mine(here, state.is_busy);
    here.check_index(index, state.context.outputs().size(), "output");
    if (state.outputs.empty())
      here.misuse("there are no outputs without a run that succeeded", "call collage_growing_context_run first");
    if (name != nullptr) *name = state.context.outputs()[index].name.c_str();
    to = c_interface::tensor_of(state.outputs[index].contents);
  });
}

collage_status collage_growing_context_cache(collage_growing_context* context, const char* input_name,
                                             collage_tensor* contents) noexcept {
  return guarded(__func__, [&](const call& here) {
    auto& state = here.state_of(context);
    const std::string of = here.text(input_name, "input");
    collage_tensor& to = here.target(contents, "contents");
    const c_interface::turn mine(here, state.is_busy);
    collage::tensor copy = state.context.cache(of);
    to = c_interface::tensor_of(state.copies[of] = std::move(copy));
  });
}

collage_status collage_growing_context_restore(collage_growing_context* context, const collage_tensor* caches,
                                               std::size_t count) noexcept {
  return guarded(__func__, [&](const call& here) {
    auto& state = here.state_of(context);
    here.check_list(caches, count, "caches");
    const c_interface::turn mine(here, state.is_busy);
    std::vector<collage::const_tensor_view> views;
    for (std::size_t i = 0; i < count; ++i)
      views.push_back(c_interface::view_of(here, caches[i], "cache " + std::to_string(i)));
    state.context.restore(views);
  });
}

collage_status collage_growing_context_shorten(collage_growing_context* context, std::int64_t length) noexcept {
  return guarded(__func__, [&](const call& here) {
    auto& state = here.state_of(context);
    const c_interface::turn mine(here, state.is_busy);
    state.context.shorten(length);
  });
}

collage_status collage_growing_context_reset(collage_growing_context* context) noexcept {
  return guarded(__func__, [&](const call& here) {
    auto& state = here.state_of(context);
    const c_interface::turn mine(here, state.is_busy);
    state.context.reset();
  });
}
