// Layouts: how values lie in them, conversions in engines and plans, and placing that chooses between them.
#include <collage/backend.hpp>
#include <collage/backend_set.hpp>
#include <collage/error.hpp>
#include <collage/graph/graph.hpp>
#include <collage/io/file.hpp>
#include <collage/io/json.hpp>
#include <collage/io/plan_file.hpp>
#include <collage/layout.hpp>
#include <collage/measure/time_source.hpp>
#include <collage/op/convert_layout.hpp>
#include <collage/ops.hpp>
#include <collage/pattern/single.hpp>
#include <collage/place.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/buffers.hpp>
#include <collage/run/engine.hpp>
#include <collage/run/kernel.hpp>
#include <collage/run/layouts.hpp>
#include <collage/run/plan.hpp>
#include <collage/run/verify.hpp>
#include <collage/search/alternatives.hpp>
#include <collage/search/node_set.hpp>
#include <collage/search/problem.hpp>

#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

namespace c = collage;
namespace op = collage::ops;

// ---- Memory -----------------------------------------------------------------------------------------------------------

template <class T>
std::vector<std::byte> bytes_of(const std::vector<T>& numbers) {
  std::vector<std::byte> bytes(numbers.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return bytes;
}

TEST(layouts, there_and_back_is_the_same) {
  const std::vector<std::vector<std::int64_t>> shapes = {
      {1, 3, 4, 5},    {2, 16, 3, 3}, {1, 17, 2, 2}, {3, 1, 1, 1},     {1, 8, 7},
      {2, 5, 2, 3, 4}, {1, 0, 4, 4},  {0, 16, 2, 2}, {1, 33, 1, 1, 1}, {4, 9}};
  for (const auto& extents : shapes)
    for (const c::layout& order : c::shared_layouts) {
      c::tensor_type type{c::dtype::f32, {}};
      for (const std::int64_t extent : extents) type.dims.push_back(extent);
      std::vector<float> numbers(static_cast<std::size_t>(type.dims.elements()));
      std::iota(numbers.begin(), numbers.end(), 1.0F);
      const std::vector<std::byte> plain = bytes_of(numbers);
      std::vector<std::byte> other(c::bytes_in(type, order), std::byte{0xFF}), back(plain.size(), std::byte{0xFF});
      c::from_plain(type, order, plain.data(), other.data());
      EXPECT_TRUE(c::is_filled_with_zeros(type, order, other.data())) << order.name;
      c::to_plain(type, order, other.data(), back.data());
      EXPECT_EQ(back, plain) << order.name;
    }
}

TEST(layouts, elements_lie_where_the_names_say) {
  const c::tensor_type type{c::dtype::f32, {1, 10, 1, 2}};
  std::vector<float> numbers(20);  // channel c, place p: 10 p + c
  for (std::size_t channel = 0; channel < 10; ++channel)
    for (std::size_t place = 0; place < 2; ++place)
      numbers[2 * channel + place] = static_cast<float>(10 * place + channel);
  const std::vector<std::byte> plain = bytes_of(numbers);
  const auto laid_out = [&](const c::layout& order) {
    std::vector<float> made(c::bytes_in(type, order) / sizeof(float));
    c::from_plain(type, order, plain.data(), reinterpret_cast<std::byte*>(made.data()));
    return made;
  };
  std::vector<float> last(20);
  std::iota(last.begin(), last.end(), 0.0F);
  EXPECT_EQ(laid_out(c::channels_last), last);
  EXPECT_EQ(laid_out(c::blocked_8),
            (std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12, 13, 14, 15, 16, 17,  // the first block, both places
                                8, 9, 0, 0, 0, 0, 0, 0, 18, 19, 0,  0,  0,  0,  0,  0}));
  EXPECT_EQ(laid_out(c::blocked_16).size(), 32U);
}

