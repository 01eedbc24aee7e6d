// What the handles of the C interface stand for. Each is immutable once it is made, but for a context.
#pragma once

#include "call.hpp"

#include <collage/graph/graph.hpp>
#include <collage/io/json.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/engine.hpp>
#include <collage/run/kernel.hpp>
#include <collage/run/plan.hpp>
#include <collage/run/tensor.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace c_interface {

/// The backends of this build.
collage::backend_table backends();

struct network_state {
  std::string name;
  /// Ready to be placed: constants filled, passes run. An engine that takes over the weights changes it.
  mutable collage::graph graph;
  mutable std::atomic<bool> has_weights = true;
  std::uint64_t fingerprint = 0;
  std::vector<collage::port> inputs, outputs;
  std::shared_ptr<collage::packed_weights> packed;  ///< of all engines over this network
  std::string summary;                              ///< JSON
};

/// The network as engines and plans are made from it. An error where an engine has taken over its weights.
const collage::graph& graph_with_weights(const network_state& network);

struct plan_state {
  std::shared_ptr<const network_state> network;
  collage::plan made;
  std::string summary;  ///< JSON
};

struct engine_state {
  collage::dynamic_engine engine;
  std::vector<std::string> labels;  ///< by step: the nodes that it runs
  std::vector<double> planned_ms;   ///< by step
  std::string waiting_policy;
};

/// The memory of one input or output.
struct binding {
  void* data = nullptr;  ///< of an input, the engine only reads it
  bool is_bound = false;
  std::shared_ptr<std::byte> own;  ///< the context's memory, from when it is asked for
};

struct context_state {
  std::shared_ptr<const engine_state> engine;
  collage::dynamic_context context;
  std::vector<binding> inputs, outputs;
  // What a run hands to the engine; made anew after something was bound.
  std::vector<collage::const_tensor_view> input_views;
  std::vector<collage::tensor_view> output_views;
  bool is_ready = false;
  std::atomic_flag is_busy;  ///< with a call of some thread
};

/// What a user reads about an input or output, at `index` in its list. An error where there is none, called `thing`.
void answer_port(const call& here, std::span<const collage::port> ports, std::size_t index, const char* thing,
                 collage_port* to);

/// A type as in the JSON of networks: {"name", "type", "shape"}.
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
