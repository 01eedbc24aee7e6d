// Plan files: plans as JSON that is easy to read and to compare line by line (docs/plan-file.md, docs/plan.schema.json).
#pragma once

#include <collage/dtype.hpp>
#include <collage/error.hpp>
#include <collage/graph/graph.hpp>
#include <collage/io/file.hpp>
#include <collage/io/json.hpp>
#include <collage/io/placement_json.hpp>
#include <collage/run/algorithm.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/plan.hpp>
#include <collage/run/plan_fit.hpp>
#include <collage/run/weights.hpp>
#include <collage/set/algebra.hpp>
#include <collage/shape.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace collage::inline v0 {

/// The version of the file format. Files of other versions are refused.
inline constexpr std::uint64_t plan_file_version = 7;

namespace detail {

inline constexpr const char* plan_file_format = "collage plan";
inline constexpr const char* new_plan = "place the network again, which writes a new plan";
inline constexpr std::uint64_t most_threads = 1024;

/// The network's inputs, as a plan records them. They distinguish a plan for other shapes from a plan for another network.
inline json inputs_to_json(const graph& network) {
  json inputs = json::array();
  for (const std::uint32_t v : network.inputs()) {
    const tensor_type& type = network.type_of(v);
    json dims = json::array();
    for (const std::int64_t extent : type.dims) dims.push_back(static_cast<std::uint64_t>(extent));
    inputs.push_back({{"name", network.value_name(v)}, {"type", name_of(type.type)}, {"shape", dims}});
  }
  return inputs;
}

/// An input as text: its name, and its type as in "float32[1x3x224x224]".
inline std::pair<std::string, std::string> input_from_json(const json_place& from) {
  std::string dims;
  const json_place extents = from["shape"];
  for (std::size_t i = 0; i < extents.size(); ++i)
    dims += (i == 0 ? "" : "x") + std::to_string(extents[i].natural(0, ~std::uint64_t{0} >> 1U));
  return {from["name"].text(), from["type"].text() + "[" + dims + "]"};
}

/// Names the first input whose type or shape differs between plan and network, and how. Empty if none differs, or if the names
/// or the number of inputs differ too.
inline std::string other_shapes(const json_place& inputs, const graph& network) {
  const json wanted = inputs_to_json(network);
  const json_place here(wanted, "", "");
  std::string differing;
  if (inputs.size() != wanted.size()) return {};
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const auto [its_name, its_type] = input_from_json(inputs[i]);
    const auto [name, type] = input_from_json(here[i]);
    if (its_name != name) return {};
    if (its_type != type && differing.empty())
      differing = "input " + name + " is " + its_type + " in the plan, but " + type + " in the network";
  }
  return differing;
}

/// Whether a plan has all nodes of the network, under their numbers and names.
inline bool has_same_nodes(const json_place& chosen, const graph& network) {
  std::size_t alike = 0;
  const json_place groups = chosen["groups"];
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const json_place nodes = groups[g]["nodes"];
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const std::uint64_t n = nodes[i][std::size_t{0}].natural(0, ~std::uint64_t{0});
      if (n >= network.nodes().size() ||
          nodes[i][std::size_t{1}].text() != network.node_name(static_cast<std::uint32_t>(n)))
        return false;
      ++alike;
    }
  }
  return alike == network.nodes().size();
}

/// Plans that do not say which algorithms they were chosen from are of a time when all kernels were direct.
inline algorithms algorithms_from_json(const json_place& top) {
  if (!top.has("algorithms")) return algorithms::direct;
  const json_place at = top["algorithms"];
  const std::optional<algorithms> found = algorithms_named(at.text());
  if (!found) at.wrong("is " + on_one_line(at.text()) + "; known are direct, accurate, any");
  return *found;
}

/// Nothing in plans of a time when it was not known.
inline std::optional<weight_memory> memory_from_json(const json_place& top) {
  if (!top.has("memory")) return {};
  constexpr std::uint64_t most = std::uint64_t{1} << 53U;
  const json_place at = top["memory"];
  return weight_memory{at["weights"].natural(0, most), at["network"].natural(0, most), at["bound"].natural(0, most)};
}

