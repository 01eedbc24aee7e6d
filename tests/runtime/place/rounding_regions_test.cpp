// Regions that compute in a smaller element type: when they take part, what they round, and which bounds they keep.
#include <gtest/gtest.h>
#include <collage/backend_set.hpp>
#include <collage/graph/graph.hpp>
#include <collage/ops.hpp>
#include <collage/place.hpp>
#include <collage/place/compare.hpp>
#include <collage/place/within_error.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/kernel.hpp>
#include <collage/run/node_group.hpp>
#include <collage/run/plan.hpp>
#include <collage/run/precision.hpp>
#include <collage/run/rounding.hpp>
#include <collage/run/value_scales.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rounding_backend.hpp"
#include "support/messages.hpp"
#include "support/placing.hpp"

namespace place_rounding_regions_test {

namespace c = collage;
namespace op = collage::ops;
using collage_test::message_of;

using namespace place_rounding_backend;

bool is_product(const c::graph& network, std::uint32_t node) {
  return network.node(node).kind->id == c::kind_id<struct op::matmul>;
}

/// Runs the products and relus of a region one after the other, each in `node_ms`. Rounds what it reads and computes to `type`.
c::kernel run_in(c::dtype type, const c::node_group& group, c::build_context& context, double node_ms) {
  const c::graph& network = context.network();
  const auto rounded = [type](std::vector<double> x) {
    std::vector<std::byte> bytes(x.size() * c::size_of(type));
    write(type, x, bytes.data());
    return read(type, bytes.data(), static_cast<std::int64_t>(x.size()));
  };
  struct step {
    std::uint32_t from, to;
    std::vector<double> weights;  // empty: a relu
  };
  std::vector<step> steps;
  for (const std::uint32_t n : group.nodes) {
    const auto in = network.view().inputs_of(n);
    step s{in[0], network.view().output_of(n), {}};
    if (is_product(network, n)) s.weights = rounded(read(c::dtype::f32, network.bytes_of(in[1]).data(), width * width));
    steps.push_back(std::move(s));
  }
  const std::string name = std::string("region in ") + c::name_of(type);
  c::kernel made(name, [=, arguments = group.arguments, outputs = group.outputs](const c::kernel_call& call) {
    std::map<std::uint32_t, std::vector<double>> values;
    for (std::size_t i = 0; i < arguments.size(); ++i)
      if (call.in[i] != nullptr) values[arguments[i]] = rounded(read(c::dtype::f32, call.in[i], rows * width));
    for (const step& s : steps) {
      std::vector<double> y = values.at(s.from);
      if (s.weights.empty())
        for (double& element : y) element = std::max(element, 0.0);
      else
        for (std::size_t i = 0; i < y.size(); ++i) {
          y[i] = 0;
          for (std::size_t k = 0; k < width; ++k)
            y[i] += values.at(s.from)[i / width * width + k] * s.weights[k * width + i % width];
        }
      values[s.to] = rounded(std::move(y));
      now_ms += node_ms;
    }
    for (std::size_t i = 0; i < outputs.size(); ++i) write(c::dtype::f32, values.at(outputs[i]), call.out[i]);
  });
  for (std::size_t i = 0; i < group.arguments.size(); ++i)
    if (network.at(group.arguments[i]).role == c::value_role::constant) made.does_not_read(i);
  return made;
}

/// Regions in float32, somewhat slower than the kernels of `rounder`.
struct whole : c::backend<"whole"> {
  static constexpr bool takes_regions = true;
  static bool takes(const c::graph&, std::uint32_t) { return true; }
  static c::kernel build(const c::node_group& group, c::build_context& context) {
    return run_in(c::dtype::f32, group, context, 5);
  }
};

/// Regions in bfloat16, which are faster than all others.
struct coarse : c::backend<"coarse"> {
  using variant_of = whole;
  static constexpr bool takes_regions = true;
  static constexpr c::dtype rounds_to = c::dtype::bf16;
  static bool takes(const c::graph&, std::uint32_t) { return true; }
  static std::vector<c::rounded_value> rounds(const c::graph& network, const c::node_group& group,
                                              const c::value_scales*) {
    std::vector<c::rounded_value> list;
    for (const std::uint32_t v : group.arguments) list.push_back({v, c::dtype::bf16});
    for (const std::uint32_t n : group.nodes) list.push_back({network.view().output_of(n), c::dtype::bf16});
    return list;
  }
  static c::kernel build(const c::node_group& group, c::build_context& context) {
    return run_in(c::dtype::bf16, group, context, 0.125);
  }
};
using regions_set = c::backend_set<rounder, whole, coarse>;

std::vector<std::vector<std::uint32_t>> coarse_groups(const c::placement& p) {
  std::vector<std::vector<std::uint32_t>> list;
  for (const c::plan_group& g : p.groups)
    if (g.backend() == coarse::name) list.push_back(g.nodes);
  return list;
}

TEST(place_rounding_regions, are_lowered_with_what_they_round) {
  const c::backend_entry &exact = c::table_of<regions_set>[1], &entry = c::table_of<regions_set>[2];
  EXPECT_FALSE(exact.rounds_to.has_value());
  EXPECT_EQ(exact.rounds, nullptr);
  EXPECT_EQ(exact.variant_of, nullptr);
  EXPECT_EQ(entry.rounds_to, c::dtype::bf16);
  EXPECT_STREQ(entry.variant_of, "whole");
  const c::graph network = layers(2);
  EXPECT_EQ(entry.rounds(network, c::group_of(network, std::vector<std::uint32_t>{0, 1, 2, 3}), nullptr).size(), 7U);
}

TEST(place_rounding_regions, take_part_only_where_values_may_be_rounded) {
  const c::graph network = layers(3);
  c::place_options how = collage_test::clock_options(now_ms);
  const c::placed_plan exact = c::place<regions_set>(network, how);
  EXPECT_TRUE(coarse_groups(exact.chosen).empty());
  for (const c::place_refusal& r : exact.report.refusals) EXPECT_NE(r.backend, coarse::name);
  for (const c::placement& single : exact.singles) EXPECT_NE(single.name, coarse::name);
  how.backends = {"coarse", "rounder"};
  const c::placed_plan named = c::place<regions_set>(network, how);
  ASSERT_EQ(named.report.refusals.size(), 1U);
  EXPECT_EQ(named.report.refusals[0].backend, "coarse");
  EXPECT_EQ(named.report.refusals[0].reason, "it computes in bfloat16, which is not allowed here");
  how.backends = {"coarse"};
  EXPECT_EQ(message_of([&] { (void)c::place<regions_set>(network, how); }),
            "backends: no backend is available; coarse: it computes in bfloat16, which is not allowed here");
}

TEST(place_rounding_regions, are_allowed_where_their_backend_is_named) {
  const c::graph network = layers(3);
  c::place_options how = options(0.01, equal_errors(network, 0, 0));
  how.backends = {"rounder", "whole"};
  EXPECT_EQ(coarse_groups(c::place<regions_set>(network, how).chosen).size(), 1U);
  how.backends = {"coarse", "rounder"};
  EXPECT_EQ(coarse_groups(c::place<regions_set>(network, how).chosen).size(), 1U);
  how.backends = {"rounder"};
  EXPECT_TRUE(coarse_groups(c::place<regions_set>(network, how).chosen).empty());
}

TEST(place_rounding_regions, one_runs_the_network_where_it_costs_nothing) {
  const c::graph network = layers(3);
  const c::placed_plan made = c::place<regions_set>(network, options(0.01, equal_errors(network, 0, 0)));
  ASSERT_EQ(coarse_groups(made.chosen).size(), 1U);
  EXPECT_EQ(coarse_groups(made.chosen)[0].size(), 6U);
  EXPECT_TRUE(made.optimal);
  EXPECT_EQ(c::rounded_in(network, c::table_of<regions_set>, made.chosen).size(),
            10U);  // the input, 3 weights, 6 results
}

/// Their backend alone is a baseline of the comparison end to end. So the plan is never slower, whatever kernels cost alone.
TEST(place_rounding_regions, run_as_a_baseline) {
  const c::graph network = layers(3);
  const auto singles_of = [&](double most, bool with_regions) {
    c::place_options how = options(most, equal_errors(network, 1e-4, 1e-4));
    how.regions.seconds = 0;
    if (!with_regions) how.backends = {"rounder"};
    std::vector<std::string> found;
    const c::placed_plan made = c::place<regions_set>(network, how);
    for (const c::placement& single : made.singles)
      if (!c::rounded_in(network, c::table_of<regions_set>, single).empty()) found.push_back(single.name);
    for (const std::string& name : found)
      EXPECT_TRUE(std::ranges::any_of(made.runs, [&](const c::plan_run& run) { return run.name == name; }));
    return found;
  };
  EXPECT_EQ(singles_of(0.04, true), std::vector<std::string>{"coarse"});
  EXPECT_TRUE(singles_of(0.02, true).empty());  // 10 rounded values err more together
  EXPECT_TRUE(singles_of(0.04, false).empty());
}

/// A region adds the errors of all that it rounds. Where that is too much, parts of it are tried.
TEST(place_rounding_regions, keep_the_bound) {
  const c::graph network = layers(3);
  constexpr double of_each = 1e-4;
  const auto errors = equal_errors(network, of_each, of_each);
  double before = 1e9;
  for (const double most : {0.5, 1.5, 3.5, 5.5, 9.5, 10.5}) {  // so many values may be rounded
    const c::placed_plan made = c::place<regions_set>(network, options(std::sqrt(most * of_each), errors));
    const auto rounded = c::rounded_in(network, c::table_of<regions_set>, made.chosen);
    EXPECT_LE(static_cast<double>(rounded.size()), most);
    EXPECT_LE(made.runs[0].median_ms, before) << most;
    before = made.runs[0].median_ms;
    const auto found = coarse_groups(made.chosen);
    if (most > 9) ASSERT_EQ(found.size(), 1U);
    if (most > 9) EXPECT_EQ(found[0].size(), most > 10 ? 6U : 5U);
  }
}

TEST(place_rounding_regions, hold_no_nodes_that_are_kept) {
  const c::graph network = layers(3);
  c::place_options how = options(0.01, equal_errors(network, 0, 0));
  how.kept = {{network.node_name(4)}};
  const c::placed_plan made = c::place<regions_set>(network, how);
  const auto found = coarse_groups(made.chosen);
  EXPECT_EQ(found, (std::vector<std::vector<std::uint32_t>>{{0, 1, 2, 3}, {5}}));
}

/// The errors of all that regions round are measured, also of those that placing adds because parts of the largest may not be used.
TEST(place_within_error, what_smaller_regions_may_round) {
  const c::graph network = layers(3);
  c::place_options how = collage_test::clock_options(now_ms);
  how.precision = {c::precisions::bf16, 0.02};
  how.backends = {"whole"};
  how.kept = {{network.node_name(4)}};
  const std::vector<c::rounded_value> found = c::rounded_values(network, c::table_of<regions_set>, how);
  EXPECT_EQ(found.size(),
            9U);  // the input, 2 weights, 4 results, and what the relu behind the kept product reads and writes
}

TEST(place_rounding_regions, constraints_hold_for_variants) {
  const c::graph network = layers(3);
  c::place_options how = options(0.01, equal_errors(network, 0, 0));
  how.rules = {{c::place_rule::action::exclude, "whole", "matmul"}};
  for (const auto& nodes : coarse_groups(c::place<regions_set>(network, how).chosen))
    for (const std::uint32_t n : nodes) EXPECT_FALSE(is_product(network, n));
  how.rules = {{c::place_rule::action::pin, "whole", "matmul"}};
  const auto found = coarse_groups(c::place<regions_set>(network, how).chosen);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].size(), 6U);
}

