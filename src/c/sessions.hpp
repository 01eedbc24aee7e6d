// Sessions and their contexts in the C interface.
#pragma once

#include "call.hpp"

#include <collage_session.h>
#include <collage/run/session.hpp>
#include <collage/run/tensor.hpp>

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace c_interface {

struct session_state {
  collage::session session;
  std::string summary;               ///< JSON
  std::vector<std::string> carried;  ///< the outputs that are states
};

struct session_context_state {
  std::shared_ptr<const session_state> session;
  collage::session_context context;
  std::vector<collage::const_tensor_view> inputs;    ///< of the run under way
  std::vector<collage::tensor_view> wanted;          ///< the caller's memory for its outputs
  std::span<const collage::session_output> outputs;  ///< of the last run that succeeded
  mutable std::atomic_flag is_busy;                  ///< set during a call
};

/// The caller's tensor. Throws if it is none; `what` is "input x".
collage::const_tensor_view view_of(const call& here, const collage_tensor& from, const std::string& what);
collage_tensor tensor_of(const collage::const_tensor_view& from);

/// Views of the inputs of a run, which are as many as `ports`. The error of another number names the function that lists these.
void take_inputs(const call& here, std::span<const collage::open_port> ports, const collage_tensor* inputs,
                 std::size_t count, const char* lister, std::vector<collage::const_tensor_view>& to);

/// Describes the input or output at `index` of a list. Throws if there is none; the error calls it `thing`.
void answer_open_port(const call& here, std::span<const collage::open_port> ports, std::size_t index, const char* thing,
                      collage_open_port* to);

/// Runs a session at the shapes of the inputs.
void run_session(const call& here, session_context_state& state, const collage_tensor* inputs, std::size_t count,
                 const collage::run_limits& limits);

}  // namespace c_interface

struct collage_session : c_interface::handle<c_interface::handle_kind::session, const c_interface::session_state> {
  using handle::handle;
};
struct collage_session_context
    : c_interface::handle<c_interface::handle_kind::session_context, c_interface::session_context_state> {
  using handle::handle;
};