/// Nothing in plans that round no values.
inline std::optional<plan_error> error_from_json(const json_place& top) {
  if (!top.has("error")) return {};
  const json_place at = top["error"];
  constexpr std::uint64_t most = std::uint64_t{1} << 53U;
  return plan_error{at["most"].number(), at["predicted"].number(), at["measured"].number(), at["upper"].number(),
                    static_cast<std::size_t>(at["samples"].natural(0, most))};
}

}  // namespace detail

/// End-to-end figures as JSON, for the plan file and for the program's output.
inline json runs_to_json(std::span<const plan_run> runs) {
  json list = json::array();
  for (const plan_run& r : runs)
    list.push_back({{"name", r.name},
                    {"median_ms", rounded(r.median_ms)},
                    {"low_ms", rounded(r.low_ms)},
                    {"high_ms", rounded(r.high_ms)},
                    {"runs", r.runs},
                    {"ratio", rounded(r.ratio)},
                    {"ratio_low", rounded(r.ratio_low)},
                    {"ratio_high", rounded(r.ratio_high)}});
  return list;
}

/// A plan as JSON. Times have six significant digits.
inline json plan_to_json(const plan& made, const graph& network) {
  json backends = json::array();
  for (const plan_backend& b : made.backends)
    backends.push_back({{"name", b.name}, {"version", b.version}, {"details", b.details}});
  const json runs = runs_to_json(made.runs);
  json singles = json::array();
  for (const placement& s : made.singles) singles.push_back(detail::placement_to_json(s, network));
  json all = {{"format", detail::plan_file_format},
              {"version", plan_file_version},
              {"network", made.network},
              {"fingerprint", detail::hex_of(made.fingerprint)},
              {"inputs", detail::inputs_to_json(network)},
              {"threads", static_cast<std::uint64_t>(made.threads)},
              {"precision", made.precision},
              {"algorithms", name_of(made.algorithms)}};
  if (made.memory)
    all["memory"] = {
        {"weights", made.memory->weights}, {"network", made.memory->network}, {"bound", made.memory->bound}};
  if (made.error)
    all["error"] = {{"most", made.error->most},
                    {"predicted", rounded(made.error->predicted)},
                    {"measured", rounded(made.error->measured)},
                    {"upper", rounded(made.error->upper)},
                    {"samples", made.error->samples}};
  all.update(json{{"processor", made.processor},
                  {"waiting", made.waiting},
                  {"backends", backends},
                  {"origin", made.origin},
                  {"lower_bound_ms", rounded(made.lower_bound_ms)},
                  {"optimal", made.optimal},
                  {"first_cost_ms", rounded(made.first_cost_ms)},
                  {"runs", runs},
                  {"chosen", detail::placement_to_json(made.chosen, network)},
                  {"singles", singles}});
  return all;
}

namespace detail {

/// Refuses JSON that is not a plan, or has another version of the format.
inline void check_format(const json& from, const std::string& file) {
  const json_place top(from, file, new_plan);
  if (!from.is_object() || !from.contains("format") || from["format"] != plan_file_format)
    throw error(error_kind::invalid_argument, "is not a plan", file, new_plan);
  if (const std::uint64_t version = top["version"].natural(0, ~std::uint64_t{0}); version != plan_file_version)
    throw error(error_kind::invalid_argument,
                "has version " + std::to_string(version) + " of the plan format, which is not version " +
                    std::to_string(plan_file_version),
                file, new_plan);
}

}  // namespace detail

