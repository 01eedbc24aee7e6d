// Traces of runs.
#include "recorder.hpp"

#include "parts.hpp"

#include <collage/graph/totals.hpp>

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <limits>
#include <optional>
#include <unordered_set>
#include <utility>

namespace collage::inline v0 {
namespace detail {
namespace {

std::string name_of_step(const graph& network, const step_info& step) {
  constexpr std::size_t most_names = 4;
  if (step.nodes.empty()) return step.label;
  if (step.nodes.size() > most_names)
    return network.node_name(step.nodes.front()) + " to " + network.node_name(step.nodes.back()) + " (" +
           std::to_string(step.nodes.size()) + " nodes)";
  std::string name;
  for (const std::uint32_t n : step.nodes) name += (name.empty() ? "" : "+") + network.node_name(n);
  return name;
}

/// The bytes that a step reads and writes. A value counts in the form in which the step has it, where the program shows it. Kernels
/// that have packed a weight do not read its region, so that such weights count as they are in the network.
class step_traffic {
 public:
  step_traffic(const graph& network, const program& code) : network_(network), code_(code) {}

  void count(const program_instruction& it, traced_step& to) const {
    if (it.nodes.empty()) {
      for (const program_operand& o : it.in) to.bytes_read += bytes_of_region(o.region);
      for (const program_operand& o : it.out) to.bytes_written += bytes_of_region(o.region);
      return;
    }
    const graph_view view = network_.view();
    std::unordered_set<std::uint32_t> inside, seen;
    for (const std::uint32_t n : it.nodes)
      for (std::uint32_t i = 0; i < network_.node(n).outputs; ++i) inside.insert(view.output_of(n, i));
    for (const std::uint32_t n : it.nodes)
      for (const std::uint32_t v : view.inputs_of(n))
        if (!inside.contains(v) && seen.insert(v).second) to.bytes_read += bytes_of_value(v, it.in);
    const std::unordered_set<std::uint32_t> nodes(it.nodes.begin(), it.nodes.end());
    for (const std::uint32_t v : inside)
      if (is_read_outside(view, v, nodes)) to.bytes_written += bytes_of_value(v, it.out);
  }

 private:
  std::size_t bytes_of_region(std::uint32_t region) const {
    return region == no_region ? 0 : code_.regions[region].bytes;
  }
  std::size_t bytes_of_value(std::uint32_t value, const std::vector<program_operand>& operands) const {
    for (const program_operand& o : operands)
      if (o.region != no_region && code_.regions[o.region].value == value) return code_.regions[o.region].bytes;
    return value < network_.values().size() ? network_.type_of(value).bytes() : 0;
  }
  bool is_read_outside(const graph_view& view, std::uint32_t value,
                       const std::unordered_set<std::uint32_t>& nodes) const {
    return network_.at(value).is_output ||
           std::ranges::any_of(view.uses_of(value), [&](const use& u) { return !nodes.contains(u.node); });
  }

  const graph& network_;
  const program& code_;
};

std::string name_of_thread(std::int64_t number) {
  if (number == static_cast<std::int64_t>(::getpid())) return "main";
  char name[16] = {};
  if (pthread_getname_np(pthread_self(), name, sizeof name) != 0 || name[0] == '\0') return "thread";
  return name;
}

bool is_limited(const run_limits& limits) {
  return limits.stop != nullptr || limits.seconds < std::numeric_limits<double>::infinity();
}

}  // namespace

run_recorder::run_recorder(run_trace& to, std::string name) : to_(to), exceptions_(std::uncaught_exceptions()) {
  run_.number = ++to.begun_runs_;
  run_.thread = static_cast<std::int64_t>(::gettid());
  run_.name = std::move(name);
  open(trace_event::sort::run, trace_event::none, 0);
}

run_recorder::~run_recorder() {
  run_.is_complete = std::uncaught_exceptions() == exceptions_;
  close(0);
  try {
    to_.add(std::move(run_));
  } catch (...) {
    // There is no memory for this run: the trace has one fewer.
  }
}

std::uint32_t run_recorder::number_of(const std::shared_ptr<const traced_engine>& engine) {
  const auto at = std::ranges::find(run_.engines, engine);
  const auto number = static_cast<std::uint32_t>(at - run_.engines.begin());
  if (at == run_.engines.end()) run_.engines.push_back(engine);
  return number;
}

std::uint32_t run_recorder::add_label(std::string label) {
  run_.labels.push_back(std::move(label));
  return static_cast<std::uint32_t>(run_.labels.size() - 1);
}

std::size_t run_recorder::open(trace_event::sort is, std::uint32_t engine, std::uint32_t index) {
  run_.events.push_back({is, engine, index, 0, -1});
  run_.events.back().begin_ns = to_.now_ns();  // after memory was found
  return run_.events.size() - 1;
}

/// The data of a run's observer.
struct run_recorder::step_watch {
  run_recorder& recorder;
  const traced_engine& engine;
  std::uint32_t number;
  const run_watch* limits;  ///< null: none
  std::size_t at = 0;
  std::size_t begun = 0;  // steps

