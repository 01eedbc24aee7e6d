// The fixed pieces of work that the drift monitor repeats.
#pragma once

#include <array>
#include <collage/measure/drift.hpp>

namespace collage::inline v0::detail {

/// The works of a drift monitor, by their signs, for a team of so many threads. Their file is compiled with OpenMP.
std::array<drift_work, drift_signs> drift_works(int threads);

}  // namespace collage::inline v0::detail
