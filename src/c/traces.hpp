// The state of traces, for the functions whose runs are recorded.
#pragma once

#include "call.hpp"

#include <collage_trace.h>
#include <collage/run/trace.hpp>

#include <string>

namespace c_interface {

struct trace_state {
  collage::run_trace trace;
  std::string process;
  std::string json;  ///< of the last collage_trace_json
};

/// Lets a context of a session, also one with caches that grow, record runs into a trace as long as this object lives.
template <class Context>
class traced_runs {
 public:
  traced_runs(Context& context, collage::run_trace& to) : context_(context) { context.trace_into(&to); }
  traced_runs(const traced_runs&) = delete;
  traced_runs& operator=(const traced_runs&) = delete;
  ~traced_runs() { context_.trace_into(nullptr); }

 private:
  Context& context_;
};

}  // namespace c_interface

struct collage_trace : c_interface::handle<c_interface::handle_kind::trace, c_interface::trace_state> {
  using handle::handle;
};
