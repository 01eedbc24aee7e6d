// Regions: dividing a network for a backend that compiles whole networks, the search for the best division, and placing
// with such a backend.
#include "support/backend_check.hpp"
#include "support/files.hpp"
#include "support/messages.hpp"
#include "support/placing.hpp"

#include <collage/backend_set.hpp>
#include <collage/backends/portable.hpp>
#include <collage/error.hpp>
#include <collage/graph/graph.hpp>
#include <collage/ops.hpp>
#include <collage/place.hpp>
#include <collage/place/candidates.hpp>
#include <collage/place/region_search.hpp>
#include <collage/place/regions.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/engine.hpp>
#include <collage/run/node_group.hpp>
#include <collage/run/verify.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace place_regions_test {

namespace c = collage;
namespace op = collage::ops;
using nodes_list = std::vector<std::vector<std::uint32_t>>;

c::graph chain(std::size_t length, std::int64_t extent = 256) {
  c::graph_builder g;
  c::value x = g.input("x", {c::dtype::f32, {extent}});
  for (std::size_t i = 0; i < length; ++i) x = i % 3 == 2 ? g(op::tanh, x) : g(op::relu, x);
  g.output("y", x);
  return g.finish();
}

/// Adds and relus, each over values drawn among the last ones.
c::graph random_graph(collage_test::data_source& data, std::size_t nodes) {
  c::graph_builder g;
  std::vector<c::value> values = {g.input("x", {c::dtype::f32, {64}}), g.input("y", {c::dtype::f32, {64}})};
  const auto draw = [&] {
    const auto back = static_cast<std::size_t>(data.number(1, 5));
    return values[values.size() - std::min(back, values.size())];
  };
  for (std::size_t n = 0; n < nodes; ++n)
    values.push_back(data.chance(0.5) ? g(op::relu, draw()) : g(op::add, draw(), draw()));
  for (std::size_t i = 0; i < 3; ++i) g.output("out" + std::to_string(i), values[values.size() - 1 - i]);
  return g.finish();
}

/// Whether groups, every node in one, can run one after the other.
bool can_run(const c::graph& network, const nodes_list& groups) {
  std::vector<std::size_t> group_of(network.nodes().size(), groups.size());
  for (std::size_t g = 0; g < groups.size(); ++g)
    for (const std::uint32_t n : groups[g]) {
      if (group_of[n] != groups.size()) return false;  // twice
      group_of[n] = g;
    }
  std::vector<std::set<std::size_t>> before(groups.size());
  for (std::uint32_t n = 0; n < group_of.size(); ++n) {
    if (group_of[n] == groups.size()) return false;
    for (const std::uint32_t v : network.view().inputs_of(n))
      if (const std::int32_t p = network.at(v).producer; p >= 0 && group_of[static_cast<std::size_t>(p)] != group_of[n])
        before[group_of[n]].insert(group_of[static_cast<std::size_t>(p)]);
  }
  std::vector<bool> done(groups.size(), false);
  for (std::size_t round = 0; round < groups.size(); ++round)
    for (std::size_t g = 0; g < groups.size(); ++g)
      done[g] = done[g] || std::ranges::all_of(before[g], [&](std::size_t b) { return done[b]; });
  return std::ranges::all_of(done, [](bool d) { return d; });
}

nodes_list one_by_one(const c::graph& network) {
  nodes_list units;
  for (std::uint32_t n = 0; n < network.nodes().size(); ++n) units.push_back({n});
  return units;
}

TEST(regions, what_lies_outside_parts_them) {
  const c::graph network = chain(6);  // relu relu tanh relu relu tanh
  EXPECT_EQ(c::regions_of(network, one_by_one(network), {true, true, false, true, true, true}),
            (nodes_list{{0, 1}, {3, 4, 5}}));
  EXPECT_EQ(c::regions_of(network, one_by_one(network), std::vector<bool>(6, true)), (nodes_list{{0, 1, 2, 3, 4, 5}}));
  EXPECT_EQ(
      c::regions_of(network, one_by_one(network), std::vector<bool>(6, true), {false, false, true, false, true, false}),
      (nodes_list{{0, 1}, {2, 3}, {4, 5}}));
  EXPECT_TRUE(c::regions_of(network, one_by_one(network), std::vector<bool>(6, false)).empty());
}

