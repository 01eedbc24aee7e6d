// Sessions and the runs of their contexts.
#include "../process/forks.hpp"
#include "recorder.hpp"
#include "session_parts.hpp"

#include <collage/detail/memory_check.hpp>
#include <collage/op/extents.hpp>
#include <collage/run/tensor.hpp>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

namespace collage::inline v0 {
namespace detail {
namespace {

/// Throws if memory of the caller can be no output.
void check_output(const std::string& name, const tensor_view& given) {
  if (!given.type.dims.is_concrete() || !is_countable(given.type.dims))
    refuse("is " + to_string(given.type.dims) + ", which is no shape of a tensor", "output " + name);
  if ((given.data == nullptr && given.type.bytes() != 0) || !(given.stored == form()))
    refuse("needs dense memory of the host", "output " + name);
}

/// The limits of a run, for each of its stages.
class remaining_limits {
 public:
  explicit remaining_limits(const run_limits& all)
      : all_(all), is_limited_(all.stop != nullptr || all.seconds < std::numeric_limits<double>::infinity()) {
    if (is_limited_) ends_ = std::chrono::steady_clock::now() + std::chrono::duration<double>(all.seconds);
  }
  bool is_limited() const { return is_limited_; }
  /// The limits from now on. Throws if one is reached.
  run_limits now() const {
    const std::chrono::duration<double> left =
        ends_ - std::chrono::time_point<std::chrono::steady_clock, std::chrono::duration<double>>(
                    std::chrono::steady_clock::now());
    if (left.count() <= 0 || (all_.stop != nullptr && all_.stop->load(std::memory_order_relaxed)))
      throw error(error_kind::cancelled,
                  left.count() <= 0 ? "was ended between two stages, because its time was over"
                                    : "was ended between two stages, because the caller stopped it",
                  "run");
    return {left.count(), all_.stop};
  }

 private:
  run_limits all_;
  bool is_limited_;
  std::chrono::time_point<std::chrono::steady_clock, std::chrono::duration<double>> ends_ = {};
};

}  // namespace

/// The memory for the values of one run. It is used again, and only grows.
class run_memory {
 public:
  void begin() {
    used_ = 0;
    late.clear();
  }
  std::byte* slot(std::size_t bytes) {
    if (used_ == slots_.size()) slots_.emplace_back();
    buffer& b = slots_[used_++];
    if (b.size() < bytes) {
      b = buffer();
      check_memory(bytes, "a value of a run");
      b = buffer(bytes);
    }
    return b.data();
  }

  std::vector<std::vector<tensor>> late;  ///< the results of each late operator

 private:
  std::vector<buffer> slots_;
  std::size_t used_ = 0;
};

/// The memory and the engines' contexts of one session_context.
class session_runner {
 public:
  explicit session_runner(std::shared_ptr<session_core> core)
      : core_(std::move(core)), states_(core_->inputs, core_->source->outputs()) {
    for (const open_port& p : core_->source->outputs()) outputs_.push_back({p.name, {}});
    outputs_before_ = outputs_;
  }

  std::span<const session_output> run(std::span<const const_tensor_view> inputs, std::span<const tensor_view> wanted,
                                      const run_limits& limits) {
    check(inputs, wanted);
    if (core_->given_back.load(std::memory_order_relaxed) != given_back_) forget_given_back();
    states_.gather(inputs, given_);
    wanted_ = wanted;
    std::optional<run_recorder> recorder;
    if (trace_ != nullptr) recorder.emplace(*trace_, "session");
    recorder_ = recorder ? &*recorder : nullptr;
    swap_memory();  // from here on, a failure swaps it back
    try {
      run_stages(remaining_limits(limits));
      states_.check(outputs_);
    } catch (...) {
      swap_memory();  // the states are there, and the next run must not write over them
      throw;
    }
    states_.take(outputs_);
    return outputs_;
  }

  void trace_into(run_trace* to) { trace_ = to; }

  context_states& states() { return states_; }
  const std::vector<session_output>& outputs() const { return outputs_; }

