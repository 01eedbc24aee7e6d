// Verifying plans: what is compared, which step is blamed, what is refused.
#include <collage/place.hpp>
#include <collage/run/verify.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "support/loops_backend.hpp"

namespace run_verify_test {

namespace c = collage;
namespace op = collage::ops;
using collage_test::loops;

/// Negates as it should, but for the last element.
struct sloppy : c::backend<"sloppy"> {
  using patterns = c::patterns<c::single<op::neg>>;
  static c::kernel build(const c::match<c::single<op::neg>>& m, c::build_context& context) {
    const c::kernel honest = loops::build(m, context);
    const auto count = static_cast<std::size_t>(m.output().out.elements());
    return {"nearly neg", [honest, count](const c::kernel_call& call) {
              honest(call);
              static_cast<float*>(call.out[0])[count - 1] += 1;
            }};
  }
};

/// Two chains of relu, add, neg and so on; the second is computed without the wrong operator.
c::graph network() {
  c::graph_builder g;
  const c::value x = g.input("x", {c::dtype::f32, {8}}), y = g.input("y", {c::dtype::f32, {8}});
  const c::value sum = g(op::add, x, y);
  const c::value negated = g(op::neg, sum);
  g.output("first", g(op::relu, g(op::add, negated, g(op::neg, x))));
  g.output("second", g(op::relu, sum));
  return g.finish();
}

template <class Set>
c::plan plan_of(const c::graph& g, bool measure = false) {
  return c::place<Set>(g, {.threads = 1,
                           .costs = measure ? c::placing_costs::measured : c::placing_costs::none,
                           .check_s = 0,
                           .comparing = {.seconds = 0.02}});
}

TEST(verify, a_sound_plan_passes_and_so_does_each_backend_alone) {
  const c::graph g = network();
  const c::plan p = plan_of<c::backend_set<loops>>(g, true);
  std::vector<std::string> told;
  const c::verification found =
      c::verify<c::backend_set<loops>>(g, p, {.progress = [&](const std::string& what) { told.push_back(what); }});
  EXPECT_TRUE(found);
  EXPECT_EQ(found.failed(), nullptr);
  EXPECT_EQ(found.why(), "");
  ASSERT_EQ(found.placements.size(), 2U);
  EXPECT_EQ(found.placements[0].name, "plan");
  EXPECT_EQ(found.placements[1].name, "loops");
  ASSERT_EQ(found.placements[0].outputs.size(), 2U);
  EXPECT_EQ(found.placements[0].outputs[0].name, "first");
  EXPECT_LT(found.placements[0].worst_relative(), 1e-6);
  EXPECT_FALSE(found.placements[0].fault.has_value());
  EXPECT_EQ(told, (std::vector<std::string>{"computing the reference in double precision", "checking plan",
                                            "checking loops"}));
  EXPECT_EQ((c::verify<c::backend_set<loops>>(g, p, {.singles = false}).placements.size()), 1U);
}

TEST(verify, the_first_step_at_fault_is_named_however_little_is_kept_at_a_time) {
  const c::graph g = network();
  using set = c::backend_set<sloppy, loops>;
  const c::plan p = plan_of<set>(g);
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{64}, std::size_t{1} << 30}) {
    const c::verification found = c::verify<set>(g, p, {.recorded_bytes = bytes});
    EXPECT_FALSE(found);
    ASSERT_NE(found.failed(), nullptr);
    const c::verified_placement& failed = *found.failed();
    EXPECT_FALSE(failed.outputs[0].found);
    EXPECT_TRUE(failed.outputs[1].found);
    EXPECT_GT(failed.worst_relative(), 0.1);
    ASSERT_TRUE(failed.fault.has_value());
    EXPECT_EQ(failed.fault->node, "neg_1");
    EXPECT_EQ(failed.fault->value, "neg_1");
    EXPECT_EQ(failed.fault->backend, "sloppy");
    EXPECT_EQ(failed.fault->found.worst_index, 7);
    EXPECT_EQ(found.why(), "plan: neg_1, run by sloppy (nearly neg): it is too far from the reference");
  }
}

TEST(verify, inputs_may_be_the_users_own) {
  const c::graph g = network();
  using set = c::backend_set<loops>;
  const c::plan p = plan_of<set>(g);
  c::tensor x(g.type_of(g.inputs()[0])), y(g.type_of(g.inputs()[1]));
  for (float& e : x.as<float>()) e = 1e30F;
  for (float& e : y.as<float>()) e = -1e30F;
  EXPECT_TRUE((c::verify<set>(g, p, {.inputs = {x, y}})));
  try {
    (void)c::verify<set>(g, p, {.inputs = {x}});
    FAIL() << "one input of two is enough";
  } catch (const c::error& e) { EXPECT_STREQ(e.what(), "reference: the network has 2 inputs, but 1 were given"); }
}

TEST(verify, a_plan_of_another_network_is_refused) {
  using set = c::backend_set<loops>;
  c::graph_builder other;
  other.output("y", other(op::relu, other.input("x", {c::dtype::f32, {8}})));
  const c::plan p = plan_of<set>(other.finish());
  try {
    (void)c::verify<set>(network(), p);
    FAIL() << "it passes";
  } catch (const c::error& e) {
    EXPECT_EQ(e.exit_code(), 2);
    EXPECT_STREQ(e.what(),
                 "verify: the plan was made for another network (network); load that network, or place this one");
  }
}

}  // namespace run_verify_test
