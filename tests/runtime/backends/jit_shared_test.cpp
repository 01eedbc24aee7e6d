// The backend of generated kernels, for products that share their left operand. Where this build is without it there is nothing
// to test.
#ifdef COLLAGE_HAS_JIT
#include "cases.hpp"
#include "support/effort.hpp"
#include "support/placing.hpp"

#include "jit/product_point.hpp"

#include <collage/backends/jit.hpp>
#include <collage/backends/portable.hpp>
#include <collage/place.hpp>
#include <collage/place/candidates.hpp>
#include <collage/run/verify.hpp>
#include <collage/run/weights.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace backends_jit_shared_test {

using namespace collage_test;

/// A product with an array of numbers after it, or with up to two other operators whose operands are constant.
value add_product(graph_builder& g, data_source& data, value left, std::int64_t columns, const std::string& name,
                  std::int64_t operators) {
  const shape dims = g.type_of(left).dims;
  const std::int64_t depth = dims[dims.size() - 1];
  const bool is_transposed = data.chance(0.3);
  const value w =
      data.constant(g, name + ".weight", f32(is_transposed ? shape{columns, depth} : shape{depth, columns}));
  value y = g(op::matmul, left, w, {.transpose_b = is_transposed});
  for (std::int64_t i = 0; i < operators; ++i) {
    const std::string label = name + ".other" + std::to_string(i);
    const value other = data.constant(g, label, f32(data.chance(0.8) ? shape{columns} : g.type_of(y).dims), {0.5, 1});
    switch (data.number(0, 7)) {
      case 0: y = g(op::relu, y); break;
      case 1: y = g(op::mul, y, g(op::sigmoid, y)); break;
      case 2: y = g(op::tanh, y); break;
      case 3: y = g(op::div, y, g.scalar(label + ".root", 3)); break;
      case 4: y = g(op::sub, y, other); break;
      case 5: y = g(op::mul, other, y); break;
      default: y = data.chance(0.5) ? g(op::add, y, other) : g(op::add, other, y);
    }
  }
  return y;
}

shape left_shape(data_source& data) {
  shape dims;
  if (data.chance(0.1)) return {data.number(1, 200)};
  for (std::int64_t more = data.number(0, 2); more > 0; --more) dims.push_back(data.number(1, 3));
  dims.push_back(data.chance(0.2) ? 1 : data.number(1, 70));
  dims.push_back(data.chance(0.1) ? 1 : data.number(1, 200));
  return dims;
}

/// Several products of one input, each of them read outside.
collage::graph products(data_source& data, const shape& left, const std::vector<std::int64_t>& columns,
                        std::int64_t most_operators = 2) {
  graph_builder g;
  const value x = g.input("x", f32(left));
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const std::string name(1, static_cast<char>('a' + i));
    g.output("out " + name, add_product(g, data, x, columns[i], name, data.number(0, most_operators)));
  }
  return g.finish();
}

std::int64_t some_columns(data_source& data) {
  constexpr std::int64_t awkward[] = {1, 2, 7, 16, 17, 31, 64, 97};
  return data.chance(0.5) ? awkward[data.number(0, 7)] : data.number(1, 130);
}

template <class Backend>
void check_products(int count, const check_options& options) {
  backend_checker<Backend> check;
  for (int i = 0; i < count; ++i) {
    std::vector<std::int64_t> columns;
    for (int n = 2 + i % 3; n > 0; --n) columns.push_back(some_columns(check.data()));
    check.check(products(check.data(), left_shape(check.data()), columns), options);
  }
  EXPECT_GT(check.checked("two_products"), 0U);
  EXPECT_GT(check.checked("three_products"), 0U);
  EXPECT_EQ(check.allocations_while_running(), 0U);
}

check_options partly_covered() {
  check_options options;
  options.must_cover = false;
  return options;
}

TEST(jit_shared_backend, random_products) { check_products<collage::jit>(cases(20), partly_covered()); }
TEST(jit_shared_backend_long, random_products) { check_products<collage::jit>(200, partly_covered()); }

/// The backend without algorithms that spread NaN.
struct definition_only : collage::jit {
  static void configurations(const collage::any_match& m, collage::configuration_list& to) {
    collage::configuration_list all;
    collage::jit::configurations(m, all);
    for (const collage::configuration& c : all)
      if (collage::jit::algorithm(m, c).is_direct()) to.add(c.text());
  }
};
TEST(jit_shared_backend, nan_and_infinity_pass) {
  check_options options = partly_covered();
  options.range.specials = 0.01;
  check_products<definition_only>(cases(10), options);
}