TEST(layouts, what_fills_up_blocks_must_be_zero) {
  const c::tensor_type type{c::dtype::f32, {2, 10, 3}};
  std::vector<float> made(c::bytes_in(type, c::blocked_8) / sizeof(float), 0.0F);
  auto* const bytes = reinterpret_cast<std::byte*>(made.data());
  EXPECT_TRUE(c::is_filled_with_zeros(type, c::blocked_8, bytes));
  made[3 * 8 + 1] = 1;  // a channel that is there
  EXPECT_TRUE(c::is_filled_with_zeros(type, c::blocked_8, bytes));
  made[3 * 8 + 2] = 1;
  EXPECT_FALSE(c::is_filled_with_zeros(type, c::blocked_8, bytes));
}

TEST(layouts, tensors_without_channels_have_none) {
  EXPECT_THROW((void)c::bytes_in({c::dtype::f32, {4}}, c::blocked_8), c::error);
  EXPECT_THROW((void)c::bytes_in({c::dtype::f32, {1, 4, 2}}, c::layout("a library's own")), c::error);
}

// ---- A backend that works faster on blocks ----------------------------------------------------------------------------

/// What kernels take, on a clock that stands still otherwise.
double now_ms = 0;
constexpr double plain_relu_ms = 10, blocked_relu_ms = 4, neg_ms = 3, conversion_ms = 5;

struct blocks : c::backend<"blocks"> {
  using patterns = c::patterns<c::single<op::relu>, c::single<op::neg>, c::single<op::convert_layout>>;
  static inline bool forgets_zeros = false, packs_wrongly = false;

  static std::size_t choices(const c::match<c::single<op::relu>>&) { return 2; }
  static std::size_t choices(const c::match<c::single<op::convert_layout>>&) { return 2; }
  static void layouts(const c::match<c::single<op::relu>>& m, std::size_t choice, c::value_layouts& to) {
    if (choice == 0) return;
    to.set(m.record().argument[0], c::blocked_8);
    to.set(m.record().output[0], c::blocked_8);
  }
  static void layouts(const c::match<c::single<op::convert_layout>>& m, std::size_t choice, c::value_layouts& to) {
    to.set(choice == 0 ? m.record().output[0] : m.record().argument[0], c::blocked_8);
  }

  static c::kernel build(const c::match<c::single<op::relu>>& m, c::build_context& context) {
    const c::tensor_type type = m.graph().values[m.record().output[0]].type;
    const bool plain = context.choice() == 0;
    const std::size_t count = c::bytes_in(type, plain ? c::plain : c::blocked_8) / sizeof(float);
    return {plain ? "relu" : "relu of blocks", [=](const c::kernel_call& call) {
              const auto* from = static_cast<const float*>(call.in[0]);
              auto* to = static_cast<float*>(call.out[0]);
              for (std::size_t i = 0; i < count; ++i) to[i] = from[i] < 0 ? 0 : from[i];
              if (forgets_zeros && !plain) to[count - 1] = 1;
              now_ms += plain ? plain_relu_ms : blocked_relu_ms;
            }};
  }
  static c::kernel build(const c::match<c::single<op::neg>>& m, c::build_context&) {
    const auto count = static_cast<std::size_t>(m.graph().values[m.record().output[0]].type.dims.elements());
    return {"neg", [=](const c::kernel_call& call) {
              for (std::size_t i = 0; i < count; ++i)
                static_cast<float*>(call.out[0])[i] = -static_cast<const float*>(call.in[0])[i];
              now_ms += neg_ms;
            }};
  }
  static c::kernel build(const c::match<c::single<op::convert_layout>>& m, c::build_context& context) {
    const c::tensor_type type = m.graph().values[m.record().output[0]].type;
    const bool packs = context.choice() == 0;
    return {packs ? "pack" : "unpack", [=](const c::kernel_call& call) {
              const auto* from = static_cast<const std::byte*>(call.in[0]);
              auto* to = static_cast<std::byte*>(call.out[0]);
              if (packs) c::from_plain(type, c::blocked_8, from, to);
              if (packs && packs_wrongly) std::memset(to, 1, 4);
              if (!packs) c::to_plain(type, c::blocked_8, from, to);
              now_ms += conversion_ms;
            }};
  }
};
using set = c::backend_set<blocks>;

