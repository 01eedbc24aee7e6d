// What a backend sees of a match.
#include <gtest/gtest.h>

#include <collage/collage.hpp>
#include <collage/graph/explain.hpp>
#include <collage/graph/graph.hpp>
#include <collage/run/kernel.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace pattern_match_test {

namespace c = collage;
namespace op = collage::ops;
using c::any, c::constant;

struct conv_bias_act : c::pattern<"conv_bias_act"> {
  static constexpr auto expr =
      c::one_of(op::relu, op::leaky_relu)(
          op::add(op::conv(any.as<"x">(), constant.as<"w">(), c::maybe(any.as<"own bias">())), constant.as<"bias">()))
          .as<"act">();
};

TEST(match, a_match_answers_for_its_parts) {
  c::graph_builder b;
  const c::value x = b.input("x", {c::dtype::f32, {1, 6, 8, 8}});
  const c::value w = b.constant("w", {c::dtype::f32, {4, 3, 3, 3}}, c::uniform{-1, 1});
  const c::value bias = b.constant("bias", {c::dtype::f32, {4, 1, 1}}, c::uniform{-1, 1});
  const c::value y = b(op::add, bias, b(op::conv, x, w, {.groups = 2, .pads_begin = {1, 1}}));
  b.output("out", b(op::leaky_relu, y, {.alpha = 0.25}));
  const c::graph g = b.finish();

  c::match_record record;
  ASSERT_TRUE(match_at(g.view(), c::nodes_of<conv_bias_act>, 2, record));
  const c::match<conv_bias_act> m(g.view(), record);
  EXPECT_EQ(m[op::conv].groups, 2);
  EXPECT_EQ(m[op::conv].pads_begin, (c::shape{1, 1}));
  EXPECT_EQ(m[op::leaky_relu].alpha, 0.25);
  EXPECT_TRUE(m.is(m.get<"act">(), op::leaky_relu));
  EXPECT_FALSE(m.is(m.get<"act">(), op::relu));
  EXPECT_EQ(m.get<"bias">().out, (c::shape{4, 1, 1}));
  EXPECT_TRUE(m.get<"bias">().is_constant);
  EXPECT_FALSE(m.get<"x">().is_constant);
  EXPECT_FALSE(m.get<"own bias">().present());
  EXPECT_EQ(m.arguments(), 3U);
  EXPECT_EQ(m.index_of(m.get<"x">()), 0U);
  EXPECT_EQ(m.index_of(m.get<"w">()), 1U);
  EXPECT_EQ(m.index_of(m.get<"bias">()), 2U);
  EXPECT_EQ(m.index_of(m.get<"act">()), c::match_record::nothing);
  EXPECT_EQ(m.argument(1).value, w.index);
  EXPECT_EQ(m.output().value, g.outputs()[0]);
  EXPECT_EQ(m.output().kind->id, c::kind_id<struct op::leaky_relu>);
  EXPECT_EQ(m.operand(m.output(), 0).value, y.index);
  EXPECT_FALSE(m.operand(m.output(), 1).present());
}

TEST(match, attributes_of_what_is_not_there_are_the_defaults) {
  c::graph_builder b;
  const c::value x = b.input("x", {c::dtype::f32, {1, 3, 8, 8}});
  const c::value w = b.constant("w", {c::dtype::f32, {4, 3, 3, 3}}, c::uniform{-1, 1});
  b.output("out", b(op::relu, b(op::add, b(op::conv, x, w), b.scalar("bias", 1))));
  const c::graph g = b.finish();
  c::match_record record;
  ASSERT_TRUE(match_at(g.view(), c::nodes_of<conv_bias_act>, 2, record));
  const c::match<conv_bias_act> m(g.view(), record);
  EXPECT_EQ(m[op::leaky_relu].alpha, op::alpha_attributes{}.alpha) << "relu was matched";
}

