#include "trace_file.hpp"

#include "output_file.hpp"

#include <collage/io/file.hpp>
#include <collage/io/trace.hpp>

namespace program {

namespace c = collage;

trace_file::trace_file(const options& given) : path_(given.trace_file) {
  if (is_wanted()) check_output(path_, given);
}

void trace_file::add(const c::dynamic_engine& engine, const c::graph& network, const std::string& name,
                     c::run_buffers& memory, std::size_t times) {
  if (!is_wanted()) return;
  const auto described = c::traced(engine, network, name);
  c::dynamic_context context = engine.context();
  context.run(memory.inputs, memory.outputs);  // the first run touches memory that was never used
  for (std::size_t i = 0; i < times; ++i) trace_.run(context, described, memory.inputs, memory.outputs);
}

void trace_file::save(const std::string& network) const {
  if (is_wanted()) c::save_trace(path_, trace_, "collage " + network);
}

std::string trace_file::sentence() const {
  return "The trace of " + count_of(trace_.contents().runs.size(), "run") + " is in " + path_ +
         ": open it at https://ui.perfetto.dev or in chrome://tracing.";
}

}  // namespace program
