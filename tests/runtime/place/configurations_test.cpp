// Configurations: their texts, candidates that a backend proposes by them, and plans and stores that hold them.
#include <collage/backend.hpp>
#include <collage/backend_set.hpp>
#include <collage/error.hpp>
#include <collage/graph/graph.hpp>
#include <collage/io/file.hpp>
#include <collage/io/json.hpp>
#include <collage/io/plan_file.hpp>
#include <collage/layout.hpp>
#include <collage/measure/store.hpp>
#include <collage/op/convert_layout.hpp>
#include <collage/ops.hpp>
#include <collage/pattern/single.hpp>
#include <collage/place.hpp>
#include <collage/place/candidates.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/configuration.hpp>
#include <collage/run/engine.hpp>
#include <collage/run/kernel.hpp>
#include <collage/run/layouts.hpp>
#include <collage/run/plan.hpp>
#include <collage/run/program.hpp>
#include <collage/run/verify.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/files.hpp"
#include "support/messages.hpp"
#include "support/placing.hpp"
#include "support/plan_making.hpp"

namespace place_configurations_test {

namespace c = collage;
namespace op = collage::ops;
using collage_test::conversion_by;
using collage_test::kernel_group;
using collage_test::kernel_of;
using collage_test::message_of;

using relu = c::single<op::relu>;
using neg = c::single<op::neg>;
using convert = c::single<op::convert_layout>;

c::configuration named(std::string_view text) { return c::configuration::of(text).value(); }

// ---- Texts ------------------------------------------------------------------------------------------------------------

TEST(configurations, are_read_as_they_are_written) {
  const std::string texts[] = {"0",
                               "4",
                               "4294967295",
                               "a",
                               "loop v2 unroll 4",
                               std::string(200, 'x'),
                               "winograd F(4,3) points 0,2/3,3/2 tiles 16 7x2 unroll 4 packed"};
  for (const std::string& text : texts) {
    const std::optional<c::configuration> read = c::configuration::of(text);
    ASSERT_TRUE(read) << text;
    EXPECT_EQ(read->text(), text);
    EXPECT_EQ(named(read->text()), *read);
    EXPECT_EQ(named(text).hash(), read->hash());
    EXPECT_EQ(std::hash<c::configuration>()(*read), static_cast<std::size_t>(read->hash()));
    for (const std::string& other : texts) EXPECT_EQ(named(other) == *read, other == text) << text << ", " << other;
  }
  EXPECT_EQ(c::configuration(), named("0"));
  EXPECT_EQ(c::configuration(17), named("17"));
  EXPECT_EQ(named("17").number(), 17U);
  EXPECT_EQ(named("17").hash(), 17U);
  EXPECT_FALSE(named("v17").number());
}

TEST(configurations, are_ordered_numbers_first) {
  std::vector<c::configuration> list;
  for (const char* text : {"b", "10", "a b", "2", "a", "0"}) list.push_back(named(text));
  std::ranges::sort(list);
  std::string text;
  for (const c::configuration& one : list) text += one.text() + ";";
  EXPECT_EQ(text, "0;2;10;a;a b;b;");
}

TEST(configurations, refuse_other_texts) {
  const std::string no_number = "it begins with no letter, and is no number from 0 to 4294967295 in its shortest form";
  const std::pair<std::string, std::string> refused[] = {
      {"", "it is empty"},
      {std::string(201, 'x'), "it has more than 200 characters"},
      {"two\nlines", "it has a character that is not printable ASCII"},
      {std::string("a\0b", 3), "it has a character that is not printable ASCII"},
      {"\x7F", "it has a character that is not printable ASCII"},
      {"größer", "it has a character that is not printable ASCII"},
      {"loop ", "it ends with a space"},
      {" loop", no_number},
      {"-1", no_number},
      {"01", no_number},
      {"1.5", no_number},
      {"4x4", no_number},
      {"4294967296", no_number},
      {"18446744073709551616", no_number}};
  for (const auto& [text, rule] : refused) {
    EXPECT_FALSE(c::configuration::of(text)) << text;
    const c::verdict why = c::configuration::judge(text);
    EXPECT_FALSE(why) << text;
    EXPECT_EQ(std::string(why.rule), rule) << text;
  }
}

// ---- A backend with a space of configurations -------------------------------------------------------------------------

/// The time of kernels, on a clock that stands still otherwise.
double now_ms = 0;

/// A point of the space of a generator of loops.
struct loop_point {
  static constexpr int generator = 2;  // another version may build something else from the same numbers

