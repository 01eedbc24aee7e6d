#include "backends.hpp"
#include "commands.hpp"
#include "network.hpp"
#include "placing.hpp"
#include "report.hpp"
#include "table.hpp"
#include "terminal.hpp"

#include <collage/io/file.hpp>
#include <collage/io/json.hpp>
#include <collage/io/npy.hpp>
#include <collage/place/compare.hpp>
#include <collage/run/buffers.hpp>
#include <collage/run/elements.hpp>
#include <collage/run/engine.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <numeric>
#include <set>
#include <string>
#include <system_error>
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

/// The length of the input's name in NAME=SOURCE. Names may have '=' themselves: of several names that fit, the longest counts.
/// If none fits, the text before the first '='.
std::size_t length_of_name(const std::string& text, const c::graph& network) {
  std::size_t length = text.find('=');
  for (std::size_t at = length; at != std::string::npos; at = text.find('=', at + 1))
    for (const std::uint32_t v : network.inputs())
      if (text.compare(0, at, network.value_name(v)) == 0) length = at;
  return length;
}

/// The contents of the inputs, from `--input NAME=FILE.npy`. Inputs that are random or not named stay empty.
std::vector<c::tensor> read_inputs(const options& given, const c::graph& network) {
  std::vector<c::tensor> contents(network.inputs().size());
  std::vector<bool> named(network.inputs().size(), false);
  for (const std::string& text : given.inputs) {
    const std::size_t equals = length_of_name(text, network);
    if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
      throw c::error(c::error_kind::invalid_argument, "it is not of the form NAME=FILE.npy or NAME=random",
                     "--input " + text, "the inputs are " + names_of_inputs(network));
    const std::string name = text.substr(0, equals), source = text.substr(equals + 1);
    std::size_t which = 0;
    while (which < named.size() && network.value_name(network.inputs()[which]) != name) ++which;
    if (which == named.size())
      throw c::error(c::error_kind::invalid_argument, "the network has no such input", "--input " + name,
                     "the inputs are " + names_of_inputs(network));
    if (named[which])
      throw c::error(c::error_kind::invalid_argument, "it is given twice", "--input " + name, "give it once");
    named[which] = true;
    if (source != "random") contents[which] = c::load_npy(source, network.type_of(network.inputs()[which]), name);
  }
  return contents;
}

/// A file name for each output. A slash in an output's name becomes an underscore. If the file name belongs to another
/// output, a number follows; names without a slash are the first to get theirs.
std::vector<std::string> file_names(const c::graph& network) {
  std::vector<std::string> names(network.outputs().size());
  std::set<std::string> taken;
  for (const bool has_slash : {false, true})
    for (std::size_t i = 0; i < names.size(); ++i) {
      std::string name = network.output_name(i);
      if ((name.find('/') != std::string::npos) != has_slash) continue;
      std::replace(name.begin(), name.end(), '/', '_');
      names[i] = name;
      for (int number = 2; !taken.insert(names[i]).second; ++number) names[i] = name + "_" + std::to_string(number);
    }
  return names;
}

/// The file for each output. Throws if one of them cannot be written.
std::vector<std::string> output_files(const std::string& folder, const c::graph& network) {
  std::vector<std::string> files;
  if (folder.empty()) return files;
  std::error_code failed;
  if (!std::filesystem::is_directory(folder, failed) && !std::filesystem::create_directory(folder, failed))
    throw c::error(
        c::error_kind::invalid_argument,
        "the output folder cannot be created: " + (failed ? failed.message() : std::string("a file has this name")),
        folder, "give --output a folder in which you may create files");
  for (const std::string& name : file_names(network)) {
    files.push_back((std::filesystem::path(folder) / (name + ".npy")).string());
    c::check_writable(files.back());
  }
  return files;
}

/// The range and mean of a tensor's finite elements, and the number of the others.
struct extent_of_values {
  double least = std::numeric_limits<double>::infinity(), most = -least, mean = 0;
  std::size_t not_finite = 0;

