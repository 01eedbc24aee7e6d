// Fallback kernels beside kernels that round values.
#include <gtest/gtest.h>
#include <collage/backend_set.hpp>
#include <collage/backends/portable.hpp>
#include <collage/graph/graph.hpp>
#include <collage/ops.hpp>
#include <collage/place/candidates.hpp>
#include <collage/place/measuring.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/kernel.hpp>

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace place_rounding_fallbacks_test {

namespace c = collage;

TEST(rounding_fallbacks, a_fallback_is_needed_where_all_other_kernels_round) {
  c::graph_builder g;
  const c::value x = g.input("x", {c::dtype::f32, {1, 16, 6, 6}});
  g.output("y", g(c::ops::average_pool, x, {.window = {2, 2}, .dilations = {2, 2}}));
  const c::graph network = g.finish();
  const c::backend_table backends = c::table_of<c::backend_set<c::portable>>;
  const c::place_candidates candidates = c::find_candidates(network, backends, {true});
  std::vector<std::uint32_t> asked(candidates.list.size());
  std::iota(asked.begin(), asked.end(), 0U);

  c::packed_weights packed;
  c::measuring_setup setup;
  setup.packed = &packed;
  setup.timing = {.sample_ms = 0.01, .rounds = 3, .least_rounds = 1, .budget_ms = 5};
  const std::vector<c::measured_candidate> measured =
      c::measure_candidates(network, backends, candidates, asked, setup);
  std::size_t rounding = 0, exact = 0;
  for (std::size_t i = 0; i < measured.size(); ++i) {
    if (!measured[i].refusal.empty()) continue;
    const bool is_exact = c::rounds_nothing(network, backends, candidates, candidates.list[i]);
    EXPECT_EQ(is_exact, c::is_last_resort(backends, candidates.list[i]));
    ++(is_exact ? exact : rounding);
  }
  EXPECT_EQ(exact, 1U);
  EXPECT_EQ(rounding, 1U);  // on integers with channels last
}

}  // namespace place_rounding_fallbacks_test
