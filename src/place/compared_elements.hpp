// Placing by a priority list: the elements of results that are compared with the reference. Computing all of a large result
// takes too long.
#pragma once

#include <algorithm>
#include <collage/backends/reference.hpp>
#include <collage/graph/graph.hpp>
#include <collage/shape.hpp>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <random>
#include <span>
#include <vector>
#include "policy.hpp"

namespace collage::inline v0 {

namespace detail {
namespace {

/// Returns the numbers below `end` in a random order, and then in another one, without an end.
class shuffled_indices {
 public:
  explicit shuffled_indices(std::int64_t end) : left_(static_cast<std::size_t>(end)) {
    std::iota(left_.begin(), left_.end(), 0);
  }
  std::int64_t next(std::mt19937_64& random) {
    if (at_ == 0) std::ranges::shuffle(left_, random);
    const std::int64_t result = left_[at_];
    at_ = (at_ + 1) % left_.size();
    return result;
  }

 private:
  std::vector<std::int64_t> left_;
  std::size_t at_ = 0;
};

/// The elements at the corners of a tensor that is not empty.
inline void add_corners(const shape& dims, std::vector<std::int64_t>& to) {
  for (std::uint32_t corner = 0; corner < 1U << dims.size(); ++corner) {
    std::int64_t element = 0;
    for (std::size_t d = 0; d < dims.size(); ++d)
      element = element * dims[d] + ((corner >> d & 1U) != 0 ? dims[d] - 1 : 0);
    to.push_back(element);
  }
}

/// Elements near borders: a kernel computes the last of a dimension, which fill no vector or tile, by other code. In each
/// dimension a quarter of them is at the beginning and a quarter at the end.
inline void add_near_borders(const shape& dims, std::size_t count, std::mt19937_64& random,
                             std::vector<std::int64_t>& to) {
  constexpr std::int64_t near = 16;
  const auto below = [&](std::int64_t end) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(end));
  };
  for (std::size_t i = 0; i < count; ++i) {
    std::int64_t element = 0;
    for (const std::int64_t extent : dims) {
      const std::int64_t where = below(4);
      const std::int64_t index = where > 1 ? below(extent) : below(std::min(extent, near));
      element = element * extent + (where == 1 ? extent - 1 - index : index);
    }
    to.push_back(element);
  }
}

/// Elements from everywhere. Each index of a dimension occurs if there are as many elements.
inline void add_spread(const shape& dims, std::size_t count, std::mt19937_64& random, std::vector<std::int64_t>& to) {
  constexpr std::int64_t most_listed = std::int64_t{1} << 16;
  std::vector<std::optional<shuffled_indices>> indices;
  for (const std::int64_t extent : dims) {
    indices.emplace_back();
    if (extent <= most_listed) indices.back().emplace(extent);
  }
  for (std::size_t i = 0; i < count; ++i) {
    std::int64_t element = 0;
    for (std::size_t d = 0; d < dims.size(); ++d) {
      const auto extent = static_cast<std::uint64_t>(dims[d]);
      element =
          element * dims[d] + (indices[d] ? indices[d]->next(random) : static_cast<std::int64_t>(random() % extent));
    }
    to.push_back(element);
  }
}

/// Selects about `most` elements of a tensor, all if there are no more: those at the corners, as many near borders as from
/// everywhere. In ascending order.
inline std::vector<std::int64_t> select_elements(const shape& dims, std::size_t most, std::mt19937_64& random) {
  std::vector<std::int64_t> selected;
  if (const std::int64_t all = dims.elements(); all <= static_cast<std::int64_t>(most)) {
    selected.resize(static_cast<std::size_t>(all));
    std::iota(selected.begin(), selected.end(), 0);
    return selected;
  }
  add_corners(dims, selected);
  add_near_borders(dims, most / 2, random, selected);
  add_spread(dims, most / 2, random, selected);
  std::ranges::sort(selected);
  const auto repeated = std::ranges::unique(selected);
  selected.erase(repeated.begin(), repeated.end());
  return selected;
}

/// Selects elements of each of these values that the reference computes in less than `most_s`, by a careful estimate: as many as
/// possible. Nothing if that is no time for `least` of each, or if a kind has no elements that can be computed alone.
inline std::optional<std::vector<selected_elements>> elements_within(const graph& network,
                                                                     std::span<const std::uint32_t> nodes,
                                                                     std::span<const std::uint32_t> values,
                                                                     double most_s, std::size_t least,
                                                                     std::uint64_t seed) {
  const check_policy& policy = thresholds.check;
  for (std::size_t most = policy.most_elements; most >= least; most /= 2) {
    std::mt19937_64 random(seed);
    std::vector<selected_elements> selected;
    for (const std::uint32_t v : values)
      selected.push_back({v, select_elements(network.type_of(v).dims, most, random)});
    if (reads_of_elements(network, nodes, selected, std::min(most_s, policy.most_s) * policy.reads_a_second))
      return selected;
  }
  return {};
}

}  // namespace
}  // namespace detail
}  // namespace collage::inline v0