TEST(regions, are_as_few_as_can_run_one_after_the_other) {
  // Two branches: 0 -> 1 -> 2 and 3 -> 4 -> 5; 1 and 3 lie outside. {0, 3'..} The second branch waits for nothing but node 3.
  c::graph_builder g;
  const c::value x = g.input("x", {c::dtype::f32, {8}});
  const c::value a = g(op::relu, g(op::tanh, g(op::relu, x)));
  const c::value b = g(op::relu, g(op::relu, g(op::tanh, x)));
  g.output("y", g(op::add, a, b));
  const c::graph network = g.finish();  // 0 relu, 1 tanh, 2 relu, 3 tanh, 4 relu, 5 relu, 6 add
  const std::vector<bool> inside = {true, false, true, false, true, true, true};
  EXPECT_EQ(c::regions_of(network, one_by_one(network), inside), (nodes_list{{0, 4, 5}, {2, 6}}));
}

TEST(regions, views_go_with_what_stands_around_them) {
  c::graph_builder g;
  const c::value x = g.input("x", {c::dtype::f32, {2, 6}});
  const c::value first = g(op::reshape, x, {.dims = {12}});                     // 0: reads an input
  const c::value inner = g(op::reshape, g(op::relu, first), {.dims = {3, 4}});  // 1, 2
  const c::value last = g(op::reshape, g(op::relu, inner), {.dims = {4, 3}});   // 3, 4: read by the user alone
  g.output("y", last);
  const c::graph network = g.finish();
  EXPECT_EQ(c::largest_regions(network, std::vector<bool>(5, true)), (nodes_list{{1, 2, 3}}));
  EXPECT_TRUE(c::largest_regions(network, {true, false, true, false, true}).empty());
}

TEST(regions, run_one_after_the_other_in_random_graphs) {
  collage_test::data_source data;
  for (int round = 0; round < 300; ++round) {
    const c::graph network = random_graph(data, static_cast<std::size_t>(data.number(1, 40)));
    // Units of several nodes are neighbours that can run together: divisions of a random division.
    nodes_list units = one_by_one(network);
    std::vector<bool> inside, anew;
    for (std::size_t u = 0; u < units.size(); ++u) {
      inside.push_back(data.chance(0.6));
      anew.push_back(data.chance(0.1));
    }
    const nodes_list regions = c::regions_of(network, units, inside, anew);
    nodes_list groups = regions;
    for (std::size_t u = 0; u < units.size(); ++u)
      if (!inside[u]) groups.push_back(units[u]);
    EXPECT_TRUE(can_run(network, groups)) << "COLLAGE_SEED=" << data.seed();
    // The same with these groups as units, in an order in which they can run.
    std::ranges::sort(groups, {}, [&](const std::vector<std::uint32_t>& g) { return g.back(); });
    nodes_list ordered;
    std::set<std::uint32_t> done;
    while (ordered.size() < groups.size())
      for (const auto& group : groups) {
        if (done.count(group.front()) != 0) continue;
        bool ready = true;
        for (const std::uint32_t n : group)
          for (const std::uint32_t v : network.view().inputs_of(n))
            if (const std::int32_t p = network.at(v).producer; p >= 0)
              ready = ready && (done.count(static_cast<std::uint32_t>(p)) != 0 ||
                                std::ranges::find(group, static_cast<std::uint32_t>(p)) != group.end());
        if (!ready) continue;
        done.insert(group.begin(), group.end());
        ordered.push_back(group);
      }
    inside.assign(ordered.size(), false);
    for (std::size_t u = 0; u < inside.size(); ++u) inside[u] = data.chance(0.5);
    nodes_list again = c::regions_of(network, ordered, inside);
    for (std::size_t u = 0; u < ordered.size(); ++u)
      if (!inside[u]) again.push_back(ordered[u]);
    EXPECT_TRUE(can_run(network, again)) << "COLLAGE_SEED=" << data.seed();
  }
}

