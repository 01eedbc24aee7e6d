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
  std::string summary;  ///< JSON
};

struct session_context_state {
  std::shared_ptr<const session_state> session;
  collage::session_context context;
  std::vector<collage::const_tensor_view> inputs;    ///< of the run under way
  std::span<const collage::session_output> outputs;  ///< of the last run that succeeded
  mutable std::atomic_flag is_busy;                  ///< set during a call
};

}  // namespace c_interface

struct collage_session : c_interface::handle<c_interface::handle_kind::session, const c_interface::session_state> {
  using handle::handle;
};
struct collage_session_context
    : c_interface::handle<c_interface::handle_kind::session_context, c_interface::session_context_state> {
  using handle::handle;
};
