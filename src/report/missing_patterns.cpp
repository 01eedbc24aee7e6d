#include "missing_patterns.hpp"

#include <collage/place/candidates.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/node_group.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <tuple>

namespace collage::inline v0::report {
namespace {

using node_list = std::vector<std::uint32_t>;

node_list sorted(node_list nodes) {
  std::sort(nodes.begin(), nodes.end());
  return nodes;
}

std::string kinds_of(const graph& network, const node_list& nodes) {
  std::string text;
  for (const std::uint32_t n : nodes) text += (text.empty() ? "" : "+") + std::string(network.node(n).kind->name);
  return text;
}

class finder {
 public:
  finder(const plan& made, backend_table table) : table_(table) {
    for (const backend_entry& b : table_)
      use_.push_back(std::any_of(made.backends.begin(), made.backends.end(),
                                 [&](const plan_backend& used) { return used.name == b.name; }));
  }

  void visit(const graph& network, const placement& placed) {
    const place_candidates found = find_candidates(network, table_, use_);
    for (std::size_t b = 0; b < table_.size(); ++b) {
      if (!use_[b]) continue;
      std::set<node_list> joined;
      std::vector<bool> covered(network.nodes().size());
      for (const place_candidate& candidate : found.list) {
        if (candidate.backend != b) continue;
        const node_list& nodes = found.groups[candidate.group].nodes;
        joined.insert(nodes);
        for (const std::uint32_t n : nodes) covered[n] = true;
      }
      add_operators(network, placed, found, table_[b].name, covered);
      if (!table_[b].takes_regions) add_fusions(network, placed, table_[b].name, joined);
    }
    for (const plan_group& g : placed.groups)
      for (std::size_t i = 0; i < g.bodies().size(); ++i) visit(*network.bodies_of(g.nodes[0])[i], g.bodies()[i]);
  }

  missing_patterns result() const {
    missing_patterns all;
    for (const auto& [key, m] : operators_) all.operators.push_back(m);
    for (const auto& [key, m] : fusions_) all.fusions.push_back(m);
    std::ranges::stable_sort(all.operators, std::ranges::greater{}, &missing_operator::cost_ms);
    std::ranges::stable_sort(all.fusions, std::ranges::greater{}, &missing_fusion::cost_ms);
    return all;
  }

 private:
  void add_operators(const graph& network, const placement& placed, const place_candidates& found,
                     const std::string& backend, const std::vector<bool>& covered) {
    std::map<std::string, std::string> refused;  // by node
    for (const place_refusal& r : found.refusals)
      if (r.backend == backend) refused.emplace(r.where, r.reason);
    for (const plan_group& g : placed.groups) {
      if (!g.has_kernel()) continue;
      std::set<missing_operator*> counted;  // a group counts once, however many of its nodes are alike
      for (const std::uint32_t n : g.nodes) {
        if (covered[n]) continue;
        const auto refusal = refused.find(network.node_name(n));
        const std::string reason = refusal == refused.end() ? "" : refusal->second;
        const std::string kind = network.node(n).kind->name;
        missing_operator& m = operators_[{backend, kind, reason}];
        m.backend = backend;
        m.kind = kind;
        m.reason = reason;
        ++m.nodes;
        if (counted.insert(&m).second) m.cost_ms += g.cost_ms;
      }
    }
  }

  void add_fusions(const graph& network, const placement& placed, const std::string& backend,
                   const std::set<node_list>& joined) {
    std::vector<std::size_t> group_of(network.nodes().size());
    for (std::size_t i = 0; i < placed.groups.size(); ++i)
      for (const std::uint32_t n : placed.groups[i].nodes) group_of[n] = i;
    for (const plan_group& first : placed.groups) {
      if (first.backend() != backend) continue;
      const std::optional<std::size_t> reader = sole_reader(network, sorted(first.nodes), group_of);
      if (!reader || placed.groups[*reader].backend() != backend) continue;
      const plan_group& second = placed.groups[*reader];
      node_list both = first.nodes;
      both.insert(both.end(), second.nodes.begin(), second.nodes.end());
      if (joined.count(sorted(both)) != 0) continue;
      const std::string a = kinds_of(network, first.nodes), b = kinds_of(network, second.nodes);
      missing_fusion& m = fusions_[{backend, a, b}];
      if (m.places++ == 0) {
        m.backend = backend;
        m.first = a;
        m.second = b;
        m.example = network.node_name(second.nodes.back());
      }
      m.cost_ms += first.cost_ms + second.cost_ms;
    }
  }

  /// The group that alone reads the values that these nodes compute. None if several groups read them, or if they are outputs.
  static std::optional<std::size_t> sole_reader(const graph& network, const node_list& nodes,
                                                const std::vector<std::size_t>& group_of) {
    std::optional<std::size_t> reader;
    for (const std::uint32_t v : collage::group_of(network, nodes).outputs) {
      if (network.at(v).is_output) return {};
      for (const use& u : network.view().uses_of(v)) {
        if (std::binary_search(nodes.begin(), nodes.end(), u.node)) continue;
        if (reader && *reader != group_of[u.node]) return {};
        reader = group_of[u.node];
      }
    }
    return reader;
  }

  backend_table table_;
  std::vector<bool> use_;
  // By backend and what is missing.
  std::map<std::tuple<std::string, std::string, std::string>, missing_operator> operators_;
  std::map<std::tuple<std::string, std::string, std::string>, missing_fusion> fusions_;
};

}  // namespace

missing_patterns find_missing_patterns(const graph& network, const plan& made, backend_table table) {
  finder f(made, table);
  f.visit(network, made.chosen);
  return f.result();
}

}  // namespace collage::inline v0::report