TEST(match, single_operators_take_their_optional_operands) {
  c::graph_builder b;
  const c::value x = b.input("x", {c::dtype::f32, {1, 3, 8, 8}});
  const c::value w = b.constant("w", {c::dtype::f32, {3, 3, 1, 1}}, c::uniform{-1, 1});
  const c::value y = b(op::conv, b(op::conv, x, w), w, b.constant("bias", {c::dtype::f32, {3}}, c::uniform{0, 1}));
  b.output("out", b(op::concat, {x, y, x}, {.axis = 1}));
  const c::graph g = b.finish();
  c::match_record record;
  EXPECT_TRUE(match_at(g.view(), c::nodes_of<c::single<op::conv>>, 0, record));
  EXPECT_EQ(record.arguments, 2U);
  EXPECT_TRUE(match_at(g.view(), c::nodes_of<c::single<op::conv>>, 1, record));
  EXPECT_EQ(record.arguments, 3U);
  ASSERT_TRUE(match_at(g.view(), c::nodes_of<c::single<op::concat>>, 2, record));
  EXPECT_EQ(std::vector<std::uint32_t>(record.argument_list().begin(), record.argument_list().end()),
            (std::vector<std::uint32_t>{x.index, y.index}));
}

struct conv_relus : c::pattern<"conv_relus"> {
  static constexpr auto expr =
      c::repeat<1, 4>(op::relu(op::conv(c::previous, constant.as<"w">())).as<"layer">(), c::variable.as<"x">());
};

TEST(match, a_repetition_is_asked_by_iteration) {
  c::graph_builder b;
  c::value x = b.input("x", {1, 3, 8, 8});
  for (int i = 0; i < 3; ++i)
    x = b(op::relu, b(op::conv, x, b.constant(c::label("w") + i, {3, 3, 1, 1}, c::uniform{-1, 1})));
  b.output("out", x);
  const c::graph g = b.finish();
  const c::graph_view view = g.view();
  c::match_record record;
  ASSERT_TRUE(match_at(view, c::nodes_of<conv_relus>, 5, record));
  const c::match<conv_relus> m(view, record);
  ASSERT_EQ(m.count<"w">(), 3U);
  EXPECT_EQ(m.count<"x">(), 1U);
  for (std::size_t i = 0; i < m.count<"w">(); ++i)
    EXPECT_EQ(g.value_name(m.get<"w">(i).value), "w" + std::to_string(i)) << "counted from the start";
  EXPECT_FALSE(m.get<"w">(3).present());
  EXPECT_FALSE(m.get<"w">(100).present());
  EXPECT_EQ(m.get<"layer">(2).value, m.output().value);
  EXPECT_EQ(m.get<"x">().value, g.inputs()[0]);
}

struct scaled_sum : c::pattern<"scaled_sum"> {
  static constexpr auto expr =
      op::add(op::conv(any.as<"x">(), constant.as<"w">(), c::maybe(any.as<"bias">())).escaping(), any.as<"left">());
};
/// A convolution without a bias, read outside as well, and what is added to it.
struct summed {
  summed() {
    c::graph_builder b;
    x = b.input("x", {c::dtype::f32, {1, 2, 4, 4}});
    w = b.constant("w", {c::dtype::f32, {2, 2, 1, 1}}, {-1, 1});
    left = b.input("left", {c::dtype::f32, {1, 2, 4, 4}});
    const c::value inner = b(op::conv, x, w);
    b.output("inner", b(op::relu, inner));
    b.output("sum", b(op::add, inner, left));
    g = b.finish();
    c::fill_constants(g);
    for (std::uint32_t node = 0; node < 3 && !found; ++node)
      found = match_at(g.view(), c::nodes_of<scaled_sum>, node, record);
  }
  c::value x, w, left;
  c::graph g;
  c::match_record record;
  bool found = false;
};

TEST(match, what_a_kernel_reads_and_writes_has_a_type) {
  const summed s;
  ASSERT_TRUE(s.found);
  const c::match<scaled_sum> m(s.g.view(), s.record);
  const c::kernel_input<float> left = m.in<"left", float>(), w = m.in<float>(m.get<"w">()),
                               bias = m.in<"bias", float>();
  const c::kernel_output<float> sum = m.out<float>(), inner = m.out<float>(1);
  ASSERT_EQ(m.arguments(), 3U);
  ASSERT_EQ(m.outputs(), 2U);
  float memory[5] = {};
  const void* in[3] = {memory, nullptr, memory + 2};  // the weights are not read
  void* out[2] = {memory + 3, memory + 4};
  const c::kernel_call call{in, out, nullptr};
  EXPECT_EQ(left(call), in[m.index_of(m.get<"left">())]);
  EXPECT_EQ(w(call), nullptr);
  EXPECT_EQ(bias(call), nullptr);
  EXPECT_EQ(sum(call), out[0]);
  EXPECT_EQ(inner(call), out[1]);
  EXPECT_TRUE(left.present());
  EXPECT_FALSE(bias.present());
  EXPECT_EQ(left.index(), 2U);
  EXPECT_EQ(inner.index(), 1U);
  EXPECT_FALSE(m.in<float>(m.output()).present()) << "the kernel computes it";
  EXPECT_EQ(m.out<float>(7)(call), nullptr);
}