c::value input(c::graph_builder& g) { return g.input("x", {c::dtype::f32, {1, 10, 3, 3}}); }
c::value relus(c::graph_builder& g, c::value x, int count) {
  for (int i = 0; i < count; ++i) x = g(op::relu, x);
  return x;
}

c::place_options exact_clock() {
  c::place_options o;
  o.threads = 1;
  o.workers = false;
  o.compare_s = 0.2;
  o.timing.rounds = 3;
  o.time = {[] { return now_ms; }, [](double ms) { now_ms += ms; }, [] { return std::uint64_t{0}; }};
  return o;
}

std::size_t steps_in_blocks(const c::placement& p) {
  return static_cast<std::size_t>(
      std::ranges::count_if(p.groups, [](const c::plan_group& g) { return g.layout == "blocked-8"; }));
}

// ---- Engines ----------------------------------------------------------------------------------------------------------

c::plan_group group(std::vector<std::uint32_t> nodes, const std::string& pattern, std::size_t choice) {
  c::plan_group g;
  g.backend = "blocks";
  g.pattern = pattern;
  g.choice = choice;
  g.nodes = std::move(nodes);
  return g;
}
c::plan_conversion conversion(std::uint32_t value, const c::layout& from, const c::layout& to) {
  return {value, from, to, "blocks", to == c::plain ? 1U : 0U, "", 0};
}

/// relu, relu, neg of the first, and the second as a result: value 1 is read in both layouts, value 2 leaves the network.
c::graph forked() {
  c::graph_builder g;
  const c::value x = input(g);
  const c::value a = g(op::relu, x), b = g(op::relu, a);
  g.output("b", b);
  g.output("n", g(op::neg, a));
  return g.finish();
}

TEST(layouts, engines_convert_what_is_read_otherwise) {
  const c::graph network = forked();
  const std::uint32_t x = network.inputs()[0], a = network.view().output_of(0), b = network.view().output_of(1);
  c::placement p;
  p.groups = {group({0}, "relu", 1), group({1}, "relu", 1), group({2}, "neg", 0)};
  p.conversions = {conversion(x, c::plain, c::blocked_8), conversion(a, c::blocked_8, c::plain),
                   conversion(b, c::blocked_8, c::plain)};
  const c::dynamic_engine engine(network, p, c::table_of<set>, 1);
  ASSERT_EQ(engine.steps().size(), 6U);
  EXPECT_EQ(engine.steps()[0].pattern, "convert_layout");
  EXPECT_EQ(engine.steps()[0].label, "x");
  EXPECT_TRUE(engine.steps()[0].nodes.empty());
  EXPECT_EQ(engine.steps()[0].written, c::blocked_8);
  EXPECT_EQ(engine.steps()[1].written, c::blocked_8);
  c::run_buffers memory(network);
  memory.randomise(7);
  c::dynamic_context context = engine.context();
  context.run(memory.inputs, memory.outputs);
  const auto in = memory.in[0].as<float>(), second = memory.out[0].as<float>(), negative = memory.out[1].as<float>();
  for (std::size_t i = 0; i < in.size(); ++i) {
    EXPECT_EQ(second[i], std::max(in[i], 0.0F));
    EXPECT_EQ(negative[i], -std::max(in[i], 0.0F));
  }
  EXPECT_EQ(context.layout_of(a), c::blocked_8);
  EXPECT_EQ(context.layout_of(network.outputs()[1]), c::plain);
  EXPECT_GE(engine.arena_bytes(), c::bytes_in(network.type_of(a), c::blocked_8));
}