  explicit extent_of_values(const c::tensor& t) {
    const c::oracle_value all = c::to_oracle(t);
    std::size_t count = 0;
    const auto add = [&](double x) {
      if (!std::isfinite(x)) {
        ++not_finite;
        return;
      }
      least = std::min(least, x);
      most = std::max(most, x);
      mean += x;
      ++count;
    };
    for (const double x : all.real) add(x);
    for (const std::int64_t x : all.integer) add(static_cast<double>(x));
    mean = count == 0 ? 0 : mean / static_cast<double>(count);
    if (count == 0) least = most = 0;
  }
};

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
  std::vector<double> samples;
  const double start = c::detail::now_ms();
  while (samples.size() < 3 || (samples.size() < 50 && c::detail::now_ms() - start < 1000)) {
    const double before = c::detail::now_ms();
    context.run(memory.inputs, memory.outputs);
    samples.push_back(c::detail::now_ms() - before);
  }
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

int run(const options& given) {
  check(given);
  // Faults in files are reported before the network is placed, which takes minutes. The network is freed first: placing
  // loads it again.
  std::vector<c::tensor> contents;
  std::vector<std::string> files;
  {
    const c::graph network = load_network(given).network;
    contents = read_inputs(given, network);
    files = output_files(given.output_folder, network);
  }

  const placed p = get_plan(given);
  const c::dynamic_engine engine(p.network, p.made.chosen, backends(), p.made.threads);
  c::run_buffers memory(p.network);
  memory.randomise(given.seed);
  for (std::size_t i = 0; i < contents.size(); ++i)
    if (contents[i].type() == memory.in[i].type() && contents[i].data() != nullptr) memory.inputs[i] = contents[i];
  const result done = run_engine(engine, memory, given.profile);
  for (std::size_t i = 0; i < files.size(); ++i) c::save_npy(files[i], memory.out[i]);
  if (!given.quiet) note_slower(p.made, done.whole.median_ms);

  c::json outputs = c::json::array(), steps = c::json::array();
  table page({{"output"},
              {"type", align::left, 16},
              {"least", align::right},
              {"mean", align::right},
              {"most", align::right},
              {"", align::left, 16}});
  for (std::size_t i = 0; i < memory.out.size(); ++i) {
    const c::tensor_type& type = memory.out[i].type();
    const extent_of_values e(memory.out[i]);
    c::json dims = c::json::array();
    for (const std::int64_t extent : type.dims) dims.push_back(extent);
    outputs.push_back({{"name", p.network.output_name(i)},
                       {"type", c::name_of(type.type)},
                       {"shape", dims},
                       {"least", c::rounded(e.least)},
                       {"mean", c::rounded(e.mean)},
                       {"most", c::rounded(e.most)},
                       {"not_finite", e.not_finite},
                       {"file", files.empty() ? c::json() : c::json(files[i])}});
    page.add({p.network.output_name(i), c::detail::to_string(type), format_number("%.5g", e.least),
              format_number("%.5g", e.mean), format_number("%.5g", e.most),
              e.not_finite != 0 ? cell(std::to_string(e.not_finite) + " not finite", colour::red)
                                : cell(files.empty() ? "" : files[i])});
  }
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
                   {"outputs", outputs}};
    add_arena(all, engine);
    if (given.profile) all["steps"] = steps;
    print(c::to_text(all));
    return 0;
  }
  std::string text = paint(colour::bold, title_of(p.made)) + "\n\n" + page.text() + "\n";
  if (given.profile) text += profile_table(engine, p, done.steps_ms) + "\n";
  const time_unit unit(done.whole.median_ms);
  text += wrap("Median " + format_time(done.whole.median_ms) + " over " + std::to_string(done.whole.samples) +
                   " runs (" + unit.number(done.whole.low_ms, 3) + " to " + unit.number(done.whole.high_ms, 3) + "), " +
                   std::to_string(engine.steps().size()) + " steps, " + arena_text(engine) + ".",
               0);
  print(text);
  return 0;
}

}  // namespace program
