// The engine: a network and a placement, built into kernels over one arena planned ahead.
#pragma once

#include <collage/graph/graph.hpp>
#include <collage/layout.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/kernel.hpp>
#include <collage/run/plan.hpp>
#include <collage/run/tensor.hpp>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
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
  std::vector<std::uint32_t> nodes;  ///< none: a conversion of layouts
  std::string label;                 ///< the name of the group's last node, or of the value that is converted
  std::uint32_t output = 0;          ///< the value it writes, the first of several
  std::size_t workspace = 0;
  layout written;  ///< in which layout it writes that value
};

/// An input or output as seen from outside.
struct port {
  std::string name;
  tensor_type type;
};

/// Called around the steps of a run; either may be null. Costs nothing when it is not given.
struct step_observer {
  void* data = nullptr;
  void (*before)(void* data, std::size_t step) = nullptr;
  void (*after)(void* data, std::size_t step, const dynamic_context& context) = nullptr;
};

/// A network ready to run. Immutable; shared by any number of contexts in any number of threads. It keeps the constants
/// its kernels read and the packed forms of others, and nothing else of the graph.
class dynamic_engine {
 public:
  /// Builds every kernel of the placement. Errors: a plan of another network, a backend that is missing or refuses,
  /// nodes that are not covered or covered twice, constants that were not loaded.
  dynamic_engine(const graph& network, const placement& groups, backend_table backends, int threads,
                 std::shared_ptr<packed_weights> packed = std::make_shared<packed_weights>())
      : core_(build(network, nullptr, groups, backends, threads, std::move(packed))) {}
  /// The same of a network that is not needed any more but for names and shapes: each constant is released as soon as the
  /// last kernel has packed it, so that the constants and their packed forms are never all in memory side by side. Other
  /// holders of a constant's memory keep it.
  dynamic_engine(graph&& network, const placement& groups, backend_table backends, int threads,
                 std::shared_ptr<packed_weights> packed = std::make_shared<packed_weights>())
      : core_(build(network, &network, groups, backends, threads, std::move(packed))) {}

  std::span<const port> inputs() const { return core_->inputs; }
  std::span<const port> outputs() const { return core_->outputs; }
  std::span<const step_info> steps() const { return core_->infos; }
  int threads() const { return core_->threads; }
  /// Bytes one context needs for intermediate values and workspace in a memory space; what runs inside branches and loops has
  /// memory of the engine's own besides.
  std::size_t arena_bytes(const memory_space& space = host_space) const {
    const arena_size* const known = core_->find_arena(space);
    return known != nullptr ? known->bytes : 0;
  }
  /// The largest sum of values alive at one step and its kernel's workspace: no arena can be smaller.
  std::size_t arena_lower_bound(const memory_space& space = host_space) const {
    const arena_size* const known = core_->find_arena(space);
    return known != nullptr ? known->bound : 0;
  }

  /// A context with memory of its own, or with its arena on the host in the caller's: at least arena_bytes(), aligned to 64,
  /// outliving the context.
  dynamic_context context() const;
  dynamic_context context(std::span<std::byte> arena) const;

 private:
  friend class dynamic_context;

  /// Where a value is found: an offset into the arena, a constant, or the memory of an input or output given at each
  /// run.
  struct place {
    enum class where : std::uint8_t { nowhere, arena, weight, users_input, users_output } kind = where::nowhere;
    std::size_t offset = 0;  ///< into the arena, or which input or output
    std::size_t within = 0;  ///< bytes behind where that begins: of a part of another value
    const std::byte* memory = nullptr;
    std::uint32_t arena = 0;  ///< which
  };
  struct step {
    kernel run;
    std::uint32_t first_slot = 0;  ///< its argument pointers, then its output pointers
    std::uint32_t arguments = 0;
    std::size_t workspace = 0;  ///< its offset in the arena, where the kernel wants one
    std::uint32_t arena = 0;    ///< in which that lies
  };
  /// What one context needs of a memory space.
  struct arena_size {
    const memory_space* space = &host_space;
    std::size_t bytes = 0, bound = 0;
  };
  struct copy {  // outputs that no kernel can write in place
    place from;
    std::size_t output = 0;
    std::size_t bytes = 0;
  };
  struct core {
    std::vector<port> inputs, outputs;
    std::vector<step> steps;
    std::vector<step_info> infos;
    std::vector<place> slots;        // one per argument and output of every step
    std::vector<place> value_place;  // one per value of the graph, then one per copy in another layout
    std::vector<layout> layouts;     // in which the values of the graph are written
    std::vector<copy> copies;
    std::vector<std::shared_ptr<const std::byte>> constants;
    std::vector<const backend_entry*> used;
    std::shared_ptr<packed_weights> packed;
    std::vector<arena_size> arenas =
        std::vector<arena_size>(1);  // the host's, then each other space's in which kernels run
    int threads = 1;