TEST(jit_shared_backend, empty_extents) {
  backend_checker<collage::jit> check;
  for (const shape& left : {shape{0, 8}, {5, 0}, {2, 0, 3}})
    for (const std::vector<std::int64_t>& columns : {std::vector<std::int64_t>{4, 0}, {0, 0}, {3, 5, 0}, {3, 4, 5}})
      check.check(products(check.data(), left, columns), partly_covered());
  EXPECT_EQ(check.checked("two_products"), 6U);
  EXPECT_EQ(check.checked("three_products"), 6U);
}

/// The backend, with all schemes.
struct every_scheme : collage::jit {
  static void configurations(const collage::any_match&, collage::configuration_list& to) {
    namespace jit = collage::detail::jit;
    for (const jit::scheme& s : jit::schemes())
      for (const auto set : {jit::instruction_set::avx512, jit::instruction_set::avx2})
        if (jit::refusal_of(set).empty() || set == jit::instruction_set::avx2)
          to.add(jit::product_point{&s, jit::default_configuration(set)}.text());
  }
};
TEST(jit_shared_backend, schemes_agree_for_finite_numbers) { check_products<every_scheme>(cases(8), partly_covered()); }

// Which matches are taken -------------------------------------------------------------------------------------------------

/// For each node where a pattern matches, why the match is refused; empty if it is not.
std::vector<std::string> verdicts(const collage::graph& network, const std::string& name) {
  const collage::pattern_entry& pattern = pattern_called<collage::jit>(name);
  std::vector<std::string> list;
  for (std::uint32_t node = 0; node < network.nodes().size(); ++node) {
    collage::match_record record;
    if (!collage::match_at(network.view(), pattern.nodes, node, record)) continue;
    const collage::verdict v = pattern.accepts(network.view(), record);
    list.emplace_back(v ? "" : v.rule);
  }
  return list;
}
std::ptrdiff_t taken(const collage::graph& network, const std::string& name) {
  return std::ranges::count(verdicts(network, name), "");
}

constexpr const char* not_first = "the match of these products begins with the first of them";
constexpr const char* is_smaller = "the operator after its first product is part of a larger match";
constexpr const char* is_pair_of_more = "more than two products have its left operand, and three of them are one match";

/// As exporters write the queries, keys and values of attention.
collage::graph attention(bool has_heads, std::int64_t narrow = 8) {
  graph_builder g;
  data_source data;
  const value x = g.input("x", f32({1, 6, 16}));
  const auto linear = [&](const char* name, std::int64_t columns) {
    const value w = data.constant(g, std::string(name) + ".weight", f32({16, columns}));
    return g(op::add, g(op::matmul, x, w), data.constant(g, std::string(name) + ".bias", f32({columns})));
  };
  const auto heads = [&](value y, std::int64_t columns, const shape& permutation) {
    if (!has_heads) return y;
    y = g(op::reshape, y, {.dims = {1, 6, columns / 4, 4}});
    return g(op::transpose, y, {.permutation = permutation});
  };
  g.output("q", heads(linear("q", 16), 16, {0, 2, 1, 3}));
  g.output("k", heads(linear("k", narrow), narrow, {0, 2, 3, 1}));
  g.output("v", heads(linear("v", narrow), narrow, {0, 2, 1, 3}));
  g.output("residual", g(op::add, x, x));
  return g.finish();
}

TEST(jit_shared_matches, one_is_taken_for_the_operators_of_attention) {
  for (const bool has_heads : {false, true}) {
    const collage::graph network = attention(has_heads);
    EXPECT_EQ(taken(network, "three_products"), 1);
    EXPECT_EQ(taken(network, "two_products"), 0);
    for (const std::string& v : verdicts(network, "two_products"))
      EXPECT_TRUE(v == is_pair_of_more || v == not_first || v == is_smaller) << v;
    for (const std::string& v : verdicts(network, "three_products"))
      EXPECT_TRUE(v.empty() || v == not_first || v == is_smaller) << v;
    const auto found = collage::find_candidates(network, collage::table_of<collage::backend_set<collage::jit>>, {true});
    std::vector<std::vector<std::uint32_t>> groups;
    for (const collage::place_candidate& c : found.list)
      if (c.pattern == static_cast<std::uint32_t>(&pattern_called<collage::jit>("three_products") -
                                                  backend_checker<collage::jit>::table().patterns.data())) {
        const std::vector<std::uint32_t>& nodes = found.groups[c.group].nodes;
        EXPECT_EQ(nodes.size(), 6U);
        if (std::ranges::find(groups, nodes) == groups.end()) groups.push_back(nodes);
      }
    EXPECT_EQ(groups.size(), 1U);
  }
}