/// The caller may refuse placements. The next fastest is the plan then, and one that rounds nothing needs no leave.
TEST(place_rounding_regions, are_no_plan_where_the_caller_refuses_them) {
  const c::graph network = layers(3);
  c::place_options how = options(0.01, equal_errors(network, 0, 0));
  std::vector<c::placement> asked;
  how.accepts = [&](const c::placement& p) {
    asked.push_back(p);
    return coarse_groups(p).empty();
  };
  const c::placed_plan made = c::place<regions_set>(network, how);
  ASSERT_GE(asked.size(), 2U);
  EXPECT_EQ(coarse_groups(asked.front()).size(), 1U);
  EXPECT_TRUE(std::ranges::any_of(asked, [&](const c::placement& p) { return c::same_steps(p, made.chosen); }));
  EXPECT_FALSE(c::rounded_in(network, c::table_of<regions_set>, made.chosen).empty());
  EXPECT_GE(made.runs[0].runs, 5U);  // beside others, although the refused one was much faster
  for (const c::placement& single : made.singles) EXPECT_NE(single.name, coarse::name);
  how.accepts = [](const c::placement&) { return false; };
  EXPECT_TRUE(c::rounded_in(network, c::table_of<regions_set>, c::place<regions_set>(network, how).chosen).empty());
}

TEST(place_within_error, regions_are_confirmed_like_other_kernels) {
  const c::graph network = layers(3);
  for (const double most : {0.02, 1e-5}) {
    c::place_options how = collage_test::clock_options(now_ms);
    how.precision = {c::precisions::bf16, most};
    const auto made = c::place_within_error(network, c::table_of<regions_set>, how, samples_of(40));
    if (most > 0.01) {
      EXPECT_EQ(coarse_groups(made.chosen).size(), 1U);
      ASSERT_TRUE(made.plan::error);
      EXPECT_GT(made.plan::error->measured, 1e-5);
      EXPECT_LE(made.plan::error->upper, most);
    } else {
      EXPECT_TRUE(coarse_groups(made.chosen).empty());
      EXPECT_FALSE(made.why_unrounded.empty());
    }
  }
}

}  // namespace place_rounding_regions_test
