#include "backends.hpp"
#include "commands.hpp"
#include "front_end.hpp"
#include "network.hpp"
#include "placing.hpp"
#include "report.hpp"
#include "run_outputs.hpp"
#include "run_stages.hpp"
#include "table.hpp"
#include "terminal.hpp"
#include "trace_file.hpp"

#include <collage/io/json.hpp>
#include <collage/io/npy.hpp>
#include <collage/place/compare.hpp>
#include <collage/run/buffers.hpp>
#include <collage/run/engine.hpp>
#include <collage/run/holdups.hpp>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace program {

namespace c = collage;

namespace {

std::string names_of_inputs(const c::graph& network) {
  std::string text;
  for (const std::uint32_t v : network.inputs())
    text += (text.empty() ? "" : ", ") + network.value_name(v) + " (" + c::detail::to_string(network.type_of(v)) + ")";
  return text;
}

std::vector<std::string> names_of(const c::graph& network, std::span<const std::uint32_t> values) {
  std::vector<std::string> names;
  for (const std::uint32_t v : values) names.push_back(network.value_name(v));
  return names;
}

std::vector<std::string> names_of_outputs(const c::graph& network) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < network.outputs().size(); ++i) names.push_back(network.output_name(i));
  return names;
}

/// The contents of the inputs, from `--input NAME=FILE.npy`. Inputs that are random or not named stay empty.
std::vector<c::tensor> read_inputs(const options& given, const c::graph& network) {
  const std::vector<std::string> names = names_of(network, network.inputs());
  std::vector<c::tensor> contents(names.size());
  std::vector<bool> named(names.size(), false);
  for (const std::string& text : given.inputs) {
    const auto [name, source] = split_input(text, names, names_of_inputs(network));
    const auto which = static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
    if (which == names.size())
      throw c::error(c::error_kind::invalid_argument, "the network has no such input", "--input " + name,
                     "the inputs are " + names_of_inputs(network));
    if (named[which])
      throw c::error(c::error_kind::invalid_argument, "it is given twice", "--input " + name, "give it once");
    named[which] = true;
    if (source != "random") contents[which] = c::load_npy(source, network.type_of(network.inputs()[which]), name);
  }
  return contents;
}

/// The times of each step in several runs.
struct profile {
  double started_ms = 0;
  std::vector<std::vector<double>> samples;

  static void before(void* data, std::size_t) { static_cast<profile*>(data)->started_ms = c::detail::now_ms(); }
  static void after(void* data, std::size_t step, const c::dynamic_context&) {
    auto& self = *static_cast<profile*>(data);
    self.samples[step].push_back(c::detail::now_ms() - self.started_ms);
  }
};

struct result {
  c::timing whole;
  std::vector<double> steps_ms;  ///< median of each step; empty without --profile
};

/// Runs once for the outputs, then for the times: 3 to 50 runs, as many as fit into a second.
result run_engine(const c::dynamic_engine& engine, c::run_buffers& memory, bool profiled) {
  c::dynamic_context context = engine.context();
  context.run(memory.inputs, memory.outputs);
  std::vector<double> samples = times_of([&] { context.run(memory.inputs, memory.outputs); });
  result r;
  if (profiled) {
    profile p;
    p.samples.resize(engine.steps().size());
    for (std::size_t i = 0; i < samples.size(); ++i)
      context.run(memory.inputs, memory.outputs, {.data = &p, .before = &profile::before, .after = &profile::after});
    for (std::vector<double>& s : p.samples) r.steps_ms.push_back(c::summarise(std::move(s)).median_ms);
  }
  r.whole = c::summarise(std::move(samples));
  return r;
}

