// The parts of the engine. A plan's placement becomes a program in passes:
//
//   check.cpp      the placement covers the network, each node once and in order
//   lower.cpp      steps become kernels and views over storage (lowering): what is read in which form, and who builds it
//   constant_steps.cpp  steps that compute the same in every run become constants
//   layout.cpp     storage becomes regions: the caller's memory, constants, and arenas planned by lifetimes
//   program.cpp    the program as text, and its verifier
//   control.cpp    kernels that own engines of sub-graphs
//   engine.cpp     the engine and its contexts: binding pointers, running
//   trace.cpp      runs that are recorded (recorder.hpp)
#pragma once

#include <collage/error.hpp>
#include <collage/graph/graph.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/engine.hpp>
#include <collage/run/form.hpp>
#include <collage/run/kernel.hpp>
#include <collage/run/plan.hpp>
#include <collage/run/program.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace collage::inline v0::detail {

inline constexpr std::uint32_t no_region = program_region::none;

/// The limits of a run under way in this thread. A run within another, of the body of a loop for example, keeps the limits of both.
class run_watch {
 public:
  explicit run_watch(const run_limits& limits);
  run_watch(const run_watch&) = delete;
  run_watch& operator=(const run_watch&) = delete;
  ~run_watch();

  /// Whether a run with limits is under way in this thread.
  static bool is_any_here() noexcept;

  bool is_over() const;
  /// Why it is over, for a sentence.
  std::string reason() const;

 private:
  bool is_stopped() const { return limits_.stop != nullptr && limits_.stop->load(std::memory_order_relaxed); }

  const run_limits& limits_;
  double ends_s_;
  const run_watch* outer_;
};

/// The error of a run whose limits are reached before step `step` of `count`, which has this label.
error ended_before(std::size_t step, std::size_t count, const std::string& label, const std::string& reason);

/// An error of a plan that does not fit.
error plan_error(const std::string& what, const std::string& where);

/// The backend of that name. Errors: the set lacks it.
const backend_entry& backend_named(backend_table backends, const std::string& name);

/// The stored values of a placement: each is a value of the network in one form. A stored value is known by its number. The first
/// numbers are the network's values in the forms in which they are written. Further numbers are the same values in other forms.
class value_storage {
 public:
  /// The memory of a stored value begins `offset` bytes after that of stored value `of`.
  struct part {
    std::uint32_t of = 0;
    std::size_t offset = 0;
  };

  explicit value_storage(const graph& network);

  /// Sets the form in which a value of the network is written.
  void write(std::uint32_t value, const form& stored) { forms_[value] = stored; }
  /// Puts the stored value `number`, which has memory of its own so far, into the memory of `into`.
  void put(std::uint32_t number, std::uint32_t into, std::size_t offset) { parts_[number] = {into, offset}; }
  /// Adds a value of the network in another form, and returns its number.
  std::uint32_t add(std::uint32_t value, const form& stored);
  /// The number of a value in a form; nothing if `add` was not called for it.
  std::optional<std::uint32_t> find(std::uint32_t value, const form& stored) const;

  const form& form_at(std::uint32_t number) const { return forms_[number]; }
  std::uint32_t value_at(std::uint32_t number) const { return values_[number]; }
  /// The stored value in whose memory this one lies, and where.
  part whole(std::uint32_t number) const;
  std::size_t bytes(std::uint32_t number) const;
  std::size_t size() const { return forms_.size(); }

 private:
  const graph* network_;
  std::vector<form> forms_;            // by number
  std::vector<std::uint32_t> values_;  // by number
  std::vector<part> parts_;            // by number: the memory in which it lies, its own or another's
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> others_;  // by value: its further numbers
};

/// One step of a placement over storage.
struct lowered_step {
  program_instruction info;                 ///< step, kernel, nodes and label
  kernel run;                               ///< none for views
  const memory_space* space = &host_space;  ///< of the workspace
  std::vector<std::uint32_t> in, out;       ///< numbers of storage; `no_region` where the kernel reads nothing
};

/// A placement whose kernels are built.
struct lowered_plan {
  explicit lowered_plan(const graph& network) : storage(network) {}

  value_storage storage;
  std::vector<lowered_step> steps;
  std::vector<std::uint32_t> results;  ///< the network's outputs, as numbers of storage in the plain form
  std::vector<const backend_entry*> used;
  /// Constants that kernels read in a device's memory: number of storage and contents there.
  std::vector<std::pair<std::uint32_t, std::shared_ptr<const std::byte>>> on_devices;
  /// The same for what steps computed when the engine was built.
  std::vector<std::pair<std::uint32_t, std::shared_ptr<const std::byte>>> computed;
};

/// Builds every kernel of a placement. `released`, where it is not null, is the same network: constants are given up in it as
/// soon as the last kernel has packed them. Errors: a plan that does not fit; what backends refuse.
lowered_plan lower(const graph& network, graph* released, const placement& groups, backend_table backends, int threads,
                   const std::shared_ptr<packed_weights>& packed);

/// Runs the steps that dequantise constants, and makes constants of their results. Kernels that read integers have no such step.
/// The results are shared with other engines by `packed`. Errors: out of memory.
void run_constant_steps(const graph& network, lowered_plan& plan, backend_table backends, int threads,
                        packed_weights& packed);

/// A program with the kernels and constants that it runs with.
struct linked_program {
  program code;
  std::vector<kernel> kernels;  ///< by instruction; none for views and copies
  std::vector<std::shared_ptr<const std::byte>> constants;
};

/// Gives every number of storage its memory, and plans the arenas.
linked_program lay_out(const graph& network, lowered_plan plan, int threads);

/// The kernel of control flow, over engines built from the placements of its sub-graphs.
kernel build_control(const graph& network, std::uint32_t node, const control_step& step, backend_table backends,
                     int threads, const std::shared_ptr<packed_weights>& packed);

}  // namespace collage::inline v0::detail
