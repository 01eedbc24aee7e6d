// Sessions whose stages are placed over a set of backends.
#pragma once

#include <collage/place.hpp>
#include <collage/place/cost_index.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/session.hpp>
#include <memory>
#include <utility>

namespace collage::inline v0 {

/// How a session places its stages if nothing else is said. Nothing is timed. Kernels are compared with the reference for at most
/// 10 ms, so that a new shape is not a long wait.
inline place_options session_placing() {
  place_options how;
  how.costs = placing_costs::estimated;
  how.check_s = 0.01;
  return how;
}

/// A session that places each stage with `how` when its shapes are met for the first time. For estimated costs, the store is
/// read once, now. `place_options::index` must outlive the session, if it is given. Errors: those of reading the store.
inline session make_session(std::shared_ptr<const network_source> source, backend_table backends,
                            const place_options& how = session_placing(), const session_options& options = {}) {
  std::shared_ptr<const cost_index> index;
  if (how.costs == placing_costs::estimated && how.index == nullptr && !how.store.empty())
    index = std::make_shared<const cost_index>(how.store);
  const auto planner = [backends, how, index](const graph& network,
                                              const std::shared_ptr<packed_weights>& packed) -> plan {
    place_options own = how;
    if (index != nullptr) own.index = index.get();
    own.packed = packed;
    return place(network, backends, own);
  };
  return {std::move(source), backends, planner, options};
}

/// The same over a backend set: `auto s = make_session<backends>(source);`.
template <backend_set_type Set>
session make_session(std::shared_ptr<const network_source> source, const place_options& how = session_placing(),
                     const session_options& options = {}) {
  return make_session(std::move(source), table_of<Set>, how, options);
}

}  // namespace collage::inline v0