TEST(layouts, engines_refuse_plans_that_convert_too_little_or_otherwise) {
  const c::graph network = forked();
  const std::uint32_t x = network.inputs()[0], a = network.view().output_of(0), b = network.view().output_of(1);
  c::placement good;
  good.groups = {group({0}, "relu", 1), group({1}, "relu", 1), group({2}, "neg", 0)};
  good.conversions = {conversion(x, c::plain, c::blocked_8), conversion(a, c::blocked_8, c::plain),
                      conversion(b, c::blocked_8, c::plain)};
  const auto why = [&](const c::placement& p) -> std::string {
    try {
      const c::dynamic_engine engine(network, p, c::table_of<set>, 1);
      return "";
    } catch (const c::error& e) { return e.what(); }
  };
  EXPECT_EQ(why(good), "");
  for (std::size_t i = 0; i < 3; ++i) {
    c::placement p = good;
    p.conversions.erase(p.conversions.begin() + static_cast<std::ptrdiff_t>(i));
    EXPECT_NE(why(p).find("not converted"), std::string::npos) << why(p);
  }
  c::placement p = good;
  p.conversions[0].from = c::channels_last;
  EXPECT_NE(why(p).find("not converted"), std::string::npos) << why(p);
  p = good;
  p.conversions[1].choice = 0;
  EXPECT_NE(why(p).find("converts other layouts"), std::string::npos) << why(p);
  p.conversions[1].choice = 2;
  EXPECT_NE(why(p).find("does not convert it"), std::string::npos) << why(p);
  p = good;
  p.conversions[2].backend = "nobody";
  EXPECT_NE(why(p).find("not in this program's set"), std::string::npos) << why(p);
}

// ---- Placing ----------------------------------------------------------------------------------------------------------

TEST(layouts, placing_converts_where_it_pays) {
  for (int count = 1; count <= 6; ++count) {
    c::graph_builder g;
    g.output("y", g(op::neg, relus(g, input(g), count)));
    const c::graph network = g.finish();
    const c::plan made = c::place<set>(network, exact_clock());
    const bool pays = 2 * conversion_ms + count * blocked_relu_ms < count * plain_relu_ms;
    EXPECT_EQ(steps_in_blocks(made.chosen), pays ? static_cast<std::size_t>(count) : 0U) << count;
    EXPECT_EQ(made.chosen.conversions.size(), pays ? 2U : 0U) << count;
    const double cost = neg_ms + (pays ? 2 * conversion_ms + count * blocked_relu_ms : count * plain_relu_ms);
    EXPECT_NEAR(made.chosen.cost_ms, cost, 1e-6) << count;
    EXPECT_NEAR(made.runs[0].median_ms, cost, 1e-6) << count;
    EXPECT_NEAR(made.lower_bound_ms, cost, 1e-6) << count;
    EXPECT_TRUE(made.optimal);
    EXPECT_EQ(made.origin, "search");
    const c::verification found = c::verify<set>(network, made);
    EXPECT_TRUE(found) << found.why();
    if (!pays) continue;
    EXPECT_EQ(made.chosen.conversions[0].kernel, "pack");
    EXPECT_EQ(made.chosen.conversions[1].kernel, "unpack");
    EXPECT_DOUBLE_EQ(made.chosen.conversions[0].cost_ms, conversion_ms);
  }
}

TEST(layouts, a_preference_is_worth_any_conversion) {
  c::search::problem p{.nodes = 2, .edges = {{0, 1}}, .candidates = {}, .outputs = {1}, .layouts = 2};
  p.values = {{.producer = 0, .readers = {1}, .is_output = false, .convert_ms = {0, 50, 50, 0}}};
  p.candidates.push_back({c::search::node_set{0}, 1});
  p.candidates.back().borders = {{0, 1}};
  p.candidates.push_back({c::search::node_set{0}, 1});
  p.candidates.push_back({c::search::node_set{1}, 1});
  const std::uint32_t rank[] = {0, 1, 0};
  const c::search::placement found = c::search::exact_by_rank(p, rank);
  EXPECT_EQ(found.chosen, (std::vector<std::uint32_t>{0, 2}));
  EXPECT_DOUBLE_EQ(found.cost_ms, 52);
}

