// Placements made by chance, for tests that compare engines over random graphs with the reference.
#pragma once

#include <collage/graph/graph.hpp>
#include <collage/layout.hpp>
#include <collage/run/form.hpp>
#include <collage/run/plan.hpp>

#include <cstdint>
#include <random>
#include <vector>

namespace collage_test {

/// Places the nodes one after the other. A test says how a node is placed, and what makes a value available in a form that it was
/// not written in.
class random_placement {
 public:
  collage::placement made;

 protected:
  random_placement(const collage::graph& network, std::mt19937& random)
      : network_(network), random_(random), written_(network.values().size()) {}
  virtual ~random_placement() = default;

  void place_all() {
    for (std::uint32_t n = 0; n < network_.nodes().size(); ++n) add(n);
    for (const std::uint32_t v : network_.outputs()) need(v, collage::plain);
  }
  virtual void add(std::uint32_t n) = 0;
  virtual void need(std::uint32_t v, const collage::form& wanted) = 0;

  const collage::graph& network_;
  std::mt19937& random_;
  std::vector<collage::form> written_;
};

}  // namespace collage_test
