// The store as placing uses it: costs of candidates, found again and kept.
#pragma once

#include <collage/error.hpp>
#include <collage/measure/store.hpp>
#include <collage/place/candidates.hpp>
#include <collage/place/costs.hpp>
#include <collage/run/processor.hpp>
#include <collage/run/backend_table.hpp>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace collage::inline v0 {

namespace detail {
namespace {

class kept_costs {
 public:
  /// Opens the store. Errors: as of cost_store.
  kept_costs(const std::string& path, const graph& network, backend_table backends, const place_candidates& candidates,
             int threads)
      : store_(path), network_(network), backends_(backends), candidates_(candidates), threads_(threads) {
    machine_ = processor_name();
    const char* policy = std::getenv("OMP_WAIT_POLICY");
    waiting_ = policy != nullptr ? policy : "default";
    for (const backend_entry& b : backends) {
      const probe_result found = b.probe();
      libraries_.push_back(std::string(found.version) + (found.details[0] != '\0' ? "; " : "") + found.details);
    }
    if (!store_.writable()) problem_ = "the store " + store_.why_not_writable();
  }

  std::optional<measured_cost> find(const place_candidate& c) const {
    const std::optional<stored_cost> kept = store_.find(key_of(c));
    if (!kept) return {};
    measured_cost cost;
    cost.time = {kept->median_ms,   kept->low_ms,       kept->high_ms,
                 kept->sure_low_ms, kept->sure_high_ms, static_cast<std::size_t>(kept->samples)};
    cost.alone_ms = kept->median_ms;
    cost.kernel = kept->kernel;
    cost.refusal = kept->refusal;
    return cost;
  }

  /// Keeps a cost. Where that fails, placing goes on without, and `problem` says why. The times are kept such that the
  /// median is the cost that was decided among the rivals.
  void put(const place_candidate& c, const measured_cost& cost, const std::string& how) {
    if (!problem_.empty()) return;
    stored_cost kept;
    kept.label = candidates_.structures[candidates_.groups[c.group].structure].label;
    kept.kernel = cost.kernel;
    kept.refusal = cost.refusal;
    if (cost.refusal.empty()) {
      const double scale = cost.time.median_ms > 0 ? cost.alone_ms / cost.time.median_ms : 1;
      kept.median_ms = cost.alone_ms;
      kept.low_ms = cost.time.low_ms * scale;
      kept.high_ms = cost.time.high_ms * scale;
      kept.sure_low_ms = cost.time.sure_low_ms * scale;
      kept.sure_high_ms = cost.time.sure_high_ms * scale;
      kept.samples = cost.time.samples;
    }
    kept.how = how;
    try {
      store_.put(key_of(c), kept);
    } catch (const error& e) { problem_ = e.what(); }
  }

  /// The right to measure; none where `stop` says so while another process has it.
  measuring_lock lock(const std::function<bool(const measuring_process&)>& go_on) const {
    return store_.measuring(go_on);
  }
  const std::string& problem() const { return problem_; }

 private:
  stored_key key_of(const place_candidate& c) const {
    stored_key key;
    key.machine = machine_;
    key.threads = threads_;
    key.waiting = waiting_;
    key.precision = "fp32";
    key.backend = backends_[c.backend].name;
    key.library = libraries_[c.backend];
    key.pattern = pattern_name(backends_, c.backend, c.pattern);
    key.choice = c.choice;
    key.computes = structure_key(network_, candidates_.groups[c.group].nodes);
    return key;
  }

  cost_store store_;
  const graph& network_;
  backend_table backends_;
  const place_candidates& candidates_;
  int threads_;
  std::string machine_, waiting_, problem_;
  std::vector<std::string> libraries_;  // by backend
};

}  // namespace
}  // namespace detail
}  // namespace collage::inline v0