/// What a division costs where each node has a cost inside and another outside, and each region one of its own.
struct planted {
  std::vector<double> in, out;
  double entering = 1;

  double operator()(const c::region_search::regions& regions) const {
    std::vector<bool> inside(in.size(), false);
    for (const auto& nodes : regions)
      for (const std::uint32_t n : nodes) inside[n] = true;
    double sum = entering * static_cast<double>(regions.size());
    for (std::size_t n = 0; n < in.size(); ++n) sum += inside[n] ? in[n] : out[n];
    return sum;
  }
};

std::vector<c::region_unit> units_of(std::size_t nodes) {
  std::vector<c::region_unit> units;
  for (std::uint32_t n = 0; n < nodes; ++n) units.push_back({{n}, true, false, n % 3});
  return units;
}

TEST(region_search, finds_what_was_planted) {
  collage_test::data_source data;
  int better = 0;
  for (int round = 0; round < 20; ++round) {
    const c::graph network = chain(24);
    planted cost{{}, {}, 0.5};
    // Of two kinds that are alike one is better inside; of the third it depends on where it stands.
    for (std::size_t n = 0; n < 24; ++n) {
      cost.in.push_back(1);
      cost.out.push_back(n % 3 == 0 ? 2 : n % 3 == 1 ? 3 : n < 12 ? 0.2 : 4);
    }
    std::size_t asked = 0;
    std::set<nodes_list> seen;
    const auto evaluate = [&](const std::vector<c::region_search::regions>& fresh) {
      std::vector<double> times;
      for (const auto& regions : fresh) {
        EXPECT_TRUE(seen.insert(regions).second) << "it was tried before";
        times.push_back(cost(regions));
        ++asked;
      }
      return times;
    };
    c::region_search search(network, units_of(24),
                            {.seed = data.seed() + static_cast<unsigned long>(round), .patience = 12});
    const c::region_search_result found = search.run(evaluate);
    EXPECT_EQ(found.tried, asked);
    EXPECT_TRUE(found.is_saturated);
    EXPECT_DOUBLE_EQ(cost(found.best.regions), found.best.time);
    EXPECT_TRUE(std::ranges::is_sorted(found.by_generation, std::greater<>())) << "what was found is not lost";
    EXPECT_LE(found.best.time, cost({})) << "all off was tried";
    EXPECT_LE(found.best.time, cost(c::regions_of(network, one_by_one(network), std::vector<bool>(24, true))));
    better += found.best.time < 24.5 ? 1 : 0;
  }
  EXPECT_GE(better, 10) << "than all inside, which some single groups outside improve by 1 %; COLLAGE_SEED="
                        << data.seed();
}

TEST(region_search, is_the_same_for_the_same_seed) {
  const c::graph network = chain(18);
  const planted cost{std::vector<double>(18, 1.0), {2, 1, .1, 3, 1, 1, .5, .5, 2, 2, 2, 2, .1, .1, .1, 1, 1, 3}, 0.7};
  const auto evaluate = [&](const std::vector<c::region_search::regions>& fresh) {
    std::vector<double> times;
    for (const auto& regions : fresh) times.push_back(cost(regions));
    return times;
  };
  const auto one = c::region_search(network, units_of(18), {.seed = 7}).run(evaluate);
  const auto other = c::region_search(network, units_of(18), {.seed = 7}).run(evaluate);
  EXPECT_EQ(one.best.regions, other.best.regions);
  EXPECT_EQ(one.by_generation, other.by_generation);
  EXPECT_EQ(one.tried, other.tried);
}

TEST(region_search, takes_what_cannot_run_for_the_worst) {
  const c::graph network = chain(9);
  const auto evaluate = [&](const std::vector<c::region_search::regions>& fresh) {
    std::vector<double> times;
    for (const auto& regions : fresh) times.push_back(regions.empty() ? 3.0 : std::numeric_limits<double>::infinity());
    return times;
  };
  const auto found = c::region_search(network, units_of(9)).run(evaluate);
  EXPECT_TRUE(found.best.regions.empty());
  EXPECT_EQ(found.best.time, 3.0);
  // Where nothing can be taken there is nothing to search.
  std::vector<c::region_unit> none = units_of(9);
  for (c::region_unit& u : none) u.is_taken = false;
  EXPECT_EQ(c::region_search(network, std::move(none)).run(evaluate).tried, 0U);
}

