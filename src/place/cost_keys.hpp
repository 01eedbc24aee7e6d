// The keys under which a store has the costs of candidates.
#pragma once

#include <collage/graph/graph.hpp>
#include <collage/measure/store.hpp>
#include <collage/place/candidates.hpp>
#include <collage/place/workloads.hpp>
#include <collage/run/algorithm.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/form.hpp>
#include <collage/run/node_group.hpp>
#include <collage/run/processor.hpp>
#include <collage/run/waiting.hpp>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace collage::inline v0 {

namespace detail {
namespace {

class cost_keys {
 public:
  cost_keys(const graph& network, backend_table backends, const place_candidates& candidates,
            const std::vector<bool>& use, int threads, const char* precision, algorithms which)
      : network_(network), backends_(backends), candidates_(candidates), algorithms_(which) {
    of_machine_.machine = processor_name();
    of_machine_.threads = threads;
    of_machine_.waiting = waiting_policy();
    of_machine_.precision = precision;
    for (std::uint32_t b = 0; b < backends.size(); ++b) {
      libraries_.emplace_back();
      if (!use[b]) continue;
      const probe_result found = backends[b].probe();
      libraries_.back() = std::string(found.version) + (found.details[0] != '\0' ? "; " : "") + found.details;
      set_ += (set_.empty() ? "" : ", ") + std::string(backends[b].name) + " " + libraries_.back();
    }
  }

  /// The machine, threads, waiting policy and precision alone.
  const stored_key& of_machine() const { return of_machine_; }
  /// All backends in use, with the versions of their libraries.
  const std::string& set() const { return set_; }

  stored_key of(const place_candidate& c) const {
    stored_key key = without_workload(c);
    key.computes = structure_key(network_, candidates_.groups[c.group].nodes);
    add_forms(c, key.computes);
    return key;
  }
  stored_key without_workload(const place_candidate& c) const {
    stored_key key = of_machine_;
    // A kernel that is refused as inaccurate may be taken if accuracy does not count. All others are the same.
    if (algorithms_ == algorithms::all && !algorithm_of(network_, backends_, c).is_direct())
      key.precision += ", any algorithm";
    key.backend = backends_[c.backend].name;
    key.library = libraries_[c.backend];
    key.pattern = pattern_name(backends_, c.backend, c.pattern);
    key.choice = c.configuration;
    return key;
  }
  /// Adds the forms of what a candidate reads and writes to the words of its workload. A configuration may stand for other forms in
  /// another version of a backend.
  void add_forms(const place_candidate& c, std::vector<std::uint64_t>& words) const {
    const value_forms borders = forms_of(network_, backends_, candidates_, c);
    if (borders.list().empty()) return;
    const node_group values = values_of(network_, backends_, candidates_, c);
    for (const auto* list : {&values.arguments, &values.outputs})
      for (const std::uint32_t v : *list) words.push_back(id_of(borders.of(v)));
  }

 private:
  const graph& network_;
  backend_table backends_;
  const place_candidates& candidates_;
  algorithms algorithms_;
  stored_key of_machine_;
  std::string set_;
  std::vector<std::string> libraries_;  // by backend
};

}  // namespace
}  // namespace detail
}  // namespace collage::inline v0