/// The measured time of each step beside its cost in the plan.
std::string profile_table(const c::dynamic_engine& engine, const placed& p, const std::vector<double>& steps_ms) {
  const std::vector<double> planned_ms = c::planned_ms(engine, p.made.chosen);
  const double sum = std::accumulate(steps_ms.begin(), steps_ms.end(), 0.0);
  const time_unit unit(sum);
  table page({{"#", align::right},
              {"step", align::left, 16},
              {"backend"},
              {"kernel", align::left, 16},
              {unit.name, align::right},
              {"%", align::right},
              {std::string("planned ") + unit.name, align::right}});
  for (std::size_t i = 0; i < steps_ms.size(); ++i) {
    const c::step_info& s = engine.steps()[i];
    page.add({std::to_string(i + 1), s.nodes.empty() ? s.label : label_of(p.network, s.nodes), s.backend, s.kernel,
              unit.number(steps_ms[i], 4), format_number("%.1f", sum > 0 ? 100 * steps_ms[i] / sum : 0),
              unit.number(planned_ms[i], 4)});
  }
  page.add(
      {"", {"all steps", colour::bold}, "", "", unit.number(sum, 4), "100.0", unit.number(p.made.chosen.cost_ms, 4)});
  return page.text();
}

}  // namespace

int run(const options& asked) {
  check(asked);
  options given = asked;
#if COLLAGE_HAS_ONNX
  if (!given.plan_file.empty()) given = with_shapes(asked);
  else if (const std::optional<late_network> late = late_network_of(asked); late) {
    if (late->source != nullptr) return run_stages(*late);
    given = late->given;
  }
#endif
  // Faults in files are reported before the network is placed, which takes minutes. The network is freed first: placing
  // loads it again.
  std::vector<c::tensor> contents;
  std::vector<std::string> files;
  trace_file trace(given);
  {
    const c::graph network = load_network(given).network;
    contents = read_inputs(given, network);
    files = output_files(given, names_of_outputs(network));
  }

  const placed p = get_plan(given);
  const c::dynamic_engine engine(p.network, p.made.chosen, backends(), p.made.threads);
  c::run_buffers memory(p.network);
  memory.randomise(given.seed);
  for (std::size_t i = 0; i < contents.size(); ++i)
    if (contents[i].type() == memory.in[i].type() && contents[i].data() != nullptr) memory.inputs[i] = contents[i];
  const c::holdup_watch watch;
  const result done = run_engine(engine, memory, given.profile);
  const c::process_holdups held = watch.report(p.made.threads);
  trace.add(engine, p.network, p.made.network, memory, std::min(traced_runs, done.whole.samples));
  trace.save(p.made.network);
  for (std::size_t i = 0; i < files.size(); ++i) c::save_npy(files[i], memory.out[i]);
  if (!given.quiet) note_slower(p.made, done.whole.median_ms);
  if (!given.quiet && given.profile) note_holdups(held);  // without, the outputs matter

  std::vector<run_output> outputs;
  for (std::size_t i = 0; i < memory.out.size(); ++i) outputs.push_back({p.network.output_name(i), memory.out[i]});
  c::json steps = c::json::array();
  for (std::size_t i = 0; i < done.steps_ms.size(); ++i) {
    const c::step_info& s = engine.steps()[i];
    steps.push_back(
        {{"step", s.label}, {"backend", s.backend}, {"kernel", s.kernel}, {"median_ms", c::rounded(done.steps_ms[i])}});
  }
  if (given.json) {
    c::json all = {{"network", p.made.network},
                   {"threads", p.made.threads},
                   {"precision", p.made.precision},
                   {"median_ms", c::rounded(done.whole.median_ms)},
                   {"low_ms", c::rounded(done.whole.low_ms)},
                   {"high_ms", c::rounded(done.whole.high_ms)},
                   {"runs", done.whole.samples},
                   {"holdups", c::holdups_to_json(held)},
                   {"outputs", outputs_to_json(outputs, files)}};
    add_arena(all, engine);
    if (given.profile) all["steps"] = steps;
    if (trace.is_wanted()) all["trace"] = given.trace_file;
    print(c::to_text(all));
    return 0;
  }
  std::string text = heading_of(p.made, paint) + "\n" + outputs_table(outputs, files).text() + "\n";
  if (given.profile) text += profile_table(engine, p, done.steps_ms) + "\n";
  const time_unit unit(done.whole.median_ms);
  text += wrap("Median " + format_time(done.whole.median_ms) + " over " + count_of(done.whole.samples, "run") + " (" +
                   unit.number(done.whole.low_ms, 3) + " to " + unit.number(done.whole.high_ms, 3) + "), " +
                   count_of(engine.steps().size(), "step") + ", " + arena_text(engine) + ".",
               0);
  if (trace.is_wanted()) text += wrap(trace.sentence(), 0);
  print(text);
  return 0;
}

}  // namespace program
