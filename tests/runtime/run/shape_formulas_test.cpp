// Formulas of shapes, for networks made by functions.
#include "support/messages.hpp"

#include <collage/error.hpp>
#include <collage/ops.hpp>
#include <collage/run/session.hpp>
#include <collage/run/shape_formulas.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace run_shape_formulas_test {

namespace c = collage;
namespace op = collage::ops;
using names = std::vector<std::string>;

/// The formulas of the outputs, by name.
std::map<std::string, c::shape_formula> formulas(
    std::vector<c::open_port> inputs, const std::vector<c::shape>& dims,
    const std::function<void(c::graph_builder&, std::span<const c::value>)>& make, names* decides = nullptr) {
  const auto source = c::source_of(inputs, {}, [&](std::span<const c::shape> given) {
    c::graph_builder g;
    std::vector<c::value> values;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      values.push_back(g.input(inputs[i].name.c_str(), {inputs[i].type, given[i]}));
    make(g, values);
    return g.finish();
  });
  const c::shape_formulas found = c::shape_formulas_of(*source, dims);
  if (decides != nullptr) *decides = found.decides_operators;
  std::map<std::string, c::shape_formula> by_name;
  for (const c::shape_formula& f : found.values) by_name[f.value] = f;
  return by_name;
}

TEST(shape_formulas, of_windows_and_enlargements) {
  const auto found = formulas(
      {{.name = "x", .dims = {c::unknown, 3, c::unknown, c::unknown}, .symbols = {"N", "", "H", ""}}},
      {{1, 3, 64, 100}}, [](c::graph_builder& g, std::span<const c::value> in) {
        const c::value w = g.constant("w", {c::dtype::f32, {8, 3, 3, 3}});
        const c::value y = g(op::conv, in[0], w, {.strides = {2, 2}, .pads_begin = {1, 1}, .pads_end = {1, 1}});
        const c::value small = g(op::max_pool, y, {.window = {3, 3}, .strides = {2, 2}});
        g.output("small", small);
        g.output("flat", g(op::reshape, in[0], {.dims = {0, -1}}));
      });
  EXPECT_EQ(found.at("x").extents, (names{"N", "3", "H", "x[3]"}));
  EXPECT_EQ(found.at("conv_0").extents, (names{"N", "8", "ceil(H / 2)", "ceil(x[3] / 2)"}));
  EXPECT_EQ(found.at("conv_0").depends_on, (names{"N", "H", "x[3]"}));
  EXPECT_EQ(found.at("max_pool_1").extents, (names{"N", "8", "ceil(H / 4) - 1", "ceil(x[3] / 4) - 1"}));
  EXPECT_EQ(found.at("reshape_2").extents, (names{"N", "3 H x[3]"}));
  EXPECT_EQ(found.at("w").extents, (names{"8", "3", "3", "3"}));
  EXPECT_TRUE(found.at("w").depends_on.empty());
}

TEST(shape_formulas, of_sums_and_products) {
  const auto found = formulas({{.name = "past", .dims = {c::unknown, 4}, .symbols = {"past", ""}},
                               {.name = "x", .dims = {c::unknown, 4}, .symbols = {"length", ""}}},
                              {{5, 4}, {3, 4}}, [](c::graph_builder& g, std::span<const c::value> in) {
                                const c::value all = g(op::concat, in[0], in[1], {.axis = 0});
                                g.output("all", all);
                                g.output("scores", g(op::matmul, in[1], all, {.transpose_b = true}));
                                g.output("flat", g(op::reshape, all, {.dims = {-1}}));
                              });
  EXPECT_EQ(found.at("concat_0").extents, (names{"past + length", "4"}));
  EXPECT_EQ(found.at("matmul_1").extents, (names{"length", "past + length"}));
  EXPECT_EQ(found.at("reshape_2").extents, (names{"4 past + 4 length"}));
}

TEST(shape_formulas, say_what_has_none) {
  names decides;
  const auto found = formulas(
      {{.name = "x", .dims = {c::unknown}, .symbols = {"n"}}}, {{4}},
      [](c::graph_builder& g, std::span<const c::value> in) {
        const std::int64_t n = g.type_of(in[0]).dims[0];
        const c::value column = g(op::reshape, in[0], {.dims = {n, 1}});
        g.output("y", g(op::expand, column, {.dims = {n, n * n % 7 + 1}}));
        if (n > 20) g.output("z", g(op::relu, column));
      },
      &decides);
  EXPECT_EQ(found.at("expand_1").extents, (names{"n", "?"}));
  EXPECT_EQ(found.at("expand_1").depends_on, (names{"n"}));
  EXPECT_EQ(decides, (names{"n"}));
}