 private:
  struct stage_context {
    std::shared_ptr<session_stage> stage;
    dynamic_context context;
  };

  void check(std::span<const const_tensor_view> inputs, std::span<const tensor_view> wanted) const {
    check_inputs(core_->inputs.taken, inputs);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (wanted[i].data == nullptr && core_->inputs.is_carried[i]) continue;
      check_output(outputs_[i].name, wanted[i]);
    }
  }

  /// The memory and outputs of the run before stay: they are states, or may be inputs of the next run.
  void swap_memory() {
    std::swap(memory_, memory_before_);
    std::swap(outputs_, outputs_before_);
  }

  void run_stages(const remaining_limits& left) {
    memory_.begin();
    std::shared_ptr<session_stage> stage;
    for (std::size_t depth = 0;; ++depth) {
      {
        const run_recorder::interval event = finding(depth);
        stage = find(depth, stage);
      }
      const run_recorder::interval event = running(depth, *stage);
      run_stage(stage, left);
      if (stage->about.is_last) return;
      next_.clear();
      for (const value_place& at : stage->passed_on) next_.push_back(value_at(at));
      std::swap(given_, next_);
    }
  }

  /// Lets go of engines that the session gave back; they would stay alive here.
  void forget_given_back() {
    given_back_ = core_->given_back.load();
    std::erase_if(contexts_, [](const stage_context& c) { return c.stage->is_given_back.load(); });
    path_.clear();
  }

  /// The stage for the given values: the one of the last run if it serves, which needs no lock.
  std::shared_ptr<session_stage> find(std::size_t depth, const std::shared_ptr<session_stage>& before) {
    if (depth < path_.size() && path_[depth]->serves(given_)) {
      core_->touch(*path_[depth]);
      return path_[depth];
    }
    path_.resize(depth);
    path_.push_back(core_->stage_for(before, given_));
    return path_[depth];
  }

  // Events of a traced run.
  run_recorder::interval finding(std::size_t depth) {
    return {recorder_, trace_event::sort::engine, trace_event::none, static_cast<std::uint32_t>(depth)};
  }
  run_recorder::interval running(std::size_t depth, const session_stage& stage) {
    const std::uint32_t engine = recorder_ == nullptr ? 0 : recorder_->number_of(stage.described);
    return {recorder_, trace_event::sort::stage, engine, static_cast<std::uint32_t>(depth)};
  }
  run_recorder::interval computing(const late_operator& op) {
    const std::uint32_t label = recorder_ == nullptr ? 0 : recorder_->add_label(op.label);
    return {recorder_, trace_event::sort::late_operator, trace_event::none, label};
  }

  dynamic_context& context_of(const std::shared_ptr<session_stage>& stage) {
    for (stage_context& c : contexts_)
      if (c.stage == stage) return c.context;
    const std::size_t bytes = stage->engine->arena_bytes();
    // All engines of this context use one arena: only one of them runs at a time, and results lie elsewhere.
    if (bytes > arena_.size()) {
      contexts_.clear();
      arena_ = buffer();
      check_memory(bytes, "the arena of a context");
      arena_ = buffer(bytes);
    }
    contexts_.push_back({stage, stage->engine->context({arena_.data(), arena_.size()})});
    return contexts_.back().context;
  }

