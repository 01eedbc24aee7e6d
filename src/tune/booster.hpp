// The trees of a cost model, shared by its copies.
#pragma once

#include "xgboost_library.hpp"

#include <collage/tune/cost_model.hpp>
#include <mutex>
#include <utility>

namespace collage::inline v0::tune {

struct cost_model::booster {
  explicit booster(xgboost::trees of) : trees(std::move(of)) {}
  xgboost::trees trees;
  mutable std::mutex one_at_a_time;  ///< XGBoost keeps the results of a prediction in the trees
};

}  // namespace collage::inline v0::tune