  static void before(void* data, std::size_t step) {
    auto& self = *static_cast<step_watch*>(data);
    if (step >= self.engine.steps.size()) refuse();
    ++self.begun;
    if (self.limits != nullptr && self.limits->is_over())
      throw ended_before(step, self.engine.steps.size(), self.engine.steps[step].label, self.limits->reason());
    self.at = self.recorder.open(trace_event::sort::step, self.number, static_cast<std::uint32_t>(step));
  }
  static void after(void* data, std::size_t, const dynamic_context&) {
    const auto& self = *static_cast<step_watch*>(data);
    self.recorder.close(self.at);
  }
  [[noreturn]] static void refuse() {
    throw error(error_kind::invalid_argument, "describes another engine than the one that runs", "a traced run",
                "give the description of the context's engine");
  }
};

void run_recorder::run(dynamic_context& context, const std::shared_ptr<const traced_engine>& of,
                       std::span<const const_tensor_view> inputs, std::span<const tensor_view> outputs,
                       const run_limits& limits) {
  run_.events.reserve(run_.events.size() + of->steps.size());
  std::optional<run_watch> watch;
  if (is_limited(limits)) watch.emplace(limits);
  step_watch steps{*this, *of, number_of(of), watch ? &*watch : nullptr};
  const std::size_t first = run_.events.size();
  try {
    context.run(inputs, outputs, {.data = &steps, .before = &step_watch::before, .after = &step_watch::after});
    if (steps.begun != of->steps.size()) step_watch::refuse();
  } catch (...) {
    if (run_.events.size() > first && run_.events.back().end_ns < 0) close(run_.events.size() - 1);
    throw;
  }
}

}  // namespace detail

std::shared_ptr<const traced_engine> traced(const dynamic_engine& engine, const graph& network, std::string name) {
  auto made = std::make_shared<traced_engine>();
  made->name = std::move(name);
  made->threads = engine.threads();
  std::vector<const program_instruction*> executed;
  for (const program_instruction& it : engine.code().instructions)
    if (!it.is_view() && !std::holds_alternative<copy_step>(it.step)) executed.push_back(&it);
  if (executed.size() != engine.steps().size() || engine.code().regions.size() < network.values().size())
    throw error(error_kind::invalid_argument, "was made from another network", "the engine",
                "give the network that it was made from");
  const detail::step_traffic traffic(network, engine.code());
  for (std::size_t i = 0; i < executed.size(); ++i) {
    const step_info& from = engine.steps()[i];
    for (const std::uint32_t n : from.nodes)
      if (n >= network.nodes().size())
        throw error(error_kind::invalid_argument, "has a node that the network lacks", "the engine",
                    "give the network that it was made from");
    traced_step step{detail::name_of_step(network, from), from.backend, from.pattern, from.kernel, from.label};
    step.nodes = from.nodes.size();
    for (const std::uint32_t n : from.nodes) step.flops += work_of(network, n).flops;
    traffic.count(*executed[i], step);
    made->steps.push_back(std::move(step));
  }
  return made;
}

void run_trace::run(dynamic_context& context, const std::shared_ptr<const traced_engine>& of,
                    std::span<const const_tensor_view> inputs, std::span<const tensor_view> outputs,
                    const run_limits& limits) {
  if (of == nullptr)
    throw error(error_kind::invalid_argument, "needs a description of the engine", "a traced run", "call traced()");
  detail::run_recorder recorder(*this, of->name);
  recorder.run(context, of, inputs, outputs, limits);
}

void run_trace::add(traced_run&& done) {
  const std::lock_guard lock(mutex_);
  if (done.events.size() > most_events_ - events_) {
    ++held_.dropped_runs;
    return;
  }
  const auto is_its_thread = [&](const traced_thread& t) { return t.number == done.thread; };
  if (std::ranges::none_of(held_.threads, is_its_thread))
    held_.threads.push_back({done.thread, detail::name_of_thread(done.thread)});
  events_ += done.events.size();
  held_.runs.push_back(std::make_shared<const traced_run>(std::move(done)));
}

trace_contents run_trace::contents() const {
  const std::lock_guard lock(mutex_);
  return held_;
}

std::size_t run_trace::events() const {
  const std::lock_guard lock(mutex_);
  return events_;
}

}  // namespace collage::inline v0
