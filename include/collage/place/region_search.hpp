// The graph-level search: which groups of a placement are joined into regions for a backend that compiles whole networks.
//
// It is the genetic algorithm of the Collage paper (Jeon and others, 2022, section 4.2). A genome has one gene for each group of
// the operator-level placement. The first genomes have all genes on or all off. New genomes come from two-point crossover,
// mutation and tournaments, and the best survive. There are three differences:
//
// - a gene can also begin a new region, so that regions can be merged and split;
// - groups of one workload can change together;
// - genomes that give the same regions are tried once.
#pragma once

#include <algorithm>
#include <collage/graph/graph.hpp>
#include <collage/place/regions.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace collage::inline v0 {

/// A group of the operator-level placement.
struct region_unit {
  std::vector<std::uint32_t> nodes;
  bool is_taken = false;    ///< the backend takes all of its nodes into regions
  bool is_view = false;     ///< it runs no kernel: it is inside if its operand and a reader are
  std::uint32_t alike = 0;  ///< equal for groups of one workload
};

/// How long and how widely to search.
struct region_search_options {
  std::uint64_t seed = 1;
  std::size_t population = 8;  ///< genomes that survive each generation
  std::size_t offspring = 6;   ///< new genomes in each generation
  /// The search ends after this many generations that together gained less than the portion `telling`.
  std::size_t patience = 4;
  double telling = 0.005;
  std::size_t most_generations = 100;
};

/// A division of the network into regions and other groups, and its time.
struct tried_regions {
  std::vector<std::vector<std::uint32_t>> regions;        ///< nodes of each; all other groups stay as they were
  double time = std::numeric_limits<double>::infinity();  ///< as `evaluate` returned it
};

/// The result of a search over regions.
struct region_search_result {
  tried_regions best;
  std::size_t tried = 0;              ///< different divisions
  std::vector<double> by_generation;  ///< the best time after each generation
  bool is_saturated = false;          ///< it ended because there was no more gain
};

/// Searches for the regions with which the network takes the least time. `evaluate` gets divisions that were not tried before
/// and returns a time for each, infinity if it cannot run. `stop` is called between generations and ends the search if it
/// returns true. The same seed and times give the same result.
class region_search {
 public:
  using regions = std::vector<std::vector<std::uint32_t>>;
  using evaluator = std::function<std::vector<double>(const std::vector<regions>&)>;

  /// Units are in an order in which they can run, and cover all nodes of the network.
  region_search(const graph& network, std::vector<region_unit> units, const region_search_options& options = {})
      : network_(network), units_(std::move(units)), options_(options), random_(options.seed) {
    for (const region_unit& u : units_) nodes_.push_back(u.nodes);
    for (std::size_t u = 0; u < units_.size(); ++u) {
      if (!is_free(u)) continue;
      free_.push_back(u);
      alike_[units_[u].alike].push_back(u);
    }
  }

  region_search_result run(const evaluator& evaluate, const std::function<bool()>& stop = {}) {
    region_search_result result;
    if (free_.empty()) return result;
    std::vector<genome> young = seeds();
    std::size_t without_gain = 0;
    double marked = std::numeric_limits<double>::infinity();
    for (std::size_t generation = 0; generation < options_.most_generations; ++generation) {
      try_all(young, evaluate);
      select();
      const double best = population_.front().time;
      result.by_generation.push_back(best);
      without_gain = best < marked * (1 - options_.telling) ? 0 : without_gain + 1;
      if (without_gain == 0) marked = best;
      result.is_saturated = without_gain >= options_.patience;
      if (result.is_saturated || (stop && stop())) break;
      young = offspring();
      if (young.empty()) {  // no new division was found
        result.is_saturated = true;
        break;
      }
    }
    result.best = {regions_for(population_.front().genes), population_.front().time};
    result.tried = known_.size();
    return result;
  }

 private:
  enum class gene : std::uint8_t { off, on, anew };
  using genome = std::vector<gene>;  // by position in free_
  struct individual {
    genome genes;
    double time = 0;
  };

  bool is_free(std::size_t u) const { return units_[u].is_taken && !units_[u].is_view; }

  regions regions_for(const genome& genes) const {
    std::vector<bool> inside(units_.size(), false), anew(units_.size(), false);
    for (std::size_t i = 0; i < free_.size(); ++i) {
      inside[free_[i]] = genes[i] != gene::off;
      anew[free_[i]] = genes[i] == gene::anew;
    }
    join_views(inside);
    return regions_of(network_, nodes_, inside, anew);
  }
  /// Sets a view inside if its operand and one of its readers are inside, so that it does not split a region.
  void join_views(std::vector<bool>& inside) const {
    const graph_view view = network_.view();
    std::vector<std::size_t> unit_of(network_.nodes().size());
    for (std::size_t u = 0; u < units_.size(); ++u)
      for (const std::uint32_t n : units_[u].nodes) unit_of[n] = u;
    for (std::size_t u = 0; u < units_.size(); ++u) {
      if (!units_[u].is_view || !units_[u].is_taken) continue;
      const std::int32_t producer = network_.at(view.inputs_of(units_[u].nodes[0])[0]).producer;
      inside[u] = producer >= 0 && inside[unit_of[static_cast<std::size_t>(producer)]];
    }
    for (std::size_t u = units_.size(); u-- > 0;) {
      if (!units_[u].is_view || !inside[u]) continue;
      const auto readers = view.uses_of(view.output_of(units_[u].nodes[0]));
      inside[u] = std::any_of(readers.begin(), readers.end(), [&](const use& r) { return inside[unit_of[r.node]]; });
    }
  }