TEST(shape_formulas, leave_out_shapes_at_which_nothing_can_be_made) {
  const auto found = formulas({{.name = "x", .dims = {c::unknown, 2}, .symbols = {"n", ""}}}, {{4, 2}},
                              [](c::graph_builder& g, std::span<const c::value> in) {
                                g.output("y", g(op::reshape, in[0], {.dims = {-1, 4}}));  // of even n alone
                              });
  EXPECT_EQ(found.at("reshape_0").extents, (names{"floor(n / 2)", "4"}));
}

TEST(shape_formulas, are_not_guessed_where_extents_depend_on_each_other) {
  // Each may be any extent beside 1, and both may be equal.
  const auto found =
      formulas({{.name = "a", .dims = {c::unknown, 4}}, {.name = "b", .dims = {c::unknown, 4}}}, {{1, 4}, {1, 4}},
               [](c::graph_builder& g, std::span<const c::value> in) { g.output("y", g(op::add, in[0], in[1])); });
  EXPECT_EQ(found.at("add_0").extents, (names{"?", "4"}));
  EXPECT_EQ(found.at("add_0").depends_on, (names{"a[0]", "b[0]"}));
}

TEST(shape_formulas, of_extents_that_vary_together_alone) {
  const auto found = formulas({{.name = "x", .dims = {c::unknown}, .symbols = {"n"}},
                               {.name = "mask", .dims = {c::unknown}, .symbols = {"n + 1"}}},
                              {{4}, {5}}, [](c::graph_builder& g, std::span<const c::value> in) {
                                const std::int64_t n = g.type_of(in[0]).dims[0];
                                if (g.type_of(in[1]).dims[0] != n + 1)
                                  throw c::error(c::error_kind::invalid_argument, "do not fit", "both");
                                g.output("y", g(op::concat, in[0], in[1], {.axis = 0}));
                              });
  EXPECT_EQ(found.at("mask").extents, (names{"n + 1"}));
  EXPECT_EQ(found.at("concat_0").extents, (names{"2 n + 1"}));
}

TEST(shape_formulas, say_which_extents_cannot_vary) {
  const auto source =
      c::source_of({{.name = "x", .dims = {c::unknown}, .symbols = {"n"}}}, {}, [](std::span<const c::shape> dims) {
        if (dims[0][0] != 4) throw c::error(c::error_kind::invalid_argument, "must be 4", "x");
        c::graph_builder g;
        g.output("y", g(op::relu, g.input("x", {c::dtype::f32, dims[0]})));
        return g.finish();
      });
  const c::shape dims[] = {{4}};
  const c::shape_formulas found = c::shape_formulas_of(*source, dims);
  EXPECT_EQ(found.only_usual, (names{"n"}));
  EXPECT_EQ(found.values[0].extents, (names{"4"}));
}

TEST(shape_formulas, refuse_shapes_that_are_none) {
  const auto source =
      c::source_of({{.name = "x", .dims = {c::unknown}}}, {}, [](std::span<const c::shape>) { return c::graph(); });
  const auto message = [&](const std::vector<c::shape>& dims) {
    return collage_test::message_of([&] { (void)c::shape_formulas_of(*source, dims); });
  };
  EXPECT_NE(message({}).find("needs the shapes of all 1 inputs"), std::string::npos);
  EXPECT_NE(message({{c::unknown}}).find("needs the shapes of all 1 inputs"), std::string::npos);
}

TEST(shape_formulas, of_shapes_that_do_not_work_are_an_error) {
  EXPECT_NE(collage_test::message_of([] {
              (void)formulas({{.name = "x", .dims = {c::unknown}}}, {{3}},
                             [](c::graph_builder& g, std::span<const c::value> in) {
                               g.output("y", g(op::reshape, in[0], {.dims = {2, -1}}));
                             });
            }),
            "");
}

}  // namespace run_shape_formulas_test