/// A plan from JSON. Throws if something is missing, has a wrong type or does not fit the network; the error names `file` and
/// the location in it. A plan for another network or other shapes is reported before other errors.
inline plan plan_from_json(const json& from, const graph& network, const std::string& file) {
  detail::check_format(from, file);
  const json_place top(from, file, detail::new_plan);
  plan made;
  made.network = top["network"].text();
  const json_place inputs = top["inputs"];
  const std::string shapes = detail::other_shapes(inputs, network);
  if (top["fingerprint"].text() != detail::hex_of(network.fingerprint())) {
    if (!shapes.empty() && detail::has_same_nodes(top["chosen"], network))
      throw error(error_kind::invalid_argument, "is a plan for other shapes: " + shapes, file,
                  "load the network with the plan's shapes, or make a new plan for the network's shapes");
    throw error(error_kind::invalid_argument, "is a plan for another network, " + made.network, file,
                "load that network, or place this one");
  }
  if (!shapes.empty()) inputs.wrong("do not fit the network: " + shapes);
  made.fingerprint = network.fingerprint();
  made.threads = static_cast<int>(top["threads"].natural(1, detail::most_threads));
  made.precision = top["precision"].text();
  made.algorithms = detail::algorithms_from_json(top);
  made.memory = detail::memory_from_json(top);
  made.error = detail::error_from_json(top);
  made.processor = top["processor"].text();
  made.waiting = top["waiting"].text();
  const json_place backends = top["backends"];
  for (std::size_t i = 0; i < backends.size(); ++i) {
    const json_place b = backends[i];
    made.backends.push_back({b["name"].text(), b["version"].text(), b["details"].text()});
  }
  made.origin = top["origin"].text();
  made.lower_bound_ms = detail::not_negative(top["lower_bound_ms"]);
  made.optimal = top["optimal"].boolean();
  made.first_cost_ms = detail::not_negative(top["first_cost_ms"]);
  const json_place runs = top["runs"];
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const json_place r = runs[i];
    made.runs.push_back({r["name"].text(), detail::not_negative(r["median_ms"]), detail::not_negative(r["low_ms"]),
                         detail::not_negative(r["high_ms"]),
                         static_cast<std::size_t>(r["runs"].natural(0, ~std::uint64_t{0})),
                         detail::not_negative(r["ratio"]), detail::not_negative(r["ratio_low"]),
                         detail::not_negative(r["ratio_high"])});
  }
  made.chosen = detail::placement_from_json(top["chosen"], network);
  const json_place singles = top["singles"];
  for (std::size_t i = 0; i < singles.size(); ++i)
    made.singles.push_back(detail::placement_from_json(singles[i], network));
  return made;
}

/// Writes a plan in one step: a failure leaves the old file.
inline void save_plan(const plan& made, const graph& network, const std::string& path) {
  write_file(path, to_text(plan_to_json(made, network)));
}

/// Reads the JSON of a plan file. Checks only the format, its version, and that no object has two members with the same name.
/// Every error is one sentence that names the file.
inline json read_plan_file(const std::string& path) {
  const std::string text = read_file(path);
  // JSON leaves open which of two members with the same name counts, so an object with both is refused.
  std::vector<std::set<std::string>> members;
  std::string twice;
  const auto watch = [&](int, json::parse_event_t event, json& parsed) {
    if (event == json::parse_event_t::object_start) members.emplace_back();
    if (event == json::parse_event_t::object_end) members.pop_back();
    if (event == json::parse_event_t::key && !members.back().insert(parsed.get<std::string>()).second && twice.empty())
      twice = parsed.get<std::string>();
    return true;
  };
  json parsed;
  try {
    parsed = json::parse(text, watch);
  } catch (const json::parse_error& e) {
    throw error(error_kind::invalid_argument, "is not JSON, as byte " + std::to_string(e.byte) + " shows", path,
                detail::new_plan);
  } catch (const json::exception&) {
    throw error(error_kind::invalid_argument, "is not JSON: a number is out of range", path, detail::new_plan);
  }
  if (!twice.empty())
    throw error(error_kind::invalid_argument, "has an object with two members " + twice, path, detail::new_plan);
  detail::check_format(parsed, path);
  return parsed;
}

/// Reads a plan of this network. Every error is one sentence that names the file.
inline plan load_plan(const std::string& path, const graph& network) {
  return plan_from_json(read_plan_file(path), network, path);
}

/// Reads a plan of this network and checks that it fits this program and machine: `load_plan<backends>("resnet50.json",
/// network)`. The error says what does not fit (run/plan_fit.hpp).
template <backend_set_type Set>
plan load_plan(const std::string& path, const graph& network, const plan_fit_options& options = {}) {
  plan made = load_plan(path, network);
  check_plan_fits<Set>(made, network, options, path);
  return made;
}

}  // namespace collage::inline v0
