// What reading plans and making them share.
#pragma once

#include "states.hpp"

#include <collage/io/json.hpp>
#include <collage/run/plan.hpp>

#include <cstdint>
#include <memory>

namespace c_interface {

/// A handle for a plan. `placing` is what happened while it was made, or null.
collage_plan* new_plan(std::shared_ptr<const network_state> network, collage::plan made, const collage::json& placing);

/// Throws where no machine has so many threads.
int checked_threads(const call& here, std::int32_t threads);

}  // namespace c_interface
