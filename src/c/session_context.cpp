// Contexts of sessions: they run them at any shape, and hold states.
#include "networks.hpp"
#include "sessions.hpp"
#include "states.hpp"

#include <collage/dtype.hpp>
#include <collage/shape.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace c_interface {

namespace c = collage;

c::const_tensor_view view_of(const call& here, const collage_tensor& from, const std::string& what) {
  const std::size_t element = collage_dtype_size(from.dtype);
  if (element == 0)
    here.misuse(what + " has the element type " + std::to_string(from.dtype) + ", which does not exist",
                "set dtype to a constant of collage_dtype, such as COLLAGE_DTYPE_F32");
  const c::tensor_type type{static_cast<c::dtype>(from.dtype), shape_of(here, what, from.extents, from.rank)};
  if (const std::size_t expected = checked_bytes(type); from.bytes != expected)
    here.misuse(
        what + " has " + std::to_string(from.bytes) + " bytes, but its elements are " + std::to_string(expected),
        "make extents, dtype and bytes agree");
  if (from.data == nullptr && from.bytes != 0) here.misuse("the data of " + what + " is NULL", "give an address");
  if (reinterpret_cast<std::uintptr_t>(from.data) % element != 0)
    here.misuse("the data of " + what + " is not aligned to its elements of " + std::to_string(element) + " bytes",
                "copy it to aligned memory");
  return {from.data, type};
}

collage_tensor tensor_of(const c::const_tensor_view& from) {
  collage_tensor to{};
  to.dtype = static_cast<std::int32_t>(from.type.type);
  to.rank = from.type.dims.rank;
  for (std::uint32_t i = 0; i < to.rank; ++i) to.extents[i] = from.type.dims[i];
  to.data = from.data;
  to.bytes = from.type.bytes();
  return to;
}

void take_inputs(const call& here, std::span<const c::open_port> ports, const collage_tensor* inputs, std::size_t count,
                 const char* lister, std::vector<c::const_tensor_view>& to) {
  if (count != ports.size())
    here.misuse("count is " + std::to_string(count) + ", and a run takes " + std::to_string(ports.size()) + " inputs",
                std::string("give one for each input of ") + lister);
  here.check_list(inputs, count, "inputs");
  to.clear();
  for (std::size_t i = 0; i < count; ++i) to.push_back(view_of(here, inputs[i], "input " + ports[i].name));
}

namespace {

void take_inputs(const call& here, session_context_state& state, const collage_tensor* inputs, std::size_t count) {
  take_inputs(here, state.session->session.inputs(), inputs, count, "collage_session_input", state.inputs);
}

}  // namespace

void run_session(const call& here, session_context_state& state, const collage_tensor* inputs, std::size_t count,
                 const c::run_limits& limits) {
  take_inputs(here, state, inputs, count);
  in_our_words([&] { state.outputs = state.context.run(state.inputs, limits); });
}

namespace {

bool overlap(const c::const_tensor_view& a, const c::const_tensor_view& b) {
  const auto first = reinterpret_cast<std::uintptr_t>(a.data), second = reinterpret_cast<std::uintptr_t>(b.data);
  const bool have_memory = a.data != nullptr && b.data != nullptr && a.type.bytes() != 0 && b.type.bytes() != 0;
  return have_memory && first < second + b.type.bytes() && second < first + a.type.bytes();
}

/// The caller's memory for output i. That of a carried one may be NULL.
c::tensor_view memory_of(const call& here, const session_context_state& state, const collage_tensor& from,
                         std::size_t i) {
  const std::string& name = state.session->session.outputs()[i].name;
  const std::vector<std::string>& carried = state.session->carried;
  if (from.data == nullptr && std::find(carried.begin(), carried.end(), name) != carried.end()) return {};
  // Inputs and outputs share one struct. No code writes through an input's pointer.
  const c::const_tensor_view view = view_of(here, from, "output " + name);
  return {const_cast<void*>(view.data), view.type};
}

void run_session_into(const call& here, session_context_state& state, const collage_tensor* inputs, std::size_t count,
                      const collage_tensor* outputs, std::size_t output_count, const c::run_limits& limits) {
  take_inputs(here, state, inputs, count);
  const std::span<const c::open_port> ports = state.session->session.outputs();
  if (output_count != ports.size())
    here.misuse("output_count is " + std::to_string(output_count) + ", and a run returns " +
                    std::to_string(ports.size()) + " outputs",
                "give one for each output of collage_session_output");
  here.check_list(outputs, output_count, "outputs");
  state.wanted.clear();
  for (std::size_t i = 0; i < output_count; ++i) {
    const c::tensor_view to = memory_of(here, state, outputs[i], i);
    const auto refuse = [&](const std::string& other) {
      here.misuse("the memory of output " + ports[i].name + " overlaps with that of " + other,
                  "give memory of its own to each");
    };
    for (std::size_t k = 0; k < i; ++k)
      if (overlap(to, state.wanted[k])) refuse("output " + ports[k].name);
    for (std::size_t k = 0; k < count; ++k)
      if (overlap(to, state.inputs[k])) refuse("input " + state.session->session.inputs()[k].name);
    state.wanted.push_back(to);
  }
  in_our_words([&] { state.context.run(state.inputs, state.wanted, limits); });
  state.outputs = {};
}

}  // namespace
}  // namespace c_interface