  int version = generator, unroll = 1;

  std::string text() const { return "loop v" + std::to_string(version) + " unroll " + std::to_string(unroll); }
  static std::optional<loop_point> read(const std::string& text) {
    loop_point point;
    if (std::sscanf(text.c_str(), "loop v%6d unroll %6d", &point.version, &point.unroll) != 2) return {};
    if (point.text() != text) return {};  // another spelling
    return point;
  }
};

template <class F>
c::kernel loop(std::string name, const c::bound_value& result, double ms, F f) {
  const auto count = static_cast<std::size_t>(result.out.elements());
  return {std::move(name), [=](const c::kernel_call& call) {
            for (std::size_t i = 0; i < count; ++i)
              static_cast<float*>(call.out[0])[i] = f(static_cast<const float*>(call.in[0])[i]);
            now_ms += ms;
          }};
}
float relu_of(float x) { return std::max(x, 0.0F); }

struct tiler : c::backend<"tiler"> {
  using patterns = c::patterns<relu, neg>;

  static void configurations(const c::match<relu>&, c::configuration_list& to) {
    for (const int unroll : {1, 4, 16}) to.add(loop_point{.unroll = unroll}.text());
  }
  static c::verdict knows(const c::match<relu>&, const c::configuration& how) {
    const std::optional<loop_point> point = loop_point::read(how.text());
    if (!point) return {false, "it is not of the form: loop vN unroll N"};
    return c::first_failure({{point->version == loop_point::generator, "it is of another version of the generator"},
                             {point->unroll <= 64, "it unrolls more than 64 times"}});
  }
  static c::kernel build(const c::match<relu>& m, c::build_context& context) {
    const loop_point point = loop_point::read(context.configuration().text()).value();
    if (point.unroll == 64) throw c::error(c::error_kind::unsupported, "it has too few registers", "this processor");
    return loop("relu in " + point.text(), m.output(), point.unroll == 4 ? 1 : point.unroll == 1 ? 3 : 2, relu_of);
  }

