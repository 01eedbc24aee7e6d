// Recording one run for a trace.
#pragma once

#include <collage/run/engine.hpp>
#include <collage/run/tensor.hpp>
#include <collage/run/trace.hpp>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace collage::inline v0::detail {

/// One run from its beginning to its end. The destructor adds it to the trace.
class run_recorder {
 public:
  run_recorder(run_trace& to, std::string name);
  run_recorder(const run_recorder&) = delete;
  run_recorder& operator=(const run_recorder&) = delete;
  ~run_recorder();

  /// The number of an engine among those of this run.
  std::uint32_t number_of(const std::shared_ptr<const traced_engine>& engine);
  /// The number of a new label.
  std::uint32_t add_label(std::string label);

  /// Runs an engine, and adds an event for each step.
  void run(dynamic_context& context, const std::shared_ptr<const traced_engine>& of,
           std::span<const const_tensor_view> inputs, std::span<const tensor_view> outputs, const run_limits& limits);

  /// An event that lasts as long as this object; none if `of` is null.
  class interval {
   public:
    interval(run_recorder* of, trace_event::sort is, std::uint32_t engine, std::uint32_t index)
        : of_(of), at_(of == nullptr ? 0 : of->open(is, engine, index)) {}
    interval(const interval&) = delete;
    interval& operator=(const interval&) = delete;
    ~interval() {
      if (of_ != nullptr) of_->close(at_);
    }

   private:
    run_recorder* of_;
    std::size_t at_;
  };

 private:
  struct step_watch;
  std::size_t open(trace_event::sort is, std::uint32_t engine, std::uint32_t index);
  void close(std::size_t at) { run_.events[at].end_ns = to_.now_ns(); }

  run_trace& to_;
  traced_run run_;
  int exceptions_;
};

}  // namespace collage::inline v0::detail