/// Lists how many matches of two and of three products are taken.
std::pair<std::ptrdiff_t, std::ptrdiff_t> taken_of(const std::function<void(graph_builder&, data_source&)>& build) {
  graph_builder g;
  data_source data;
  build(g, data);
  const collage::graph network = g.finish();
  return {taken(network, "two_products"), taken(network, "three_products")};
}
using counts = std::pair<std::ptrdiff_t, std::ptrdiff_t>;

TEST(jit_shared_matches, have_all_that_can_follow) {
  // y sigmoid(y) and a bias are part of the match, and only the longest is taken.
  EXPECT_EQ(taken_of([](graph_builder& g, data_source& data) {
              const value x = g.input("x", f32({5, 8}));
              const value gate = g(op::matmul, x, data.constant(g, "gate", f32({8, 12})));
              const value up = g(op::matmul, x, data.constant(g, "up", f32({8, 12})));
              g.output("y", g(op::mul, g(op::mul, gate, g(op::sigmoid, gate)), up));
            }),
            (counts{1, 0}));
  // A third operator is left out.
  EXPECT_EQ(taken_of([](graph_builder& g, data_source& data) {
              const value x = g.input("x", f32({5, 8}));
              for (const char* name : {"a", "b", "c"}) {
                value y = g(op::matmul, x, data.constant(g, name, f32({8, 12})));
                for (int i = 0; i < 3; ++i) y = g(op::relu, y);
                g.output(y);
              }
            }),
            (counts{0, 1}));
  // A sum with what is not constant is another kernel's.
  EXPECT_EQ(taken_of([](graph_builder& g, data_source& data) {
              const value x = g.input("x", f32({5, 8}));
              const value a = g(op::matmul, x, data.constant(g, "a", f32({8, 12})));
              g.output("y", g(op::add, a, g(op::matmul, x, data.constant(g, "b", f32({8, 12})))));
            }),
            (counts{1, 0}));
}

TEST(jit_shared_matches, need_constant_matrices_and_one_left_operand) {
  EXPECT_EQ(taken_of([](graph_builder& g, data_source& data) {
              const value x = g.input("x", f32({5, 8})), w = g.input("w", f32({8, 12}));
              g.output("y", g(op::matmul, x, w));
              g.output("z", g(op::matmul, x, data.constant(g, "b", f32({8, 12}))));
            }),
            (counts{0, 0}));
  EXPECT_EQ(
      taken_of([](graph_builder& g, data_source& data) {
        for (const char* name : {"a", "b"})
          g.output(g(op::matmul, g.input(name, f32({5, 8})), data.constant(g, std::string("w") + name, f32({8, 12}))));
      }),
      (counts{0, 0}));
  // One of four is a stack of matrices; the three others are a match.
  EXPECT_EQ(taken_of([](graph_builder& g, data_source& data) {
              const value x = g.input("x", f32({2, 5, 8}));
              g.output("y", g(op::matmul, x, data.constant(g, "stack", f32({2, 8, 12}))));
              for (const char* name : {"a", "b", "c"}) g.output(g(op::matmul, x, data.constant(g, name, f32({8, 12}))));
            }),
            (counts{0, 1}));
  // A product of a product is not computed beside it.
  EXPECT_EQ(taken_of([](graph_builder& g, data_source& data) {
              const value x = g.input("x", f32({5, 8}));
              const value y = g(op::matmul, x, data.constant(g, "a", f32({8, 8})));
              g.output("y", g(op::matmul, y, data.constant(g, "b", f32({8, 12}))));
            }),
            (counts{0, 0}));
}

TEST(jit_shared_matches, are_refused_with_a_reason) {
  graph_builder g;
  data_source data;
  const value x = g.input("x", f32({5, 8}));
  const value a = g(op::matmul, x, data.constant(g, "a", f32({8, 12})));
  g.output("y", g(op::matmul, x, data.constant(g, "b", f32({8, 12}))));
  g.output("z", g(op::add, a, data.constant(g, "larger", f32({3, 1, 1}))));
  const std::vector<std::string> found = verdicts(g.finish(), "two_products");
  EXPECT_NE(std::ranges::find(found, "an operand that broadcasts the product to a larger shape cannot be fused"),
            found.end());
}

