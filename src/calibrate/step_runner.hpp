// Runs the kernels of a placement one by one, each value in memory of its own, so that any value can be changed.
#pragma once

#include <collage/calibrate/rounding.hpp>
#include <collage/graph/graph.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/kernel.hpp>
#include <collage/run/plan.hpp>
#include <collage/run/space.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/parts.hpp"

namespace collage::inline v0::detail {

/// Bytes that lie in another stored value.
struct copied_piece {
  std::uint32_t from = 0, to = 0;  ///< stored values, by number
  std::size_t from_offset = 0, to_offset = 0, bytes = 0;
};

/// A kernel, or the copies that stand for a view.
struct runner_step {
  kernel run;
  std::vector<copied_piece> pieces;
  std::vector<std::uint32_t> in, out;    ///< stored values; `no_region` where there is none
  std::vector<std::uint32_t> constants;  ///< that its nodes read, whether or not the kernel packed them
  plan_step how;
  std::vector<std::uint32_t> nodes;
};

/// The kernels of a placement, in order. Values are *stored values*: those of the network by their number, then the same values in
/// other forms. Immutable but for `rounded`, which uses a copy of the network.
class step_runner {
 public:
  /// Errors: those of engines; a placement with values on a device, or stored as other elements.
  step_runner(const graph& network, const placement& groups, backend_table backends, int threads);

  const graph& network() const { return network_; }
  std::span<const runner_step> steps() const { return steps_; }
  std::size_t size() const { return bytes_.size(); }
  std::size_t bytes_of(std::uint32_t stored) const { return bytes_[stored]; }
  const form& form_of(std::uint32_t stored) const { return forms_[stored]; }
  /// The step that writes a stored value; -1 for inputs and constants.
  std::int32_t writer_of(std::uint32_t stored) const { return writer_[stored]; }
  /// The last step that reads it; -1 if none does, and the number of steps for outputs.
  std::int32_t last_reader_of(std::uint32_t stored) const { return last_reader_[stored]; }
  /// The network's outputs.
  std::span<const std::uint32_t> results() const { return results_; }
  std::size_t workspace_bytes() const { return workspace_.size(); }
  /// The largest sum of values that are alive at one step.
  std::size_t most_alive() const;
  /// All values that steps write, together.
  std::size_t all_bytes() const;

  /// Whether a step reads a constant in any way.
  bool reads_constant(std::size_t step, std::uint32_t constant) const;
  /// The first step that reads a constant; the number of steps if none does.
  std::size_t first_reader_of(std::uint32_t constant) const;
  /// The kernel of a step for other contents of one constant. `contents` stay alive as long as the kernel. Nothing for views and
  /// control flow, which read the memory itself.
  kernel built_with(std::size_t step, std::uint32_t constant, const std::shared_ptr<const std::byte>& contents);

  /// Runs one step. `at(stored)` is the memory of each stored value that it reads and writes; null where the result is not wanted.
  /// `instead`, unless it is empty, is the kernel that runs.
  template <class At>
  void run(std::size_t step, At at, const kernel& instead = {});

  /// The threads and libraries of a run, while an object of this class exists.
  class entered_libraries {
   public:
    explicit entered_libraries(const step_runner& of) {
      for (const backend_entry* b : of.used_) entered_.push_back(std::make_unique<thread_scope>(*b, of.threads_));
    }
    ~entered_libraries() {
      while (!entered_.empty()) entered_.pop_back();  // the last first
    }

   private:
    std::vector<std::unique_ptr<thread_scope>> entered_;
  };

 private:
  void add_step(lowered_step&& from, const value_storage& storage);
  void add_pieces(runner_step& s, const value_storage& storage) const;
  void find_readers(const std::vector<std::uint32_t>& results);

  graph network_;  // a copy, whose constants change while a kernel is built with others
  backend_table backends_;
  int threads_;
  std::shared_ptr<packed_weights> packed_ = std::make_shared<packed_weights>();
  std::vector<runner_step> steps_;
  std::vector<const backend_entry*> used_;
  std::vector<form> forms_;         // by stored value
  std::vector<std::size_t> bytes_;  // by stored value
  std::vector<std::int32_t> writer_, last_reader_;
  std::vector<std::uint32_t> results_;
  buffer workspace_;
  std::vector<const void*> in_;
  std::vector<void*> out_;
};

template <class At>
void step_runner::run(std::size_t step, At at, const kernel& instead) {
  const runner_step& s = steps_[step];
  for (const copied_piece& p : s.pieces)
    if (p.bytes != 0) std::memcpy(at(p.to) + p.to_offset, at(p.from) + p.from_offset, p.bytes);
  if (!s.run) return;
  in_.clear();
  out_.clear();
  for (const std::uint32_t number : s.in) in_.push_back(number == no_region ? nullptr : at(number));
  for (const std::uint32_t number : s.out) out_.push_back(number == no_region ? nullptr : at(number));
  const kernel& runs = instead ? instead : s.run;
  if (runs.workspace() > workspace_.size()) workspace_ = buffer(runs.workspace());
  runs.entry()(runs.state(), {in_.data(), out_.data(), workspace_.data()});
}

}  // namespace collage::inline v0::detail
