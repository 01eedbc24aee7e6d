// The engine and its contexts: pointers are bound once, and each run is a loop over kernels.
#include "../process/spread.hpp"
#include "parts.hpp"

#include <collage/detail/host_memory.hpp>
#include <collage/detail/memory_check.hpp>
#include <collage/op/convert_layout.hpp>
#include <collage/run/waiting.hpp>

#include <algorithm>
#include <chrono>
#include <cstring>

namespace collage::inline v0 {
namespace detail {

/// The part of an engine that its contexts share.
struct engine_core {
  linked_program linked;
  std::vector<step_info> infos;         ///< of the instructions that run a kernel
  std::vector<std::uint32_t> executed;  ///< their numbers
  std::vector<std::uint32_t> copies;    ///< numbers of the instructions that copy outputs to the caller
  std::vector<const backend_entry*> used;
  bool has_team = false;  ///< some backend uses the OpenMP team
  std::shared_ptr<packed_weights> packed;
  std::shared_ptr<const value_scales> scales;

  const program& code() const { return linked.code; }
  const program_arena* find_arena(const memory_space& space) const {
    for (const program_arena& a : code().arenas)
      if (*a.space == space) return &a;
    return nullptr;
  }
  /// Waits until devices have done the work of this thread.
  void finish() const {
    for (std::size_t i = 1; i < code().arenas.size(); ++i) code().arenas[i].space->finish();
  }
  /// The same where something went wrong already.
  void settle() const noexcept {
    try {
      finish();
    } catch (...) {
      // The caller gets the error that was thrown first.
    }
  }
};

namespace {

/// Libraries keep their thread count per calling thread. A run sets the count and puts the old one back, also where a kernel
/// throws.
class run_scope {
 public:
  run_scope(std::span<const backend_entry* const> used, int threads) : used_(used.first(std::min(used.size(), most))) {
    try {
      for (; entered_ < used_.size(); ++entered_)
        if (used_[entered_]->enter != nullptr) token_[entered_] = used_[entered_]->enter(threads);
    } catch (...) {
      leave();
      throw;
    }
  }
  run_scope(const run_scope&) = delete;
  run_scope& operator=(const run_scope&) = delete;
  ~run_scope() { leave(); }

 private:
  void leave() {
    for (; entered_ > 0; --entered_)
      if (used_[entered_ - 1]->leave != nullptr) used_[entered_ - 1]->leave(token_[entered_ - 1]);
  }

