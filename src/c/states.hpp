// The states of the C interface's handles. A state does not change once it is made, except for that of a context and for weights
// that an engine takes over.
#pragma once

#include "call.hpp"

#include <collage/calibrate/ranges.hpp>
#include <collage/graph/graph.hpp>
#include <collage/io/json.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/engine.hpp>
#include <collage/run/kernel.hpp>
#include <collage/run/plan.hpp>
#include <collage/run/tensor.hpp>
#include <collage/run/trace.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace c_interface {

/// Threads wait briefly (run/waiting.hpp) from the first call of this, unless the caller has chosen otherwise.
void wait_briefly_unless_chosen();
bool waits_briefly();

/// Looks for the executable that measures for programs whose main does not call collage_worker.
void offer_worker();

/// The backends of this build.
collage::backend_table backends();

struct network_state {
  std::string name;
  /// Ready to be placed: its constants are filled, and the passes have run. An engine that takes over the weights removes them
  /// from it.
  mutable collage::graph graph;
  mutable std::atomic<bool> has_weights = true;
  std::uint64_t fingerprint = 0;
  std::vector<collage::port> inputs, outputs;
  std::shared_ptr<collage::packed_weights> packed;        ///< shared by all engines over this network
  std::shared_ptr<const collage::network_ranges> ranges;  ///< of a file whose rounding was removed; else null
  std::string summary;                                    ///< JSON
};

/// The graph to make engines and plans from. Throws if an engine has taken over its weights.
const collage::graph& graph_with_weights(const network_state& network);

struct plan_state {
  std::shared_ptr<const network_state> network;
  collage::plan made;
  std::string summary;        ///< JSON
  std::string why_unrounded;  ///< a sentence; empty if there is nothing to say
};

struct engine_state {
  collage::dynamic_engine engine;
  std::vector<std::string> labels;  ///< by step: the names of its nodes
  std::vector<double> planned_ms;   ///< by step
  std::string waiting_policy;
  std::shared_ptr<const collage::traced_engine> described;  ///< for traces
};

/// The memory of one input or output.
struct binding {
  void* data = nullptr;  ///< the engine only reads the memory of an input
  bool is_bound = false;
  bool is_changed = false;         ///< since the last run that was allowed
  std::shared_ptr<std::byte> own;  ///< the context's memory, once it is requested
};

struct context_state {
  std::shared_ptr<const engine_state> engine;
  collage::dynamic_context context;
  std::vector<binding> inputs, outputs;
  // The views that a run passes to the engine. Those of changed bindings are made anew.
  std::vector<collage::const_tensor_view> input_views;
  std::vector<collage::tensor_view> output_views;
  std::vector<std::uint32_t> changed_inputs, changed_outputs;  ///< their indices
  bool is_complete = false;                                    ///< everything is bound
  std::atomic_flag is_busy;                                    ///< set during a call
};

/// Reserves a context for one call.
class turn {
 public:
  turn(const call& here, std::atomic_flag& is_busy) : is_busy_(is_busy) {
    if (is_busy.test_and_set(std::memory_order_acquire))
      here.misuse("the context is in use by another thread", "create a context for each thread");
  }
  turn(const turn&) = delete;
  turn& operator=(const turn&) = delete;
  ~turn() { is_busy_.clear(std::memory_order_release); }

 private:
  std::atomic_flag& is_busy_;
};

/// Makes the views that a run passes to the engine. Throws if something is not bound, or outputs overlap.
void prepare(const call& here, context_state& state);

/// The limits of a run; none if `given` is NULL.
collage::run_limits limits_of(const call& here, const collage_run_limits* given);

/// A shape of a caller. Throws if it has too many extents, or one below 0; the error calls its owner `what`, as "input x".
collage::shape shape_of(const call& here, const std::string& what, const std::int64_t* extents, std::size_t rank);

/// The bytes of all elements. SIZE_MAX if they are more: the caller's extents may have any size.
std::size_t checked_bytes(const collage::tensor_type& type);

/// Describes the input or output at `index` of a list. Throws if there is none; the error calls it `thing`.
void answer_port(const call& here, std::span<const collage::port> ports, std::size_t index, const char* thing,
                 collage_port* to);

/// An input or output as in the JSON of networks: {"name", "type", "shape"}.
collage::json port_to_json(const collage::port& port);

}  // namespace c_interface

struct collage_network : c_interface::handle<c_interface::handle_kind::network, const c_interface::network_state> {
  using handle::handle;
};
struct collage_plan : c_interface::handle<c_interface::handle_kind::plan, const c_interface::plan_state> {
  using handle::handle;
};
struct collage_engine : c_interface::handle<c_interface::handle_kind::engine, const c_interface::engine_state> {
  using handle::handle;
};
struct collage_context : c_interface::handle<c_interface::handle_kind::context, c_interface::context_state> {
  using handle::handle;
};