TEST(region_search, ends_when_it_is_told) {
  const c::graph network = chain(30);
  std::size_t asked = 0;
  double next = 1;
  const auto evaluate = [&](const std::vector<c::region_search::regions>& fresh) {
    asked += fresh.size();
    std::vector<double> times;
    for (std::size_t i = 0; i < fresh.size(); ++i) times.push_back(next *= 0.9);  // it always gets better
    return times;
  };
  int generations = 0;
  const auto found =
      c::region_search(network, units_of(30)).run(evaluate, [&generations] { return ++generations == 3; });
  EXPECT_EQ(found.by_generation.size(), 3U);
  EXPECT_FALSE(found.is_saturated);
  EXPECT_EQ(found.tried, asked);
}

/// Compiles regions of relu, tanh, add and reshape: one loop over the elements for all of it.
struct compiler : c::backend<"compiler"> {
  static constexpr bool takes_regions = true;
  static bool takes(const c::graph& network, std::uint32_t node) {
    const std::uint64_t kind = network.node(node).kind->id;
    return kind == c::kind_id<struct op::relu> || kind == c::kind_id<struct op::tanh> ||
           kind == c::kind_id<struct op::add> || kind == c::kind_id<struct op::reshape>;
  }
  static c::kernel build(const c::node_group& group, c::build_context& context) {
    struct step {
      char what;
      std::size_t a, b, to;
    };
    const c::graph& network = context.network();
    std::map<std::uint32_t, std::size_t> at;
    for (const std::uint32_t v : group.arguments) at.emplace(v, at.size());
    std::vector<step> steps;
    for (const std::uint32_t n : group.nodes) {
      const auto in = network.view().inputs_of(n);
      const std::uint32_t out = network.view().output_of(n);
      const std::size_t a = at.at(in[0]), b = in.size() > 1 ? at.at(in[1]) : a;
      at.emplace(out, at.size());
      steps.push_back({network.node(n).kind->name[0], a, b, at.at(out)});
    }
    std::vector<std::size_t> written;
    for (const std::uint32_t v : group.outputs) written.push_back(at.at(v));
    const auto elements = static_cast<std::size_t>(network.type_of(group.outputs[0]).dims.elements());
    return {"compiled " + std::to_string(group.nodes.size()),
            [=, values = at.size(), arguments = group.arguments.size()](const c::kernel_call& call) {
              std::vector<float> value(values);
              for (std::size_t i = 0; i < elements; ++i) {
                for (std::size_t k = 0; k < arguments; ++k) value[k] = static_cast<const float*>(call.in[k])[i];
                for (const step& s : steps)
                  value[s.to] = s.what == 'a'    ? value[s.a] + value[s.b]
                                : s.what == 't'  ? std::tanh(value[s.a])
                                : value[s.a] < 0 ? 0.0F
                                                 : value[s.a];
                for (std::size_t k = 0; k < written.size(); ++k)
                  static_cast<float*>(call.out[k])[i] = value[written[k]];
              }
            }};
  }
};

/// Takes tanh, and then cannot compile it.
struct clumsy : c::backend<"clumsy"> {
  static constexpr bool takes_regions = true;
  static bool takes(const c::graph& network, std::uint32_t node) { return compiler::takes(network, node); }
  static c::kernel build(const c::node_group& group, c::build_context& context) {
    for (const std::uint32_t n : group.nodes)
      if (context.network().node(n).kind->id == c::kind_id<struct op::tanh>)
        throw c::error(c::error_kind::unsupported, "has no tanh after all", "clumsy");
    return compiler::build(group, context);
  }
};

/// Compiles one operator at a time.
struct shy : c::backend<"shy"> {
  static constexpr bool takes_regions = true;
  static c::verdict takes(const c::graph& network, std::uint32_t node) {
    return {compiler::takes(network, node), "shy has four operators"};
  }
  static c::kernel build(const c::node_group& group, c::build_context& context) {
    if (group.nodes.size() > 1) throw c::error(c::error_kind::unsupported, "is too large", "shy");
    return compiler::build(group, context);
  }
};