using c_interface::call;
using c_interface::guarded;

collage_status collage_session_context_create(const collage_session* session,
                                              collage_session_context** context) noexcept {
  return guarded(__func__, [&](const call& here) {
    const auto& of = here.shared_state_of(session);
    collage_session_context*& to = here.target(context, "context");
    std::shared_ptr<c_interface::session_context_state> state(
        new c_interface::session_context_state{of, of->session.context(), {}, {}, {}, {}});
    to = new collage_session_context(std::move(state));
  });
}

void collage_session_context_release(collage_session_context* context) noexcept {
  c_interface::release(__func__, context);
}

collage_status collage_session_context_run(collage_session_context* context, const collage_tensor* inputs,
                                           std::size_t count, const collage_run_limits* limits) noexcept {
  return guarded(__func__, [&](const call& here) {
    auto& state = here.state_of(context);
    const collage::run_limits how = c_interface::limits_of(here, limits);
    const c_interface::turn mine(here, state.is_busy);
    c_interface::run_session(here, state, inputs, count, how);
  });
}

collage_status collage_session_context_run_into(collage_session_context* context, const collage_tensor* inputs,
                                                std::size_t count, const collage_tensor* outputs,
                                                std::size_t output_count, const collage_run_limits* limits) noexcept {
  return guarded(__func__, [&](const call& here) {
    auto& state = here.state_of(context);
    const collage::run_limits how = c_interface::limits_of(here, limits);
    const c_interface::turn mine(here, state.is_busy);
    c_interface::run_session_into(here, state, inputs, count, outputs, output_count, how);
  });
}

collage_status collage_session_context_output(const collage_session_context* context, std::size_t index,
                                              const char** name, collage_tensor* output) noexcept {
  return guarded(__func__, [&](const call& here) {
    const auto& state = here.state_of(context);
    collage_tensor& to = here.target(output, "output");
    const c_interface::turn mine(here, state.is_busy);
    here.check_index(index, state.session->session.outputs().size(), "output");
    if (state.outputs.empty())
      here.misuse("there are no outputs before the first run, or after one into the caller's memory",
                  "call collage_session_context_run first");
    if (name != nullptr) *name = state.session->session.outputs()[index].name.c_str();
    to = c_interface::tensor_of(state.outputs[index].contents);
  });
}

collage_status collage_session_context_start(collage_session_context* context, const char* name,
                                             const std::int64_t* extents, std::size_t rank) noexcept {
  return guarded(__func__, [&](const call& here) {
    auto& state = here.state_of(context);
    const std::string of = here.text(name, "state");
    const collage::shape dims = c_interface::shape_of(here, "state " + of, extents, rank);
    const c_interface::turn mine(here, state.is_busy);
    state.context.start(of, dims);
  });
}

collage_status collage_session_context_set_state(collage_session_context* context, const char* name,
                                                 const collage_tensor* contents) noexcept {
  return guarded(__func__, [&](const call& here) {
    auto& state = here.state_of(context);
    const std::string of = here.text(name, "state");
    const collage_tensor& from = here.target(contents, "contents");
    const c_interface::turn mine(here, state.is_busy);
    state.context.set_state(of, c_interface::view_of(here, from, "state " + of));
  });
}

collage_status collage_session_context_state(const collage_session_context* context, const char* name,
                                             collage_tensor* contents) noexcept {
  return guarded(__func__, [&](const call& here) {
    const auto& state = here.state_of(context);
    const std::string of = here.text(name, "state");
    collage_tensor& to = here.target(contents, "contents");
    const c_interface::turn mine(here, state.is_busy);
    to = c_interface::tensor_of(state.context.state(of));
  });
}

collage_status collage_session_context_reset(collage_session_context* context) noexcept {
  return guarded(__func__, [&](const call& here) {
    auto& state = here.state_of(context);
    const c_interface::turn mine(here, state.is_busy);
    state.context.reset();
  });
}
