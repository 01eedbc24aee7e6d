// Schemes that a program declares, and the backend of generated kernels that runs them.
#ifdef COLLAGE_HAS_JIT
#include "cases.hpp"
#include "support/effort.hpp"
#include "support/placing.hpp"

#include "jit/product_point.hpp"
#include "jit/scheme.hpp"

#include <collage/backends/jit_with.hpp>
#include <collage/backends/portable.hpp>
#include <collage/bilinear/all.hpp>
#include <collage/place.hpp>
#include <collage/run/engine.hpp>
#include <collage/run/plan_fit.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <variant>
#include <vector>

namespace backends_jit_with_test {

using namespace collage_test;
namespace bilinear = collage::bilinear;
namespace jit = collage::detail::jit;

/// <1,2,1;2> with coefficients that no scheme of the backend has: 2, which blocks of the operands may have.
struct my_products {
  using problem = bilinear::matmul<1, 2, 1>;
  static constexpr const char* name = "my sums";
  static constexpr bilinear::product<problem> products[] = {
      {{1, 1}, {1, 0}, {1}},   // (a0 + a1) b0
      {{0, -1}, {1, -1}, {1}}  // -a1 (b0 - b1)
  };
};
using mine = bilinear::scheme<my_products>;

/// Another scheme of the same name.
struct their_products {
  using problem = bilinear::matmul<1, 2, 1>;
  static constexpr const char* name = "my sums";
  static constexpr bilinear::product<problem> products[] = {
      {{1, 2}, {1, 0}, {1}},   // (a0 + 2 a1) b0
      {{0, -1}, {2, -1}, {1}}  // -a1 (2 b0 - b1)
  };
};
using theirs = bilinear::scheme<their_products>;
using nested = bilinear::nested<mine, bilinear::strassen>;

/// The configurations of these schemes alone.
template <class... S>
struct only : collage::jit_with<S...> {
  static void configurations(const collage::any_match& m, collage::configuration_list& to) {
    collage::configuration_list all;
    collage::jit_with<S...>::configurations(m, all);
    for (const collage::configuration& c : all)
      if (c.text().find("my-sums") != std::string::npos) to.add(c.text());
  }
};

value product(graph_builder& g, data_source& data, std::int64_t least = 1) {
  const std::int64_t m = data.number(least, 60), n = data.number(least, 90),
                     k = data.number(std::max<std::int64_t>(least, 2), 200);
  return g(op::matmul, g.input("a", f32({m, k})), data.constant(g, "b", f32({k, n})));
}

TEST(jit_with, random_products_agree_with_the_reference) {
  backend_checker<only<mine, theirs, nested>> check;
  check_options options;
  options.must_cover = false;
  for (int i = 0; i < cases(12); ++i)
    check(
        [](graph_builder& g, data_source& data) {
          const value y = product(g, data);
          return data.chance(0.5) ? y : g(op::relu, g(op::add, y, g.input("bias", f32({g.type_of(y).dims[1]}))));
        },
        options);
  const auto ran = [&](const std::string& name) {
    return std::ranges::any_of(check.kernels(), [&](const auto& k) { return k.first.starts_with(name + ", "); });
  };
  EXPECT_TRUE(ran(jit::own_name<mine>.c_str()));
  EXPECT_TRUE(ran(jit::own_name<theirs>.c_str()));
  EXPECT_TRUE(ran(jit::own_name<nested>.c_str()));
  EXPECT_EQ(check.allocations_while_running(), 0U);
}

TEST(jit_with, schemes_of_one_name_are_apart) {
  const std::string one = jit::own_name<mine>.c_str(), other = jit::own_name<theirs>.c_str();
  EXPECT_EQ(one.substr(0, 8), "my-sums-");
  EXPECT_EQ(one.size(), 8U + 16);
  EXPECT_NE(one, other);
  EXPECT_EQ(jit::find_scheme(one), &jit::own_scheme<mine>);
  EXPECT_EQ(jit::find_scheme(other), &jit::own_scheme<theirs>);
  EXPECT_EQ(jit::find_scheme("my-sums"), nullptr);
  const jit::configuration how = jit::default_configuration(jit::instruction_set::avx2);
  EXPECT_NE(jit::product_point({&jit::own_scheme<mine>, how}).text(),
            jit::product_point({&jit::own_scheme<theirs>, how}).text());
}

TEST(jit_with, a_scheme_is_known_as_long_as_it_is_there) {
  static constexpr jit::scheme here = jit::scheme_of<bilinear::strassen>("only-here");
  {
    const jit::known_scheme first(here);
    EXPECT_EQ(jit::find_scheme("only-here"), &here);
    const jit::known_scheme later(jit::own_scheme<mine>);
  }
  EXPECT_EQ(jit::find_scheme("only-here"), nullptr);
  EXPECT_NE(jit::find_scheme(jit::own_name<mine>.c_str()), nullptr);
}

TEST(jit_with, proposes_for_products_that_have_the_blocks) {
  const auto proposed = [](const shape& left, const shape& right) {
    graph_builder g;
    data_source data;
    const value a = g.input("a", f32(left));
    const value b = data.constant(g, "b", f32(right));
    g.output("y", left.size() == 2 ? g(op::matmul, a, b) : g(op::conv, a, b));
    const collage::graph network = g.finish();
    std::size_t own = 0, all = 0;
    for (const collage::pattern_entry& p : backend_checker<collage::jit_with<nested>>::table().patterns) {
      collage::match_record record;
      if (!collage::match_at(network.view(), p.nodes, 0, record) || !p.accepts(network.view(), record)) continue;
      const collage::configuration_list list = collage::proposed_for(p, network.view(), record);
      EXPECT_TRUE(list.faults().empty());
      all = list.size();
      own = static_cast<std::size_t>(std::ranges::count_if(
          list, [](const auto& c) { return c.text().find(jit::own_name<nested>.c_str()) != std::string::npos; }));
    }
    EXPECT_GT(all, own);
    return own;
  };
  EXPECT_EQ(proposed({256, 256}, {256, 256}), 2U);
  EXPECT_EQ(proposed({2, 4}, {4, 2}), 1U);     // one vector is enough
  EXPECT_EQ(proposed({1, 64}, {64, 64}), 0U);  // <2,4,2> needs two rows
  EXPECT_EQ(proposed({64, 3}, {3, 64}), 0U);
  EXPECT_EQ(proposed({1, 64, 9, 9}, {256, 64, 1, 1}), 2U);
  EXPECT_EQ(proposed({1, 16, 9, 9}, {16, 16, 3, 3}), 0U);  // the algorithms of convolutions are a list of the backend
}

/// Attention has products, too, but is another kernel.
TEST(jit_with, proposes_nothing_for_attention) {
  graph_builder g;
  const value x = g.input("x", f32({64, 64}));
  g.output("y", g(op::matmul, g(op::softmax, g(op::matmul, x, x)), x));
  const collage::graph network = g.finish();
  const collage::pattern_entry& attention = *backend_checker<collage::jit_with<nested>>::table().find("attention");
  collage::match_record record;
  ASSERT_TRUE(collage::match_at(network.view(), attention.nodes, 2, record));
  const collage::configuration_list list = collage::proposed_for(attention, network.view(), record);
  EXPECT_TRUE(list.faults().empty());
  EXPECT_GT(list.size(), 0U);
}

/// The backend's own scheme keeps its name, under which it is proposed for products that it may be too slow for.
TEST(jit_with, proposes_a_scheme_of_the_backend_once) {
  graph_builder g;
  data_source data;
  g.output("y", g(op::matmul, g.input("a", f32({64, 64})), data.constant(g, "b", f32({64, 16}))));
  const collage::graph network = g.finish();
  const auto texts_of = [&](const collage::backend_entry& table) {
    std::vector<std::string> texts;
    for (const collage::pattern_entry& p : table.patterns) {
      collage::match_record record;
      if (!collage::match_at(network.view(), p.nodes, 0, record) || !p.accepts(network.view(), record)) continue;
      for (const collage::configuration& c : collage::proposed_for(p, network.view(), record))
        texts.push_back(c.text());
    }
    return texts;
  };
  const auto with = [](const std::string& text) { return text.starts_with("product1 strassen "); };
  const std::vector<std::string> alone = texts_of(backend_checker<collage::jit>::table());
  const std::vector<std::string> both = texts_of(backend_checker<collage::jit_with<bilinear::strassen>>::table());
  EXPECT_EQ(std::ranges::count_if(alone, with), 0);
  EXPECT_EQ(std::ranges::count_if(both, with), static_cast<std::ptrdiff_t>(both.size() - alone.size()));
  EXPECT_GT(both.size(), alone.size());
}

/// A product that a plan computes by the scheme.
struct placed_product {
  using set = collage::backend_set<only<mine>, collage::portable>;
  collage::graph network;
  collage::placed_plan plan;