TEST(match, a_kernel_that_takes_another_type_is_not_built) {
  const summed s;
  ASSERT_TRUE(s.found);
  const c::match<scaled_sum> m(s.g.view(), s.record);
  const auto told = [](const auto& what) -> std::string {
    try {
      what();
      return "nothing";
    } catch (const c::error& e) {
      EXPECT_EQ(e.kind(), c::error_kind::unsupported);
      return e.what();
    }
  };
  EXPECT_EQ(told([&] { return m.in<"left", double>(); }),
            "scaled_sum: left is float32, but the kernel reads it as float64; check the element type in `accepts`");
  EXPECT_EQ(told([&] { return m.in<std::int32_t>(m.get<"x">()); }),
            "scaled_sum: an operand is float32, but the kernel reads it as int32; check the element type in `accepts`");
  EXPECT_EQ(
      told([&] { return m.out<double>(1); }),
      "scaled_sum: its output is float32, but the kernel reads it as float64; check the element type in `accepts`");
  EXPECT_EQ(told([&] { return m.in<"left", std::byte>(); }), "nothing") << "bytes are whatever lies there";
  EXPECT_EQ(told([&] { return m.in<"bias", double>(); }), "nothing") << "it is absent";
}

TEST(match, an_absent_operand_has_no_contents) {
  const summed s;
  ASSERT_TRUE(s.found);
  const c::match<scaled_sum> m(s.g.view(), s.record);
  c::packed_weights packed;
  const c::build_context context(s.g, 1, packed);
  EXPECT_FALSE(m.get<"bias">().present());
  EXPECT_EQ(m.get<"bias">().kind, nullptr);
  EXPECT_EQ(context.constant<float>(m.get<"bias">()), nullptr);
  EXPECT_EQ(context.constant<float>(m.get<"bias">().value), nullptr);
  EXPECT_EQ(context.constant<float>(m.get<"x">()), nullptr) << "it is no constant";
  ASSERT_TRUE(m.get<"w">().present());
  ASSERT_NE(context.constant<float>(m.get<"w">()), nullptr);
  EXPECT_EQ(context.constant<float>(m.get<"w">()), context.constant<float>(s.w.index));
}

TEST(match, why_not_with_the_names_of_the_graph) {
  c::graph_builder b;
  const c::value x = b.input("image", {1, 3, 8, 8});
  const c::value y = b.named("stem")(op::conv, x, b.constant("weights", {4, 3, 3, 3}, c::uniform{-1, 1}));
  b.output("out", b.named("act")(op::relu, b(op::add, y, b.input("other", {4, 1, 1}))));
  const c::graph g = b.finish();
  EXPECT_STREQ(
      c::explain_match(conv_bias_act{}, g, 2).text,
      "pattern conv_bias_act does not match at node 2 (relu, act): operand 1 of node 1 (add) is the input other "
      "where the pattern has constant as bias: it must be a constant");
  EXPECT_STREQ(
      c::explain_match(conv_bias_act{}, g).text,
      "pattern conv_bias_act does not match anywhere; it comes nearest at node 2 (relu, act): operand 1 of node "
      "1 (add) is the input other where the pattern has constant as bias: it must be a constant");
  EXPECT_STREQ(c::explain_match(op::add(op::conv(any, any), any), g).text,
               "the pattern matches at node 1 (add), of nodes 0 and 1");
  EXPECT_STREQ(c::explain_match("of the table", c::nodes_of<c::single<op::conv>>, g, 1).text,
               "pattern of the table does not match at node 1 (add): there is node 1 (add) where the pattern has "
               "conv(any, any, maybe any): it is another operator");
  EXPECT_STREQ(c::explain_match(conv_relus{}, g, 17).text,
               "pattern conv_relus cannot match at node 17: the graph has 3 nodes, counted from 0");
}

}  // namespace pattern_match_test
