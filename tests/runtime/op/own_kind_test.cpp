// Kinds of a user's own header in everything but import: graphs, printing, the reference, passes, patterns, backends,
// placing, plan files, verify.
#include "support/own_kind.hpp"
#include "support/messages.hpp"
#include "support/placing.hpp"

#include <collage/backends/portable.hpp>
#include <collage/backends/reference.hpp>
#include <collage/graph/print.hpp>
#include <collage/io/dot.hpp>
#include <collage/io/plan_file.hpp>
#include <collage/pass/optimise.hpp>
#include <collage/place.hpp>
#include <collage/run/engine.hpp>
#include <collage/run/verify.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

namespace op_own_kind_test {

namespace c = collage;
namespace op = collage::ops;
using collage_test::message_of;
using collage_test::quick_options;

// A backend with kernels for two of the kinds -------------------------------------------------------------------------

/// Of the same signals, their spread along the last dimension.
struct spread_of_snake : c::pattern<"spread_of_snake"> {
  static constexpr auto expr = own::spread(own::snake(c::any));
};

struct fast : c::backend<"fast"> {
  using patterns = c::patterns<c::single<own::snake>, spread_of_snake>;

  static constexpr c::verdict accepts(const c::match<c::single<own::snake>>& m) {
    return {m.output().type == c::dtype::f32, "it computes float32 only"};
  }
  static constexpr c::verdict accepts(const c::match<spread_of_snake>& m) {
    const auto& a = m[own::spread];
    return c::first_failure({
        {m.output().type == c::dtype::f32, "it computes float32 only"},
        {a.axis + 1 == static_cast<std::int64_t>(m.output().out.size()), "its axis must be the last"},
        {a.mode == own::rounding::none && a.centred && a.lag == c::shape{0}, "it neither rounds nor looks back"},
    });
  }
  static float wave(float x, float alpha) { return x + std::sin(alpha * x) * std::sin(alpha * x) / alpha; }

