// Options of placing that many tests share.
#pragma once

#include <collage/measure/drift.hpp>
#include <collage/place.hpp>

#include <array>
#include <cstdint>

namespace collage_test {

/// Watches a machine whose time is a test's own: work takes none of it, and need not be done.
inline std::array<collage::drift_work, collage::drift_signs> no_drift_works() {
  return {collage::timed([] {}), collage::timed([] {})};
}

/// One thread, and short comparisons.
inline collage::place_options quick_options(bool measure = true) {
  collage::place_options o;
  o.threads = 1;
  o.comparing.seconds = 0.02;
  o.costs = measure ? collage::placing_costs::measured : collage::placing_costs::none;
  return o;
}

/// Times are those of a clock of the test's own, which kernels of the test advance.
inline collage::place_options clock_options(double& now_ms, double seconds = 0.2) {
  collage::place_options o;
  o.threads = 1;
  o.measuring.workers = false;
  o.comparing.seconds = seconds;
  o.measuring.timing.rounds = 3;
  o.measuring.clock = {[&now_ms] { return now_ms; }, [&now_ms](double ms) { now_ms += ms; },
                       [] { return std::uint64_t{0}; }};
  o.measuring.drift_works = no_drift_works();
  return o;
}

}  // namespace collage_test
