#include "commands.hpp"
#include "replay/data_files.hpp"
#include "replay/modelled_problem.hpp"
#include "replay/placement_file.hpp"
#include "replay/published_costs.hpp"
#include "replay/published_problem.hpp"
#include "replay/result.hpp"
#include "table.hpp"
#include "terminal.hpp"

#include <collage/error.hpp>
#include <collage/graph/graph.hpp>
#include <collage/io/file.hpp>
#include <collage/io/json.hpp>
#include <collage/zoo/all.hpp>

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <vector>

namespace program {

namespace c = collage;

namespace {

/// A network that can be replayed. Without a published placement, it is one of the zoo, and its costs are modelled.
struct replayable {
  const char* name;
  const char* placement;
  const char* costs;
};
constexpr const char* desktop = "operator-cost-desktop-b.json";
constexpr replayable replayables[] = {
    {"taso-bert", "placement-rtx2070-bert.gv", desktop},
    {"nasnet-a-paper", "placement-rtx2070-nasneta.gv", desktop},
    {"resnext50-paper", "placement-rtx2070-resnext50_32x4d.gv", desktop},
    {"resnet50-3d-paper", "placement-rtx2070-resnet50_3d.gv", "operator-cost-rtx2070-3d.json"},
    {"bert-paper", nullptr, nullptr},
    {"dcgan-paper", nullptr, nullptr},
    {"resnet50", nullptr, nullptr},
    {"mobilenet-v2", nullptr, nullptr},
};

constexpr const char* explanation =
    "Costs are in ms. coverage: the share of the operators that have a cost in the table; the costs of the others are "
    "estimated by a roofline model fitted to the table. optimum: the cost of the cheapest placement that was found. "
    "gap: how much cheaper another placement could be at most. published: the cost of the published placement, from "
    "the same table. search ms: the median time of 20 searches; each also makes the candidates.";

/// The tables of costs. Each is read at its first use.
class tables {
 public:
  explicit tables(const options& given) : given_(given) {}

  /// The user's table, or the network's own. The other tables follow: shapes are inferred from their records too.
  std::vector<const replay::published_costs*> of(const replayable& network) {
    std::vector<std::string> names;
    if (given_.costs_file.empty()) names = {network.costs};
    else if (user_.records.empty())
      user_ = replay::read_published_costs(c::read_file(given_.costs_file), given_.costs_file);
    for (const replayable& other : replayables)
      if (other.costs != nullptr && std::ranges::find(names, other.costs) == names.end()) names.push_back(other.costs);
    std::vector<const replay::published_costs*> list;
    if (!given_.costs_file.empty()) list.push_back(&user_);
    for (const std::string& name : names) list.push_back(&published(name));
    return list;
  }

 private:
  const replay::published_costs& published(const std::string& name) {
    const auto [at, fresh] = read_.try_emplace(name);
    if (fresh) at->second = replay::read_published_costs(replay::published_file(given_.data_folder, name), name);
    return at->second;
  }

  const options& given_;
  replay::published_costs user_;
  std::map<std::string, replay::published_costs> read_;
};

replay::result replay_one(const replayable& network, const options& given, tables& costs) {
  if (network.placement == nullptr) {
    c::graph_builder builder;
    c::zoo::build(network.name, builder);
    return replay::replay_modelled(network.name, replay::modelled_problem(builder.finish()));
  }
  const std::vector<const replay::published_costs*> list = costs.of(network);
  const replay::placed_network placed =
      replay::read_placement(replay::published_file(given.data_folder, network.placement), network.placement);
  return replay::replay_published(network.name, list.front()->name, replay::published_problem(placed, list));
}

std::vector<replayable> chosen(const options& given) {
  if (given.networks.empty()) return {std::begin(replayables), std::end(replayables)};
  std::vector<replayable> list;
  for (const std::string& name : given.networks) {
    const auto found = std::ranges::find(replayables, name, &replayable::name);
    if (found != std::end(replayables)) {
      list.push_back(*found);
      continue;
    }
    std::string known;
    for (const replayable& r : replayables) known += (known.empty() ? "" : ", ") + std::string(r.name);
    throw c::error(c::error_kind::invalid_argument, "there is no network of this name to replay", name,
                   "choose one of " + known);
  }
  return list;
}

}  // namespace

int replay_placements(const options& given) {
  c::json list = c::json::array();
  table page({{"network", align::left, 12},
              {"table", align::left, 8},
              {"coverage", align::right},
              {"nodes", align::right},
              {"candidates", align::right},
              {"optimum", align::right},
              {"gap", align::right},
              {"published", align::right},
              {"search ms", align::right}});
  tables costs(given);
  for (const replayable& network : chosen(given)) {
    const replay::result r = replay_one(network, given, costs);
    list.push_back({{"name", r.name},
                    {"table", r.table},
                    {"coverage", c::rounded(r.coverage)},
                    {"nodes", r.nodes},
                    {"candidates", r.candidates},
                    {"optimum_ms", c::rounded(r.optimum_ms)},
                    {"lower_bound_ms", c::rounded(r.lower_bound_ms)},
                    {"gap", c::rounded(r.gap)},
                    {"published_ms", r.published_ms ? c::json(c::rounded(*r.published_ms)) : c::json()},
                    {"search_ms", c::rounded(r.search_ms)}});
    page.add({{r.name, colour::bold},
              r.table,
              r.table == "roofline" ? "modelled" : format_number("%.1f %%", 100 * r.coverage),
              std::to_string(r.nodes),
              std::to_string(r.candidates),
              format_number("%.4f", r.optimum_ms),
              format_number("%.1f %%", 100 * r.gap),
              r.published_ms ? format_number("%.4f", *r.published_ms) : "-",
              format_number("%.3f", r.search_ms)});
  }
  print(given.json ? c::to_text(c::json{{"networks", list}}) : page.text() + "\n" + wrap(explanation, 0));
  return 0;
}

}  // namespace program