  /// All on, all off, each half on, and random genomes in which groups of one workload have the same gene.
  std::vector<genome> seeds() {
    const std::size_t n = free_.size();
    std::vector<genome> list = {genome(n, gene::on), genome(n, gene::off)};
    for (const bool first : {true, false}) {
      genome half(n, gene::off);
      for (std::size_t i = 0; i < n; ++i)
        if ((i < n / 2) == first) half[i] = gene::on;
      list.push_back(std::move(half));
    }
    while (list.size() < options_.population) {
      genome some(n, gene::on);
      for (const auto& [kind, members] : alike_)
        if (draw(4) == 0) set(some, members, gene::off);
      list.push_back(std::move(some));
    }
    return list;
  }

  std::vector<genome> offspring() {
    std::vector<genome> list;
    std::set<regions> made;
    // More and more draws give regions that were tried before. After this many, there is hardly anything new left.
    for (std::size_t draws = 0; draws < 20 * options_.offspring && list.size() < options_.offspring; ++draws) {
      // Half of the children stay near the best genome, because there is time for few generations.
      const genome& first = draw(2) == 0 ? population_.front().genes : chosen().genes;
      genome child = crossed(first, chosen().genes);
      mutate(child);
      regions now = regions_for(child);
      if (known_.count(now) != 0 || !made.insert(std::move(now)).second) continue;
      list.push_back(std::move(child));
    }
    return list;
  }
  /// A tournament: the better of two random individuals.
  const individual& chosen() {
    const individual &a = population_[draw(population_.size())], &b = population_[draw(population_.size())];
    return b.time < a.time ? b : a;
  }
  genome crossed(const genome& a, const genome& b) {
    genome child = a;
    std::size_t first = draw(a.size() + 1), last = draw(a.size() + 1);
    if (first > last) std::swap(first, last);
    std::copy(b.begin() + static_cast<std::ptrdiff_t>(first), b.begin() + static_cast<std::ptrdiff_t>(last),
              child.begin() + static_cast<std::ptrdiff_t>(first));
    return child;
  }
  void mutate(genome& genes) {
    const std::size_t at = draw(genes.size());
    const auto flipped = [](gene g) { return g == gene::off ? gene::on : gene::off; };
    switch (draw(4)) {
      case 0: genes[at] = flipped(genes[at]); break;
      case 1: {
        const gene to = flipped(genes[at]);
        set(genes, alike_.at(units_[free_[at]].alike), to);
        break;
      }
      case 2: {
        const gene to = flipped(genes[at]);
        const std::size_t end = std::min(genes.size(), at + 1 + draw(1 + genes.size() / 4));
        for (std::size_t i = at; i < end; ++i) genes[i] = to;
        break;
      }
      default: genes[at] = genes[at] == gene::anew ? gene::on : gene::anew;
    }
  }
  void set(genome& genes, std::span<const std::size_t> units, gene to) const {
    for (const std::size_t u : units)
      genes[static_cast<std::size_t>(std::ranges::lower_bound(free_, u) - free_.begin())] = to;
  }

  void try_all(const std::vector<genome>& young, const evaluator& evaluate) {
    std::vector<regions> fresh;
    for (const genome& g : young) {
      regions r = regions_for(g);
      if (known_.count(r) == 0 && std::ranges::find(fresh, r) == fresh.end()) fresh.push_back(std::move(r));
    }
    const std::vector<double> times = evaluate(fresh);
    for (std::size_t i = 0; i < fresh.size(); ++i) known_.emplace(std::move(fresh[i]), times[i]);
    for (const genome& g : young) population_.push_back({g, known_.at(regions_for(g))});
  }
  void select() {
    std::ranges::stable_sort(population_, {}, &individual::time);
    if (population_.size() > options_.population) population_.resize(options_.population);
  }
  std::size_t draw(std::size_t below) { return static_cast<std::size_t>(random_() % below); }

  const graph& network_;
  std::vector<region_unit> units_;
  region_search_options options_;
  std::mt19937_64 random_;
  std::vector<std::vector<std::uint32_t>> nodes_;            // by unit
  std::vector<std::size_t> free_;                            // units that have a gene
  std::map<std::uint32_t, std::vector<std::size_t>> alike_;  // units that have a gene, by workload
  std::map<regions, double> known_;
  std::vector<individual> population_;  // best first
};

}  // namespace collage::inline v0
