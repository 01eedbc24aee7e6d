// For cudnn_facts: the engines that the heuristics name for a graph, their notes, their plans, and what those take.
#pragma once

#include "cudnn_facts_operands.hpp"

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace facts {

inline std::vector<descriptor> engine_configs(const session& s, const operation_graph& graph,
                                              cudnnBackendHeurMode_t mode) {
  descriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph.whole).set(CUDNN_ATTR_ENGINEHEUR_MODE, mode);
  if (s.properties) heuristics.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, *s.properties);
  heuristics.finalize("finalize the heuristics");
  const std::int64_t n = heuristics.count(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR);
  if (n <= 0) return {};
  return heuristics.get(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, n);
}

struct engine_facts {
  std::int64_t index = -1;
  bool tensor_cores = false;
  std::string notes;
};

inline engine_facts facts_of(const descriptor& config) {
  engine_facts found;
  const auto engines = config.get(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR, 1);
  if (engines.empty()) throw std::runtime_error("an engine config without an engine");
  const descriptor& engine = engines.front();
  found.index = engine.get<std::int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, 1).at(0);
  found.notes = "numerical=";
  constexpr auto most_numerical = static_cast<std::size_t>(CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
  for (const auto note : engine.get<cudnnBackendNumericalNote_t>(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, most_numerical)) {
    found.tensor_cores = found.tensor_cores || note == CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
    found.notes += std::to_string(note) + ".";
  }
  found.notes += " behavior=";
  constexpr auto most_behavior = static_cast<std::size_t>(CUDNN_BEHAVIOR_NOTE_TYPE_COUNT);
  for (const auto note : engine.get<cudnnBackendBehaviorNote_t>(CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, most_behavior))
    found.notes += std::to_string(note) + ".";
  found.notes += " knobs=";
  for (const descriptor& knob :
       config.get(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, CUDNN_KNOB_TYPE_COUNTS)) {
    found.notes += std::to_string(knob.get<cudnnBackendKnobType_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, 1).at(0)) + ":";
    found.notes += std::to_string(knob.get<std::int64_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, 1).at(0)) + ".";
  }
  return found;
}

constexpr int repeats = 20;

inline void execute(const session& s, const descriptor& plan, const descriptor& pack, int times) {
  for (int i = 0; i < times; ++i) dnn.check(dnn.execute(s.handle, plan.raw(), pack.raw()), "execute");
}

/// What one execution takes within a graph of 20 of them, or in the stream where it cannot be captured.
inline timing time_plan(const session& s, const descriptor& plan, const descriptor& pack) {
  const gpu::session& on = *s.device;
  timing found;
  double warm = 0;
  for (int i = 0; i < 3; ++i) {
    const auto start = clock_type::now();
    execute(s, plan, pack, 1);
    on.finish();
    warm = seconds_since(start);
    if (i == 0) found.note = " first_ms=" + fixed(warm * 1000);
  }
  if (warm > 0.005) {
    found.median = found.least = warm * 1e6;
    found.note += " slow: one execution by the host's clock";
    return found;
  }
  const auto start = clock_type::now();
  execute(s, plan, pack, repeats);
  found.note += " enqueue_us=" + fixed(seconds_since(start) * 1e6 / repeats);
  on.finish();
  try {
    const auto times = on.time_in_graph([&] { execute(s, plan, pack, 1); }, repeats, 10);
    found.median = times.median_us;
    found.least = times.least_us;
  } catch (const std::runtime_error& refused) {
    found.note += std::string(" not captured: ") + refused.what();
    std::vector<double> times;
    for (int i = -1; i < 10; ++i) {
      const double us = on.time_us([&] { execute(s, plan, pack, repeats); }) / repeats;
      if (i >= 0) times.push_back(us);
    }
    found.median = gpu::median(times);
    found.least = *std::ranges::min_element(times);
  }
  return found;
}

