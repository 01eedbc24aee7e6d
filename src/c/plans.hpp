// Declarations shared by the functions that load plans and that make plans.
#pragma once

#include "states.hpp"

#include <collage/io/json.hpp>
#include <collage/run/plan.hpp>

#include <cstdint>
#include <memory>

namespace c_interface {

/// A handle for a plan. `placing` is the report of placing as JSON, or null for a plan from a file.
collage_plan* new_plan(std::shared_ptr<const network_state> network, collage::plan made, const collage::json& placing);

/// Returns a number of threads. Throws if it is negative or larger than a plan can have.
int checked_threads(const call& here, std::int32_t threads);

}  // namespace c_interface