TEST(layouts, readers_share_a_conversion) {
  c::graph_builder g;
  const c::value a = relus(g, input(g), 4);
  g.output("first", g(op::neg, a));
  g.output("second", g(op::neg, a));
  g.output("third", relus(g, a, 3));
  const c::graph network = g.finish();
  const c::plan made = c::place<set>(network, exact_clock());
  EXPECT_EQ(steps_in_blocks(made.chosen), 7U);
  EXPECT_EQ(made.chosen.conversions.size(), 3U);  // x, a and the third result
  EXPECT_NEAR(made.chosen.cost_ms, 7 * blocked_relu_ms + 2 * neg_ms + 3 * conversion_ms, 1e-6);
  EXPECT_NEAR(made.runs[0].median_ms, made.chosen.cost_ms, 1e-6);
  EXPECT_TRUE(c::verify<set>(network, made));
}

TEST(layouts, views_are_of_plain_values) {
  c::graph_builder g;
  const c::value a = relus(g, input(g), 4);
  const c::value flat = g(op::reshape, a, {.dims = {1, 90}});
  g.output("y", g(op::neg, flat));
  const c::graph network = g.finish();
  const c::plan made = c::place<set>(network, exact_clock());
  EXPECT_EQ(steps_in_blocks(made.chosen), 4U);
  EXPECT_EQ(made.chosen.conversions.size(), 2U);
  const c::verification found = c::verify<set>(network, made);
  EXPECT_TRUE(found) << found.why();
}

/// A network for which blocks would pay, placed.
c::plan six_relus(c::place_report& report) {
  c::graph_builder g;
  g.output("y", relus(g, input(g), 6));
  c::place_options o = exact_clock();
  o.report = &report;
  return c::place<set>(g.finish(), o);
}

TEST(layouts, kernels_that_leave_rubbish_behind_the_channels_are_refused) {
  blocks::forgets_zeros = true;
  c::place_report report;
  const c::plan made = six_relus(report);
  blocks::forgets_zeros = false;
  EXPECT_EQ(steps_in_blocks(made.chosen), 0U);
  EXPECT_TRUE(std::ranges::any_of(report.refusals, [](const c::place_refusal& r) {
    return r.reason.find("what fills up the blocks of blocked-8 is not zero") != std::string::npos;
  }));
}

TEST(layouts, what_nobody_converts_any_more_is_not_used) {
  blocks::packs_wrongly = true;
  c::place_report report;
  const c::plan made = six_relus(report);
  blocks::packs_wrongly = false;
  EXPECT_EQ(steps_in_blocks(made.chosen), 0U);
  EXPECT_TRUE(made.chosen.conversions.empty());
  EXPECT_TRUE(std::ranges::any_of(report.refusals, [](const c::place_refusal& r) {
    return r.pattern == "convert_layout" && r.reason.starts_with("wrong result");
  }));
}

TEST(layouts, rules_hold_for_conversions) {
  c::graph_builder g;
  g.output("y", relus(g, input(g), 6));
  const c::graph network = g.finish();
  c::place_options o = exact_clock();
  o.rules = {{c::place_rule::action::exclude, "blocks", "convert_layout"}};
  EXPECT_EQ(steps_in_blocks(c::place<set>(network, o).chosen), 0U);
  o.rules = {{c::place_rule::action::pin, "blocks", "convert_layout"}};
  EXPECT_EQ(steps_in_blocks(c::place<set>(network, o).chosen), 6U);
}

TEST(layouts, values_without_channels_stay_plain) {
  c::graph_builder g;
  g.output("y", relus(g, input(g), 5));
  g.output("z", g(op::relu, g.input("row", {c::dtype::f32, {7}})));
  const c::plan made = c::place<set>(g.finish(), exact_clock());
  EXPECT_EQ(steps_in_blocks(made.chosen), 5U);
  c::value_layouts said;
  said.set(3, c::blocked_8);
  said.set(3, c::plain);
  EXPECT_TRUE(said.list().empty());
}