  placed_product() : network(make()), plan(collage::place<set>(network, options())) {}

  static collage::graph make() {
    graph_builder g;
    data_source data;
    g.output("y", g(op::matmul, g.input("a", f32({48, 64})), data.constant(g, "b", f32({64, 40}))));
    collage::graph made = g.finish();
    collage::fill_constants(made);
    return made;
  }
  static collage::place_options options() {
    collage::place_options o = quick_options(false);  // by the order of the set
    o.algorithms = collage::algorithms::all;
    o.memory.ratio = 4;
    return o;
  }
};

TEST(jit_with, a_placed_plan_runs_it) {
  const placed_product placed;
  ASSERT_EQ(placed.plan.chosen.groups.size(), 1U);
  EXPECT_EQ(placed.plan.chosen.groups[0].backend(), "jit");
  EXPECT_TRUE(placed.plan.chosen.groups[0].kernel.starts_with(jit::own_name<mine>.c_str()))
      << placed.plan.chosen.groups[0].kernel;

  const collage::dynamic_engine engine = collage::engine<placed_product::set>(placed.network, placed.plan);
  collage::dynamic_context context = engine.context();
  const collage::tensor a({collage::dtype::f32, {48, 64}}), y({collage::dtype::f32, {48, 40}});
  for (std::size_t i = 0; i < 48 * 64; ++i) a.as<float>()[i] = std::sin(static_cast<float>(i));
  context.run({a}, {y});
  const auto* const b =
      reinterpret_cast<const float*>(placed.network.constant(placed.network.view().inputs_of(0)[1]).bytes.get());
  for (std::size_t i = 0; i < 48; ++i)
    for (std::size_t j = 0; j < 40; ++j) {
      double sum = 0, magnitude = 0;
      for (std::size_t l = 0; l < 64; ++l) {
        const double term = double{a.as<float>()[i * 64 + l]} * double{b[l * 40 + j]};
        sum += term;
        magnitude += std::abs(term);
      }
      EXPECT_NEAR(y.as<float>()[i * 40 + j], sum, 1e-5 * magnitude);
    }
}

TEST(jit_with, a_plan_is_refused_where_the_scheme_is_unknown) {
  placed_product placed;
  EXPECT_FALSE(collage::misfit_of(placed.plan, placed.network, collage::table_of<placed_product::set>));
  std::string& how = std::get<collage::kernel_step>(placed.plan.chosen.groups[0].step).configuration;
  const std::string known = jit::own_name<mine>.c_str();
  how.replace(how.find(known), known.size(), "my-sums-0123456789abcdef");
  try {
    collage::engine<placed_product::set>(placed.network, placed.plan);
    ADD_FAILURE() << "it built " << how;
  } catch (const collage::error& e) {
    EXPECT_NE(
        std::string(e.what()).find("it names an algorithm that this program does not have: jit_with adds one, and "
                                   "placing again finds another"),
        std::string::npos)
        << e.what();
  }
}

}  // namespace backends_jit_with_test
#endif
