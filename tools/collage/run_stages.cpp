#include "run_stages.hpp"

#if COLLAGE_HAS_ONNX

#include "backends.hpp"
#include "placing.hpp"
#include "run_outputs.hpp"
#include "table.hpp"
#include "terminal.hpp"
#include "trace_file.hpp"

#include <collage/io/json.hpp>
#include <collage/io/npy.hpp>
#include <collage/measure/statistics.hpp>
#include <collage/run/buffers.hpp>
#include <collage/run/session.hpp>

#include <algorithm>
#include <cstddef>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace program {

namespace c = collage;

std::vector<c::tensor> contents_of_inputs(const late_network& network) {
  const options& given = network.given;
  const c::onnx::model_source& source = *network.source;
  const std::vector<std::string>& deciding = network.deciding;
  std::vector<std::string> names;
  std::string known;
  for (const c::open_port& p : source.inputs()) {
    names.push_back(p.name);
    known += (known.empty() ? "" : ", ") + p.name + " (" + c::detail::to_string(c::tensor_type{p.type, p.dims}) + ")";
  }
  std::vector<c::tensor> contents;
  std::mt19937_64 random(given.seed);
  for (const c::open_port& p : source.inputs()) {
    contents.emplace_back(c::tensor_type{p.type, p.dims});
    if (std::find(deciding.begin(), deciding.end(), p.name) == deciding.end()) c::fill_random(contents.back(), random);
  }
  for (const std::string& text : given.inputs) {
    const auto [name, file] = split_input(text, names, known);
    const auto at = static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
    if (at == names.size())
      throw c::error(c::error_kind::invalid_argument, "the network has no such input", "--input " + name,
                     "the inputs are " + known);
    if (file != "random") contents[at] = c::load_npy(file, contents[at].type(), name);
  }
  return contents;
}

namespace {

void refuse_what_stages_lack(const options& given) {
  if (given.profile)
    throw c::error(c::error_kind::unsupported, "it shows the steps of one plan, and this network runs in stages",
                   "--profile", "leave it out");
}

}  // namespace

int run_stages(const late_network& network) {
  const options& given = network.given;
  refuse_what_stages_lack(given);
  trace_file trace(given);
  std::size_t stages = 0;
  int threads = 1;
  const auto planner = [&](const c::graph& stage, const std::shared_ptr<c::packed_weights>&) -> c::plan {
    placed p = place_network(given, stage);
    ++stages;
    threads = p.made.threads;
    return std::move(p.made);
  };
  const std::vector<c::tensor> contents = contents_of_inputs(network);
  const c::session session(network.source, backends(), planner);
  std::vector<std::string> names;
  for (const c::open_port& p : session.outputs()) names.push_back(p.name);
  const std::vector<std::string> files = output_files(given, names);

  const std::vector<c::const_tensor_view> inputs(contents.begin(), contents.end());
  c::session_context context = session.context();
  (void)context.run(inputs);
  const c::timing whole = c::summarise(times_of([&] { (void)context.run(inputs); }));
  if (trace.is_wanted()) {
    context.trace_into(&trace.trace());
    for (std::size_t i = 0; i < std::min(traced_runs, whole.samples); ++i) (void)context.run(inputs);
    context.trace_into(nullptr);
    trace.save(given.network);
  }
  std::vector<run_output> outputs;
  for (const c::session_output& o : context.run(inputs)) outputs.push_back({o.name, o.contents});
  for (std::size_t i = 0; i < files.size(); ++i) c::save_npy(files[i], outputs[i].contents);

  if (given.json) {
    c::json all = {{"network", given.network},
                   {"threads", threads},
                   {"stages", stages},
                   {"median_ms", c::rounded(whole.median_ms)},
                   {"low_ms", c::rounded(whole.low_ms)},
                   {"high_ms", c::rounded(whole.high_ms)},
                   {"runs", whole.samples},
                   {"outputs", outputs_to_json(outputs, files)}};
    if (trace.is_wanted()) all["trace"] = given.trace_file;
    print(c::to_text(all));
    return 0;
  }
  const time_unit unit(whole.median_ms);
  print(paint(colour::bold, given.network) + "\n\n" + outputs_table(outputs, files).text() + "\n" +
        wrap("Median " + format_time(whole.median_ms) + " over " + count_of(whole.samples, "run") + " (" +
                 unit.number(whole.low_ms, 3) + " to " + unit.number(whole.high_ms, 3) + "), " +
                 count_of(stages, "plan") +
                 ": shapes depend on contents, so that the network runs in stages, each with a plan of its own.",
             0) +
        (trace.is_wanted() ? wrap(trace.sentence(), 0) : std::string()));
  return 0;
}

}  // namespace program

#endif
