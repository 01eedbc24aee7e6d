// Traces as files in the trace event format, which https://ui.perfetto.dev and chrome://tracing show.
#pragma once

#include <collage/fwd.hpp>
#include <collage/io/file.hpp>
#include <collage/io/json.hpp>
#include <collage/run/trace.hpp>

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>

namespace collage::inline v0 {

namespace detail {

/// Writes the events of a trace, one to a line.
class trace_writer {
 public:
  explicit trace_writer(const std::string& process) : process_(process) {}

  std::string text(const trace_contents& from) {
    text_ = "{\"traceEvents\": [\n";
    name_thing("process_name", ::getpid(), process_);
    for (const traced_thread& t : from.threads) name_thing("thread_name", t.number, t.name);
    for (const auto& run : from.runs)
      for (const trace_event& e : run->events) add(*run, e);
    text_.resize(text_.size() - 2);  // the last comma
    const json others = {{"version", version()}, {"runs", from.runs.size()}, {"dropped_runs", from.dropped_runs}};
    text_ += "\n],\n\"displayTimeUnit\": \"ms\",\n\"otherData\": " + json_line(others) + "}\n";
    return std::move(text_);
  }

 private:
  static std::string version() {
    return "collage " + std::to_string(COLLAGE_VERSION_MAJOR) + '.' + std::to_string(COLLAGE_VERSION_MINOR) + '.' +
           std::to_string(COLLAGE_VERSION_PATCH);
  }
  /// Microseconds with all digits of the clock: rounded times would overlap.
  static std::string microseconds(std::int64_t ns) {
    char number[40];
    std::snprintf(number, sizeof number, "%lld.%03lld", static_cast<long long>(ns / 1000),
                  static_cast<long long>(ns % 1000));
    return number;
  }

  void name_thing(const char* what, std::int64_t thread, const std::string& name) {
    text_ += json_line({{"ph", "M"}, {"name", what}, {"pid", ::getpid()}, {"tid", thread}, {"args", {{"name", name}}}});
    text_ += ",\n";
  }

  void add(const traced_run& run, const trace_event& e) {
    json name, arguments = {{"run", run.number}};
    const char* category = "run";
    switch (e.is) {
      case trace_event::sort::run:
        name = run.name;
        if (!run.is_complete) arguments["failed"] = true;
        break;
      case trace_event::sort::stage:
        category = "stage";
        name = run.engines[e.engine]->name;
        arguments["stage"] = e.index + 1;
        arguments["threads"] = run.engines[e.engine]->threads;
        break;
      case trace_event::sort::engine:
        category = "engine";
        name = "find or make the engine";
        arguments["stage"] = e.index + 1;
        break;
      case trace_event::sort::late_operator:
        category = "late operator";
        name = run.labels[e.index];
        break;
      case trace_event::sort::step: {
        const traced_engine& engine = *run.engines[e.engine];
        const traced_step& step = engine.steps[e.index];
        category = step.is_conversion() ? "conversion" : "kernel";
        name = step.name;
        describe(step, e, arguments);
        arguments["step"] = e.index + 1;
        arguments["threads"] = engine.threads;
      }
    }
    text_ += "{\"ph\": \"X\", \"name\": " + json_line(name) + ", \"cat\": \"" + category +
             "\", \"pid\": " + std::to_string(::getpid()) + ", \"tid\": " + std::to_string(run.thread) +
             ", \"ts\": " + microseconds(e.begin_ns) + ", \"dur\": " + microseconds(e.end_ns - e.begin_ns) +
             ", \"args\": " + json_line(arguments) + "},\n";
  }

  static void describe(const traced_step& step, const trace_event& e, json& to) {
    to["backend"] = step.backend;
    to["kernel"] = step.kernel;
    to["pattern"] = step.pattern;
    to["label"] = step.label;
    to["nodes"] = step.nodes;
    to["bytes_read"] = step.bytes_read;
    to["bytes_written"] = step.bytes_written;
    const auto ns = static_cast<double>(e.end_ns - e.begin_ns);
    if (step.flops > 0 && ns > 0) to["gflops_per_s"] = rounded(step.flops / ns);
  }

  const std::string& process_;
  std::string text_;
};

}  // namespace detail

/// The trace in the trace event format, as a JSON object. Steps have the category "kernel" or "conversion"; runs, stages of sessions,
/// making engines and late operators have categories of their own. Times are microseconds since the trace was made. `process` is
/// the name of the process. Bytes of names that are not UTF-8 are replaced.
inline std::string to_text(const run_trace& from, const std::string& process) {
  return detail::trace_writer(process).text(from.contents());
}

/// Writes a trace in one step. Errors: a file that cannot be written.
inline void save_trace(const std::string& path, const run_trace& from, const std::string& process) {
  write_file(path, to_text(from, process));
}

}  // namespace collage::inline v0
