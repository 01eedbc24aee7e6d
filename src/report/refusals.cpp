#include "refusals.hpp"

#include <collage/place/candidates.hpp>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace collage::inline v0::report {
namespace {

void add_refusals_of(const graph& network, backend_table table, const std::vector<bool>& use,
                     std::vector<graph_refusals>& to) {
  to.push_back({&network, find_candidates(network, table, use).refusals});
  for (std::uint32_t n = 0; n < network.nodes().size(); ++n)
    for (const auto& body : network.bodies_of(n)) add_refusals_of(*body, table, use, to);
}

}  // namespace

std::vector<graph_refusals> find_refusals(const graph& network, const plan& made, backend_table table) {
  std::vector<bool> use;
  for (const backend_entry& b : table)
    use.push_back(std::ranges::find(made.backends, b.name, &plan_backend::name) != made.backends.end());
  std::vector<graph_refusals> all;
  add_refusals_of(network, table, use, all);
  return all;
}

std::vector<place_refusal> joined(const std::vector<graph_refusals>& all) {
  std::vector<place_refusal> list;
  for (const graph_refusals& one : all) list.insert(list.end(), one.list.begin(), one.list.end());
  return list;
}

}  // namespace collage::inline v0::report
