#include "backends.hpp"
#include "commands.hpp"
#include "placing.hpp"
#include "table.hpp"
#include "terminal.hpp"

#include <collage/backends/reference.hpp>
#include <collage/io/json.hpp>
#include <collage/place/compare.hpp>
#include <collage/run/agreement.hpp>
#include <collage/run/engine.hpp>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace program {

namespace c = collage;

namespace {

/// The outcome for one placement.
struct outcome {
  std::string plan;
  double worst_relative = 0;
  bool passed = true;
  std::string first_differing;  ///< the node whose value differs first; empty where none does
  std::string why;
};

/// What a placement computes, step by step, as far as it is kept.
struct recording {
  const c::dynamic_engine* engine = nullptr;
  const c::graph* network = nullptr;
  std::size_t first = 0, end = 0;  ///< the steps to keep
  std::map<std::uint32_t, std::pair<std::size_t, c::tensor>>
      values;  ///< by value: the step that wrote it, the contents

  static void keep(void* data, std::size_t step, const c::dynamic_context& context) {
    auto& self = *static_cast<recording*>(data);
    if (step < self.first || step >= self.end) return;
    const std::uint32_t v = self.engine->steps()[step].output;
    if (context.data_of(v) == nullptr) return;  // of several outputs one that nobody reads
    c::tensor copy(self.network->type_of(v));
    if (copy.bytes() != 0) std::memcpy(copy.data(), context.data_of(v), copy.bytes());
    self.values.insert_or_assign(v, std::pair(step, std::move(copy)));
  }
};

/// Finds the first step whose value differs from the reference's. Steps are recorded in portions, so that memory stays
/// bounded; the reference is computed anew for each portion, up to the first difference.
void find_first_difference(const c::graph& network, const c::dynamic_engine& engine, c::run_buffers& memory,
                           outcome& found) {
  constexpr std::size_t portion_bytes = std::size_t{1} << 30;
  struct stop {};
  c::dynamic_context context = engine.context();
  const std::size_t steps = engine.steps().size();
  for (std::size_t first = 0; first < steps && found.first_differing.empty();) {
    recording r{.engine = &engine, .network = &network, .first = first, .end = first, .values = {}};
    for (std::size_t bytes = 0; r.end < steps && (bytes == 0 || bytes < portion_bytes); ++r.end)
      bytes += network.type_of(engine.steps()[r.end].output).bytes();
    context.run(memory.inputs, memory.outputs, {.data = &r, .before = nullptr, .after = &recording::keep});
    // Nodes and steps stand in the same order, so that the first difference the reference meets is the first.
    const auto compare_one = [&](std::uint32_t value, const c::oracle_value& expected) {
      const auto recorded = r.values.find(value);
      if (recorded == r.values.end()) return;
      const c::agreement a = c::compare(recorded->second.second, expected);
      if (a) return;
      const c::step_info& step = engine.steps()[recorded->second.first];
      found.first_differing = step.label;
      found.why =
          step.label + ", run by " + step.backend + " (" + step.kernel + "): " + (a.why != nullptr ? a.why : "");
      throw stop{};
    };
    try {
      c::evaluate(network, memory.inputs, network.outputs(), compare_one);
    } catch (const stop&) {}
    first = r.end;
  }
}

outcome check_one(const c::graph& network, const c::placement& which, int threads, c::run_buffers& memory,
                  const std::vector<c::oracle_value>& expected, const std::shared_ptr<c::packed_weights>& packed) {
  outcome found;
  found.plan = which.name;
  const c::dynamic_engine engine(network, which, backends(), threads, packed);
  // What a kernel leaves unwritten must not pass as a number.
  for (const c::tensor& t : memory.out)
    if (t.bytes() != 0) std::memset(t.data(), 0xFF, t.bytes());
  engine.context().run(memory.inputs, memory.outputs);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const c::agreement a = c::compare(memory.out[i], expected[i]);
    found.worst_relative = std::max(found.worst_relative, a.worst_relative);
    if (a || !found.passed) continue;
    found.passed = false;
    found.why = "output " + network.output_name(i) + ": " + (a.why != nullptr ? a.why : "");
  }
  if (!found.passed) find_first_difference(network, engine, memory, found);
  return found;
}

c::json to_json(const std::string& network, bool passed, const std::vector<outcome>& outcomes) {
  c::json checks = c::json::array();
  for (const outcome& o : outcomes)
    checks.push_back({{"plan", o.plan},
                      {"worst_relative", c::rounded(o.worst_relative)},
                      {"passed", o.passed},
                      {"first_differing_node", o.first_differing.empty() ? c::json() : c::json(o.first_differing)}});
  return {{"network", network}, {"passed", passed}, {"checks", checks}};
}

std::string to_page(const c::plan& made, const std::vector<outcome>& outcomes, double reference_s) {
  table page({{"placement"}, {"worst relative", align::right}, {"verdict"}, {"first differing node", align::left, 20}});
  for (const outcome& o : outcomes)
    page.add({o.plan,
              format_number("%.2e", o.worst_relative),
              {o.passed ? "passed" : "FAILED", o.passed ? colour::green : colour::red},
              o.first_differing});
  const c::tolerance allowed = c::tolerance_of(c::dtype::f32);
  std::string text = paint(colour::bold, title_of(made)) + "\n\n" + page.text() + "\n";
  for (const outcome& o : outcomes)
    if (!o.passed) text += wrap(o.plan + ": " + o.why, 2);
  return text + wrap("Compared with the reference in double precision (" + format_number("%.1f s", reference_s) +
                         "); passed means max|a - r| <= " + format_number("%.0e", allowed.relative) + " max|r| + " +
                         format_number("%.0e", allowed.absolute) + " for every output.",
                     0);
}

}  // namespace

int verify(const options& given) {
  check(given);
  const placed p = get_plan(given);
  progress_line line(given.quiet);
  c::run_buffers memory(p.network);
  memory.randomise(given.seed);
  line.show("computing the reference in double precision");
  const double start = c::detail::now_ms();
  const std::vector<c::oracle_value> expected = c::evaluate(p.network, memory.inputs);
  const double reference_s = (c::detail::now_ms() - start) / 1e3;

  std::vector<const c::placement*> all{&p.made.chosen};
  for (const c::placement& s : p.made.singles) all.push_back(&s);
  const auto packed = std::make_shared<c::packed_weights>();
  std::vector<outcome> outcomes;
  for (const c::placement* which : all) {
    line.show("checking " + which->name);
    outcomes.push_back(check_one(p.network, *which, p.made.threads, memory, expected, packed));
  }
  line.clear();
  const auto failed = std::find_if(outcomes.begin(), outcomes.end(), [](const outcome& o) { return !o.passed; });
  const bool passed = failed == outcomes.end();
  print(given.json ? c::to_text(to_json(p.made.network, passed, outcomes)) : to_page(p.made, outcomes, reference_s));
  if (!passed)
    complain("verify: " + failed->plan + " differs from the reference" +
             (failed->first_differing.empty() ? std::string() : ", first at node " + failed->first_differing));
  return passed ? 0 : 1;
}

}  // namespace program