  static std::size_t choices(const c::match<neg>&) { return 2; }
  static c::kernel build(const c::match<neg>& m, c::build_context& context) {
    return loop("neg " + std::to_string(context.choice()), m.output(), context.choice() == 1 ? 1 : 2,
                [](float x) { return -x; });
  }
};
using set = c::backend_set<tiler>;

/// relu_0 and neg_1.
c::graph network() {
  c::graph_builder g;
  g.output("y", g(op::neg, g(op::relu, g.input("x", {c::dtype::f32, {1, 10, 3, 3}}))));
  return g.finish();
}
c::place_options options() { return collage_test::clock_options(now_ms); }

c::plan by_hand(const c::graph& of, const std::string& configuration = "loop v2 unroll 4") {
  c::plan p;
  p.fingerprint = of.fingerprint();
  p.threads = 1;
  p.precision = c::fp32;
  p.chosen.name = "plan";
  p.chosen.groups = {kernel_group({0}, "tiler", "relu"), kernel_group({1}, "tiler", "neg", 1)};
  kernel_of(p.chosen.groups[0]).configuration = configuration;
  return p;
}

TEST(configurations, that_are_proposed_are_candidates) {
  const c::place_candidates found = c::find_candidates(network(), c::table_of<set>, {true});
  std::string text;
  for (const c::place_candidate& k : found.list)
    text += std::string(c::pattern_name(c::table_of<set>, k.backend, k.pattern)) + " " + k.configuration.text() + ";";
  EXPECT_EQ(text, "relu loop v2 unroll 1;relu loop v2 unroll 4;relu loop v2 unroll 16;neg 0;neg 1;");
  EXPECT_TRUE(found.refusals.empty());
  EXPECT_EQ(found.structures.size(), 2U);
}

/// Proposes what it should not.
struct careless : c::backend<"careless"> {
  using patterns = c::patterns<relu, neg, c::single<op::tanh>>;
  static void configurations(const c::match<relu>&, c::configuration_list& to) {
    for (const char* text : {"right", "", "two\nlines", "wrong", "right", "loop "}) to.add(text);
  }
  static void configurations(const c::match<neg>&, c::configuration_list& to) {
    for (int i = 0; i < 100; ++i) to.add("way " + std::to_string(i));
  }
  static void configurations(const c::match<c::single<op::tanh>>&, c::configuration_list& to) { to.add("spiral"); }
  static bool knows(const c::match<c::single<op::tanh>>&, const c::configuration&) { return false; }
  template <class P>
  static c::kernel build(const c::match<P>& m, c::build_context& context) {
    const bool is_right = context.configuration() == named("right");
    return loop(context.configuration().text(), m.output(), 1,
                [is_right](float x) { return is_right ? relu_of(x) : 7.0F; });
  }
};

TEST(configurations, that_cannot_be_are_refusals) {
  c::graph_builder g;
  const c::value x = g.input("x", {c::dtype::f32, {8}});
  g.output(g(op::tanh, g(op::neg, g(op::relu, x))));
  const c::place_candidates found = c::find_candidates(g.finish(), c::table_of<c::backend_set<careless>>, {true});
  std::map<std::string, std::size_t> count;
  for (const c::place_candidate& k : found.list)
    ++count[c::pattern_name(c::table_of<c::backend_set<careless>>, k.backend, k.pattern)];
  EXPECT_EQ(count, (std::map<std::string, std::size_t>{{"neg", 64}, {"relu", 2}}));
  std::string text;
  for (const c::place_refusal& r : found.refusals) text += r.where + ": " + r.reason + "\n";
  EXPECT_EQ(
      text,
      "relu_0: it proposes configuration , which is none: it is empty\n"
      "relu_0: it proposes configuration two?lines, which is none: it has a character that is not printable ASCII\n"
      "relu_0: it proposes configuration loop , which is none: it ends with a space\n"
      "neg_1: it proposes more than 64 configurations; the others were not candidates\n"
      "tanh_2: it proposes configuration spiral, and refuses it itself: it is refused\n"
      "tanh_2: its configurations() proposed none\n");
}

TEST(configurations, with_wrong_results_are_refused_by_their_texts) {
  c::graph_builder g;
  g.output(g(op::relu, g.input("x", {c::dtype::f32, {8}})));
  const c::placed_plan made = c::place<c::backend_set<careless>>(g.finish(), options());
  EXPECT_EQ(made.chosen.groups[0].kernel, "right");
  EXPECT_TRUE(std::ranges::any_of(made.report.refusals, [](const c::place_refusal& r) {
    return r.reason.starts_with("configuration wrong: wrong result: ");
  }));
}

// ---- Plans ------------------------------------------------------------------------------------------------------------

TEST(configurations, placing_takes_the_fastest_and_plans_keep_it) {
  const collage_test::temporary_folder here;
  const c::graph net = network();
  const c::placed_plan made = c::place<set>(net, options());
  ASSERT_EQ(made.chosen.groups.size(), 2U);
  EXPECT_EQ(std::get<c::kernel_step>(made.chosen.groups[0].step).configuration, "loop v2 unroll 4");
  EXPECT_EQ(std::get<c::kernel_step>(made.chosen.groups[1].step).configuration, "1");
  EXPECT_NEAR(made.chosen.cost_ms, 2, 1e-6);
  EXPECT_TRUE(made.optimal);
  EXPECT_EQ(made.report.measured, 5U);
  c::save_plan(made, net, here.path("plan"));
  const c::plan read = c::load_plan<set>(here.path("plan"), net);
  EXPECT_EQ(read.chosen.groups[0].step.index(), made.chosen.groups[0].step.index());
  EXPECT_EQ(std::get<c::kernel_step>(read.chosen.groups[0].step), std::get<c::kernel_step>(made.chosen.groups[0].step));
  c::save_plan(read, net, here.path("again"));
  EXPECT_EQ(c::read_file(here.path("again")), c::read_file(here.path("plan")));
  const c::dynamic_engine engine = c::engine<set>(net, read);
  EXPECT_EQ(engine.steps()[0].kernel, "relu in loop v2 unroll 4");
  EXPECT_NE(c::to_text(engine.code(), net).find("tiler relu [loop v2 unroll 4]"), std::string::npos);
  const c::verification checked = c::verify<set>(net, read);
  EXPECT_TRUE(checked) << checked.why();
}

TEST(configurations, without_measuring_the_first_is_taken) {
  c::place_options how = options();
  how.costs = c::placing_costs::none;
  const c::placed_plan made = c::place<set>(network(), how);
  EXPECT_EQ(std::get<c::kernel_step>(made.chosen.groups[0].step).configuration, "loop v2 unroll 1");
}

TEST(configurations, that_a_backend_does_not_have_are_refused_by_engines) {
  const c::graph net = network();
  const auto why = [&](const std::string& text) {
    return message_of([&] { (void)c::engine<set>(net, by_hand(net, text)); }, 2);
  };
  EXPECT_EQ(why("loop v2 unroll 4"), "no error");
  EXPECT_EQ(why("loop v2 unroll 8"), "no error");  // known, and not proposed
  const auto refused = [&](const std::string& text, const std::string& shown, const std::string& rule) {
    EXPECT_EQ(why(text), "plan, group of node relu_0: tiler has no configuration " + shown +
                             " for pattern relu: " + rule + "; place the network again to get a plan that fits");
  };
  const std::string form = "it is not of the form: loop vN unroll N";
  refused("loop v1 unroll 4", "loop v1 unroll 4", "it is of another version of the generator");
  refused("loop v2 unroll 65", "loop v2 unroll 65", "it unrolls more than 64 times");
  refused("loop v2 unroll 04", "loop v2 unroll 04", form);
  refused("spiral", "spiral", form);
  refused("0", "0", form);
  refused("", "", "it is empty");
  refused("loop\tv2", "loop?v2", "it has a character that is not printable ASCII");
  refused(std::string(1000, 'x'), std::string(80, 'x') + "...", "it has more than 200 characters");
  EXPECT_EQ(
      why("loop v2 unroll 64"),
      "plan, group of node relu_0: tiler refuses configuration loop v2 unroll 64 for pattern relu (this processor: it "
      "has too few registers); place the network again to get a plan that fits");
  c::plan numbered = by_hand(net);
  for (const char* text : {"2", "loop v2 unroll 4"}) {
    kernel_of(numbered.chosen.groups[1]).configuration = text;
    EXPECT_EQ(
        message_of([&] { (void)c::engine<set>(net, numbered); }, 2),
        "plan, group of node neg_1: tiler has no configuration " + std::string(text) +
            " for pattern neg: it is not the number of one of the backend's variants; place the network again to get "
            "a plan that fits");
  }
}

TEST(configurations, that_cannot_be_are_refused_in_plan_files) {
  const collage_test::temporary_folder here;
  const c::graph net = network();
  const c::json good = c::plan_to_json(c::place<set>(net, options()), net);
  const auto why = [&](const std::string& text) {
    c::json plan = good;
    plan["chosen"]["groups"][0]["configuration"] = text;
    const std::string path = here.write(c::to_text(plan), "plan");
    return collage_test::sentence_about(path, [&] { (void)c::engine<set>(net, c::load_plan<set>(path, net)); }, 2);
  };
  EXPECT_EQ(why("loop v2 unroll 16"), "no error");
  const std::string place = "chosen.groups[0].configuration is (",
                    after = "; place the network again, which writes a new plan";
  const std::string who = "), which is no configuration of pattern relu of backend tiler: ";
  EXPECT_EQ(why(""), place + who + "it is empty" + after);
  EXPECT_EQ(why("a\x01z"), place + "a?z" + who + "it has a character that is not printable ASCII" + after);
  EXPECT_EQ(why(std::string(300, 'y')),
            place + std::string(80, 'y') + "..." + who + "it has more than 200 characters" + after);
  c::json numbers = good;
  numbers["chosen"]["groups"][0]["configuration"] = 1;
  EXPECT_NE(message_of([&] { (void)c::plan_from_json(numbers, net, "plan"); }, 2)
                .find("chosen.groups[0].configuration is not a string"),
            std::string::npos);
}

TEST(configurations, of_a_previous_plan_need_not_be_proposed) {
  const c::graph net = network();
  for (const char* text : {"loop v2 unroll 8", "loop v1 unroll 4"}) {
    const c::plan before = by_hand(net, text);
    c::place_options how = options();
    how.previous = &before;
    const c::placed_plan made = c::place<set>(net, how);
    EXPECT_EQ(std::get<c::kernel_step>(made.chosen.groups[0].step).configuration, "loop v2 unroll 4");
    const bool took_part =
        std::ranges::any_of(made.runs, [](const c::plan_run& r) { return r.name == std::string(c::previous_run); });
    EXPECT_EQ(took_part, loop_point::read(text)->version == loop_point::generator) << text;
  }
}

// ---- Stores -----------------------------------------------------------------------------------------------------------

TEST(configurations, have_costs_of_their_own_in_stores) {
  const collage_test::temporary_folder here;
  const c::graph net = network();
  c::place_options how = options();
  how.store = here.path("costs.db");
  const c::placed_plan first = c::place<set>(net, how);
  EXPECT_EQ(first.report.measured, 5U);
  const auto kept = [&] {
    std::map<std::string, double> costs;
    for (const c::stored_entry& e : c::cost_store(how.store).list({.backend = "tiler"}))
      costs[e.key.pattern + " " + e.key.choice.text()] = e.cost.median_ms;
    return costs;
  };
  const std::map<std::string, double> expected = {{"neg 0", 2},
                                                  {"neg 1", 1},
                                                  {"relu loop v2 unroll 1", 3},
                                                  {"relu loop v2 unroll 16", 2},
                                                  {"relu loop v2 unroll 4", 1}};
  const std::map<std::string, double> found = kept();
  ASSERT_EQ(found.size(), expected.size());
  for (const auto& [name, ms] : expected) EXPECT_NEAR(found.at(name), ms, 1e-6) << name;
  const c::placed_plan second = c::place<set>(net, how);
  EXPECT_EQ(second.report.measured, 0U);
  EXPECT_EQ(second.report.from_store, 5U);
  EXPECT_TRUE(second.report.compared_before);
  EXPECT_EQ(c::to_text(c::plan_to_json(second, net)), c::to_text(c::plan_to_json(first, net)));
  // One that is missing is measured, and no other.
  std::vector<c::stored_key> gone;
  for (const c::stored_entry& e : c::cost_store(how.store).list({.backend = "tiler"}))
    if (e.key.choice == named("loop v2 unroll 4")) gone.push_back(e.key);
  EXPECT_EQ(c::cost_store(how.store).forget(gone), 1U);
  const c::placed_plan third = c::place<set>(net, how);
  EXPECT_EQ(third.report.measured, 1U);
  EXPECT_EQ(third.report.from_store, 4U);
  EXPECT_EQ(kept().size(), 5U);
}

// ---- Layouts and conversions ------------------------------------------------------------------------------------------

/// Faster on blocks, and says so by texts.
struct blocks : c::backend<"blocks"> {
  using patterns = c::patterns<relu, convert>;
  static void configurations(const c::match<relu>&, c::configuration_list& to) {
    to.add("plain");
    to.add("in blocks");
  }
  static void configurations(const c::match<convert>&, c::configuration_list& to) {
    to.add("pack");
    to.add("unpack");
  }
  static void layouts(const c::match<relu>& m, const c::configuration& how, c::value_forms& to) {
    if (how == named("plain")) return;
    to.set(m.record().argument[0], c::blocked_8);
    to.set(m.record().output[0], c::blocked_8);
  }
  static void layouts(const c::match<convert>& m, const c::configuration& how, c::value_forms& to) {
    to.set(how == named("pack") ? m.record().output[0] : m.record().argument[0], c::blocked_8);
  }
  static c::kernel build(const c::match<relu>& m, c::build_context& context) {
    const bool is_plain = context.configuration() == named("plain");
    const c::tensor_type type = m.graph().values[m.record().output[0]].type;
    const std::size_t count = c::bytes_in(type, is_plain ? c::plain : c::blocked_8) / sizeof(float);
    return {context.configuration().text(), [=](const c::kernel_call& call) {
              for (std::size_t i = 0; i < count; ++i)
                static_cast<float*>(call.out[0])[i] = relu_of(static_cast<const float*>(call.in[0])[i]);
              now_ms += is_plain ? 10 : 4;
            }};
  }
  static c::kernel build(const c::match<convert>& m, c::build_context& context) {
    const c::tensor_type type = m.graph().values[m.record().output[0]].type;
    const bool packs = context.configuration() == named("pack");
    return {context.configuration().text(), [=](const c::kernel_call& call) {
              const auto* from = static_cast<const std::byte*>(call.in[0]);
              auto* to = static_cast<std::byte*>(call.out[0]);
              if (packs) c::from_plain(type, c::blocked_8, from, to);
              else c::to_plain(type, c::blocked_8, from, to);
              now_ms += 5;
            }};
  }
};

TEST(configurations, have_layouts_and_make_conversions) {
  const collage_test::temporary_folder here;
  c::graph_builder g;
  c::value x = g.input("x", {c::dtype::f32, {1, 10, 3, 3}});
  for (int i = 0; i < 4; ++i) x = g(op::relu, x);
  g.output("y", x);
  const c::graph net = g.finish();
  using block_set = c::backend_set<blocks>;
  c::plan made = c::place<block_set>(net, options());
  for (const c::plan_group& group : made.chosen.groups) EXPECT_EQ(group.kernel, "in blocks");
  ASSERT_EQ(made.chosen.conversions.size(), 2U);
  EXPECT_EQ(made.chosen.conversions[0].step.configuration, "pack");
  EXPECT_EQ(made.chosen.conversions[1].step.configuration, "unpack");
  EXPECT_NEAR(made.chosen.cost_ms, 26, 1e-6);
  c::save_plan(made, net, here.path("plan"));
  const c::verification checked = c::verify<block_set>(net, c::load_plan<block_set>(here.path("plan"), net));
  EXPECT_TRUE(checked) << checked.why();
  for (const auto& [text, rule] : {std::pair{"knot", "the backend does not propose it"}, {"", "it is empty"}}) {
    made.chosen.conversions[0].step.configuration = text;
    EXPECT_EQ(message_of([&] { (void)c::engine<block_set>(net, made); }, 2),
              "plan, conversion of x: blocks cannot make this conversion: it has no configuration " +
                  std::string(text) + " for pattern convert_layout: " + rule +
                  "; place the network again to get a plan that fits");
  }
}

}  // namespace place_configurations_test
