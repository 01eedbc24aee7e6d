// Backends that have a rule in place of patterns: what is listed, measured, placed and run.
#include <collage/collage.hpp>
#include <collage/fuse/combine.hpp>
#include <collage/fuse/fuse.hpp>
#include <collage/place.hpp>
#include <collage/place/candidates.hpp>
#include <collage/run/engine.hpp>
#include <collage/run/verify.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "support/messages.hpp"
#include "support/placing.hpp"

namespace place_rule_backend_test {

namespace c = collage;
namespace op = collage::ops;
using collage::fuse::dataflow;
using collage_test::quick_options;

bool any_operator(const dataflow&, std::uint32_t) { return true; }

/// Groups of relu and add over values of one shape, in one pass over the elements.
struct one_pass : c::backend<"one_pass"> {
  static constexpr auto rule = c::fuse::by_fusion{any_operator, {.nodes = 4, .outputs = 2}};
  static bool takes(const c::graph& network, std::uint32_t node) {
    const c::node_record& record = network.node(node);
    if (record.kind->id != c::kind_id<decltype(op::relu)> && record.kind->id != c::kind_id<decltype(op::add)>)
      return false;
    const c::tensor_type& type = network.type_of(record.first_output);
    const auto inputs = network.view().inputs_of(node);
    return type.type == c::dtype::f32 &&
           std::all_of(inputs.begin(), inputs.end(), [&](std::uint32_t v) { return network.type_of(v) == type; });
  }
  static c::kernel build(const c::node_group& group, c::build_context& context) {
    struct step {
      bool adds;
      std::size_t a, b;  // arguments, then results
    };
    const c::graph& network = context.network();
    std::vector<std::uint32_t> values = group.arguments;
    std::vector<step> steps;
    const auto at = [&](std::uint32_t v) {
      return static_cast<std::size_t>(std::find(values.begin(), values.end(), v) - values.begin());
    };
    for (const std::uint32_t n : group.nodes) {
      const auto in = network.view().inputs_of(n);
      steps.push_back({in.size() == 2, at(in[0]), at(in[in.size() - 1])});
      values.push_back(network.view().output_of(n));
    }
    std::vector<std::size_t> written;
    for (const std::uint32_t v : group.outputs) written.push_back(at(v));
    const auto elements = static_cast<std::size_t>(network.type_of(group.outputs[0]).dims.elements());
    const std::size_t arguments = group.arguments.size();
    return {"one_pass of " + std::to_string(steps.size()), [=](const c::kernel_call& call) {
              float value[16];
              for (std::size_t i = 0; i < elements; ++i) {
                for (std::size_t k = 0; k < arguments; ++k) value[k] = static_cast<const float*>(call.in[k])[i];
                for (std::size_t s = 0; s < steps.size(); ++s) {
                  const float a = value[steps[s].a], b = value[steps[s].b];
                  value[arguments + s] = steps[s].adds ? a + b : (a > 0 || a != a ? a : 0.0F);
                }
                for (std::size_t k = 0; k < written.size(); ++k)
                  static_cast<float*>(call.out[k])[i] = value[written[k]];
              }
            }};
  }
};

/// What the others do not take.
struct only_tanh : c::backend<"only_tanh"> {
  using patterns = c::patterns<c::single<op::tanh>>;
  static c::kernel build(const c::match<c::single<op::tanh>>& m, c::build_context&) {
    const auto elements = static_cast<std::size_t>(m.output().out.elements());
    return {"tanh", [elements](const c::kernel_call& call) {
              for (std::size_t i = 0; i < elements; ++i)
                static_cast<float*>(call.out[0])[i] = std::tanh(static_cast<const float*>(call.in[0])[i]);
            }};
  }
};

/// Lists what it must not: groups that depend on themselves through a node outside.
void all_pairs(const dataflow& flow, c::fuse::group_list& to) {
  for (std::uint32_t a = 0; a < flow.size(); ++a)
    for (std::uint32_t b = a + 1; b < flow.size(); ++b) to.add(flow, c::fuse::node_set{a, b});
}
struct careless : c::backend<"careless"> {
  static constexpr auto rule = c::fuse::found_by{all_pairs};
  static bool takes(const c::graph& network, std::uint32_t node) { return one_pass::takes(network, node); }
  static c::kernel build(const c::node_group& group, c::build_context& context) {
    return one_pass::build(group, context);
  }
};

/// Everything that it takes, alone, and beside patterns.
struct both : c::backend<"both"> {
  using patterns = c::patterns<c::single<op::relu>>;
  static constexpr auto rule = c::fuse::by_kind{};
  static c::kernel build(const c::match<c::single<op::relu>>&, c::build_context&) {
    throw c::error(c::error_kind::unsupported, "not by this pattern", "both");
  }
  static c::kernel build(const c::node_group& group, c::build_context& context) {
    if (!one_pass::takes(context.network(), group.nodes[0]))
      throw c::error(c::error_kind::unsupported, "one_pass does not take it", "both");
    return one_pass::build(group, context);
  }
};

/// A residual block: the sum is read by the next operator and by the next sum.
c::graph residual(std::int64_t extent = 512) {
  c::graph_builder g;
  const c::tensor_type type{c::dtype::f32, {extent}};
  const c::value x = g.input("x", type), y = g.input("y", type);
  const c::value sum = g(op::add, x, y);
  const c::value t = g(op::tanh, g(op::relu, sum));
  g.output("z", g(op::relu, g(op::add, t, sum)));
  return g.finish();
}

void expect_agreement(const c::graph& network, const c::plan& p, c::backend_table backends) {
  for (const c::verified_placement& v : c::verify(network, p, backends).placements) EXPECT_TRUE(v.passed()) << v.name;
}

TEST(rule_backend, needs_no_patterns) {
  static_assert(c::backend_type<one_pass>);
  const c::backend_entry& e = c::table_of<c::backend_set<one_pass>>[0];
  EXPECT_TRUE(e.patterns.empty());
  EXPECT_NE(e.list_groups, nullptr);
  EXPECT_NE(e.takes, nullptr);
  EXPECT_EQ((c::table_of<c::backend_set<only_tanh>>[0].list_groups), nullptr);
}

TEST(rule_backend, groups_of_several_outputs_are_candidates_and_run) {
  const c::graph network = residual();
  const c::backend_table table = c::table_of<c::backend_set<one_pass, only_tanh>>;
  const c::place_candidates found = c::find_candidates(network, table, {true, false});
  std::vector<std::vector<std::uint32_t>> groups;
  for (const c::place_candidate& candidate : found.list) {
    EXPECT_TRUE(candidate.is_by_rule());
    groups.push_back(found.groups[candidate.group].nodes);
  }
  const auto has = [&](const std::vector<std::uint32_t>& nodes) {
    return std::find(groups.begin(), groups.end(), nodes) != groups.end();
  };
  for (const std::uint32_t n : {0U, 1U, 3U, 4U}) EXPECT_TRUE(has({n})) << n;
  EXPECT_TRUE(has({3, 4}));
  EXPECT_TRUE(has({0, 1}));  // two outputs: the sum is read further on
  EXPECT_FALSE(has({2}));    // tanh is not taken

  const c::plan p = c::place(network, table, quick_options());
  expect_agreement(network, p, table);
  std::size_t by_rule = 0;
  for (const c::plan_group& g : p.chosen.groups) by_rule += g.pattern() == c::by_rule ? 1U : 0U;
  EXPECT_EQ(by_rule, p.chosen.groups.size() - 1);
}

TEST(rule_backend, what_is_listed_in_one_place_serves_wherever_the_structure_is_the_same) {
  c::graph_builder g;
  const c::tensor_type type{c::dtype::f32, {64}};
  c::value x = g.input("x", type);
  for (int i = 0; i < 3; ++i) x = g(op::tanh, g(op::relu, g(op::add, x, x)));
  g.output("y", x);
  const c::graph network = g.finish();
  const c::place_candidates found =
      c::find_candidates(network, c::table_of<c::backend_set<one_pass, only_tanh>>, {true, true});
  for (const c::place_structure& s : found.structures) EXPECT_EQ(s.occurrences, 3U) << s.label;
}

TEST(rule_backend, a_group_that_waits_for_itself_is_refused_and_told) {
  const c::graph network = residual();
  const c::backend_table table = c::table_of<c::backend_set<careless>>;
  const c::place_candidates found = c::find_candidates(network, table, {true});
  ASSERT_FALSE(found.refusals.empty());
  EXPECT_EQ(found.refusals[0].pattern, std::string("by rule"));
  EXPECT_NE(found.refusals[0].reason.find("is not convex"), std::string::npos);
  for (const c::place_candidate& candidate : found.list) {
    const auto& nodes = found.groups[candidate.group].nodes;
    EXPECT_NE(nodes, (std::vector<std::uint32_t>{0, 3}));
    EXPECT_NE(nodes, (std::vector<std::uint32_t>{1, 3}));
  }
}

/// Takes every other operator, whatever it is: `takes` may look at anything.
template <std::uint32_t Remainder>
struct every_other : c::backend<Remainder == 0 ? "even" : "odds"> {
  static constexpr auto rule = c::fuse::by_kind{};
  static bool takes(const c::graph&, std::uint32_t node) { return node % 2 == Remainder; }
  static c::kernel build(const c::node_group& group, c::build_context& context) {
    return one_pass::build(group, context);
  }
};
c::graph chain_of_relus(std::size_t count) {
  c::graph_builder g;
  c::value x = g.input("x", {c::dtype::f32, {64}});
  for (std::size_t i = 0; i < count; ++i) x = g(op::relu, x);
  g.output("y", x);
  return g.finish();
}

TEST(rule_backend, what_is_not_taken_is_not_repeated) {
  const c::graph network = chain_of_relus(4);
  const c::backend_table table = c::table_of<c::backend_set<every_other<0>, every_other<1>>>;
  const c::place_candidates found = c::find_candidates(network, table, {true, true});
  EXPECT_EQ(found.list.size(), 4U);
  for (const c::place_candidate& candidate : found.list)
    EXPECT_EQ(candidate.backend, found.groups[candidate.group].nodes[0] % 2);
  expect_agreement(network, c::place(network, table, quick_options()), table);
}

template <std::uint32_t Remainder>
void list_every_other(const dataflow& flow, c::fuse::group_list& to) {
  for (std::uint32_t n = Remainder; n < flow.size(); n += 2) to.add(flow, {n});
}
template <std::uint32_t Remainder>
struct lists_every_other : c::backend<Remainder == 0 ? "even" : "odds"> {
  static constexpr auto rule = c::fuse::found_by{list_every_other<Remainder>};
  static c::kernel build(const c::node_group& group, c::build_context& context) {
    return one_pass::build(group, context);
  }
};

TEST(rule_backend, structures_do_not_depend_on_who_listed_first) {
  const c::place_candidates found = c::find_candidates(
      chain_of_relus(4), c::table_of<c::backend_set<lists_every_other<0>, lists_every_other<1>>>, {true, true});
  EXPECT_EQ(found.list.size(), 8U);
  EXPECT_EQ(found.structures.size(), 1U);
}

TEST(rule_backend, what_nobody_reads_is_computed) {
  c::graph_builder g;
  const c::value x = g.input("x", {c::dtype::f32, {64}});
  g(op::relu, g(op::relu, x));
  g.output("y", g(op::relu, x));
  const c::graph network = g.finish();
  const c::backend_table table = c::table_of<c::backend_set<one_pass>>;
  const c::plan p = c::place(network, table, quick_options());
  expect_agreement(network, p, table);
}

void beyond(const dataflow& flow, c::fuse::group_list& to) { to.add({c::fuse::node_set{flow.size()}, {}, {}}); }
struct astray : c::backend<"astray"> {
  static constexpr auto rule = c::fuse::found_by{beyond};
  static c::kernel build(const c::node_group& group, c::build_context& context) {
    return one_pass::build(group, context);
  }
};
TEST(rule_backend, a_node_beyond_the_network_is_an_error) {
  const c::graph network = residual();
  try {
    c::find_candidates(network, c::table_of<c::backend_set<astray>>, {true});
    FAIL();
  } catch (const c::error& e) {
    EXPECT_NE(std::string(e.what()).find("its fusion rule lists node 5, but the network has 5 nodes"),
              std::string::npos)
        << e.what();
  }
}

TEST(rule_backend, stands_beside_patterns_of_the_same_backend) {
  const c::graph network = residual();
  const c::backend_table table = c::table_of<c::backend_set<both, only_tanh>>;
  c::place_options options = quick_options();
  const c::placed_plan p = c::place(network, table, options);
  const c::place_report& report = p.report;
  expect_agreement(network, p, table);
  const auto told = [&](const std::string& pattern, const std::string& reason) {
    return std::any_of(report.refusals.begin(), report.refusals.end(), [&](const c::place_refusal& r) {
      return r.backend == "both" && r.pattern == pattern && r.reason.find(reason) != std::string::npos;
    });
  };
  EXPECT_TRUE(told("relu", "not by this pattern"));
  EXPECT_TRUE(told("by rule", "one_pass does not take it"));  // tanh
}

TEST(rule_backend, plans_that_do_not_fit_are_refused) {
  const c::graph network = residual();
  const c::backend_table table = c::table_of<c::backend_set<one_pass, only_tanh>>;
  c::placement p = c::place(network, table, quick_options()).chosen;
  const auto message = [&](const c::placement& wrong) {
    return collage_test::message_of([&] { c::dynamic_engine(network, wrong, table, 1); });
  };
  for (c::plan_group& g : p.groups) {
    if (g.pattern() == c::by_rule) continue;
    c::placement wrong = p;
    c::plan_group& other = wrong.groups[static_cast<std::size_t>(&g - p.groups.data())];
    other.step = c::group_step{g.backend()};
    EXPECT_NE(message(wrong).find("has no fusion rule"), std::string::npos) << message(wrong);
    other.step = c::group_step{"one_pass"};
    EXPECT_NE(message(wrong).find("does not run node"), std::string::npos) << message(wrong);
  }
}

TEST(rule_backend, priority_lists_take_rules_too) {
  const c::graph network = residual();
  const c::backend_table table = c::table_of<c::backend_set<one_pass, only_tanh>>;
  c::place_options options = quick_options();
  options.costs = c::placing_costs::none;
  const c::plan p = c::place(network, table, options);
  expect_agreement(network, p, table);
  EXPECT_EQ(p.chosen.groups[0].backend(), "one_pass");
}

}  // namespace place_rule_backend_test
