// Costs measured on this machine, as a source of costs.
#pragma once

#include <collage/place/candidates.hpp>
#include <collage/place/cost_source.hpp>
#include <collage/place/costs.hpp>

namespace collage::inline v0 {

/// Looks up a table of measured costs by candidate: `cost_question::tag` is an index into `candidates.list`. Refers to the
/// candidates and the table; they must outlive it.
class stored_costs {
 public:
  stored_costs(const place_candidates& candidates, const cost_table& costs)
      : candidates_(&candidates), costs_(&costs) {}

  cost_answer cost_of(const cost_question& question) const {
    if (question.tag >= candidates_->list.size()) return cost_answer::none("there is no such candidate");
    const auto known = costs_->find(key_of(*candidates_, candidates_->list[question.tag]));
    if (known == costs_->end()) return cost_answer::none("it was not measured");
    if (!known->second.refusal.empty()) return cost_answer::none(known->second.refusal);
    return {known->second.alone_ms, {}};
  }

 private:
  const place_candidates* candidates_;
  const cost_table* costs_;
};
static_assert(cost_source<stored_costs>);

}  // namespace collage::inline v0
