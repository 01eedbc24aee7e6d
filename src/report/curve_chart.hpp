// The curve of time over error budgets as a picture of its own.
#pragma once

#include <collage/place/error_curve.hpp>
#include <string>

namespace collage::inline v0::report {

/// An SVG file in UTF-8, which loads nothing: the time of the fastest plan within each budget, beside that of the best plan in float32.
/// Each mark says in a title what its plan is. `network` is a name for people. A curve without points has the time in float32 alone.
std::string curve_picture(const error_curve& curve, const std::string& network);

}  // namespace collage::inline v0::report