  static constexpr std::size_t most = 32;
  std::span<const backend_entry* const> used_;
  int token_[most];
  std::size_t entered_ = 0;
};

step_info info_of(const graph& network, const program& code, const program_instruction& it) {
  step_info info;
  info.backend = runner_of(it.step);
  info.kernel = it.kernel;
  info.nodes = it.nodes;
  info.label = it.label;
  if (const auto* const k = std::get_if<kernel_step>(&it.step)) info.pattern = k->pattern;
  if (std::holds_alternative<group_step>(it.step)) info.pattern = by_rule;
  if (std::holds_alternative<conversion_step>(it.step)) info.pattern = decltype(ops::convert_layout)::name;
  if (std::holds_alternative<control_step>(it.step)) info.pattern = network.node(it.nodes[0]).kind->name;
  if (it.nodes.empty()) {
    const program_region& made = code.regions[it.out[0].region];
    info.output = made.value;
    info.written = made.stored;
  } else {
    info.output = network.view().output_of(it.nodes.back());
    info.written = code.regions[info.output].stored;
  }
  if (it.workspace != no_region) info.workspace = code.regions[it.workspace].bytes;
  return info;
}

std::shared_ptr<const engine_core> build(const graph& network, graph* released, const placement& groups,
                                         backend_table backends, int threads, std::shared_ptr<packed_weights> packed) {
  check_contents(network);
  prepare_for_forks();
  threads = concurrent_threads(threads);
  auto core = std::make_shared<engine_core>();
  lowered_plan lowered = lower(network, released, groups, backends, threads, packed);
  run_constant_steps(network, lowered, backends, threads, *packed);
  core->used = lowered.used;
  core->has_team = std::ranges::any_of(
      core->used, [](const backend_entry* b) { return b->enter != nullptr && *b->space == host_space; });
  core->packed = std::move(packed);
  core->scales = groups.scales;
  core->linked = lay_out(network, std::move(lowered), threads);
  for (std::uint32_t i = 0; i < core->code().instructions.size(); ++i) {
    if (std::holds_alternative<copy_step>(core->code().instructions[i].step)) core->copies.push_back(i);
    if (!core->linked.kernels[i]) continue;
    core->executed.push_back(i);
    core->infos.push_back(info_of(network, core->code(), core->code().instructions[i]));
  }
  if (released != nullptr) return_free_memory();
  return core;
}

}  // namespace

namespace {
thread_local const run_watch* watch_here = nullptr;

double now_s() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }
}  // namespace

run_watch::run_watch(const run_limits& limits)
    : limits_(limits), ends_s_(now_s() + limits.seconds), outer_(std::exchange(watch_here, this)) {}
run_watch::~run_watch() { watch_here = outer_; }

bool run_watch::is_any_here() noexcept { return watch_here != nullptr; }

bool run_watch::is_over() const {
  return is_stopped() || now_s() >= ends_s_ || (outer_ != nullptr && outer_->is_over());
}

std::string run_watch::reason() const {
  if (is_stopped()) return "the caller stopped it";
  if (now_s() < ends_s_ && outer_ != nullptr) return outer_->reason();
  return "its time is over";
}

error ended_before(std::size_t step, std::size_t count, const std::string& label, const std::string& reason) {
  return {error_kind::cancelled,
          "was ended before step " + std::to_string(step + 1) + " of " + std::to_string(count) + " (" + label +
              "), because " + reason,
          "run"};
}

void check_fingerprint(const graph& network, const plan& made) {
  if (made.fingerprint != network.fingerprint())
    throw error(error_kind::invalid_argument, "the plan was made for another network (" + made.network + ")", "plan",
                "load that network, or place this one");
}

}  // namespace detail

using home = program_region::home;

dynamic_engine::dynamic_engine(const graph& network, const placement& groups, backend_table backends, int threads,
                               std::shared_ptr<packed_weights> packed)
    : core_(detail::build(network, nullptr, groups, backends, threads, std::move(packed))) {}

dynamic_engine::dynamic_engine(graph&& network, const placement& groups, backend_table backends, int threads,
                               std::shared_ptr<packed_weights> packed)
    : core_(detail::build(network, &network, groups, backends, threads, std::move(packed))) {}

std::span<const port> dynamic_engine::inputs() const { return core_->code().inputs; }
std::span<const port> dynamic_engine::outputs() const { return core_->code().outputs; }
std::span<const step_info> dynamic_engine::steps() const { return core_->infos; }
const value_scales* dynamic_engine::scales() const { return core_->scales.get(); }
const program& dynamic_engine::code() const { return core_->code(); }
int dynamic_engine::threads() const { return core_->code().threads; }

std::size_t dynamic_engine::arena_bytes(const memory_space& space) const {
  const program_arena* const known = core_->find_arena(space);
  return known != nullptr ? known->bytes : 0;
}
std::size_t dynamic_engine::arena_lower_bound(const memory_space& space) const {
  const program_arena* const known = core_->find_arena(space);
  return known != nullptr ? known->bound : 0;
}

dynamic_context dynamic_engine::context() const { return {core_, nullptr}; }

