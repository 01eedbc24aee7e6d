// Graphs in words and as Graphviz text.
#include <gtest/gtest.h>

#include <algorithm>
#include <collage/collage.hpp>
#include <collage/graph/print.hpp>
#include <collage/graph/totals.hpp>
#include <collage/io/dot.hpp>
#include <collage/zoo/all.hpp>
#include <sstream>
#include <string>
#include <vector>

namespace graph_print_test {

namespace c = collage;
namespace op = collage::ops;

c::graph small() {
  c::graph_builder g;
  const c::value x = g.input("input", {c::dtype::f32, {1, 16, 28, 28}});
  const c::value w = g.constant("first.weight", {c::dtype::f32, {32, 16, 3, 3}}, c::uniform{-1, 1});
  const c::value y = g(op::conv, x, w, {.pads_begin = {1, 1}, .pads_end = {1, 1}});
  const c::value z = g(op::div, y, g.scalar("eight", 8.0));
  const c::value p = g(op::max_pool, g(op::relu, z), {.window = {2, 2}, .strides = {2, 2}});
  g.output("output", g(op::softmax, p, {.axis = 1}));
  return g.finish();
}

TEST(print, a_graph) {
  EXPECT_EQ(to_string(small()),
            "graph: 5 nodes, 2 constants, 0.00 M parameters, 0.01 GFLOP\n"
            "  in   input: float32[1x16x28x28]\n"
            "  out  output: float32[1x32x14x14] = softmax_4\n"
            "  conv_0 = conv(input, first.weight[32x16x3x3]) {pads_begin=[1,1], pads_end=[1,1]}\n"
            "      -> float32[1x32x28x28]\n"
            "  div_1 = div(conv_0, eight=8) -> float32[1x32x28x28]\n"
            "  relu_2 = relu(div_1) -> float32[1x32x28x28]\n"
            "  max_pool_3 = max_pool(relu_2) {window=[2,2], strides=[2,2]} -> float32[1x32x14x14]\n"
            "  softmax_4 = softmax(max_pool_3) {axis=1} -> float32[1x32x14x14]\n");
}

TEST(print, a_node_with_all_attributes) {
  EXPECT_EQ(to_string(small(), 4, {.all_attributes = true}),
            "softmax_4 = softmax(max_pool_3) {axis=1} -> float32[1x32x14x14]");
  EXPECT_EQ(
      to_string(small(), 0, {.columns = 400, .all_attributes = true}),
      "conv_0 = conv(input, first.weight[32x16x3x3]) {groups=1, strides=[1,1], dilations=[1,1], pads_begin=[1,1], "
      "pads_end=[1,1]} -> float32[1x32x28x28]");
}

TEST(print, what_is_unknown) {
  c::graph_builder g;
  const c::value x = g.input("x", {c::dtype::f32, {c::unknown, 3}});
  g.output("y", g(op::relu, x));
  EXPECT_EQ(to_string(g.finish()),
            "graph: 1 node, 0 constants, 0.00 M parameters, at least 0.00 GFLOP\n"
            "  in   x: float32[?x3]\n"
            "  out  y: float32[?x3] = relu_0\n"
            "  relu_0 = relu(x) -> float32[?x3]\n");
}

TEST(print, an_empty_graph_and_the_stream) {
  std::ostringstream out;
  out << c::graph_builder().finish();
  EXPECT_EQ(out.str(), "graph: 0 nodes, 0 constants, 0.00 M parameters, 0.00 GFLOP\n");
}

TEST(print, attributes_of_every_sort) {
  c::graph_builder g;
  const c::value x = g.input("x", {c::dtype::f32, {2, 3, 4}});
  const c::value w = g.constant("w", {c::dtype::f32, {4}}, c::uniform{1, 1});
  const c::value n = g(op::layer_norm, x, w, {.epsilon = 1e-12});
  const c::value m = g(op::matmul, n, n, {.transpose_b = true});
  const c::value r = g(op::reduce_mean, m, {.axes = {-1}, .keep_dims = false});
  const c::value s = g(op::resize, r, {.sizes = {4, 3}, .mode = op::resize_mode::linear});
  g.output("y", g(op::reshape, s, {.dims = {12}}));
  const std::string text = to_string(g.finish());
  EXPECT_NE(text.find("layer_norm(x, w[4]) {epsilon=1e-12} -> "), std::string::npos) << text;
  EXPECT_NE(text.find("{transpose_b=true}"), std::string::npos) << text;
  EXPECT_NE(text.find("{axes=[2], keep_dims=false}"), std::string::npos) << text;
  EXPECT_NE(text.find("{sizes=[4,3], mode=1}"), std::string::npos) << text;
  EXPECT_NE(text.find("{dims=[12]}"), std::string::npos) << text;
}

TEST(print, long_lines_are_wrapped) {
  c::graph_builder g;
  std::vector<c::value> many;
  for (int i = 0; i < 40; ++i)
    many.push_back(g.input(c::label("a_rather_long_input_name_") + i, {c::dtype::f32, {1, 8}}));
  g.output("y", g(op::concat, many, {.axis = 1}));
  const std::string text = to_string(g.finish());
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 100U) << line;
    EXPECT_EQ(line.find_last_not_of(' ') + 1, line.size()) << "ends in a space: " << line;
  }
  // Nothing is lost.
  for (int i = 0; i < 40; ++i) EXPECT_NE(text.find("a_rather_long_input_name_" + std::to_string(i)), std::string::npos);
}