TEST(layouts, plans_without_measuring_have_no_costs) {
  c::graph_builder g;
  g.output("y", g(op::neg, relus(g, input(g), 3)));
  const c::graph network = g.finish();
  c::place_options o = exact_clock();
  o.measure = false;
  const c::plan made = c::place<set>(network, o);
  EXPECT_EQ(made.chosen.cost_ms, 0);
  for (const c::plan_conversion& x : made.chosen.conversions) EXPECT_EQ(x.cost_ms, 0);
  EXPECT_TRUE(c::verify<set>(network, made));
}

/// Takes the same operators, in plain values alone.
struct plain_loops : c::backend<"plain_loops"> {
  using patterns = c::patterns<c::single<op::relu>, c::single<op::neg>>;
  template <class P>
  static c::kernel build(const c::match<P>& m, c::build_context&) {
    const auto count = static_cast<std::size_t>(m.graph().values[m.record().output[0]].type.dims.elements());
    return {"loop", [=](const c::kernel_call& call) {
              const auto* from = static_cast<const float*>(call.in[0]);
              auto* to = static_cast<float*>(call.out[0]);
              for (std::size_t i = 0; i < count; ++i)
                to[i] = std::is_same_v<P, c::single<op::neg>> ? -from[i] : from[i] < 0 ? 0 : from[i];
              now_ms += 20;
            }};
  }
};

TEST(layouts, previous_plans_may_have_conversions_that_are_no_more) {
  using both = c::backend_set<blocks, plain_loops>;
  c::graph_builder g;
  g.output("y", g(op::neg, relus(g, input(g), 5)));
  const c::graph network = g.finish();
  const c::plan before = c::place<both>(network, exact_clock());
  ASSERT_EQ(before.chosen.conversions.size(), 2U);
  c::place_options o = exact_clock();
  o.previous = &before;
  const c::plan again = c::place<both>(network, o);
  EXPECT_EQ(again.chosen.conversions.size(), 2U);
  o.rules = {{c::place_rule::action::exclude, "blocks", "convert_layout"}};
  const c::plan without = c::place<both>(network, o);  // the previous one still runs, and is faster
  EXPECT_EQ(without.origin, "previous");
  EXPECT_TRUE(c::verify<both>(network, without));
  o.rules.clear();
  o.backends = {"plain_loops"};
  const c::plan alone = c::place<both>(network, o);  // of what may be used now
  EXPECT_TRUE(alone.chosen.conversions.empty());
  for (const c::plan_group& x : alone.chosen.groups) EXPECT_EQ(x.backend, "plain_loops");
}

TEST(layouts, plans_and_stores_keep_them) {
  const auto folder = std::filesystem::temp_directory_path() / ("collage_layouts_" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  c::graph_builder g;
  g.output("y", g(op::neg, relus(g, input(g), 5)));
  const c::graph network = g.finish();
  c::place_options o = exact_clock();
  o.store = (folder / "costs.db").string();
  c::place_report report;
  o.report = &report;
  const c::plan made = c::place<set>(network, o);
  EXPECT_GT(report.measured, 0U);
  const c::plan again = c::place<set>(network, o);
  EXPECT_EQ(report.measured, 0U);
  EXPECT_EQ(c::plan_to_json(again, network), c::plan_to_json(made, network));

  const std::string path = (folder / "plan.json").string();
  c::save_plan(made, network, path);
  const c::plan read = c::load_plan(path, network);
  EXPECT_EQ(c::plan_to_json(read, network), c::plan_to_json(made, network));
  EXPECT_TRUE(c::verify<set>(network, read));

  c::json wrong = c::plan_to_json(made, network);
  wrong["chosen"]["conversions"][0]["from"] = "spiral";
  EXPECT_THROW((void)c::plan_from_json(wrong, network, "plan.json"), c::error);
  wrong = c::plan_to_json(made, network);
  wrong["chosen"]["conversions"][0]["value"] = {999, "x"};
  EXPECT_THROW((void)c::plan_from_json(wrong, network, "plan.json"), c::error);
  std::filesystem::remove_all(folder);
}

}  // namespace
