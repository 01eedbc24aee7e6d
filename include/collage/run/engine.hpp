// The engine: a network and a placement, built into kernels. The places of all values in one block of memory, the arena, are
// planned before the first run.
#pragma once

#include <atomic>
#include <collage/graph/graph.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/form.hpp>
#include <collage/run/kernel.hpp>
#include <collage/run/plan.hpp>
#include <collage/run/program.hpp>
#include <collage/run/tensor.hpp>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace collage::inline v0 {

class dynamic_context;

/// One step as seen from outside.
struct step_info {
  std::string backend;
  std::string pattern;
  std::string kernel;
  std::vector<std::uint32_t> nodes;  ///< none: a conversion
  std::string label;                 ///< the name of the group's last node, or of the value that is converted
  std::uint32_t output = 0;          ///< the value it writes, the first of several
  std::size_t workspace = 0;
  form written;  ///< in which form it writes that value
};

/// Called around the steps of a run; either may be null. Costs nothing when it is not given.
struct step_observer {
  void* data = nullptr;
  void (*before)(void* data, std::size_t step) = nullptr;
  void (*after)(void* data, std::size_t step, const dynamic_context& context) = nullptr;
};

/// Limits of one run. They are checked before each step, also within branches and loops. A step that has begun is completed.
struct run_limits {
  double seconds = std::numeric_limits<double>::infinity();  ///< from the beginning of the run
  const std::atomic<bool>* stop = nullptr;                   ///< true ends the run; any thread may set it
};

namespace detail {
struct engine_core;
/// Checks that every node is in exactly one group, and every group comes after the groups from which it reads. Throws
/// otherwise.
void check_cover(const graph& network, const placement& groups);
}  // namespace detail

/// A network ready to run. Immutable; shared by any number of contexts in any number of threads. It keeps the constants
/// its kernels read and the packed forms of others, and nothing else of the graph.
class dynamic_engine {
 public:
  /// Builds every kernel of the placement. Errors: a plan of another network; a backend that is missing or refuses; nodes that
  /// are not covered, or covered twice; constants without contents.
  dynamic_engine(const graph& network, const placement& groups, backend_table backends, int threads,
                 std::shared_ptr<packed_weights> packed = std::make_shared<packed_weights>());
  /// The same for a network whose constants the caller does not need any more. Each constant is released as soon as the last
  /// kernel has packed it: constants and packed forms are never all in memory at once. Constants that another network shares
  /// stay.
  dynamic_engine(graph&& network, const placement& groups, backend_table backends, int threads,
                 std::shared_ptr<packed_weights> packed = std::make_shared<packed_weights>());

  std::span<const port> inputs() const;
  std::span<const port> outputs() const;
  /// The kernels and conversions that run, in order.
  std::span<const step_info> steps() const;
  /// The scales of values that are stored as integers of 8 bits; null if none is.
  const value_scales* scales() const;
  /// Everything that a run does, memory included.
  const program& code() const;
  /// The threads of a run: as many as were requested, or 1 if the process may use one processor only.
  int threads() const;
  /// Bytes that one context needs for values and workspaces in a memory space. Branches and loops use further memory, which the
  /// engine owns.
  std::size_t arena_bytes(const memory_space& space = host_space) const;
  /// The largest sum of values alive at one step and its kernel's workspace: no arena can be smaller.
  std::size_t arena_lower_bound(const memory_space& space = host_space) const;

  /// A context with memory of its own, or with its arena on the host in the caller's memory. That memory has at least
  /// arena_bytes(), is aligned to 64 bytes and outlives the context.
  dynamic_context context() const;
  dynamic_context context(std::span<std::byte> arena) const;

 private:
  std::shared_ptr<const detail::engine_core> core_;
};

