// Keep-lists: what the user names stays in float32, in kernels, views, conversions, plans and the store.
#include <gtest/gtest.h>
#include <collage/graph/graph.hpp>
#include <collage/io/plan_file.hpp>
#include <collage/ops.hpp>
#include <collage/pattern/expression.hpp>
#include <collage/pattern/pattern.hpp>
#include <collage/place.hpp>
#include <collage/place/explain.hpp>
#include <collage/place/kept_parts.hpp>
#include <collage/place/within_error.hpp>
#include <collage/run/plan.hpp>
#include <collage/run/planned_kernel.hpp>
#include <collage/run/rounding.hpp>
#include <collage/run/verify.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "rounding_backend.hpp"
#include "support/files.hpp"
#include "support/messages.hpp"

namespace place_kept_parts_test {

namespace c = collage;
namespace op = collage::ops;
namespace rounding = place_rounding_backend;
using collage_test::message_of;
using rounding::count;

struct product_relu : c::pattern<"product_relu"> {
  static constexpr auto expr = op::relu(op::matmul(c::any, c::constant));
};
struct two_relus : c::pattern<"two_relus"> {
  static constexpr auto expr = op::relu(op::relu(c::any));
};

/// Any error is within the bound, so that only a keep-list makes kernels of float32 part of a plan.
c::place_options keeping(const c::graph& network, std::vector<c::kept_part> kept) {
  c::place_options how = rounding::options(0.01, rounding::equal_errors(network, 0, 0));
  how.kept = std::move(kept);
  return how;
}
c::placed_plan placed(const c::graph& network, std::vector<c::kept_part> kept) {
  return c::place<rounding::set>(network, keeping(network, std::move(kept)));
}
/// The kernels by node.
std::vector<std::string> kernels_of(const c::plan& made, std::size_t nodes) {
  std::vector<std::string> list(nodes);
  for (const c::plan_group& g : made.chosen.groups)
    for (const std::uint32_t n : g.nodes) list[n] = g.kernel;
  return list;
}
/// The nodes that are kept, as text.
std::string kept_of(const c::graph& network, const std::vector<c::kept_part>& parts) {
  std::string text;
  for (const bool kept : c::kept_nodes(network, parts)) text += kept ? 'x' : '.';
  return text;
}

TEST(place_kept_parts, a_node_by_its_name) {
  const c::graph network = rounding::layers(3);
  ASSERT_EQ(count(placed(network, {}), "product in bf16"), 3);
  const c::placed_plan made = placed(network, {{network.node_name(2)}});  // the second product
  EXPECT_EQ(kernels_of(made, 6)[2], "product");
  EXPECT_EQ(count(made, "product in bf16"), 2);
  // It reads float32: where a kernel in bfloat16 wrote its operand, a conversion stands between. Its weights are as they were.
  const auto& rounded = c::rounded_in(network, c::table_of<rounding::set>, made.chosen);
  const auto rounds = [&](std::uint32_t v) {
    return std::ranges::find(rounded, v, &c::rounded_value::value) != rounded.end();
  };
  EXPECT_TRUE(rounds(network.view().inputs_of(0)[1]));
  EXPECT_FALSE(rounds(network.view().inputs_of(2)[1]));
  for (const c::plan_group& g : made.chosen.groups) {
    if (g.nodes[0] != 2) continue;
    const auto kernel = c::planned_kernel::find(network, c::table_of<rounding::set>, g);
    ASSERT_TRUE(kernel);
    EXPECT_FALSE(c::rounding_of(network, c::forms_of(*kernel->pattern, network.view(), kernel->record, kernel->how)));
  }
  EXPECT_TRUE(c::verify<rounding::set>(network, made)) << c::verify<rounding::set>(network, made).why();
}

TEST(place_kept_parts, all_nodes_of_a_kind) {
  const c::graph network = rounding::layers(3);
  EXPECT_GT(count(placed(network, {}), "relu in bf16"), 1);
  const c::placed_plan made = placed(network, {{"kind:relu"}});
  EXPECT_EQ(count(made, "relu in bf16"), 0);
  EXPECT_EQ(count(made, "relu"), 3);
  EXPECT_EQ(count(made, "product in bf16"), 3);
  EXPECT_EQ(made.chosen.conversions.size(), 6U);  // to bfloat16 and back around each product
  const c::placed_plan all = placed(network, {{"kind:relu"}, {"kind:matmul"}});
  EXPECT_EQ(count(all, "product"), 3);
  EXPECT_TRUE(all.chosen.conversions.empty());
}

TEST(place_kept_parts, what_names_mean) {
  const c::graph network = rounding::layers(3);  // matmul, relu, and so on
  EXPECT_EQ(kept_of(network, {}), "......");
  EXPECT_EQ(kept_of(network, {{"kind:matmul"}}), "x.x.x.");
  EXPECT_EQ(kept_of(network, {{"kind:relu+matmul"}}), ".xxxx.");
  EXPECT_EQ(kept_of(network, {{"kind:relu+matmul+relu+matmul+relu"}}), ".xxxxx");
  EXPECT_EQ(kept_of(network, {{"*"}}), "xxxxxx");
  EXPECT_EQ(kept_of(network, {{"*l*u*"}}), ".x.x.x");
  EXPECT_EQ(kept_of(network, {{network.node_name(0)}, {network.node_name(5)}}), "x....x");
  EXPECT_EQ(kept_of(network, {{"matm*" + network.node_name(4).substr(6)}}), "....x.");
  EXPECT_EQ(kept_of(network, {c::kept_pattern<product_relu>()}), "xxxxxx");
  EXPECT_EQ(count(placed(network, {c::kept_pattern<product_relu>()}), "product"), 3);
}

TEST(place_kept_parts, wrong_names_are_refused_with_the_nearest) {
  const c::graph network = rounding::layers(3);
  const auto said = [&](c::kept_part part) { return message_of([&] { (void)placed(network, {std::move(part)}); }); };
  const std::string &a = network.node_name(0), &b = network.node_name(2), &d = network.node_name(4);
  EXPECT_EQ(said({"matmul"}), "keep matmul: is no node of the network, but an operator; write kind:matmul");
  std::vector<std::string> nearest{a, b, d};
  std::ranges::sort(nearest);
  EXPECT_EQ(said({"matmul_x"}), "keep matmul_x: is no node of the network; the nearest nodes are " + nearest[0] + ", " +
                                    nearest[1] + " and " + nearest[2]);
  EXPECT_EQ(said({"kind:relo"}),
            "keep kind:relo: the network has no operator 'relo'; the nearest operators are relu and matmul");
  EXPECT_EQ(said({"kind:relu+"}),
            "keep kind:relu+: the network has no operator ''; the nearest operators are relu and matmul");
  EXPECT_EQ(said({"kind:relu+relu"}),
            "keep kind:relu+relu: in the network, no such operators follow each other directly; name each kind alone");
  EXPECT_EQ(said(c::kept_pattern<two_relus>()),
            "keep pattern:two_relus: the pattern matches nothing in the network; leave it out");
  EXPECT_NE(said({"rel*x"}), "");
  EXPECT_NE(said({""}), "");
}

TEST(place_kept_parts, plans_say_what_was_kept) {
  const c::graph network = rounding::layers(3);
  c::placed_plan made = placed(network, {{"kind:relu"}, {network.node_name(0)}, {"kind:relu"}});
  const std::string text = "bf16, error at most 1 %, kept in fp32: kind:relu, " + network.node_name(0);
  EXPECT_EQ(made.precision, text);
  EXPECT_EQ(c::kept_in(made.precision), (std::vector<std::string>{"kind:relu", network.node_name(0)}));
  EXPECT_TRUE(c::kept_in("bf16, error at most 1 %").empty());
  made.error = c::plan_error{0.01, 0.005, 0.005, 0.006, 7};
  const c::plan read = c::plan_from_json(c::plan_to_json(made, network), network, "a file");
  EXPECT_EQ(read.precision, text);
  EXPECT_NE(c::explain(network, read)
                .find("By your choice, these stay in float32: kind:relu (3 nodes), " + network.node_name(0) + "."),
            std::string::npos)
      << c::explain(network, read);
  EXPECT_EQ(c::explain(network, placed(network, {})).find("By your choice"), std::string::npos);
}

TEST(place_kept_parts, plans_that_were_kept_by_other_lists_are_not_recalled) {
  const c::graph network = rounding::layers(3);
  const collage_test::temporary_folder folder;
  const auto tuned = [&](std::vector<c::kept_part> kept, const c::plan* previous = nullptr) {
    c::place_options how = keeping(network, std::move(kept));
    how.store = folder.path("costs.db");
    how.previous = previous;
    return c::place<rounding::set>(network, how);
  };
  const c::placed_plan all = tuned({});
  EXPECT_EQ(count(all, "product in bf16"), 3);
  EXPECT_TRUE(tuned({}).report.compared_before);
  for (const c::plan* previous : {static_cast<const c::plan*>(nullptr), static_cast<const c::plan*>(&all)}) {
    const c::placed_plan kept = tuned({{network.node_name(2)}}, previous);
    EXPECT_EQ(kernels_of(kept, 6)[2], "product");
    EXPECT_EQ(count(kept, "product in bf16"), 2);
  }
  EXPECT_EQ(kernels_of(tuned({{network.node_name(4)}}), 6)[4], "product");
  EXPECT_EQ(count(tuned({}), "product in bf16"), 3);
  // Parts that name the same nodes leave the same candidates, and the plan says what was asked for now.
  const c::placed_plan by_star = tuned({{"*"}});
  EXPECT_EQ(by_star.precision, "bf16, error at most 1 %, kept in fp32: *");
  EXPECT_EQ(tuned({{"kind:relu"}, {"kind:matmul"}}).precision,
            "bf16, error at most 1 %, kept in fp32: kind:matmul, kind:relu");
}

/// A slice of all that there is, between a product and another.
c::graph sliced() {
  c::graph_builder g;
  const c::tensor_type weights{c::dtype::f32, {rounding::width, rounding::width}};
  c::value x = g.input("x", {c::dtype::f32, {rounding::rows, rounding::width}});
  x = g(op::matmul, x, g.constant("v", weights, c::uniform{-0.25F, 0.5F}));
  x = g(op::slice, x, {.starts = {0, 0}, .steps = {1, 1}, .extents = {rounding::rows, rounding::width}});
  g.output("y", g(op::matmul, x, g.constant("w", weights, c::uniform{-0.25F, 0.5F})));
  c::graph made = g.finish();
  c::fill_constants(made);
  return made;
}

TEST(place_kept_parts, a_view_that_is_kept_lies_in_float32) {
  const c::graph network = sliced();
  const auto form_of_slice = [&](const std::vector<c::kept_part>& kept) {
    for (const c::plan_group& g : placed(network, kept).chosen.groups)
      if (const auto* const view = std::get_if<c::view_step>(&g.step)) return view->form;
    return std::string("no view");
  };
  EXPECT_EQ(form_of_slice({}), "plain:bf16");
  EXPECT_EQ(form_of_slice({{"kind:slice"}}), "plain");
}

TEST(place_within_error, keeps_what_is_named) {
  const c::graph network = rounding::layers(3);
  c::place_options how = rounding::options(0.05, nullptr);
  how.kept = {{"kind:matmul"}};
  const std::uint32_t weights = network.view().inputs_of(0)[1];
  const auto may_round = [&](std::uint32_t v) {
    const std::vector<c::rounded_value> all = c::rounded_values(network, c::table_of<rounding::set>, how);
    return std::ranges::find(all, v, &c::rounded_value::value) != all.end();
  };
  EXPECT_FALSE(may_round(weights));
  const c::placed_within_error kept =
      c::place_within_error(network, c::table_of<rounding::set>, how, rounding::samples_of(16));
  EXPECT_EQ(count(kept, "product in bf16"), 0);
  how.kept = {{network.node_name(2)}};
  EXPECT_TRUE(may_round(weights));
  const c::placed_within_error one =
      c::place_within_error(network, c::table_of<rounding::set>, how, rounding::samples_of(16));
  ASSERT_TRUE(one.error);
  EXPECT_EQ(kernels_of(one, 6)[2], "product");
  EXPECT_EQ(count(one, "product in bf16"), 2);
  how.kept = {{"nothing"}};
  EXPECT_NE(message_of([&] {
              (void)c::place_within_error(network, c::table_of<rounding::set>, how, rounding::samples_of(16));
            }),
            "");
}

}  // namespace place_kept_parts_test
