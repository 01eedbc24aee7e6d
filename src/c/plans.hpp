// Declarations shared by the functions that load plans and that make plans.
#pragma once

#include "samples.hpp"
#include "states.hpp"

#include <collage/graph/graph.hpp>
#include <collage/io/json.hpp>
#include <collage/place.hpp>
#include <collage/place/within_error.hpp>
#include <collage/run/plan.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace c_interface {

/// A handle for a plan. `placing` is the report of placing as JSON, or null for a plan from a file.
collage_plan* new_plan(std::shared_ptr<const network_state> network, collage::plan made, const collage::json& placing,
                       std::string why_unrounded = {});

/// Returns a number of threads. Throws if it is negative or larger than a plan can have.
int checked_threads(const call& here, std::int32_t threads);

inline constexpr std::size_t oldest_place_options = offsetof(collage_place_options, progress_data) + sizeof(void*);

/// How a caller wants networks to be placed.
struct placing_request {
  collage::place_options how;
  collage_progress_function progress = nullptr;
  void* progress_data = nullptr;
  std::string no_store;      ///< why there is no default store; empty if there is one or none is needed
  sample_request samples{};  ///< for plans that may round values
  std::shared_ptr<const collage::network_ranges> ranges{};  ///< of the network; null: from the samples
  bool is_in_background = false;                            ///< it ends early where another call waits to measure
  bool may_round() const { return how.precision.elements != collage::precisions::f32; }
};

/// All of the options but `previous`, checked.
placing_request placing_of(const call& here, const collage_place_options& given);

/// Places a network. One call at a time measures; the others wait. The caller's function ends it, and so does `how.cancel`.
collage::placed_within_error place_by(const placing_request& by, const collage::graph& network);

}  // namespace c_interface