TEST(print, a_name_longer_than_a_line_stays_whole) {
  c::graph_builder g;
  const std::string name(150, 'n');
  g.output("y", g(op::relu, g.input(name, {c::dtype::f32, {1}})));
  EXPECT_NE(to_string(g.finish()).find(name), std::string::npos);
}

TEST(print, the_networks_of_the_zoo_fit_100_columns) {
  for (const c::zoo::network& n : c::zoo::networks) {
    c::graph_builder g;
    ASSERT_TRUE(c::zoo::build(n.name, g));
    std::istringstream lines(to_string(g.finish()));
    for (std::string line; std::getline(lines, line);) ASSERT_LE(line.size(), 100U) << n.name << ": " << line;
  }
}

TEST(totals, count_arithmetic_and_parameters) {
  const c::graph g = small();
  const double conv = 2.0 * 32 * 28 * 28 * 16 * 9, div = 32 * 28 * 28, relu = div, pool = 32 * 14 * 14 * 4,
               softmax = 5 * 32 * 14 * 14;
  EXPECT_DOUBLE_EQ(c::work_of(g, 0).flops, conv);
  EXPECT_DOUBLE_EQ(c::total_work(g).flops, conv + div + relu + pool + softmax);
  const c::graph_totals t = c::totals_of(g);
  EXPECT_EQ(t.nodes, 5U);
  EXPECT_EQ(t.constants, 2U);
  EXPECT_EQ(t.parameters, 32 * 16 * 9 + 1);
  EXPECT_EQ(t.constant_bytes, 4U * (32 * 16 * 9 + 1));
  EXPECT_TRUE(t.concrete);
}

TEST(totals, integers_are_no_parameters) {
  c::graph_builder g;
  const c::value x = g.input("x", {c::dtype::f32, {6}});
  g.output("y", g(op::add, x, g.constant("w", {c::dtype::f32, {6}}, c::uniform{0, 1})));
  g.scalar("n", 7, c::dtype::i64);
  const c::graph_totals t = c::totals_of(g.finish());
  EXPECT_EQ(t.parameters, 6);
  EXPECT_EQ(t.constant_bytes, 32U);
}

// Graphviz ------------------------------------------------------------------------------------------------------------

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(dot, nodes_edges_inputs_and_outputs) {
  std::ostringstream out;
  write_dot(out, small());
  const std::string text = out.str();
  EXPECT_TRUE(text.starts_with("digraph G {\n")) << text;
  EXPECT_TRUE(text.ends_with("}\n")) << text;
  EXPECT_NE(text.find("0 [label=\"conv_0\"];"), std::string::npos) << text;
  EXPECT_NE(text.find("3->4 [label=\"float32[1x32x14x14]\"];"), std::string::npos) << text;
  EXPECT_NE(text.find("value0 [shape=ellipse, label=\"input\"];\nvalue0->0 "), std::string::npos) << text;
  EXPECT_NE(text.find("output0 [shape=ellipse, label=\"output\"];\n4->output0 "), std::string::npos) << text;
  EXPECT_EQ(count(text, "->"), 6U) << text;
  EXPECT_EQ(text.find("weight"), std::string::npos) << "constants are not drawn";
}

TEST(dot, groups_and_notes) {
  const std::vector<c::dot_note> notes = {
      {0, "onednn\n1.5 us"}, {0, ""}, {1, "a \"quoted\" \\ note"}, {13, ""}, {-1, ""}};
  std::ostringstream out;
  write_dot(out, small(), {.notes = notes, .types = false});
  const std::string text = out.str();
  EXPECT_NE(text.find("label=\"conv_0\\nonednn\\n1.5 us\", style=filled, fillcolor=\"#8dd3c7\"]"), std::string::npos)
      << text;
  EXPECT_EQ(count(text, "#8dd3c7"), 2U) << text;
  EXPECT_EQ(count(text, "#ffffb3"), 2U) << "group 13 starts the colours again: " << text;
  EXPECT_NE(text.find("a \\\"quoted\\\" \\\\ note"), std::string::npos) << text;
  EXPECT_NE(text.find("4 [label=\"softmax_4\"];"), std::string::npos) << text;
  EXPECT_EQ(count(text, "float32"), 0U) << text;
}

TEST(dot, a_named_node_says_its_kind) {
  c::graph_builder g;
  const c::value x = g.input("x", {c::dtype::f32, {2}});
  const c::value operands[] = {x};
  g.output("y", g.add(c::kind_of<decltype(op::relu)>, operands, {}, "head/act"));
  std::ostringstream out;
  write_dot(out, g.finish());
  EXPECT_NE(out.str().find("[label=\"relu\\nhead/act\"]"), std::string::npos) << out.str();
}

TEST(dot, refuses_notes_for_another_graph) {
  const std::vector<c::dot_note> notes(3);
  std::ostringstream out;
  try {
    write_dot(out, small(), {.notes = notes});
    FAIL() << "nothing was thrown";
  } catch (const c::error& e) {
    EXPECT_STREQ(e.what(), "write_dot: 3 notes were given for 5 nodes");
    EXPECT_EQ(e.kind(), c::error_kind::invalid_argument);
  }
}

}  // namespace graph_print_test
