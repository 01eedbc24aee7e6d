// Costs of sizes that were not measured: interpolation, families of stored workloads, and plans by estimates.
#include <collage/backend.hpp>
#include <collage/backend_set.hpp>
#include <collage/backends/portable.hpp>
#include <collage/graph/graph.hpp>
#include <collage/io/json.hpp>
#include <collage/io/plan_file.hpp>
#include <collage/measure/store.hpp>
#include <collage/op/control.hpp>
#include <collage/ops.hpp>
#include <collage/pattern/single.hpp>
#include <collage/place.hpp>
#include <collage/place/cost_index.hpp>
#include <collage/place/explain.hpp>
#include <collage/place/measuring.hpp>
#include <collage/place/workloads.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/kernel.hpp>
#include <collage/run/plan.hpp>
#include <collage/run/processor.hpp>
#include <collage/run/verify.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "place/size_curve.hpp"
#include "place/workload_words.hpp"
#include "simulated_backends.hpp"
#include "support/files.hpp"
#include "support/placing.hpp"

namespace place_estimates_test {

namespace c = collage;
namespace d = collage::detail;
namespace op = collage::ops;

// ---- Curves -----------------------------------------------------------------------------------------------------------

/// A size of a workload with one extent, which is its work, too.
d::workload_size size_of(double work) { return {{std::log(work)}, work, work * 1e-4 + 1e-3}; }

template <class Law>
std::vector<d::measured_size> measured_at(std::initializer_list<double> sizes, Law law) {
  std::vector<d::measured_size> list;
  for (const double s : sizes) list.push_back({size_of(s), law(s)});
  return list;
}
double at(const std::vector<d::measured_size>& known, double work, double launch_ms = 1e-6) {
  return d::size_curve(known, launch_ms).at(size_of(work)).value().ms;
}

TEST(size_curve, hits_powers_of_the_work_between_any_sizes) {
  for (const double power : {0.0, 0.5, 1.0, 1.7}) {
    const auto law = [&](double work) { return 3e-4 * std::pow(work, power); };
    const auto known = measured_at({64, 1024, 16}, law);
    for (const double work : {16.0, 17.0, 64.0, 300.0, 1000.0})
      EXPECT_NEAR(at(known, work), law(work), 1e-9 * law(work));
  }
}

TEST(size_curve, comes_close_to_a_launch_and_a_part_proportional_to_the_work) {
  for (const double launch : {0.0, 0.01, 1.0, 30.0}) {
    const auto law = [&](double work) { return launch + 0.01 * work; };
    const auto known = measured_at({1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192}, law);
    for (double work = 1; work < 8192; work *= 1.07) EXPECT_NEAR(at(known, work), law(work), 0.016 * law(work)) << work;
    // Beyond all sizes it is exact.
    for (const double work : {0.5, 10000.0, 1e6}) EXPECT_NEAR(at(known, work), law(work), 1e-9 * law(work)) << work;
  }
}

TEST(size_curve, rises_with_the_work_if_the_measured_times_do) {
  std::mt19937_64 random(3);
  for (int turn = 0; turn < 50; ++turn) {
    std::vector<d::measured_size> known;
    double work = 1, ms = 0.001;
    for (int i = 0; i < 6; ++i) {
      known.push_back({size_of(work), ms});
      work *= 1.5 + static_cast<double>(random() % 100) / 20;
      ms *= 1 + static_cast<double>(random() % 100) / 30;
    }
    double before = 0;
    for (double asked = 0.1; asked < 10 * work; asked *= 1.05) {
      const double now = at(known, asked);
      EXPECT_GE(now, before * (1 - 1e-12)) << asked;
      before = now;
    }
  }
}

TEST(size_curve, is_never_less_than_a_launch_nor_than_in_proportion_below_the_smallest_size) {
  const auto steep = measured_at({100, 200}, [](double work) { return work * work * 1e-4; });
  EXPECT_DOUBLE_EQ(at(steep, 50), 0.5);  // 1 ms at 100; a line through both sizes would be below 0
  EXPECT_DOUBLE_EQ(at(steep, 1, 0.2), 0.2);
  const auto falling = measured_at({100, 200}, [](double work) { return 100 / work; });
  EXPECT_DOUBLE_EQ(at(falling, 400), 0.5);  // it does not go on falling
  // One size alone is scaled by the model.
  const auto one = measured_at({100}, [](double) { return 2.0; });
  EXPECT_DOUBLE_EQ(at(one, 300), 2.0 * size_of(300).model_ms / size_of(100).model_ms);
  EXPECT_FALSE(d::size_curve({}, 1).at(size_of(5)));
}

TEST(size_curve, does_not_trust_a_time_that_is_far_too_short) {
  EXPECT_DOUBLE_EQ(at(measured_at({100, 300}, [](double work) { return work < 200 ? 2.0 : 0.7; }), 200), 4.0);
  EXPECT_DOUBLE_EQ(at(measured_at({100, 300}, [](double work) { return work < 200 ? 0.1 : 6.0; }), 200), 4.0);
  // Noise is no fault.
  EXPECT_NEAR(at(measured_at({100, 300}, [](double work) { return work < 200 ? 1.0 : 0.97; }), 200), 0.98, 0.01);
}

TEST(size_curve, takes_the_closest_sizes_of_several_extents) {
  // Rows and columns, where columns cost ten times as much. The work is the product.
  const auto point = [](double rows, double columns) {
    return d::measured_size{{{std::log(rows), std::log(columns)}, rows * columns, 1}, rows + 10 * columns};
  };
  const std::vector<d::measured_size> known = {point(64, 4), point(256, 4), point(4, 64), point(4, 256)};
  const auto wide = d::size_curve(known, 1e-6).at(point(4, 128).size).value();
  EXPECT_EQ(std::pair(wide.low, wide.high), std::pair(std::size_t{2}, std::size_t{3}));
  EXPECT_NEAR(wide.ms, std::sqrt(644.0 * 2564.0), 1e-9);
  const auto high = d::size_curve(known, 1e-6).at(point(128, 4).size).value();
  EXPECT_EQ(std::pair(high.low, high.high), std::pair(std::size_t{0}, std::size_t{1}));
  // Equal work: no division by zero.
  const std::vector<d::measured_size> equal = {point(8, 32), point(32, 8)};
  const double mean = d::size_curve(equal, 1e-6).at(point(16, 16).size)->ms;
  EXPECT_TRUE(mean >= 112 && mean <= 328) << mean;
}

TEST(size_curve, knows_its_error_by_leaving_sizes_out) {
  const auto exact = measured_at({1, 2, 4, 8}, [](double work) { return work; });
  EXPECT_NEAR(d::leave_one_out_error(exact, 1e-6).value(), 0, 1e-12);
  // The size in the middle is a fifth above the line of its neighbours; only it has some on both sides.
  auto off = measured_at({1, 2, 4}, [](double work) { return work; });
  off[1].ms = 2.4;
  EXPECT_NEAR(d::leave_one_out_error(off, 1e-6).value(), 0.2, 1e-9);
  EXPECT_FALSE(d::leave_one_out_error(measured_at({1, 2}, [](double work) { return work; }), 1e-6));
}

// ---- Families ---------------------------------------------------------------------------------------------------------

/// relu(x w + b) over so many rows, with a reshape before.
c::graph layer(std::int64_t rows, std::int64_t columns = 8, bool is_other = false) {
  c::graph_builder g;
  const c::value x = g.input("x", {c::dtype::f32, {1, rows, 4}});
  const c::value flat = g(op::reshape, x, {.dims = {rows, 4}});
  const c::value w = g.constant("w", {c::dtype::f32, {4, columns}}, c::uniform{-1, 1});
  const c::value product = g(op::matmul, flat, w);
  const c::value sum = g(op::add, product, g.constant("b", {c::dtype::f32, {columns}}, c::uniform{-1, 1}));
  g.output("y", is_other ? g(op::neg, sum) : g(op::relu, sum));
  c::graph network = g.finish();
  c::fill_constants(network);
  return network;
}
std::vector<std::uint64_t> words_of(const c::graph& network) {
  std::vector<std::uint32_t> nodes(network.nodes().size());
  for (std::uint32_t n = 0; n < nodes.size(); ++n) nodes[n] = n;
  return d::structure_key(network, nodes);
}
d::wide_hash family_of(const std::vector<std::uint64_t>& words, d::family_extents which) {
  d::wide_hash h;
  d::add_family(d::workload_reader(words).read(), which, h);
  return h;
}

TEST(families, have_all_of_a_workload_but_its_extents) {
  const std::vector<std::uint64_t> words = words_of(layer(3));
  const d::workload_words read = d::workload_reader(words).read();
  ASSERT_EQ(read.nodes.size(), 4U);
  EXPECT_EQ(read.values.size(), 7U);
  EXPECT_EQ(read.values[read.nodes[1].outputs[0]].type.dims[0], 3);
  EXPECT_TRUE(read.forms.empty());
  for (const auto which : {d::family_extents::constants, d::family_extents::none}) {
    EXPECT_EQ(family_of(words, which), family_of(words_of(layer(500)), which));
    EXPECT_NE(family_of(words, which), family_of(words_of(layer(3, 8, true)), which));
    EXPECT_EQ(family_of(words, which) == family_of(words_of(layer(3, 9)), which), which == d::family_extents::none);
    std::vector<std::uint64_t> blocked = words;
    blocked.insert(blocked.end(), {c::blocked_8.id, c::plain.id, c::blocked_16.id});
    EXPECT_NE(family_of(blocked, which), family_of(words, which));
    EXPECT_EQ(d::workload_reader(blocked).read().nodes.size(), 4U);
    EXPECT_EQ(d::workload_reader(blocked).read().forms.size(), 3U);
  }
}

TEST(families, of_operators_with_several_results_are_read) {
  c::graph_builder g;
  const c::value x = g.input("x", {c::dtype::f32, {6, 10}});
  const c::value best = g(op::top_k, x, {.k = 3});
  g.output("indices", best[1]);
  g.output("values", g(op::neg, best));
  const c::graph network = g.finish();
  const std::vector<std::uint64_t> words = words_of(network);
  const d::workload_words read = d::workload_reader(words).read();
  ASSERT_EQ(read.nodes.size(), 2U);
  EXPECT_EQ(read.nodes[0].outputs.size(), 2U);
}

TEST(families, of_damaged_words_are_never_read_beyond_their_end) {
  const std::vector<std::uint64_t> words = words_of(layer(3));
  for (std::size_t size = 0; size < words.size(); ++size) {
    const std::vector<std::uint64_t> cut(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(size));
    const d::workload_words read = d::workload_reader(cut).read();
    for (const auto& node : read.nodes)
      for (const std::uint32_t v : node.inputs) EXPECT_LT(v, read.values.size());
  }
  std::mt19937_64 random(7);
  for (int turn = 0; turn < 2000; ++turn) {
    std::vector<std::uint64_t> broken = words;
    for (int i = 0; i < 3; ++i) broken[random() % broken.size()] = random() % 2 == 0 ? random() : random() % 20;
    const c::stored_entry entry{"",
                                {.machine = "m",
                                 .waiting = "passive",
                                 .precision = "fp32",
                                 .backend = "b",
                                 .library = "1",
                                 .pattern = "p",
                                 .computes = broken},
                                {.label = "x", .median_ms = 1}};
    const c::cost_estimate found = c::cost_index(std::span(&entry, 1)).estimate(entry.key);
    EXPECT_EQ(found.ms, 1);
  }
}

// ---- The index --------------------------------------------------------------------------------------------------------

c::stored_key key_of(const c::graph& network, std::string_view backend = "lib", std::string_view pattern = "layer",
                     std::size_t choice = 0) {
  return {.machine = "m",
          .threads = 1,
          .waiting = "passive",
          .precision = "fp32",
          .backend = std::string(backend),
          .library = "1.0",
          .pattern = std::string(pattern),
          .choice = c::configuration(choice),
          .computes = words_of(network)};
}
c::stored_entry entry_of(std::int64_t rows, double ms, std::string refusal = {}, std::size_t choice = 0) {
  return {"",
          key_of(layer(rows), "lib", "layer", choice),
          {.label = "layer " + std::to_string(rows), .kernel = "gemm", .refusal = std::move(refusal), .median_ms = ms}};
}

TEST(cost_index, interpolates_between_the_shapes_of_a_store) {
  const auto law = [](std::int64_t rows) { return 0.002 + 1e-5 * static_cast<double>(rows); };
  std::vector<c::stored_entry> entries;
  for (const std::int64_t rows : {64, 128, 512, 256}) entries.push_back(entry_of(rows, law(rows)));
  const c::cost_index index{std::span<const c::stored_entry>(entries)};
  EXPECT_EQ(index.size(), 4U);
  const c::cost_estimate exact = index.estimate(key_of(layer(128)));
  EXPECT_EQ(exact.basis, c::cost_basis::measured);
  EXPECT_EQ(exact.ms, law(128));
  EXPECT_EQ(exact.kernel, "gemm");
  EXPECT_EQ(exact.text(), "");
  const c::cost_estimate between = index.estimate(key_of(layer(180)));
  EXPECT_EQ(between.basis, c::cost_basis::interpolated);
  EXPECT_NEAR(between.ms, law(180), 0.02 * law(180));
  EXPECT_TRUE(between.error && *between.error > 0 && *between.error < 0.1);
  EXPECT_EQ(between.text().substr(0, 58), "interpolated between layer 128 and layer 256, usual error ");
  const c::cost_estimate beyond = index.estimate(key_of(layer(1000)));
  EXPECT_EQ(beyond.basis, c::cost_basis::extrapolated);
  EXPECT_NEAR(beyond.ms, law(1000), 1e-6);
  EXPECT_EQ(beyond.text().substr(0, 42), "extrapolated from layer 512 and layer 256,");

  // Another configuration has the fastest of the known ones, a little dearer, and so have other weights.
  const c::cost_estimate other = index.estimate(key_of(layer(180), "lib", "layer", 7));
  EXPECT_TRUE(other.is_of_others);
  EXPECT_GT(other.ms, between.ms);
  EXPECT_LT(other.ms, 1.1 * between.ms);
  EXPECT_TRUE(index.estimate(key_of(layer(180, 16))).is_of_others);
  // Everything else is scaled by what kernels like it took.
  const c::cost_estimate modelled = index.estimate(key_of(layer(180, 8, true)));
  EXPECT_EQ(modelled.basis, c::cost_basis::modelled);
  EXPECT_EQ(modelled.like_it, 4U);
  EXPECT_LT(std::abs(std::log(modelled.ms / law(180))), std::log(2));
  for (const auto change : {&c::stored_key::machine, &c::stored_key::waiting, &c::stored_key::library}) {
    c::stored_key elsewhere = key_of(layer(128));
    elsewhere.*change = "other";
    EXPECT_EQ(index.estimate(elsewhere).basis, c::cost_basis::modelled);
  }
  c::stored_key threads = key_of(layer(128));
  threads.threads = 2;
  EXPECT_EQ(index.estimate(threads).text(), "modelled: nothing like it was measured");
}

TEST(cost_index, without_entries_has_a_model) {
  const c::cost_index nothing;
  EXPECT_EQ(nothing.size(), 0U);
  const c::cost_estimate small = nothing.estimate(key_of(layer(2))), large = nothing.estimate(key_of(layer(20000)));
  EXPECT_EQ(small.basis, c::cost_basis::modelled);
  EXPECT_GT(small.ms, 0);
  EXPECT_GT(large.ms, 2 * small.ms);
  EXPECT_TRUE(small.refusal.empty());
  EXPECT_GT(nothing.estimate(c::stored_key{}).ms, 0);
  const collage_test::temporary_folder files;
  EXPECT_EQ(c::cost_index(files.path("none.db")).size(), 0U);
  EXPECT_THROW(c::cost_index(files.write("no store", "text.db")), c::error);
}

TEST(cost_index, keeps_refusals_at_the_shape_and_tells_of_others) {
  std::vector<c::stored_entry> entries{entry_of(64, 0.1), entry_of(128, 0, "wrong result: 3 is not 4"),
                                       entry_of(256, 0.4), entry_of(64, 0, "the library lacks it", 1),
                                       entry_of(64, 0, c::needless_fallback, 2)};
  c::stored_entry check = entry_of(100, 0);
  check.key.pattern = "check of layer";
  entries.push_back(check);
  check = entry_of(101, 0, "wrong result: 1 is not 2");
  check.key.pattern = "check of layer";
  entries.push_back(check);
  const c::cost_index index{std::span<const c::stored_entry>(entries)};
  EXPECT_EQ(index.estimate(key_of(layer(128))).refusal, "wrong result: 3 is not 4");
  const c::cost_estimate between = index.estimate(key_of(layer(90)));
  EXPECT_EQ(between.refusal, "");
  EXPECT_TRUE(between.was_refused);
  EXPECT_EQ(between.high, "layer 256");
  // A kernel that was compared at this shape is used, whatever happened at others.
  EXPECT_FALSE(index.estimate(key_of(layer(100))).was_refused);
  EXPECT_TRUE(index.estimate(key_of(layer(100))).is_checked);
  EXPECT_EQ(index.estimate(key_of(layer(101))).refusal, "wrong result: 1 is not 2");
  EXPECT_EQ(index.estimate(key_of(layer(90), "lib", "layer", 1)).refusal,
            "it was refused at another size, layer 64: the library lacks it");
  // What was not needed is not wrong.
  EXPECT_EQ(index.estimate(key_of(layer(64), "lib", "layer", 2)).refusal, "");
}

// ---- Plans ------------------------------------------------------------------------------------------------------------

double now_ms = 0;
std::size_t calls = 0, builds = 0;
std::int64_t wrong_rows = 0, unbuildable_rows = 0, inaccurate_rows = 0;  // where kernels have faults

using relu = c::single<op::relu>;
using neg = c::single<op::neg>;

template <class F>
c::kernel ticking(const char* name, const c::bound_value& result, double launch_ms, double element_ms, F f) {
  const auto count = static_cast<std::size_t>(result.out.elements());
  ++builds;
  return {name, [=](const c::kernel_call& call) {
            const auto* in = static_cast<const float*>(call.in[0]);
            for (std::size_t i = 0; i < count; ++i) static_cast<float*>(call.out[0])[i] = f(in[i]);
            now_ms += launch_ms + element_ms * static_cast<double>(count);
            ++calls;
          }};
}
constexpr auto positive = [](float x) { return x > 0 ? x : 0.0F; };
constexpr auto negative = [](float x) { return -x; };

/// Starts quickly; every element takes long.
struct eager : c::backend<"eager"> {
  using patterns = c::patterns<relu, neg>;
  static c::kernel build(const c::match<relu>& m, c::build_context&) {
    return ticking("eager relu", m.output(), 0.01, 1e-3, positive);
  }
  static c::kernel build(const c::match<neg>& m, c::build_context&) {
    return ticking("eager neg", m.output(), 0.01, 1e-3, negative);
  }
};
/// The other way round.
struct steady : c::backend<"steady"> {
  using patterns = c::patterns<relu, neg>;
  static c::kernel build(const c::match<relu>& m, c::build_context&) {
    return ticking("steady relu", m.output(), 1, 1e-4, positive);
  }
  static c::kernel build(const c::match<neg>& m, c::build_context&) {
    return ticking("steady neg", m.output(), 1, 1e-4, negative);
  }
};
/// The fastest, but wrong or missing at some sizes.
struct brittle : c::backend<"brittle"> {
  using patterns = c::patterns<relu>;
  static c::kernel build(const c::match<relu>& m, c::build_context&) {
    const std::int64_t rows = m.output().out[0];
    if (rows == unbuildable_rows)
      throw c::error(c::error_kind::unsupported, "it has no kernel for this size", "brittle");
    const float fault = rows == wrong_rows ? 1.0F : 0.0F;
    return ticking("brittle relu", m.output(), 0.005, 1e-5, [=](float x) { return (x > 0 ? x : 0.0F) + fault; });
  }
};
/// The fastest, by an algorithm that is not accurate at some sizes.
struct tricky : c::backend<"tricky"> {
  using patterns = c::patterns<relu>;
  static c::kernel_algorithm algorithm(const c::match<relu>& m, const c::configuration&) {
    return {.name = "trick", .error_bound = 1, .input = m.record().argument_list()[0]};
  }
  static c::kernel build(const c::match<relu>& m, c::build_context&) {
    const float fault = m.output().out[0] == inaccurate_rows ? 1e-5F : 0.0F;
    return ticking("tricky relu", m.output(), 0.005, 1e-5, [=](float x) { return x > 0 ? x + fault : 0.0F; });
  }
};
using with_trick = c::backend_set<tricky, eager, steady>;
using both = c::backend_set<eager, steady>;
using all_three = c::backend_set<brittle, eager, steady>;

/// relu and neg in turn, over matrices of 64 columns.
c::graph chain(std::int64_t rows, int length = 4) {
  c::graph_builder g;
  c::value x = g.input("x", {c::dtype::f32, {rows, 64}});
  for (int i = 0; i < length; ++i) x = i % 2 == 0 ? g(op::relu, x) : g(op::neg, x);
  g.output("y", x);
  return g.finish();
}
c::place_options measuring(const std::string& store) {
  c::place_options o = collage_test::clock_options(now_ms);
  o.store = store;
  return o;
}
c::place_options estimating(const std::string& store, double check_s = 0) {
  c::place_options o = measuring(store);
  o.costs = c::placing_costs::estimated;
  o.check_s = check_s;
  return o;
}
std::map<std::string, std::string> patterns_in(const std::string& store) {
  std::map<std::string, std::string> found;
  for (const c::stored_entry& e : c::cost_store(store).list())
    if (e.key.backend != "machine") found[e.id] = e.key.pattern;
  return found;
}

class estimated_plans : public testing::Test {
 protected:
  void SetUp() override { wrong_rows = unbuildable_rows = inaccurate_rows = 0; }
  std::string store() const { return files_.path("costs.db"); }
  const collage_test::temporary_folder files_;
};

TEST_F(estimated_plans, take_what_is_faster_between_the_measured_shapes) {
  for (const std::int64_t rows : {4, 64}) (void)c::place<both>(chain(rows), measuring(store()));
  const auto before = patterns_in(store());
  EXPECT_EQ(before.size(), 8U);
  const double clock = now_ms;
  for (const std::int64_t rows : {6, 12, 14, 21, 24, 40, 128, 1}) {
    const c::graph network = chain(rows);
    calls = builds = 0;
    const c::placed_plan made = c::place<both>(network, estimating(store()));
    EXPECT_EQ(calls, 0U);
    EXPECT_EQ(builds, 2U);  // of relu and neg, to see that they can be built
    const double count = 64 * static_cast<double>(rows), eager_ms = 0.01 + 1e-3 * count, steady_ms = 1 + 1e-4 * count;
    for (const c::plan_group& g : made.chosen.groups) {
      EXPECT_EQ(g.backend(), eager_ms < steady_ms ? "eager" : "steady") << rows;
      EXPECT_NEAR(g.cost_ms, std::min(eager_ms, steady_ms), 0.12 * g.cost_ms) << rows;
      EXPECT_EQ(g.estimate.rfind(rows < 4 || rows > 64 ? "extrapolated" : "interpolated", 0), 0U) << g.estimate;
      EXPECT_GE(g.regret_ms, 0);
    }
    EXPECT_EQ(made.origin, c::by_estimates_run);
    EXPECT_TRUE(made.optimal);
    EXPECT_TRUE(made.runs.empty());
    EXPECT_EQ(made.report.interpolated, 4U);
    EXPECT_EQ(made.report.distinct, 4U);
    EXPECT_EQ(made.report.unchecked, 2U);
    // Files and pages have what it rests on.
    const c::plan read = c::plan_from_json(c::plan_to_json(made, network), network, "file");
    EXPECT_EQ(read.chosen.groups[1].estimate, made.chosen.groups[1].estimate);
    const std::string page = c::explain(network, made);
    EXPECT_NE(page.find("By estimates, the groups cost "), std::string::npos) << page;
    EXPECT_NE(page.find(made.chosen.groups[0].estimate.substr(0, 30)), std::string::npos) << page;
    EXPECT_EQ(c::verify<both>(network, made).why(), "");
  }
  EXPECT_EQ(now_ms > clock, true);  // verifying ran them
  EXPECT_EQ(patterns_in(store()), before);
  // At a measured shape nothing is estimated, and nothing is built.
  builds = 0;
  const c::cost_index costs(c::cost_store(store()).list());
  c::place_options without_runs = estimating(store());
  without_runs.index = &costs;
  const c::placed_plan known = c::place<both>(chain(64), without_runs);
  EXPECT_EQ(builds, 0U);
  EXPECT_EQ(known.report.from_store, 4U);
  EXPECT_EQ(known.chosen.groups[0].estimate, "");
  EXPECT_EQ(c::explain(chain(64), known).find("Estimated costs"), std::string::npos);
}

TEST_F(estimated_plans, of_a_tuned_shape_are_the_tuned_plan) {
  const c::placed_plan tuned = c::place<both>(chain(12), measuring(store()));
  ASSERT_FALSE(tuned.runs.empty());
  calls = builds = 0;
  const auto estimated = [&](const c::place_options& how) { return c::place<both>(chain(12), how); };
  const c::placed_plan found = estimated(estimating(store()));
  EXPECT_EQ(calls + builds, 0U);
  EXPECT_TRUE(found.report.compared_before);
  EXPECT_EQ(found.origin, tuned.origin);
  EXPECT_EQ(found.runs.size(), tuned.runs.size());
  EXPECT_EQ(c::plan_to_json(found, chain(12))["groups"], c::plan_to_json(tuned, chain(12))["groups"]);
  EXPECT_EQ(c::verify<both>(chain(12), found).why(), "");
  // A constraint, another set and another number of threads want another plan.
  c::place_options other = estimating(store());
  other.rules = {{c::place_rule::action::exclude, found.chosen.groups[0].backend(), "relu"}};
  EXPECT_FALSE(estimated(other).report.compared_before);
  EXPECT_NE(estimated(other).chosen.groups[0].backend(), found.chosen.groups[0].backend());
  other = estimating(store());
  other.threads = 2;
  EXPECT_FALSE(estimated(other).report.compared_before);
  EXPECT_FALSE(c::place<c::backend_set<eager>>(chain(12), estimating(store())).report.compared_before);
}

TEST_F(estimated_plans, of_a_shape_whose_comparison_ended_early_are_the_best_that_ran) {
  c::place_options how = measuring(store());
  int better = 0;
  how.improved = [&](const c::plan&) { ++better; };
  how.stop = [&] { return better >= 2; };  // once placements have run
  const c::placed_plan tuned = c::place<both>(chain(12), how);
  ASSERT_TRUE(tuned.report.interrupted);
  ASSERT_FALSE(tuned.runs.empty());
  const c::placed_plan found = c::place<both>(chain(12), estimating(store()));
  EXPECT_TRUE(found.report.compared_before);
  EXPECT_EQ(found.runs.size(), tuned.runs.size());
  // Tuning goes on all the same.
  EXPECT_FALSE(c::place<both>(chain(12), measuring(store())).report.compared_before);
}

TEST_F(estimated_plans, use_an_index_that_was_read_before) {
  for (const std::int64_t rows : {4, 64}) (void)c::place<both>(chain(rows), measuring(store()));
  const c::cost_index index(store());
  c::place_options how = estimating("");
  how.index = &index;
  EXPECT_EQ(c::place<both>(chain(10), how).chosen.groups[0].backend(), "eager");
  EXPECT_EQ(c::place<both>(chain(30), how).chosen.groups[0].backend(), "steady");
}

TEST_F(estimated_plans, compare_kernels_for_as_long_as_they_may) {
  for (const std::int64_t rows : {4, 64}) (void)c::place<both>(chain(rows), measuring(store()));
  const auto before = patterns_in(store());
  calls = 0;
  const c::placed_plan made = c::place<both>(chain(10), estimating(store(), 5));
  EXPECT_EQ(made.report.checked, 2U);
  EXPECT_GT(calls, 0U);
  std::size_t checks = 0;
  for (const auto& [id, pattern] : patterns_in(store()))
    if (before.count(id) == 0) checks += pattern.rfind("check of ", 0) == 0 ? 1 : 1000;
  EXPECT_EQ(checks, 2U);  // no cost among what is new
  EXPECT_EQ(c::place<both>(chain(10), estimating(store(), 5)).report.checked, 0U);
}

TEST_F(estimated_plans, do_not_take_unchecked_what_was_refused_at_another_shape) {
  wrong_rows = 64;
  for (const std::int64_t rows : {4, 32, 64}) (void)c::place<all_three>(chain(rows), measuring(store()));
  const auto runs_relu = [](const c::plan& made) { return made.chosen.groups[0].backend(); };
  const c::placed_plan unchecked = c::place<all_three>(chain(16), estimating(store()));
  EXPECT_EQ(runs_relu(unchecked), "eager");
  EXPECT_EQ(runs_relu(c::place<all_three>(chain(16), estimating(store(), 5))), "brittle");
  EXPECT_EQ(runs_relu(c::place<all_three>(chain(32), estimating(store()))), "brittle");  // it was measured there
  EXPECT_EQ(runs_relu(c::place<all_three>(chain(64), estimating(store()))), "steady");   // and refused here
  wrong_rows = 20;
  EXPECT_EQ(runs_relu(c::place<all_three>(chain(20), estimating(store(), 5))), "steady");
}

TEST_F(estimated_plans, do_without_kernels_that_cannot_be_built) {
  for (const std::int64_t rows : {4, 64}) (void)c::place<all_three>(chain(rows), measuring(store()));
  EXPECT_EQ(c::place<all_three>(chain(16), estimating(store())).chosen.groups[0].backend(), "brittle");
  unbuildable_rows = 16;
  const c::placed_plan made = c::place<all_three>(chain(16), estimating(store()));
  EXPECT_EQ(made.chosen.groups[0].backend(), "eager");
  EXPECT_EQ(made.report.refused, 1U);
}

TEST_F(estimated_plans, take_other_algorithms_where_they_were_accurate) {
  const auto runs_relu = [&](std::int64_t rows, double check_s = 5) {
    return c::place<with_trick>(chain(rows), estimating(store(), check_s)).chosen.groups[0].backend();
  };
  EXPECT_NE(runs_relu(16), "tricky");  // measured at no size
  for (const std::int64_t rows : {4, 64}) (void)c::place<with_trick>(chain(rows), measuring(store()));
  EXPECT_EQ(runs_relu(16), "tricky");
  EXPECT_EQ(runs_relu(17, 0), "tricky");
  inaccurate_rows = 32;
  (void)c::place<with_trick>(chain(32), measuring(store()));
  EXPECT_NE(runs_relu(32), "tricky");
  EXPECT_NE(runs_relu(18), "tricky");  // though a comparison with the reference would find nothing
  EXPECT_EQ(runs_relu(64), "tricky");
}

TEST_F(estimated_plans, follow_the_order_of_backends_where_the_store_is_empty) {
  for (const std::string& file : {std::string(), store()}) {
    const c::graph network = chain(10);
    const c::placed_plan made = c::place<both>(network, estimating(file));
    EXPECT_EQ(made.chosen.groups.size(), 4U);
    EXPECT_EQ(made.origin, "priority");
    EXPECT_EQ(made.report.modelled, 0U);
    c::place_options by_priority = estimating(file);
    by_priority.costs = c::placing_costs::none;
    EXPECT_EQ(c::to_text(c::plan_to_json(made, network)),
              c::to_text(c::plan_to_json(c::place<both>(network, by_priority), network)));
    EXPECT_EQ(c::verify<both>(network, made).why(), "");
  }
  // Kernels that only run where no other does are no fault of an empty store.
  c::graph_builder g;
  const c::value x = g.input("x", {c::dtype::f64, {4, 4}});
  g.output("y", g(op::matmul, x, x));
  const c::graph large = g.finish();
  const c::plan by_fallback = c::place<c::backend_set<c::portable>>(large, estimating(store()));
  EXPECT_EQ(c::verify<c::backend_set<c::portable>>(large, by_fallback).why(), "");
  c::place_options broken = estimating(files_.write("no store", "text.db"));
  EXPECT_THROW((void)c::place<both>(chain(10), broken), c::error);
  broken.store_is_optional = true;
  EXPECT_NE(c::place<both>(chain(10), broken).report.unstored, "");
}

TEST_F(estimated_plans, come_at_once_without_time) {
  (void)c::place<both>(chain(4), measuring(store()));
  c::place_options how = estimating(store(), 5);
  how.stop = [] { return true; };
  EXPECT_EQ(c::place<both>(chain(10, 40), how).chosen.groups.size(), 40U);
  how.stop = {};
  how.budget_s = 1e-9;
  const c::placed_plan made = c::place<both>(chain(11, 40), how);
  EXPECT_EQ(made.chosen.groups.size(), 40U);
  EXPECT_EQ(made.report.checked, 0U);
}

TEST_F(estimated_plans, are_the_cheapest_by_complete_costs) {
  using collage_test::simulated_machine;
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    const c::graph network = collage_test::simulated_network(seed, 16);
    simulated_machine machine({.seed = seed});
    c::place_options how = machine.options();
    how.store = files_.path(std::to_string(seed) + ".db");
    how.measuring.complete = true;
    const c::placed_plan measured = c::place<collage_test::simulated_set>(network, how);
    how.costs = c::placing_costs::estimated;
    const c::cost_index costs(c::cost_store(how.store).list());  // without the tuned plan
    how.index = &costs;
    const c::placed_plan estimated = c::place<collage_test::simulated_set>(network, how);
    EXPECT_EQ(estimated.report.from_store + estimated.report.refused, estimated.report.distinct);
    EXPECT_NEAR(estimated.chosen.cost_ms, measured.first_cost_ms, 1e-9);
  }
}

TEST_F(estimated_plans, of_random_networks_without_a_store_are_right) {
  using collage_test::simulated_set;
  const collage_test::simulated_machine machine;
  for (std::uint64_t seed = 20; seed < 26; ++seed) {
    const c::graph network = collage_test::simulated_network(seed, 24, true);
    c::place_options how;
    how.threads = 1;
    how.costs = c::placing_costs::estimated;
    const c::placed_plan made = c::place<simulated_set>(network, how);
    EXPECT_EQ(c::verify<simulated_set>(network, made).why(), "") << seed;
  }
}

}  // namespace place_estimates_test
