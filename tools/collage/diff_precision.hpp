// How the precision of two plans differs, as `diff` shows it.
#pragma once

#include "diff_file.hpp"

#include <collage/io/json.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace program {

/// The element types in which the kernels of some groups compute, each once: "bf16", or "bf16, fp32".
std::string elements_of(const std::vector<const file_group*>& groups);
/// Whether they differ between the plans.
bool changes_precision(const compared_region& region);

/// The regions that change from some element types to others.
struct precision_change {
  std::string from, to;
  std::size_t places = 0, nodes = 0;
  double more_ms = 0;  ///< how much more the second plan's groups cost there
};
/// In the order in which they are met.
std::vector<precision_change> changes_in(const std::vector<compared_region>& regions);

/// Tables of the changes, and of the errors of both plans. Empty if neither rounds values.
std::string precision_changes_page(const both<file_plan>& plans, const std::vector<precision_change>& changes);
/// The same as an object: `changes`, and the error of each plan, null if it rounds nothing.
collage::json precision_to_json(const both<file_plan>& plans, const std::vector<precision_change>& changes);

}  // namespace program
