// The curve of time over error budgets, as `tune --curve` shows it.
#pragma once

#include "options.hpp"

#include <collage/graph/graph.hpp>
#include <collage/io/json.hpp>
#include <collage/place/error_curve.hpp>

#include <string>

namespace program {

/// Throws if --curve is given and cannot be made.
void check_curve(const options& given);

/// Makes the curve that the options ask for, and writes it to the file of --curve. Kernels and errors that the store has are not
/// measured again. Throws `collage::error`.
collage::error_curve make_curve(const options& given, const collage::graph& network);

/// A table of the curve, and a sentence on what its numbers are.
std::string curve_page(const collage::error_curve& curve);
/// The same as an object: `exact`, and a list of `points`.
collage::json curve_to_json(const collage::error_curve& curve);

}  // namespace program
