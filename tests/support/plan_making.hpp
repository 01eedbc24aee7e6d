// Plans written by hand, for tests.
#pragma once

#include <collage/run/form.hpp>
#include <collage/run/plan.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace collage_test {

inline collage::plan_group kernel_group(std::vector<std::uint32_t> nodes, const std::string& backend,
                                        const std::string& pattern, std::size_t configuration = 0) {
  collage::plan_group g;
  g.step = collage::kernel_step{backend, pattern, std::to_string(configuration)};
  g.nodes = std::move(nodes);
  return g;
}

inline collage::plan_group listed_group(std::vector<std::uint32_t> nodes, const std::string& backend) {
  collage::plan_group g;
  g.step = collage::group_step{backend};
  g.nodes = std::move(nodes);
  return g;
}

inline collage::plan_group view_group(std::uint32_t node, const collage::form& stored = {}) {
  collage::plan_group g;
  g.layout = to_text(stored);
  g.step = collage::view_step{g.layout};
  g.kernel = "view";
  g.nodes = {node};
  return g;
}

inline collage::plan_conversion conversion_by(const std::string& backend, std::uint32_t value,
                                              const collage::form& from, const collage::form& to,
                                              std::size_t configuration) {
  return {value, {to_text(from), to_text(to), backend, std::to_string(configuration)}, "", 0};
}

/// The kernel of a group that has a pattern, to change it.
inline collage::kernel_step& kernel_of(collage::plan_group& g) { return std::get<collage::kernel_step>(g.step); }
inline collage::view_step& view_of(collage::plan_group& g) { return std::get<collage::view_step>(g.step); }

inline std::ptrdiff_t count_views(const collage::placement& p) {
  return std::ranges::count_if(p.groups, [](const collage::plan_group& g) { return g.is_view(); });
}

}  // namespace collage_test
