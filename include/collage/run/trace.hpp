// Traces: which step of which run took how long, and in which thread. io/trace.hpp writes them to files.
#pragma once

#include <atomic>
#include <chrono>
#include <collage/graph/graph.hpp>
#include <collage/run/engine.hpp>
#include <collage/run/tensor.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace collage::inline v0 {

namespace detail {
class run_recorder;
}

/// A step of an engine, as a trace shows it.
struct traced_step {
  std::string
      name;  ///< the names of its nodes, as "conv_0+relu_1"; from five nodes on, the first, the last and their number
  std::string backend, pattern, kernel, label;  ///< as in step_info
  std::size_t nodes = 0;                        ///< 0: a conversion
  double flops = 0;                             ///< of its nodes, as `work_of` counts them
  std::size_t bytes_read = 0;                   ///< of the values that it needs, weights included, each once
  std::size_t bytes_written = 0;                ///< of the values that are read after it

  bool is_conversion() const { return nodes == 0; }
};

/// The steps of an engine, for traces.
struct traced_engine {
  std::string name;  ///< of the network, or of the part of it
  int threads = 1;
  std::vector<traced_step> steps;
};

/// Describes an engine. `network` is the graph that it was made from, which needs no contents of constants. Error: another graph.
std::shared_ptr<const traced_engine> traced(const dynamic_engine& engine, const graph& network, std::string name);

/// An interval of time in a run.
struct trace_event {
  enum class sort : std::uint8_t {
    run,            ///< all of the run
    stage,          ///< of a session; `index` is its number, from 0
    engine,         ///< a session finds or makes the engine of stage `index`
    step,           ///< step `index` of an engine
    late_operator,  ///< an operator that a session computes itself, because its result's shape depends on contents
  };
  sort is = sort::run;
  std::uint32_t engine = none;            ///< of a stage or a step: its number in `traced_run::engines`
  std::uint32_t index = 0;                ///< of a late operator: its number in `traced_run::labels`
  std::int64_t begin_ns = 0, end_ns = 0;  ///< since the trace was made

  static constexpr std::uint32_t none = 0xFFFFFFFF;
};

/// One run as it was. The first event is the run; an event that encloses others comes before them.
struct traced_run {
  std::uint64_t number = 0;  ///< in the trace, from 1, in the order in which runs began
  std::int64_t thread = 0;   ///< as Linux numbers threads (gettid)
  bool is_complete = true;   ///< false: the run failed or was cancelled
  std::string name;
  std::vector<std::shared_ptr<const traced_engine>> engines;
  std::vector<std::string> labels;
  std::vector<trace_event> events;
};

struct traced_thread {
  std::int64_t number = 0;
  std::string name;
};

/// All that a trace holds at one moment.
struct trace_contents {
  std::vector<std::shared_ptr<const traced_run>> runs;  ///< in the order in which they ended
  std::vector<traced_thread> threads;                   ///< those of the runs
  std::uint64_t dropped_runs = 0;                       ///< runs for which there was no room
};

/// Collects runs. Any number of threads may run into one trace, each with a context of its own. A run that is not traced costs
/// nothing. A traced run looks at the clock twice for each step, and waits for devices after it.
class run_trace {
 public:
  /// Runs are dropped once they would have more than `most_events` events in all.
  explicit run_trace(std::size_t most_events = 1'000'000) : most_events_(most_events) {}
  run_trace(const run_trace&) = delete;
  run_trace& operator=(const run_trace&) = delete;

  /// Runs a network, and adds the run. `of` describes the context's engine. Errors: those of the run, which is added as far as it
  /// came; a description with another number of steps.
  void run(dynamic_context& context, const std::shared_ptr<const traced_engine>& of,
           std::span<const const_tensor_view> inputs, std::span<const tensor_view> outputs,
           const run_limits& limits = {});

  trace_contents contents() const;
  std::size_t events() const;

 private:
  friend class detail::run_recorder;
  std::int64_t now_ns() const { return std::chrono::nanoseconds(std::chrono::steady_clock::now() - began_).count(); }
  void add(traced_run&& done);

  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  std::size_t most_events_;
  std::atomic<std::uint64_t> begun_runs_ = 0;
  mutable std::mutex mutex_;  // for all below
  std::size_t events_ = 0;
  trace_contents held_;
};

}  // namespace collage::inline v0
