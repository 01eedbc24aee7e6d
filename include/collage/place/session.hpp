// Sessions whose stages are placed over a set of backends.
#pragma once

#include <collage/place.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/session.hpp>
#include <memory>
#include <utility>

namespace collage::inline v0 {

/// A session that places each stage with `how` when its shapes are met for the first time.
inline session make_session(std::shared_ptr<const network_source> source, backend_table backends,
                            const place_options& how = {}, const session_options& options = {}) {
  return {std::move(source), backends,
          [backends, how](const graph& network) -> plan { return place(network, backends, how); }, options};
}

/// The same over a backend set: `auto s = make_session<backends>(source, {.measure = false});`.
template <backend_set_type Set>
session make_session(std::shared_ptr<const network_source> source, const place_options& how = {},
                     const session_options& options = {}) {
  return make_session(std::move(source), table_of<Set>, how, options);
}

}  // namespace collage::inline v0