dynamic_context dynamic_engine::context(std::span<std::byte> arena) const {
  if (arena.size() < arena_bytes())
    throw error(
        error_kind::invalid_argument,
        "the arena has " + std::to_string(arena.size()) + " bytes but " + std::to_string(arena_bytes()) + " are needed",
        "context", "call arena_bytes() of the engine");
  if (reinterpret_cast<std::uintptr_t>(arena.data()) % 64 != 0)
    throw error(error_kind::invalid_argument, "the arena must be aligned to 64 bytes", "context",
                "allocate it with aligned_alloc(64, ...)");
  return {core_, arena.data()};
}

dynamic_context::dynamic_context(std::shared_ptr<const detail::engine_core> core, std::byte* arena)
    : core_(std::move(core)) {
  for (const program_arena& a : core_->code().arenas) {
    const bool is_given = arenas_.empty() && arena != nullptr;
    if (!is_given && *a.space == host_space) detail::check_memory(a.bytes, "the arena of a context");
    own_.emplace_back(is_given ? 0 : a.bytes, *a.space);
    arenas_.push_back(is_given ? arena : own_.back().data());
  }
  bind_pointers();
}

void dynamic_context::bind_pointers() {
  const program& code = core_->code();
  const auto bind = [&](const program_operand& o) {
    const auto slot = static_cast<std::uint32_t>(pointers_.size());
    // Kernels take arguments as const; one list for both keeps a step's pointers together.
    pointers_.push_back(const_cast<void*>(address(o.region)));
    if (o.region == program_region::none) return;
    const program_region& r = code.regions[o.region];
    const program_region& whole = r.where == home::part ? code.regions[r.index] : r;
    if (whole.where == home::callers_input || whole.where == home::callers_output)
      patches_.push_back(
          {slot, whole.where == home::callers_output, whole.index, r.where == home::part ? r.offset : 0});
  };
  for (const std::uint32_t i : core_->executed) {
    for (const program_operand& o : code.instructions[i].in) bind(o);
    for (const program_operand& o : code.instructions[i].out) bind(o);
  }
  std::size_t slot = 0;
  for (const std::uint32_t i : core_->executed) {
    const program_instruction& it = code.instructions[i];
    const kernel& run = core_->linked.kernels[i];
    bound_step b;
    b.invoke = run.entry();
    b.state = run.state();
    b.call = {pointers_.data() + slot, pointers_.data() + slot + it.in.size(),
              const_cast<void*>(address(it.workspace))};
    slot += it.in.size() + it.out.size();
    steps_.push_back(b);
  }
}

void dynamic_context::check(std::span<const const_tensor_view> inputs, std::span<const tensor_view> outputs) const {
  const auto check_one = [](const port& p, const tensor_type& type, const void* data, const form& stored,
                            const char* what) {
    if (type != p.type)
      throw error(error_kind::invalid_argument,
                  "is " + detail::to_string(type) + ", but the network needs " + detail::to_string(p.type),
                  std::string(what) + " " + p.name);
    if (data == nullptr && type.dims.elements() != 0)
      throw error(error_kind::invalid_argument, "has no memory", std::string(what) + " " + p.name);
    if (*stored.space != host_space)
      throw error(error_kind::invalid_argument,
                  std::string("lies in memory space ") + stored.space->name + ", but host memory is needed",
                  std::string(what) + " " + p.name);
    if (stored != form())
      throw error(error_kind::invalid_argument, "has form " + to_text(stored) + ", but plain is needed",
                  std::string(what) + " " + p.name);
  };
  if (inputs.size() != core_->code().inputs.size() || outputs.size() != core_->code().outputs.size())
    throw error(error_kind::invalid_argument,
                "takes " + std::to_string(core_->code().inputs.size()) + " inputs and " +
                    std::to_string(core_->code().outputs.size()) + " outputs, not " + std::to_string(inputs.size()) +
                    " and " + std::to_string(outputs.size()),
                "run");
  for (std::size_t i = 0; i < inputs.size(); ++i)
    check_one(core_->code().inputs[i], inputs[i].type, inputs[i].data, inputs[i].stored, "input");
  for (std::size_t i = 0; i < outputs.size(); ++i)
    check_one(core_->code().outputs[i], outputs[i].type, outputs[i].data, outputs[i].stored, "output");
}

