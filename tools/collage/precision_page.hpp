// The time that lower precision saves in each group of a plan, and the error that it adds, as `explain` shows them.
#pragma once

#include "options.hpp"
#include "placing.hpp"

#include <collage/dtype.hpp>
#include <collage/io/json.hpp>
#include <collage/place/precision_prices.hpp>

#include <optional>
#include <string>

namespace program {

/// An element type as forms of plans spell it: "bf16"; "fp32" for float32.
std::string element_text(collage::dtype element);

/// The prices of a plan's groups, by the costs and errors that the store of the options has; nothing if the plan rounds nothing.
std::optional<collage::precision_prices> prices_of(const options& given, const placed& p);

/// A table of them, and sentences on their sums.
std::string precision_page(const placed& p, const collage::precision_prices& prices);
/// The same as an object. Errors are squared; what is not known is null.
collage::json prices_to_json(const placed& p, const collage::precision_prices& prices);
/// The greedy way from a plan that rounds values to float32, as a list. Each step has a group, and time and squared error after it.
collage::json greedy_to_json(const options& given, const placed& p);

}  // namespace program