// Weights, configurations and plans -----------------------------------------------------------------------------------------

TEST(jit_shared_backend, keeps_the_weights_of_single_products) {
  const collage::graph network = attention(false, 4);
  const collage::pattern_entry& three = pattern_called<collage::jit>("three_products");
  collage::match_record record;
  std::uint32_t root = 0;
  while (!collage::match_at(network.view(), three.nodes, root, record) || !three.accepts(network.view(), record))
    ++root;
  for (const collage::configuration& how : collage::proposed_for(three, network.view(), record)) {
    const collage::kept_constants kept = three.weights(network.view(), record, how);
    ASSERT_EQ(kept.size(), 3U);
    collage::packed_weights packed;
    collage::build_context context(network, 2, packed);
    context.set_configuration(how);
    const collage::kernel made = three.build(network.view(), record, context);
    std::size_t bytes = 0;
    for (const collage::kept_constant& k : kept) bytes += k.bytes;
    EXPECT_EQ(packed.bytes(), bytes) << how.text();
    // The kernels of single products in the same configuration pack nothing more.
    for (std::uint32_t node = 0; node < network.nodes().size(); ++node) {
      const collage::pattern_entry& one = pattern_called<collage::jit>("matmul");
      collage::match_record single;
      if (!collage::match_at(network.view(), one.nodes, node, single)) continue;
      const collage::kernel alone = one.build(network.view(), single, context);
      EXPECT_EQ(packed.size(), 3U) << how.text();
    }
  }
}

TEST(jit_shared_backend, knows_the_texts_of_products) {
  const collage::graph network = attention(false);
  const collage::pattern_entry& three = pattern_called<collage::jit>("three_products");
  collage::match_record record;
  ASSERT_TRUE(collage::match_at(network.view(), three.nodes, 1, record));
  const auto knows = [&](const char* text) {
    return three.knows(network.view(), record, *collage::configuration::of(text));
  };
  EXPECT_TRUE(knows("product1 winograd avx2 tile 6x2 unroll 4 prefetch 0"));
  EXPECT_STREQ(knows("4").rule, "it does not begin with product1, the version of this generator");
  EXPECT_STREQ(
      knows("product1 gauss avx2 tile 6x2 unroll 4 prefetch 0").rule,
      "it names an algorithm that this program does not have: jit_with adds one, and placing again finds another");
  EXPECT_FALSE(knows("product1 classical avx2 tile 9x2 unroll 4 prefetch 0"));
  EXPECT_FALSE(knows("product1 classical avx2 tile 6x2 unroll 4 prefetch 0 products 3"));
  const auto how = *collage::configuration::of("product1 strassen avx2 tile 6x2 unroll 4 prefetch 0");
  const collage::kernel_algorithm algorithm = three.algorithm(network.view(), record, how);
  EXPECT_STREQ(algorithm.name, "strassen");
  EXPECT_GT(algorithm.error_bound, 0);
  EXPECT_EQ(algorithm.input, network.view().inputs_of(0)[0]);
  EXPECT_EQ(algorithm.channels, 2U);
  const auto classical = *collage::configuration::of("product1 classical avx2 tile 6x2 unroll 4 prefetch 0");
  EXPECT_TRUE(three.algorithm(network.view(), record, classical).is_direct());
  EXPECT_EQ(collage::forms_of(three, network.view(), record, how).of(algorithm.input), collage::plain);
}

/// Plans list the root last, which is here the first product in the network.
TEST(jit_shared_backend, plans_run_and_agree) {
  using set = collage::backend_set<collage::jit, collage::portable>;
  const collage::graph network = attention(true);
  collage::place_options options = quick_options();
  options.costs = collage::placing_costs::none;  // by the order of the set: the backend takes what it can
  const collage::plan made = collage::place<set>(network, options);
  const auto is_shared = [](const collage::plan_group& g) { return g.pattern() == "three_products"; };
  ASSERT_EQ(std::ranges::count_if(made.chosen.groups, is_shared), 1);
  EXPECT_TRUE(std::ranges::find_if(made.chosen.groups, is_shared)->kernel.ends_with(", 3 products"));
  for (const collage::plan& p : {made, collage::plan(collage::place<set>(network, quick_options()))})
    for (const collage::verified_placement& each : collage::verify<set>(network, p).placements)
      EXPECT_TRUE(each.passed()) << each.name << each.why();
}

}  // namespace backends_jit_shared_test
#endif
