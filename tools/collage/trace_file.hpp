// `--trace`: runs are recorded and written to a file.
#pragma once

#include "options.hpp"

#include <collage/graph/graph.hpp>
#include <collage/run/buffers.hpp>
#include <collage/run/engine.hpp>
#include <collage/run/trace.hpp>

#include <cstddef>
#include <string>

namespace program {

/// How often a trace has a placement's run.
inline constexpr std::size_t traced_runs = 10;

/// The file of --trace. Nothing happens if it was not given.
class trace_file {
 public:
  /// Throws if the file cannot be written or is one that the command reads: placing takes minutes, and runs come after it.
  explicit trace_file(const options& given);

  bool is_wanted() const { return !path_.empty(); }
  /// Runs an engine `times` times. `name` is that of the placement.
  void add(const collage::dynamic_engine& engine, const collage::graph& network, const std::string& name,
           collage::run_buffers& memory, std::size_t times);
  collage::run_trace& trace() { return trace_; }
  /// Writes the file. The process has the name of the network.
  void save(const std::string& network) const;
  /// "The trace of 10 runs is in FILE: open it at https://ui.perfetto.dev or in chrome://tracing."
  std::string sentence() const;

 private:
  std::string path_;
  collage::run_trace trace_;
};

}  // namespace program