/// Compiles regions of several operators wrongly.
struct muddled : c::backend<"muddled"> {
  static constexpr bool takes_regions = true;
  static bool takes(const c::graph& network, std::uint32_t node) { return compiler::takes(network, node); }
  static c::kernel build(const c::node_group& group, c::build_context& context) {
    if (group.nodes.size() == 1) return compiler::build(group, context);
    return {"nothing", [](const c::kernel_call&) {}};
  }
};

/// Would compile a tanh wrongly together with what it reads.
struct wary : c::backend<"wary"> {
  static constexpr bool takes_regions = true;
  static bool takes(const c::graph& network, std::uint32_t node) { return compiler::takes(network, node); }
  static c::verdict joins(const c::graph& network, std::uint32_t node) {
    return {network.node(node).kind->id != c::kind_id<struct op::tanh>, "wary loses the operand of a tanh"};
  }
  static c::kernel build(const c::node_group& group, c::build_context& context) {
    return compiler::build(group, context);
  }
};

using with_compiler = c::backend_set<c::portable, compiler>;

c::place_options quick() {
  c::place_options o = collage_test::quick_options();
  o.regions.seconds = 0.5;
  return o;
}

std::size_t regions_in(const c::placement& p) {
  return static_cast<std::size_t>(
      std::ranges::count_if(p.groups, [](const c::plan_group& g) { return g.backend() == compiler::name; }));
}

/// relu, tanh and sigmoid, which the compiler does not take, with a view between.
c::graph mixed() {
  c::graph_builder g;
  c::value x = g.input("x", {c::dtype::f32, {4, 64}});
  x = g(op::reshape, g(op::relu, x), {.dims = {64, 4}});
  x = g(op::relu, g(op::tanh, g(op::add, x, x)));
  const c::value y = g(op::sigmoid, x);
  g.output("z", g(op::tanh, g(op::add, y, x)));
  return g.finish();
}

TEST(region_backend, is_lowered_and_listed) {
  const c::backend_entry& e = c::table_of<with_compiler>[1];
  EXPECT_TRUE(e.takes_regions);
  EXPECT_EQ(e.list_groups, nullptr);
  EXPECT_NE(e.build_group, nullptr);
  EXPECT_FALSE(c::table_of<with_compiler>[0].takes_regions);
  const c::graph network = mixed();
  const c::place_candidates found = c::find_candidates(network, c::table_of<with_compiler>, {false, true});
  nodes_list groups;
  for (const c::place_candidate& candidate : found.list) groups.push_back(found.groups[candidate.group].nodes);
  EXPECT_EQ(groups, (nodes_list{{0, 1, 2, 3, 4}, {6, 7}}));
}

TEST(region_backend, says_which_operators_begin_a_region_and_why) {
  c::graph_builder g;
  const c::value x = g(op::tanh, g.input("x", {c::dtype::f32, {4}}));  // reads no operator
  g.output("y", g(op::relu, g(op::tanh, g(op::relu, x))));
  const c::graph network = g.finish();
  const c::place_candidates found = c::find_candidates(network, c::table_of<c::backend_set<wary>>, {true});
  nodes_list groups;
  for (const c::place_candidate& candidate : found.list) groups.push_back(found.groups[candidate.group].nodes);
  EXPECT_EQ(groups, (nodes_list{{0, 1}, {2, 3}}));
  ASSERT_EQ(found.refusals.size(), 1U);
  EXPECT_EQ(found.refusals[0].backend, "wary");
  EXPECT_EQ(found.refusals[0].where, network.node_name(2));
  EXPECT_EQ(found.refusals[0].reason,
            "it is in no region with the operators that it reads, because wary loses the operand of a tanh");
}