  void run_stage(const std::shared_ptr<session_stage>& now, const remaining_limits& left) {
    const session_stage& stage = *now;
    now->runs.fetch_add(1, std::memory_order_relaxed);
    computed_.clear();
    if (stage.engine) {
      inputs_.clear();
      for (const std::size_t i : stage.engine_inputs) inputs_.push_back(given_[i]);
      const std::span<const port> ports = stage.engine->outputs();
      for (std::size_t i = 0; i < ports.size(); ++i) computed_.push_back(memory_for(stage, i, ports[i].type));
      dynamic_context& context = context_of(now);
      // Limits cost a look at the clock for every step.
      if (recorder_ != nullptr)
        recorder_->run(context, stage.described, inputs_, computed_, left.is_limited() ? left.now() : run_limits{});
      else if (left.is_limited()) context.run(inputs_, computed_, left.now());
      else context.run(inputs_, computed_);
    }
    late_of_stage_ = memory_.late.size();
    for (std::size_t i = 0; i < stage.about.late.size(); ++i) {
      std::vector<const_tensor_view> operands;
      for (const value_place& at : stage.late_operands[i]) operands.push_back(value_at(at));
      if (left.is_limited()) (void)left.now();
      const run_recorder::interval event = computing(stage.about.late[i]);
      const std::vector<tensor>& made = memory_.late.emplace_back(core_->source->compute(stage.about, i, operands));
      if (made.size() != stage.about.late[i].results.size())
        throw error(error_kind::failure, "its source computed another number of results", stage.about.late[i].label);
    }
    for (const session_stage::result& r : stage.results) deliver(r.output, value_at(r.at), r.at.from);
  }

  /// Where output i of a stage's engine is written: into the caller's memory if that fits, else into memory of this context.
  tensor_view memory_for(const session_stage& stage, std::size_t i, const tensor_type& type) {
    const tensor_view* fits = nullptr;
    for (const session_stage::result& r : stage.results) {
      if (r.at.from != value_place::where::network || r.at.index != i || r.output >= wanted_.size()) continue;
      // The caller may change its memory before the next run.
      if (core_->inputs.is_carried[r.output]) return {memory_.slot(type.bytes()), type};
      if (wanted_[r.output].type == type) fits = &wanted_[r.output];
    }
    return fits != nullptr ? *fits : tensor_view{memory_.slot(type.bytes()), type};
  }

  const_tensor_view value_at(const value_place& at) const {
    switch (at.from) {
      case value_place::where::given: return given_[at.index];
      case value_place::where::network: return computed_[at.index];
      case value_place::where::late: break;
    }
    return memory_.late[late_of_stage_ + at.index][at.result];
  }

  void deliver(std::size_t output, const const_tensor_view& v, value_place::where from) {
    session_output& out = outputs_[output];
    out.contents = v;
    const bool is_carried = core_->inputs.is_carried[output];
    if ((wanted_.empty() || is_carried) && from == value_place::where::given && v.type.bytes() != 0) {
      // It may lie in the caller's memory, or in that of the run before.
      std::byte* const own = memory_.slot(v.type.bytes());
      std::memcpy(own, v.data, v.type.bytes());
      out.contents = {own, v.type};
    }
    if (wanted_.empty()) return;
    const tensor_view& to = wanted_[output];
    if (to.data == nullptr && is_carried) return;
    if (to.type != v.type)
      refuse("is " + to_string(v.type) + " at these shapes, and the memory given for it " + to_string(to.type),
             "output " + out.name);
    if (!is_carried) out.contents = to;  // otherwise the caller might change the state
    if (to.data != v.data && v.type.bytes() != 0) std::memcpy(to.data, v.data, v.type.bytes());
  }

  std::shared_ptr<session_core> core_;
  std::vector<std::shared_ptr<session_stage>> path_;  // the stages of the last run
  std::vector<stage_context> contexts_;
  std::uint64_t given_back_ = 0;
  buffer arena_;
  run_memory memory_, memory_before_;
  std::vector<session_output> outputs_, outputs_before_;
  context_states states_;
  // These belong to the run under way.
  std::vector<const_tensor_view> given_, next_, inputs_;
  std::vector<tensor_view> computed_;
  std::size_t late_of_stage_ = 0;
  std::span<const tensor_view> wanted_;
  run_trace* trace_ = nullptr;
  run_recorder* recorder_ = nullptr;  // null: the run under way is not traced
};

namespace {

class function_source final : public network_source {
 public:
  using function = std::function<graph(std::span<const shape> dims)>;
  function_source(std::vector<open_port> inputs, std::vector<open_port> outputs, function make)
      : inputs_(std::move(inputs)), outputs_(std::move(outputs)), make_(std::move(make)) {}

