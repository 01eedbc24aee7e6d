// The order in which the points of a space are worth measuring: by a model, or by the closed form of the space.
#pragma once

#include <collage/tune/cost_model.hpp>
#include <collage/tune/space.hpp>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <span>
#include <string>
#include <vector>

namespace collage::inline v0::tune {

/// The subject of a model of this space.
template <described_space Space>
model_subject subject_of(std::string family, std::string machine) {
  return {Space::name + std::to_string(Space::version), std::move(family), std::move(machine),
          features_hash(Space::feature_names), Space::feature_names.size()};
}

/// The features of points, one after the other.
template <described_space Space>
std::vector<float> features_of(const Space& space, std::span<const point_of<Space>> points) {
  std::vector<float> rows;
  rows.reserve(points.size() * Space::feature_names.size());
  for (const auto& point : points) {
    const auto features = space.features(point);
    rows.insert(rows.end(), features.begin(), features.end());
  }
  return rows;
}

/// Indices of numbers, the largest number first. Equal ones keep their order.
inline std::vector<std::size_t> order_by(std::span<const double> promise) {
  std::vector<std::size_t> order(promise.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return promise[a] > promise[b]; });
  return order;
}

/// Numbers of the points, the most promising first. Equal predictions keep the order of the points. Without a model, the closed form
/// decides.
template <described_space Space>
std::vector<std::size_t> order_of(const Space& space, std::span<const point_of<Space>> points,
                                  const cost_model* model) {
  std::vector<double> promise(points.size());
  if (model != nullptr) {
    const std::vector<float> predicted = model->predict(features_of(space, points));
    std::ranges::copy(predicted, promise.begin());
  } else {
    for (std::size_t i = 0; i < points.size(); ++i) promise[i] = -space.estimate(points[i]);
  }
  return order_by(promise);
}

}  // namespace collage::inline v0::tune
