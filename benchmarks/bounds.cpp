// Whether what placing says of groups that it has not measured holds (docs/measuring.md, "Skipped measurements"): each
// network is placed with every candidate measured, and the costs are compared with the bounds.
//
// usage: bounds [--threads N] [--stores FOLDER] [NETWORK...]     prints tables in Markdown
//   --stores  where costs are kept (bounds-stores): what is there is not measured again
// needs: place io onednn openblas eigen stacked portable
#include <collage/error.hpp>
#include <collage/graph/graph.hpp>
#include <collage/io/json.hpp>
#include <collage/measure/store.hpp>
#include <collage/place.hpp>
#include <collage/place/candidates.hpp>
#include <collage/place/costs.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/plan.hpp>
#include <collage/run/processor.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "placing.hpp"

namespace {

namespace c = collage;
using benchmarks::all_backends;
using computation = std::vector<std::uint64_t>;

/// Groups whose bound comes from one kind of operator.
struct bounded {
  std::size_t groups = 0, below = 0;    // below: the fastest kernel costs less than the bound
  std::size_t kernels = 0, beyond = 0;  // beyond: the kernel does
  double least = 1e300;                 // the fastest kernel to the bound

  void add(double bound, const std::vector<double>& costs) {
    const double ratio = *std::ranges::min_element(costs) / bound;
    ++groups;
    below += ratio < 1;
    kernels += costs.size();
    beyond += static_cast<std::size_t>(std::ranges::count_if(costs, [&](double ms) { return ms < bound; }));
    least = std::min(least, ratio);
  }
  std::string text() const {
    if (groups == 0) return "- | - | -";
    char line[100];
    std::snprintf(line, sizeof line, "%zu of %zu | %zu of %zu | %.2f", below, groups, beyond, kernels, least);
    return line;
  }
};

/// Costs of kernels by what they compute; refused ones are left out.
std::map<computation, std::vector<double>> costs_in(const std::string& store, int threads) {
  std::map<computation, std::vector<double>> costs;
  for (const c::stored_entry& e : c::cost_store(store).list())
    if (e.cost.refusal.empty() && e.key.threads == threads && e.key.machine == c::processor_name())
      costs[e.key.computes].push_back(e.cost.median_ms);
  return costs;
}

void print_network(const std::string& name, int threads, const std::string& folder) {
  const c::graph network = benchmarks::network_called(name);
  const std::string store = folder + "/" + name + ".db";
  c::place_report all, some;
  c::place_options how;
  how.network = name;
  how.threads = threads;
  how.store = store;
  how.measuring.complete = true;
  const c::placed_plan complete = c::place<all_backends>(network, how);
  all = complete.report;
  how.measuring.complete = false;
  const c::placed_plan lazy = c::place<all_backends>(network, how);
  some = lazy.report;

  constexpr c::backend_table table = c::table_of<all_backends>;
  std::vector<bool> use;
  for (const c::backend_entry& b : table) use.push_back(b.probe().available);
  const c::place_candidates candidates = c::find_candidates(network, table, use);
  const std::map<computation, std::vector<double>> costs = costs_in(store, threads);
  // What the fastest kernel takes for a node alone.
  const auto alone = [&](std::uint32_t node) {
    const std::uint32_t nodes[] = {node};
    const auto known = costs.find(c::detail::structure_key(network, nodes));
    return known == costs.end() ? 0.0 : *std::ranges::min_element(known->second);
  };
  std::array<bounded, 2> by_kind;  // others, anchors
  std::set<computation> seen;
  for (const c::place_group& g : candidates.groups) {
    computation key = c::detail::structure_key(network, g.nodes);
    const auto known = costs.find(key);
    if (g.nodes.size() < 2 || known == costs.end() || !seen.insert(std::move(key)).second) continue;
    double bound = 0;
    std::size_t kind = 0;
    for (const std::uint32_t n : g.nodes) {
      const bool is_anchor = network.node(n).kind->fusion == c::fusion_kind::anchor;
      const double least = alone(n) * (is_anchor ? c::least_of_anchor : c::least_of_other);
      if (least <= bound) continue;
      bound = least;
      kind = is_anchor ? 1 : 0;
    }
    if (bound > 0) by_kind[kind].add(bound, known->second);
  }
  // Plans from the store have six digits.
  std::printf("| %s | %zu | %s | %s | %zu | %.4f | %.4f |\n", name.c_str(), all.distinct, by_kind[1].text().c_str(),
              by_kind[0].text().c_str(), some.skipped, c::rounded(lazy.first_cost_ms),
              c::rounded(complete.first_cost_ms));
  std::fflush(stdout);
}

int measure(int count, const char* const* words) {
  benchmarks::command_line line(count, words);
  const auto threads = static_cast<int>(line.number("--threads", static_cast<std::size_t>(c::available_threads())));
  const std::string folder = line.text("--stores", "bounds-stores");
  std::vector<std::string> networks = line.rest();
  if (networks.empty()) networks = {"bert-paper", "mobilenet-v2", "dcgan-paper", "resnext50-paper"};
  std::filesystem::create_directories(folder);
  std::printf(
      "%d thread%s of %s\n\n"
      "| network | candidates | anchors: groups below | kernels below | least | others: groups below | kernels "
      "below | least | skipped | cost ms | complete ms |\n|---|---|---|---|---|---|---|---|---|---|---|\n",
      threads, threads == 1 ? "" : "s", c::processor_name().c_str());
  for (const std::string& name : networks) print_network(name, threads, folder);
  return 0;
}

}  // namespace

int main(int count, char** words) { return benchmarks::run("bounds", measure, count, words); }
