// Placing with lower precision: --precision, --error and --data.
#pragma once

#include "options.hpp"

#include <collage/graph/graph.hpp>
#include <collage/place.hpp>
#include <collage/place/kept_parts.hpp>
#include <collage/place/within_error.hpp>
#include <collage/run/precision.hpp>

#include <functional>
#include <string>
#include <vector>

namespace program {

/// The precision of plans by the options, without errors of values. Throws `collage::error` where they contradict each other.
collage::precision_options precision_options_of(const options& given);

/// The parts that stay in float32 by the options.
std::vector<collage::kept_part> kept_parts_of(const options& given);

/// Places within the error that the options allow. `progress` gets the current work.
collage::placed_within_error place_in_lower_precision(const options& given, const collage::graph& network,
                                                      const collage::place_options& how,
                                                      const std::function<void(const std::string&)>& progress);

/// Sets the errors of single values, on the same samples, and the scales of integers.
void set_errors(const options& given, const collage::graph& network, collage::place_options& how,
                const std::function<void(const std::string&)>& progress);

}  // namespace program