  static c::kernel build(const c::match<c::single<own::snake>>& m, c::build_context&) {
    const auto count = static_cast<std::size_t>(m.output().out.elements());
    const auto alpha = static_cast<float>(m[own::snake].alpha);
    return {"fast snake", [=](const c::kernel_call& call) {
              const auto* x = static_cast<const float*>(call.in[0]);
              auto* y = static_cast<float*>(call.out[0]);
              for (std::size_t i = 0; i < count; ++i) y[i] = wave(x[i], alpha);
            }};
  }
  static c::kernel build(const c::match<spread_of_snake>& m, c::build_context&) {
    const c::shape& dims = m.output().out;
    const auto columns = static_cast<std::size_t>(dims[dims.size() - 1]);
    const std::size_t rows = static_cast<std::size_t>(dims.elements()) / columns;
    const auto alpha = static_cast<float>(m[own::snake].alpha);
    const auto a = m[own::spread];
    const auto scale = static_cast<float>(a.scale * a.weights[0] / (a.unit.text[0] == 'k' ? 1000 : 1));
    return {"fast spread", [=](const c::kernel_call& call) {
              for (std::size_t row = 0; row < rows; ++row) {
                const auto* x = static_cast<const float*>(call.in[0]) + row * columns;
                auto* y = static_cast<float*>(call.out[0]);
                float mean = 0;
                for (std::size_t i = 0; i < columns; ++i) mean += wave(x[i], alpha) / static_cast<float>(columns);
                std::int64_t above = 0;
                for (std::size_t i = 0; i < columns; ++i) {
                  const float value = wave(x[i], alpha);
                  if (y != nullptr) y[row * columns + i] = scale * (value - mean);
                  above += value > mean ? 1 : 0;
                }
                if (call.out[1] != nullptr) static_cast<std::int64_t*>(call.out[1])[row] = above;
              }
            }};
  }
};

/// Right in its first output and wrong in its second.
struct liar : c::backend<"liar"> {
  using patterns = c::patterns<c::single<own::snake>, spread_of_snake>;
  static constexpr bool accepts(const c::match<spread_of_snake>& m) { return fast::accepts(m).rule == nullptr; }
  static c::kernel build(const c::match<c::single<own::snake>>& m, c::build_context& context) {
    return fast::build(m, context);
  }
  static c::kernel build(const c::match<spread_of_snake>& m, c::build_context& context) {
    const c::kernel honest = fast::build(m, context);
    return {"a lie", [honest](const c::kernel_call& call) {
              honest(call);
              if (call.out[1] != nullptr) static_cast<std::int64_t*>(call.out[1])[0] += 1;
            }};
  }
};

/// Takes the kind that has no reference.
struct sealer : c::backend<"sealer"> {
  using patterns = c::patterns<c::single<own::sealed>>;
  static c::kernel build(const c::match<c::single<own::sealed>>& m, c::build_context&) {
    const auto count = static_cast<std::size_t>(m.output().out.elements());
    return {"copy", [count](const c::kernel_call& call) {
              const auto* x = static_cast<const float*>(call.in[0]);
              std::copy(x, x + count, static_cast<float*>(call.out[0]));
            }};
  }
};

// Networks ------------------------------------------------------------------------------------------------------------

const c::tensor_type signal{c::dtype::f32, {2, 6}};

/// spread(snake(x)) with both outputs read.
c::graph network(own::spread_attributes attributes = {.scale = 0.5}) {
  c::graph_builder g;
  const c::value x = g.input("x", signal);
  const c::value s = g(own::spread, g(own::snake, x, {.alpha = 2}), attributes);
  g.output("spread", s);
  g.output("above", s[1]);
  return g.finish();
}

c::graph sealed_network() {
  c::graph_builder g;
  g.output("y", g(own::sealed, g(own::snake, g.input("x", signal))));
  return g.finish();
}

std::vector<c::oracle_value> reference_of(const c::graph& g, const c::tensor& x) {
  const c::const_tensor_view in[] = {x};
  return c::evaluate(g, in);
}

c::tensor random_signal(std::uint64_t seed = 3) {
  c::tensor x(signal);
  std::mt19937_64 random(seed);
  c::fill_random(x, random);
  return x;
}

/// Runs the plan and compares with the kinds' own references.
void expect_agreement(const c::graph& g, const c::dynamic_engine& engine) {
  const c::tensor x = random_signal();
  const std::vector<c::oracle_value> expected = reference_of(g, x);
  std::vector<c::tensor> out;
  for (const std::uint32_t v : g.outputs()) out.emplace_back(g.type_of(v));
  const std::vector<c::tensor_view> views(out.begin(), out.end());
  const c::const_tensor_view in[] = {x};
  engine.context().run(in, views);
  for (std::size_t i = 0; i < out.size(); ++i) EXPECT_TRUE(c::compare(out[i], expected[i])) << g.output_name(i);
}

// Tests ---------------------------------------------------------------------------------------------------------------

TEST(own_kind, shape_rule_and_normalise_are_followed) {
  const c::graph g = network();
  EXPECT_EQ(g.type_of(g.outputs()[0]), signal);
  EXPECT_EQ(g.type_of(g.outputs()[1]), (c::tensor_type{c::dtype::i64, {2, 1}}));
  const auto stored = c::from_words<own::spread_attributes>(g.view().words_of(1));
  EXPECT_EQ(stored.axis, 1);
  EXPECT_EQ(c::totals_of(g).flops, 12 * 5 + 12 * 5);  // snake's body has five instructions: sin, three products, a sum
  EXPECT_EQ(message_of([] { (void)network({.axis = 2}); }),
            "node spread_1 (spread): its axis must be within the rank of its input; its operands are float32[2x6]");
}

TEST(own_kind, reference_computes_every_output) {
  const c::tensor x = random_signal();
  const auto out = reference_of(network({.scale = 2, .lag = {0, 1}, .weights = {2, {1.0, -1.0}}}), x);
  const float* p = x.as<float>().data();
  const auto wave = [&](int i) { return p[i] + std::sin(2.0 * p[i]) * std::sin(2.0 * p[i]) / 2; };
  EXPECT_NEAR(out[0].real[3], 2 * (wave(3) - wave(2)), 1e-12);  // the mean cancels
  std::int64_t above = 0;
  double mean = 0;
  for (int i = 0; i < 6; ++i) mean += wave(i) / 6;
  for (int i = 0; i < 6; ++i) above += wave(i) > mean ? 1 : 0;
  EXPECT_EQ(out[1].integer[0], above);
}

TEST(own_kind, prints_as_a_built_in_one) {
  const c::graph g = network({.centred = false, .mode = own::rounding::up, .lag = {0, 2}, .weights = {2, {1, 0.5}}});
  const std::string text = c::to_string(g);
  EXPECT_NE(text.find("snake_0 = snake(x) {alpha=2} -> float32[2x6]"), std::string::npos) << text;
  EXPECT_NE(c::to_string(g, 1, {.columns = 200})
                .find("spread_1, spread_1:1 = spread(snake_0) {centred=false, mode=2, lag=[0,2], weights=[1,0.5]} -> "
                      "float32[2x6], int64[2x1]"),
            std::string::npos)
      << text;
  EXPECT_NE(c::to_string(g, 1, {.columns = 200, .all_attributes = true}).find("unit=\"m\""), std::string::npos);
  std::ostringstream dot;
  c::write_dot(dot, g);
  EXPECT_NE(dot.str().find("spread"), std::string::npos);
}

TEST(own_kind, passes_fold_it_merge_it_and_leave_it_alone) {
  c::graph_builder b;
  const c::value x = b.input("x", signal);
  const c::value w = b.constant("w", signal, {-1, 1});
  const c::value folded = b(own::spread, b(own::snake, w));
  const c::value one = b(own::snake, x), same = b(own::snake, x), other = b(own::snake, x, {.alpha = 3});
  b.output("constant", b(op::add, folded, x));
  b.output("counts", folded[1]);
  b.output("a", b(op::add, one, same));
  b.output("b", other);
  c::graph g = b.finish();
  c::fill_constants(g);
  const c::graph small = c::optimise(g);
  EXPECT_EQ(small.nodes().size(), 4U) << c::to_string(small);  // two sums, two different snakes
  EXPECT_EQ(small.at(small.outputs()[1]).role, c::value_role::constant);
  const c::tensor in = random_signal();
  const auto before = reference_of(g, in), after = reference_of(small, in);
  EXPECT_EQ(before[1].integer, after[1].integer);
  for (const std::size_t i : {0UL, 2UL, 3UL})
    for (std::size_t e = 0; e < 12; ++e) EXPECT_NEAR(before[i].real[e], after[i].real[e], 1e-6);
}

TEST(own_kind, is_placed_with_the_users_own_kernels) {
  using backends = c::backend_set<fast, c::portable>;
  const c::graph g = network();
  for (const bool measure : {true, false}) {
    const c::plan p = c::place<backends>(g, quick_options(measure));
    if (!measure) {
      ASSERT_EQ(p.chosen.groups.size(), 1U);
      EXPECT_EQ(p.chosen.groups[0].kernel, "fast spread");
    }
    expect_agreement(g, c::engine<backends>(g, p));
    const c::verification found = c::verify<backends>(g, p);
    EXPECT_TRUE(found) << found.why();
    EXPECT_EQ(found.why(), "");
    ASSERT_EQ(found.placements.size(), measure ? 3U : 1U);  // the plan, and each backend alone
    ASSERT_EQ(found.placements[0].outputs.size(), 2U);
    EXPECT_EQ(found.placements[0].outputs[1].name, "above");
  }
}

TEST(own_kind, is_run_by_its_reference_where_no_backend_has_a_kernel) {
  using backends = c::backend_set<c::portable>;
  c::graph_builder b;
  const c::value x = b.input("x", signal);
  const c::value s = b(own::pieces, b(own::spread, b(own::snake, x), x, {.axis = 0}), {.count = 2});
  b.output("first", s);
  b.output("second", s[1]);
  const c::graph g = b.finish();
  const c::plan p = c::place<backends>(g, quick_options(false));
  ASSERT_EQ(p.chosen.groups.size(), 3U);
  EXPECT_EQ(p.chosen.groups[0].pattern(), "loops");  // from its body
  EXPECT_EQ(p.chosen.groups[1].kernel, "reference spread");
  EXPECT_EQ(p.chosen.groups[2].kernel, "reference pieces");
  expect_agreement(g, c::engine<backends>(g, p));
  EXPECT_TRUE(c::verify<backends>(g, p));
}

TEST(own_kind, a_refusal_says_what_the_backend_said) {
  const std::string text =
      message_of([] { (void)c::place<c::backend_set<fast>>(network({.axis = 0}), quick_options(false)); });
  EXPECT_NE(text.find("spread_1 (spread float32[2x6])"), std::string::npos) << text;
  EXPECT_NE(text.find("fast refuses: its axis must be the last"), std::string::npos) << text;
}

TEST(own_kind, a_kernel_that_lies_is_found) {
  using backends = c::backend_set<liar>;
  const c::graph g = network();
  const std::string refused = message_of([&] { (void)c::place<backends>(g, quick_options()); });
  EXPECT_NE(refused.find("spread_1 (spread float32[2x6]), liar refuses: wrong result: it differs"), std::string::npos)
      << refused;
  EXPECT_EQ(message_of([&] { (void)c::place<backends>(g, quick_options(false)); }), refused);
  c::place_options unchecked = quick_options(false);
  unchecked.check_s = 0;
  const c::plan p = c::place<backends>(g, unchecked);  // nothing runs, so that nothing is found
  const c::verification found = c::verify<backends>(g, p);
  EXPECT_FALSE(found);
  EXPECT_EQ(found.why(),
            "plan: spread_1, run by liar (a lie): it differs from the reference, and integers and booleans "
            "must be equal");
  ASSERT_NE(found.failed(), nullptr);
  const c::verified_placement& failed = *found.failed();
  EXPECT_TRUE(failed.outputs[0].found);
  EXPECT_FALSE(failed.outputs[1].found);
  ASSERT_TRUE(failed.fault.has_value());
  EXPECT_EQ(failed.fault->node, "spread_1");
  EXPECT_EQ(failed.fault->value, "spread_1:1");
  EXPECT_EQ(failed.fault->pattern, "spread_of_snake");
  EXPECT_EQ(failed.fault->found.worst_index, 0);
}

TEST(own_kind, a_plan_of_it_is_written_and_read_back) {
  using backends = c::backend_set<fast, c::portable>;
  const c::graph g = network();
  const c::plan made = c::place<backends>(g, quick_options());
  const std::string path = (std::filesystem::path(testing::TempDir()) / "collage_own_kind.plan.json").string();
  c::save_plan(made, g, path);
  const c::plan read = c::load_plan(path, g);
  std::filesystem::remove(path);
  EXPECT_EQ(c::plan_to_json(made, g), c::plan_to_json(read, g));
  expect_agreement(g, c::engine<backends>(g, read));
}

TEST(own_kind, without_a_reference_is_said_wherever_one_is_needed) {
  using backends = c::backend_set<sealer, fast>;
  const std::string wanted =
      "node sealed_1: its kind has no reference; declare static void reference(const attributes&, const "
      "reference_call&) in the kind";
  const c::graph g = sealed_network();
  const c::tensor x = random_signal();
  EXPECT_EQ(message_of([&] { (void)reference_of(g, x); }), wanted);
  EXPECT_EQ(message_of([&] { (void)c::place<backends>(g, quick_options()); }),
            wanted);  // a kernel must be checked to be measured
  const c::plan p = c::place<backends>(g, quick_options(false));
  EXPECT_EQ(message_of([&] { (void)c::verify<backends>(g, p); }), wanted);
  const std::string refused =
      message_of([&] { (void)c::place<c::backend_set<fast, c::portable>>(g, quick_options(false)); });
  EXPECT_NE(refused.find("sealed_1 (sealed float32[2x6]), portable refuses: its kind has no reference"),
            std::string::npos)
      << refused;
  // Where none is needed, the kind works: it is run, and passes leave it.
  const c::tensor y(signal);
  c::engine<backends>(g, p).context().run({x}, {y});
  EXPECT_NEAR(y.as<float>()[0], fast::wave(x.as<float>()[0], 1), 1e-6);
  c::graph_builder b;
  b.output("y", b(own::sealed, b.constant("w", signal, {-1, 1})));
  c::graph constant = b.finish();
  c::fill_constants(constant);
  EXPECT_EQ(c::optimise(constant).nodes().size(), 1U);
}

}  // namespace op_own_kind_test
