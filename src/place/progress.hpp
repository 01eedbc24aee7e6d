// Tells the caller how far placing is.
#pragma once

#include <collage/place.hpp>

namespace collage::inline v0 {

namespace detail {
namespace {

struct progress {
  const place_options& options;
  double best_ms = 0;  ///< what the best placement so far costs

  void tell(place_progress now) const {
    if (!options.progress) return;
    now.best_ms = best_ms;
    options.progress(now);
  }
};

}  // namespace
}  // namespace detail
}  // namespace collage::inline v0