    const arena_size* find_arena(const memory_space& space) const {
      for (const arena_size& a : arenas)
        if (*a.space == space) return &a;
      return nullptr;
    }
    std::uint32_t arena_in(const memory_space& space) {
      if (find_arena(space) == nullptr) arenas.push_back({&space, 0, 0});
      return static_cast<std::uint32_t>(find_arena(space) - arenas.data());
    }
    /// Waits until devices have done what this thread asked of them.
    void finish() const {
      for (std::size_t i = 1; i < arenas.size(); ++i) arenas[i].space->finish();
    }
    /// The same where something went wrong already.
    void settle() const noexcept {
      try {
        finish();
      } catch (...) {
        // What was thrown first is what the caller hears of.
      }
    }
  };
  static std::shared_ptr<const core> build(const graph& network, graph* released, const placement& groups,
                                           backend_table backends, int threads, std::shared_ptr<packed_weights> packed);

  std::shared_ptr<const core> core_;
};

/// One arena and its runs. Not to be used from two threads at once; as many contexts as wanted run side by side.
class dynamic_context {
 public:
  /// Runs the network. `inputs` and `outputs` follow the engine's lists; dense host memory, outputs aligned to their
  /// element type and written when this returns, whatever devices took part. Neither allocates nor throws beyond the check of
  /// types and counts, unless a kernel does: those that `portable` makes from the reference allocate, and throw where data
  /// break a rule (an index out of range); a branch or loop that several threads run at once makes a context for each of them
  /// the first time. Kernels of a device throw what it has to say.
  void run(std::span<const const_tensor_view> inputs, std::span<const tensor_view> outputs) {
    run(inputs, outputs, step_observer{});
  }
  /// The same with lists written out: `context.run({image}, {scores});`.
  void run(std::initializer_list<const_tensor_view> inputs, std::initializer_list<tensor_view> outputs) {
    run(std::span(inputs.begin(), inputs.size()), std::span(outputs.begin(), outputs.size()), step_observer{});
  }
  void run(std::span<const const_tensor_view> inputs, std::span<const tensor_view> outputs,
           const step_observer& observer);

  /// During a run, from an observer: where a value is that the step just run has written, or null; and in which layout, which
  /// says in which memory space as well.
  const void* data_of(std::uint32_t value) const;
  const layout& layout_of(std::uint32_t value) const;

 private:
  friend class dynamic_engine;
  using place = dynamic_engine::place;

  /// `arena` is the host's; null: one of its own.
  dynamic_context(std::shared_ptr<const dynamic_engine::core> core, std::byte* arena);
  void check(std::span<const const_tensor_view> inputs, std::span<const tensor_view> outputs) const;
  /// During a run; null where there is nothing.
  const void* address(const place& p) const;

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

  std::shared_ptr<const dynamic_engine::core> core_;
  std::vector<buffer> own_;
  std::vector<std::byte*> arenas_;  // as those of the core
  std::vector<void*> pointers_;     // one per slot
  std::vector<patch> patches_;
  std::vector<bound_step> steps_;
  std::span<const const_tensor_view> inputs_;  // of the run under way, for data_of
  std::span<const tensor_view> outputs_;
};

/// What a placement says of each step of its engine, in milliseconds.
std::vector<double> planned_ms(const dynamic_engine& engine, const placement& groups);

/// Builds an engine for a placement over a backend set.
template <class Set>
dynamic_engine engine(const graph& network, const plan& made, const placement& which,
                      std::shared_ptr<packed_weights> packed = std::make_shared<packed_weights>());

/// Builds an engine for a plan over a backend set: `auto e = engine<backends>(network, plan);`.
template <class Set>
dynamic_engine engine(const graph& network, const plan& made);
/// The same of a network that is not needed any more: `auto e = engine<backends>(std::move(network), plan);`.
template <class Set>
dynamic_engine engine(graph&& network, const plan& made);

}  // namespace collage::inline v0

#include <collage/run/detail/engine.inl.hpp>