TEST(region_backend, takes_part_and_what_is_handed_out_is_right) {
  const c::graph network = mixed();
  c::place_options options = quick();
  const c::placed_plan p = c::place<with_compiler>(network, options);
  const c::place_report& report = p.report;
  ASSERT_EQ(p.singles.size(), 2U);
  EXPECT_EQ(regions_in(p.singles[1]), 2U);
  EXPECT_EQ(p.singles[1].borrowed, (std::vector<std::string>{network.node_name(5)}));
  EXPECT_GE(report.regions.tried, 2U);
  EXPECT_FALSE(report.regions.by_generation.empty());
  EXPECT_TRUE(std::ranges::is_sorted(report.regions.by_generation, std::greater<>()));
  EXPECT_EQ(std::ranges::count(p.runs, std::string(c::operators_run), &c::plan_run::name), 1);
  for (const c::plan_run& r : p.runs) EXPECT_GT(r.runs, 0U) << r.name;
  for (const c::verified_placement& v : c::verify(network, p, c::table_of<with_compiler>).placements)
    EXPECT_TRUE(v.passed()) << v.name << ": " << v.why();
}

TEST(region_backend, alone_it_borrows_what_it_does_not_take) {
  const c::graph network = chain(7);
  c::place_options options = quick();
  options.backends = {"compiler"};
  const c::plan p = c::place<with_compiler>(network, options);
  EXPECT_GE(regions_in(p.chosen), 1U);
  EXPECT_TRUE(p.singles[0].borrowed.empty());
  options.backends = {};
  EXPECT_THROW((void)c::place<c::backend_set<compiler>>(mixed(), quick()), c::error);  // nobody takes the sigmoid
}

TEST(region_backend, one_operator_that_fails_does_not_take_all_others_along) {
  const c::graph network = chain(9);  // every third is a tanh
  c::place_options options = quick();
  const c::placed_plan p = c::place<c::backend_set<c::portable, clumsy>>(network, options);
  const c::place_report& report = p.report;
  EXPECT_TRUE(std::ranges::any_of(report.refusals, [](const c::place_refusal& r) { return r.backend == "clumsy"; }));
  nodes_list regions;
  for (const c::plan_group& g : p.singles[1].groups)
    if (g.backend() == "clumsy") regions.push_back(g.nodes);
  EXPECT_EQ(regions, (nodes_list{{0, 1}, {3, 4}, {6, 7}}));
  for (const c::verified_placement& v :
       c::verify(network, p, c::table_of<c::backend_set<c::portable, clumsy>>).placements)
    EXPECT_TRUE(v.passed()) << v.name << ": " << v.why();
}

TEST(region_backend, each_operator_is_tried_alone_even_if_the_time_is_up) {
  const c::graph network = chain(7);
  c::place_options options = quick();
  options.budget_s = 1e-9;
  const c::plan p = c::place<c::backend_set<shy>>(network, options);
  EXPECT_EQ(p.chosen.groups.size(), 7U);
  EXPECT_TRUE(c::verify(network, p, c::table_of<c::backend_set<shy>>, {.singles = false}));
  // A caller that stops placing gets the reason, and it is not blamed on each operator.
  options.stop = [] { return true; };
  const std::string why = collage_test::message_of([&] { (void)c::place<c::backend_set<shy>>(network, options); }, 2);
  EXPECT_NE(why.find("shy refuses a region of 7 operators with it: shy: is too large (placing ended before it was "
                     "tried alone)"),
            std::string::npos)
      << why;
  // A node that the backend does not take has the backend's reason.
  const std::string taken = collage_test::message_of([&] { (void)c::place<c::backend_set<shy>>(mixed(), quick()); }, 2);
  EXPECT_NE(taken.find("sigmoid float32[64x4]), shy refuses: shy has four operators"), std::string::npos) << taken;
}

TEST(region_backend, wrong_regions_are_divided_without_measuring) {
  const c::graph network = chain(6);
  c::place_options options = quick();
  options.costs = c::placing_costs::none;
  const c::placed_plan p = c::place<c::backend_set<muddled>>(network, options);
  EXPECT_EQ(p.chosen.groups.size(), 6U);
  EXPECT_TRUE(c::verify(network, p, c::table_of<c::backend_set<muddled>>, {.singles = false}));
}