/// One arena and its runs. Only one thread at a time may use a context, but any number of contexts can run side by side.
class dynamic_context {
 public:
  /// Runs the network. `inputs` and `outputs` follow the engine's lists, in dense host memory. Outputs are aligned to their
  /// element type, and are written when this returns, whatever devices took part. Errors: types and counts that do not fit.
  ///
  /// Beyond that check a run neither allocates nor throws, with three exceptions. Kernels that `portable` makes from the
  /// reference allocate, and throw where an index is out of range. A branch or loop makes a context for each thread that runs
  /// it at the same time, once. Kernels of a device throw the device's errors.
  void run(std::span<const const_tensor_view> inputs, std::span<const tensor_view> outputs) {
    run(inputs, outputs, step_observer{});
  }
  /// The same with lists written out: `context.run({image}, {scores});`.
  void run(std::initializer_list<const_tensor_view> inputs, std::initializer_list<tensor_view> outputs) {
    run(std::span(inputs.begin(), inputs.size()), std::span(outputs.begin(), outputs.size()), step_observer{});
  }
  void run(std::span<const const_tensor_view> inputs, std::span<const tensor_view> outputs,
           const step_observer& observer);
  /// The same within limits. Throws an error of the kind `cancelled` if a limit is reached while steps are left. Outputs are then
  /// of no use, and the context can run again.
  void run(std::span<const const_tensor_view> inputs, std::span<const tensor_view> outputs, const run_limits& limits);
  void run(std::initializer_list<const_tensor_view> inputs, std::initializer_list<tensor_view> outputs,
           const run_limits& limits) {
    run(std::span(inputs.begin(), inputs.size()), std::span(outputs.begin(), outputs.size()), limits);
  }

  /// For observers, during a run: the address of a value that the step just run has written, or null, and its form. The form
  /// names the memory space of the address.
  const void* data_of(std::uint32_t value) const;
  const form& form_of(std::uint32_t value) const;

 private:
  friend class dynamic_engine;

  /// `arena` is the host's arena; null: the context allocates its own.
  dynamic_context(std::shared_ptr<const detail::engine_core> core, std::byte* arena);
  void bind_pointers();
  void check(std::span<const const_tensor_view> inputs, std::span<const tensor_view> outputs) const;
  /// Checks the arguments and binds the caller's memory. Then runs `steps`, and completes the outputs.
  template <class Steps>
  void run_with(std::span<const const_tensor_view> inputs, std::span<const tensor_view> outputs, Steps steps);
  void run_observed(const step_observer& observer);
  /// The memory of a region; null if it has none. The caller's memory has an address only during a run.
  const void* address(std::uint32_t region) const;

  /// A pointer that changes with the caller's memory.
  struct patch {
    std::uint32_t slot = 0;
    bool is_output = false;
    std::size_t which = 0;
    std::size_t within = 0;
  };
  struct bound_step {
    kernel::function invoke = nullptr;
    const void* state = nullptr;
    kernel_call call;
  };

  std::shared_ptr<const detail::engine_core> core_;
  std::vector<buffer> own_;
  std::vector<std::byte*> arenas_;  // as those of the program
  std::vector<void*> pointers_;     // one for each argument and result of every kernel
  std::vector<patch> patches_;
  std::vector<bound_step> steps_;
  std::span<const const_tensor_view> inputs_;  // of the run under way, for data_of
  std::span<const tensor_view> outputs_;
};

/// The planned cost of each step of an engine, in milliseconds.
std::vector<double> planned_ms(const dynamic_engine& engine, const placement& groups);

namespace detail {
void check_fingerprint(const graph& network, const plan& made);
}  // namespace detail

/// Builds an engine for a placement over a backend set. Errors: a plan of another network, and those of the constructor.
template <class Set>
dynamic_engine engine(const graph& network, const plan& made, const placement& which,
                      std::shared_ptr<packed_weights> packed = std::make_shared<packed_weights>()) {
  detail::check_fingerprint(network, made);
  return {network, which, table_of<Set>, made.threads, std::move(packed)};
}

/// Builds an engine for a plan over a backend set: `auto e = engine<backends>(network, plan);`.
template <class Set>
dynamic_engine engine(const graph& network, const plan& made) {
  return engine<Set>(network, made, made.chosen);
}
/// The same of a network that is not needed any more: `auto e = engine<backends>(std::move(network), plan);`.
template <class Set>
dynamic_engine engine(graph&& network, const plan& made) {
  detail::check_fingerprint(network, made);
  return {std::move(network), made.chosen, table_of<Set>, made.threads};
}

}  // namespace collage::inline v0
