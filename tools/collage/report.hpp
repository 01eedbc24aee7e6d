// Tables and sentences about plans, which several commands print.
#pragma once

#include "placing.hpp"

#include <collage/io/json.hpp>
#include <collage/run/engine.hpp>
#include <collage/run/plan.hpp>
#include <place/plan_text.hpp>

#include <string>
#include <vector>

namespace program {

using collage::detail::backend_total;
using collage::detail::borrowed_text;
using collage::detail::certificate_text;
using collage::detail::error_text;
using collage::detail::heading_of;
using collage::detail::kept_text;
using collage::detail::label_of;
using collage::detail::prediction_error;
using collage::detail::prediction_text;
using collage::detail::single_text;
using collage::detail::title_of;
using collage::detail::totals_of;

/// A table of end-to-end times in the colours of the terminal (plan_text.hpp).
std::string runs_table(const collage::plan& made, const std::vector<collage::plan_run>& runs);

/// The algorithms of a plan's kernels that do not compute by the operator's definition, as a table; empty if there are none.
std::string algorithms_table(const placed& p);
/// The same as a list of objects.
collage::json algorithms_to_json(const placed& p);

/// Prints a note on stderr if times vary so much that other programs probably use the processors.
void note_spread(const std::vector<collage::plan_run>& runs);

/// Prints a note on stderr if the plan took much longer now than when it was made.
void note_slower(const collage::plan& made, double median_ms);

/// Prints a note on stderr if the system kept the process from its processors while times were measured.
void note_holdups(const collage::process_holdups& held);

/// The size of the arena, and the lower bound that no plan can be below. It begins "arena of 12.0 MB, 1.000 times the
/// lower bound".
std::string arena_text(const collage::dynamic_engine& engine);
/// Adds both sizes of the arena to a JSON object.
void add_arena(collage::json& to, const collage::dynamic_engine& engine);

}  // namespace program