TEST(region_backend, a_comparison_without_the_search_is_not_taken_for_one_with_it) {
  const collage_test::temporary_folder folder;
  const c::graph network = mixed();
  c::place_report report;
  c::place_options options = quick();
  options.store = folder.path("costs.db");
  options.regions.seconds = 0;
  report = c::place<with_compiler>(network, options).report;
  EXPECT_EQ(report.regions.tried, 0U);
  options.regions.seconds = 0.5;
  report = c::place<with_compiler>(network, options).report;
  EXPECT_FALSE(report.compared_before);
  EXPECT_GT(report.regions.tried, 0U);
  options.regions.seconds = 0;
  report = c::place<with_compiler>(network, options).report;
  EXPECT_TRUE(report.compared_before);
}

TEST(region_backend, rules_hold_for_regions) {
  const c::graph network = mixed();
  for (const c::place_rule& rule : {c::place_rule{c::place_rule::action::exclude, "compiler", "tanh"},
                                    c::place_rule{c::place_rule::action::pin, "portable", "tanh"},
                                    c::place_rule{c::place_rule::action::exclude, "compiler", c::by_rule}}) {
    c::place_options options = quick();
    options.rules = {rule};
    const c::plan p = c::place<with_compiler>(network, options);
    std::vector<const c::placement*> all = {&p.chosen};
    for (const c::placement& s : p.singles) all.push_back(&s);
    for (const c::placement* one : all)
      for (const c::plan_group& g : one->groups) {
        if (g.backend() != compiler::name) continue;
        EXPECT_NE(rule.what, c::by_rule);
        for (const std::uint32_t n : g.nodes) EXPECT_STRNE(network.node(n).kind->name, "tanh") << rule.what;
      }
    if (rule.what != std::string(c::by_rule)) {
      EXPECT_GE(regions_in(p.singles[1]), 1U) << "what is left of it is used";
    }
  }
  c::place_options options = quick();
  options.rules = {{c::place_rule::action::pin, "compiler", "tanh"}};
  const c::plan p = c::place<with_compiler>(network, options);
  for (const c::plan_group& g : p.chosen.groups)
    for (const std::uint32_t n : g.nodes)
      if (std::string(network.node(n).kind->name) == "tanh") EXPECT_EQ(g.backend(), "compiler");
}

TEST(region_backend, its_regions_come_back_from_the_store) {
  const collage_test::temporary_folder folder;
  const c::graph network = mixed();
  c::place_options options = quick();
  options.store = folder.path("costs.db");
  const c::plan first = c::place<with_compiler>(network, options);
  c::place_report report;
  const c::placed_plan second = c::place<with_compiler>(network, options);
  report = second.report;
  EXPECT_TRUE(report.compared_before);
  EXPECT_EQ(report.measured, 0U);
  EXPECT_EQ(report.regions.tried, 0U);
  ASSERT_EQ(first.chosen.groups.size(), second.chosen.groups.size());
  for (std::size_t i = 0; i < first.chosen.groups.size(); ++i) {
    EXPECT_EQ(first.chosen.groups[i].nodes, second.chosen.groups[i].nodes);
    EXPECT_EQ(first.chosen.groups[i].backend(), second.chosen.groups[i].backend());
  }
  // A previous plan whose regions no list of candidates has runs along.
  options.store.clear();
  c::plan previous = first;
  previous.chosen = first.singles[1];
  options.previous = &previous;
  const c::placed_plan third = c::place<with_compiler>(network, options);
  report = third.report;
  EXPECT_EQ(std::ranges::count(third.runs, std::string(c::previous_run), &c::plan_run::name), 1);
}

TEST(region_backend, a_plan_that_gives_it_too_much_is_refused) {
  const c::graph network = mixed();
  c::placement p;
  p.groups.emplace_back().step = c::group_step{compiler::name};
  for (std::uint32_t n = 0; n < network.nodes().size(); ++n) p.groups[0].nodes.push_back(n);
  try {
    const c::dynamic_engine engine(network, p, c::table_of<with_compiler>, 1);
    ADD_FAILURE() << "it was taken";
  } catch (const c::error& e) {
    EXPECT_NE(std::string(e.what()).find("does not run node " + network.node_name(5)), std::string::npos) << e.what();
  }
}

}  // namespace place_regions_test
