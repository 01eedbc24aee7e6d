// The memory of a plan's weights.
#pragma once

#include <algorithm>
#include <collage/graph/graph.hpp>
#include <collage/pattern/match.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/configuration.hpp>
#include <collage/run/node_group.hpp>
#include <collage/run/plan.hpp>
#include <collage/run/planned_kernel.hpp>
#include <collage/run/weights.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

namespace collage::inline v0 {

/// A constant in the memory of a backend.
struct weight_item {
  std::uint32_t value = 0;
  std::uint32_t space = host_space.id;  ///< of the memory space
  std::string packing = {};             ///< empty: as it is
  std::size_t bytes = 0;
};

/// Equal for items that are the same memory. Constants with the same contents share it.
using weight_key = std::tuple<const void*, std::uint32_t, std::uint32_t, std::string, std::size_t>;
inline weight_key key_of(const graph& network, const weight_item& item) {
  const void* const contents = network.constant(item.value).bytes.get();
  // Without contents, only the value itself is the same.
  return {contents != nullptr ? contents : &network, contents != nullptr ? 0 : item.value + 1, item.space, item.packing,
          item.bytes};
}

/// Whole KiB, rounded up.
constexpr std::uint64_t in_kib(std::uint64_t bytes) { return bytes / 1024 + (bytes % 1024 != 0 ? 1 : 0); }

/// Adds up the memory of items, the same memory once.
class weight_sum {
 public:
  void add(const graph& network, const weight_item& item) {
    if (!counted_.insert(key_of(network, item)).second) return;
    bytes_ += item.bytes;
    kib_ += in_kib(item.bytes);
  }
  std::uint64_t bytes() const { return bytes_; }
  /// Each item in whole KiB, rounded up.
  std::uint64_t kib() const { return kib_; }

 private:
  std::set<weight_key> counted_;
  std::uint64_t bytes_ = 0, kib_ = 0;
};

namespace detail {

/// Adds the constants among these values that no item of the list names.
inline void add_unpacked(const graph& network, const backend_entry& backend, std::span<const std::uint32_t> values,
                         std::vector<weight_item>& items) {
  const std::size_t packed = items.size();
  for (const std::uint32_t v : values)
    if (network.at(v).role == value_role::constant &&
        std::ranges::find(items.begin(), items.begin() + static_cast<std::ptrdiff_t>(packed), v, &weight_item::value) ==
            items.begin() + static_cast<std::ptrdiff_t>(packed))
      items.push_back({v, backend.space->id, {}, network.type_of(v).bytes()});
}

}  // namespace detail

/// The items that the kernel of a match keeps. The backend has the configuration.
inline std::vector<weight_item> weights_of(const graph& network, const backend_entry& backend,
                                           const pattern_entry& pattern, const match_record& record,
                                           const configuration& how) {
  std::vector<weight_item> items;
  if (pattern.weights != nullptr)
    for (kept_constant& kept : pattern.weights(network.view(), record, how))
      items.push_back({kept.value, backend.space->id, std::move(kept.packing), kept.bytes});
  detail::add_unpacked(network, backend, record.argument_list(), items);
  return items;
}
/// The same for a group that a fusion rule lists, or for a region.
inline std::vector<weight_item> weights_of(const graph& network, const backend_entry& backend,
                                           const node_group& group) {
  std::vector<weight_item> items;
  detail::add_unpacked(network, backend, group.arguments, items);
  return items;
}
/// The same for a group of a plan. Empty for views, control flow and what this table cannot build.
inline std::vector<weight_item> weights_of(const graph& network, backend_table backends, const plan_group& g) {
  if (const std::optional<planned_kernel> k = planned_kernel::find(network, backends, g))
    return weights_of(network, *k->backend, *k->pattern, k->record, k->how);
  const auto* const step = std::get_if<group_step>(&g.step);
  const backend_entry* const backend = step == nullptr ? nullptr : find_backend(backends, step->backend);
  if (backend == nullptr || g.nodes.empty()) return {};
  return weights_of(network, *backend, group_of(network, g.nodes));
}

/// Adds what the kernels of a placement keep, subgraphs included.
inline void add_weights(const graph& network, backend_table backends, const placement& p, weight_sum& to) {
  for (const plan_group& g : p.groups) {
    for (const weight_item& item : weights_of(network, backends, g)) to.add(network, item);
    if (g.bodies().empty()) continue;
    const auto bodies = network.bodies_of(g.nodes.back());
    for (std::size_t i = 0; i < g.bodies().size() && i < bodies.size(); ++i)
      add_weights(*bodies[i], backends, g.bodies()[i], to);
  }
}
/// Adds the constants of a network as they are, without its subgraphs.
inline void add_own_weights(const graph& network, weight_sum& to) {
  for (std::uint32_t v = 0; v < network.values().size(); ++v)
    if (network.at(v).role == value_role::constant) to.add(network, {.value = v, .bytes = network.type_of(v).bytes()});
}
/// The same with its subgraphs.
inline void add_all_weights(const graph& network, weight_sum& to) {
  add_own_weights(network, to);
  for (std::uint32_t n = 0; n < network.nodes().size(); ++n)
    for (const std::shared_ptr<const graph>& body : network.bodies_of(n)) add_all_weights(*body, to);
}

}  // namespace collage::inline v0
