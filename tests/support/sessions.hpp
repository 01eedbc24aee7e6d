// Sessions of tests: placed over the backend `portable` on one thread, and nothing is measured.
#pragma once

#include <collage/backend_set.hpp>
#include <collage/backends/portable.hpp>
#include <collage/place.hpp>
#include <collage/run/engine.hpp>
#include <collage/run/session.hpp>
#include <collage/run/tensor.hpp>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

namespace collage_test {

using session_backends = collage::backend_set<collage::portable>;

/// A session_planner.
inline collage::plan unmeasured_plan(const collage::graph& network, const std::shared_ptr<collage::packed_weights>&) {
  collage::place_options options;
  options.costs = collage::placing_costs::none;
  options.check_s = 0;
  options.threads = 1;
  return collage::place<session_backends>(network, options);
}

inline collage::session unmeasured_session(std::shared_ptr<const collage::network_source> source,
                                           const collage::session_options& options = {}) {
  return {std::move(source), collage::table_of<session_backends>, unmeasured_plan, options};
}

template <class T>
collage::tensor tensor_with(const collage::shape& dims, const std::vector<T>& list) {
  collage::tensor t(collage::tensor_type{collage::dtype_of<T>, dims});
  std::copy(list.begin(), list.end(), t.as<T>().begin());
  return t;
}

}  // namespace collage_test
