// Reports the progress of placing to the caller.
#pragma once

#include <collage/place.hpp>

namespace collage::inline v0 {

namespace detail {
namespace {

struct progress {
  const place_options& options;
  double best_ms = 0;  ///< cost of the best placement so far

  void tell(place_progress now) const {
    if (!options.progress) return;
    now.best_ms = best_ms;
    options.progress(now);
  }
};

}  // namespace
}  // namespace detail
}  // namespace collage::inline v0