template <class Steps>
void dynamic_context::run_with(std::span<const const_tensor_view> inputs, std::span<const tensor_view> outputs,
                               Steps steps) {
  check(inputs, outputs);
  inputs_ = inputs;
  outputs_ = outputs;
  for (const patch& p : patches_)
    pointers_[p.slot] =
        static_cast<std::byte*>(p.is_output ? outputs[p.which].data : const_cast<void*>(inputs[p.which].data)) +
        p.within;

  const detail::run_scope scope(core_->used, core_->code().threads);
  if (core_->has_team) detail::spread_team(core_->code().threads);
  try {
    steps();
  } catch (...) {
    core_->settle();  // the next run finds no work of this one under way
    throw;
  }
  for (const std::uint32_t i : core_->copies) {
    const program_instruction& copy = core_->code().instructions[i];
    if (const std::size_t bytes = core_->code().regions[copy.out[0].region].bytes; bytes != 0)
      std::memcpy(const_cast<void*>(address(copy.out[0].region)), address(copy.in[0].region), bytes);
  }
  core_->finish();  // the next run may be another thread's
}

void dynamic_context::run(std::span<const const_tensor_view> inputs, std::span<const tensor_view> outputs,
                          const step_observer& observer) {
  run_with(inputs, outputs, [&] {
    if (observer.before == nullptr && observer.after == nullptr) {
      for (const bound_step& s : steps_) s.invoke(s.state, s.call);
    } else {
      run_observed(observer);
    }
  });
}

void dynamic_context::run(std::span<const const_tensor_view> inputs, std::span<const tensor_view> outputs,
                          const run_limits& limits) {
  const detail::run_watch watch(limits);
  run_with(inputs, outputs, [&] {
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      if (watch.is_over()) throw detail::ended_before(i, steps_.size(), core_->infos[i].label, watch.reason());
      steps_[i].invoke(steps_[i].state, steps_[i].call);
    }
  });
}

void dynamic_context::run_observed(const step_observer& observer) {
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    if (observer.before != nullptr) observer.before(observer.data, i);
    steps_[i].invoke(steps_[i].state, steps_[i].call);
    core_->finish();
    if (observer.after != nullptr) observer.after(observer.data, i, *this);
  }
}

const void* dynamic_context::address(std::uint32_t region) const {
  if (region == program_region::none) return nullptr;
  const program_region& r = core_->code().regions[region];
  const auto behind = [](const void* from, std::size_t bytes) -> const void* {
    return from == nullptr ? nullptr : static_cast<const std::byte*>(from) + bytes;
  };
  switch (r.where) {
    case home::nowhere: return nullptr;
    case home::callers_input: return inputs_.empty() ? nullptr : inputs_[r.index].data;
    case home::callers_output: return outputs_.empty() ? nullptr : outputs_[r.index].data;
    case home::weights: return core_->linked.constants[r.index].get();
    case home::arena: return behind(arenas_[r.index], r.offset);
    case home::part: return behind(address(r.index), r.offset);
  }
  return nullptr;
}

const void* dynamic_context::data_of(std::uint32_t value) const { return address(value); }

const form& dynamic_context::form_of(std::uint32_t value) const { return core_->code().regions[value].stored; }

std::vector<double> planned_ms(const dynamic_engine& engine, const placement& groups) {
  std::vector<double> list;
  auto group = groups.groups.begin();
  for (const step_info& s : engine.steps()) {
    if (s.nodes.empty()) {
      list.push_back(find_conversion(groups, s.output, to_text(s.written))->cost_ms);
      continue;
    }
    while (group->is_view()) ++group;
    list.push_back((group++)->cost_ms);
  }
  return list;
}

}  // namespace collage::inline v0