struct built_plan {
  descriptor plan{CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR};
  double build_ms = 0;
  std::int64_t workspace = 0;
};

inline built_plan build(const session& s, const descriptor& config) {
  built_plan made;
  const auto start = clock_type::now();
  made.plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
  if (s.properties) made.plan.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, *s.properties);
  if (!s.properties) made.plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, s.handle);
  made.plan.finalize("finalize a plan");
  made.build_ms = seconds_since(start) * 1000;
  made.workspace = made.plan.get<std::int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, 1).at(0);
  if (made.workspace > (std::int64_t{4} << 30)) throw std::runtime_error("a workspace of more than 4 GiB");
  return made;
}

/// A plan as text, and the time to have it again from that text.
inline std::string reload(const session& s, const descriptor& plan) {
  const auto name = CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION;
  const auto size = static_cast<std::size_t>(plan.count(name, CUDNN_TYPE_CHAR));
  const auto text = plan.get<char>(name, size);
  if (s.properties) return " json_bytes=" + std::to_string(size);
  const auto start = clock_type::now();
  descriptor again(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  again.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, s.handle).set(name, text).finalize("finalize a plan from its text");
  return " json_bytes=" + std::to_string(size) + " reload_ms=" + fixed(seconds_since(start) * 1000);
}

struct fastest {
  timing time;
  std::int64_t engine = -1;
  std::int64_t workspace = 0;
};

/// The row's precision; of float data, whether the engine multiplies in tf32 is told by its notes.
inline std::string precision_of(const row& r, const engine_facts& engine) {
  if (r.precision != "float") return r.precision;
  return engine.tensor_cores ? "tf32" : "fp32";
}

/// Builds and times the graph's engine configs, at most `most` of each precision; the fastest of each is printed again.
inline std::size_t try_engines(session& s, row r, operation_graph& graph, cudnnBackendHeurMode_t mode,
                               std::size_t most) {
  graph.finish(s.handle);
  const auto asked = clock_type::now();
  const std::vector<descriptor> configs = engine_configs(s, graph, mode);
  const std::string head =
      "heuristics_ms=" + fixed(seconds_since(asked) * 1000) + " configs=" + std::to_string(configs.size());
  operands memory(s, graph);
  std::map<std::string, fastest> best;
  std::map<std::string, std::size_t> tried;
  for (std::size_t i = 0; i < configs.size() && s.in_time(); ++i) {
    engine_facts engine;
    row mine = r;
    std::string note = "rank=" + std::to_string(i) + " " + head;
    try {
      engine = facts_of(configs[i]);
      mine.precision = precision_of(r, engine);
      if (tried[mine.precision]++ >= most) continue;
      note += " " + engine.notes;
      const built_plan made = build(s, configs[i]);
      note += " build_ms=" + fixed(made.build_ms);
      if (made.build_ms > 20) note += reload(s, made.plan);
      if (s.asked.dry) print(mine, engine.index, made.workspace, nullptr, note);
      if (s.asked.dry) best[mine.precision];
      if (s.asked.dry) continue;
      const descriptor pack = memory.pack(made.workspace);
      const timing found = time_plan(s, made.plan, pack);
      print(mine, engine.index, made.workspace, &found, note + found.note);
      fastest& leader = best[mine.precision];
      if (leader.engine < 0 || found.median < leader.time.median) leader = {found, engine.index, made.workspace};
    } catch (const std::runtime_error& e) {
      print(mine, engine.index, -1, nullptr, note + " FAILED: " + e.what());
      s.expect_context();
    }
  }
  if (configs.empty()) print(r, -1, -1, nullptr, head + " FAILED: no engine config");
  for (const auto& [precision, leader] : best) {
    r.kind = "best_" + r.kind.substr(r.kind.find('_') + 1);
    r.precision = precision;
    if (leader.engine >= 0) print(r, leader.engine, leader.workspace, &leader.time, "");
  }
  return best.size();
}

}  // namespace facts