  std::span<const open_port> inputs() const override { return inputs_; }
  std::span<const open_port> outputs() const override { return outputs_; }
  network_stage make(const network_stage*, std::span<const given_value> given) const override {
    std::vector<shape> dims;
    for (const given_value& g : given) dims.push_back(g.contents.type.dims);
    network_stage stage;
    stage.network = make_(dims);
    for (const open_port& p : outputs_) stage.results.push_back(p.name);
    for (const std::uint32_t v : stage.network.inputs()) {
      const auto found = std::find_if(given.begin(), given.end(),
                                      [&](const given_value& g) { return g.name == stage.network.value_name(v); });
      if (found == given.end()) refuse("is no input of the session", "input " + stage.network.value_name(v));
      if (stage.network.type_of(v) != found->contents.type)
        refuse(
            "is " + to_string(stage.network.type_of(v)) + " in the network made for " + to_string(found->contents.type),
            "input " + found->name);
    }
    return stage;
  }
  std::vector<tensor> compute(const network_stage&, std::size_t, std::span<const const_tensor_view>) const override {
    return {};
  }

 private:
  std::vector<open_port> inputs_, outputs_;
  function make_;
};

}  // namespace
}  // namespace detail

session::session(std::shared_ptr<const network_source> source, backend_table backends, session_planner planner,
                 const session_options& options)
    : core_(std::make_shared<detail::session_core>()) {
  if (source == nullptr || planner == nullptr)
    throw error(error_kind::invalid_argument, "needs a source and a planner", "a session");
  core_->inputs = detail::session_inputs(*source, options.carried);
  core_->source = std::move(source);
  core_->backends = backends;
  core_->planner = std::move(planner);
  core_->options = options;
}

std::span<const open_port> session::inputs() const { return core_->inputs.taken; }
std::span<const open_port> session::outputs() const { return core_->source->outputs(); }
std::span<const open_port> session::states() const { return core_->inputs.states; }
session_context session::context() const { return session_context(core_); }

session_state session::state() const {
  const std::size_t packed = core_->packed->bytes();  // may wait for a kernel that packs
  const detail::brief_no_fork_scope look;
  const std::lock_guard lock(core_->mutex);
  session_state now = core_->counts;
  now.packed_bytes = packed;
  return now;
}

session_context::session_context(std::shared_ptr<detail::session_core> core)
    : runner_(std::make_unique<detail::session_runner>(std::move(core))) {}
session_context::session_context(session_context&&) noexcept = default;
session_context& session_context::operator=(session_context&&) noexcept = default;
session_context::~session_context() = default;

std::span<const session_output> session_context::run(std::span<const const_tensor_view> inputs,
                                                     const run_limits& limits) {
  return runner_->run(inputs, {}, limits);
}

void session_context::run(std::span<const const_tensor_view> inputs, std::span<const tensor_view> outputs,
                          const run_limits& limits) {
  if (outputs.size() != runner_->outputs().size())
    detail::refuse("it has " + std::to_string(runner_->outputs().size()) + " outputs, and memory is given for " +
                       std::to_string(outputs.size()),
                   "a run");
  (void)runner_->run(inputs, outputs, limits);
}

void session_context::trace_into(run_trace* to) { runner_->trace_into(to); }
void session_context::start(std::string_view state, const shape& dims) { runner_->states().start(state, dims); }
void session_context::set_state(std::string_view state, const const_tensor_view& contents) {
  runner_->states().set(state, contents);
}
const_tensor_view session_context::state(std::string_view state) const { return runner_->states().at(state); }
void session_context::reset() { runner_->states().reset(); }

std::shared_ptr<const network_source> source_of(std::vector<open_port> inputs, std::vector<open_port> outputs,
                                                std::function<graph(std::span<const shape> dims)> make) {
  return std::make_shared<detail::function_source>(std::move(inputs), std::move(outputs), std::move(make));
}

}  // namespace collage::inline v0
