// The run-time graph: building, what builders refuse, uses, fingerprints, generated weights.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <collage/collage.hpp>
#include <collage/graph/graph.hpp>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "support/messages.hpp"
#include "support/random_graph.hpp"

namespace graph_graph_test {

using namespace collage_test;

const c::tensor_type image{c::dtype::f32, {1, 3, 8, 8}};

template <class Call>
std::string refusal(const Call& call) {
  return message_of(call, c::error_kind::invalid_argument);
}

// Building ------------------------------------------------------------------------------------------------------------

TEST(graph, records_what_was_built) {
  c::graph_builder b;
  const c::value x = b.input("x", image);
  const c::value w = b.constant("w", {c::dtype::f32, {4, 3, 3, 3}}, c::uniform{-1, 1});
  const c::value y = b(op::conv, x, w, {.strides = {2, 2}});
  const c::value z = b(op::add, y, y);
  b.output("out", z);
  b.output("again", z);
  const c::graph g = b.finish();

  ASSERT_EQ(g.nodes().size(), 2U);
  ASSERT_EQ(g.values().size(), 4U);
  EXPECT_EQ(g.node_name(0), "conv_0");
  EXPECT_EQ(g.value_name(y.index), "conv_0");
  EXPECT_EQ(g.type_of(y.index), (c::tensor_type{c::dtype::f32, {1, 4, 3, 3}}));
  EXPECT_EQ(g.at(x.index).role, c::value_role::input);
  EXPECT_EQ(g.at(w.index).role, c::value_role::constant);
  EXPECT_EQ(g.at(y.index).role, c::value_role::computed);
  EXPECT_EQ(g.at(y.index).producer, 0);
  EXPECT_EQ(g.at(x.index).producer, -1);
  EXPECT_TRUE(g.at(z.index).is_output);
  EXPECT_FALSE(g.at(y.index).is_output);
  EXPECT_EQ(g.inputs().size(), 1U);
  EXPECT_EQ(g.outputs().size(), 2U) << "a value can be an output twice";
  EXPECT_EQ(g.output_name(1), "again");
  const auto attributes = c::from_words<op::conv_attributes>(g.view().words_of(0));
  EXPECT_EQ(attributes.strides, (c::shape{2, 2}));
  EXPECT_EQ(attributes.dilations, (c::shape{1, 1})) << "what was left out is filled in";
  EXPECT_EQ(attributes.pads_end, (c::shape{0, 0}));
}

TEST(graph, the_builder_is_empty_afterwards) {
  c::graph_builder b;
  b.output("y", b(op::relu, b.input("x", image)));
  (void)b.finish();
  b.output("y", b(op::relu, b.input("x", image)));
  const c::graph g = b.finish();
  EXPECT_EQ(g.nodes().size(), 1U);
  EXPECT_EQ(g.node_name(0), "relu_0");
}

TEST(graph, a_list_of_one_operand_is_a_list) {
  c::graph_builder b;
  const c::value x = b.input("x", image);
  b.output("y", b(op::concat, {x}, {.axis = 1}));
  EXPECT_EQ(b.finish().node(0).inputs, 1U);
}

TEST(graph, scalars_are_known) {
  c::graph_builder b;
  const c::value f = b.scalar("f", 0.1), d = b.scalar("d", 0.1, c::dtype::f64), i = b.scalar("i", -3, c::dtype::i64);
  const c::value t = b.scalar("t", 7, c::dtype::boolean);
  const c::graph g = b.finish();
  EXPECT_TRUE(g.at(f.index).has_scalar);
  EXPECT_EQ(g.at(f.index).scalar, 0.1F) << "as it is stored";
  EXPECT_EQ(g.at(d.index).scalar, 0.1);
  EXPECT_EQ(g.at(i.index).scalar, -3);
  EXPECT_EQ(static_cast<int>(g.bytes_of(t.index)[0]), 1);
  EXPECT_TRUE(g.type_of(f.index).dims.empty());
}

TEST(graph, values_know_their_uses_in_order) {
  generator random(seed_or(5));
  for (int round = 0; round < 50; ++round) {
    const c::graph g = random_graph(random, {.nodes = 25});
    std::vector<std::vector<std::pair<std::uint32_t, std::uint32_t>>> expected(g.values().size());
    for (std::uint32_t n = 0; n < g.nodes().size(); ++n)
      for (std::uint32_t i = 0; i < g.node(n).inputs; ++i) expected[g.view().inputs_of(n)[i]].emplace_back(n, i);
    std::size_t total = 0;
    for (std::uint32_t v = 0; v < g.values().size(); ++v) {
      std::vector<std::pair<std::uint32_t, std::uint32_t>> found;
      for (const c::use& u : g.view().uses_of(v)) found.emplace_back(u.node, u.operand);
      EXPECT_EQ(found, expected[v]);
      EXPECT_EQ(g.at(v).first_use, total);
      total += found.size();
      if (g.at(v).producer >= 0) { EXPECT_EQ(g.view().output_of(static_cast<std::uint32_t>(g.at(v).producer)), v); }
    }
    EXPECT_EQ(g.view().uses.size(), total);
  }
}

TEST(graph, unknown_extents_pass_through) {
  c::graph_builder b;
  const c::value x = b.input("x", {c::dtype::f32, {c::unknown, 3, c::unknown, 8}});
  const c::value w = b.constant("w", {c::dtype::f32, {4, 3, 3, 3}}, c::uniform{-1, 1});
  const c::value y = b(op::conv, x, w);
  EXPECT_EQ(b.type_of(y).dims, (c::shape{c::unknown, 4, c::unknown, 6}));
  EXPECT_EQ(b.type_of(b(op::reduce_mean, y, {.axes = {2, 3}, .keep_dims = false})).dims, (c::shape{c::unknown, 4}));
}

// What is refused -----------------------------------------------------------------------------------------------------

TEST(graph, refuses_a_wrong_number_of_operands) {
  c::graph_builder b;
  const c::value x = b.input("x", image);
  EXPECT_EQ(refusal([&] { b(op::relu, x, x); }), "node relu_0 (relu): takes 1 operand, not 2");
  EXPECT_EQ(refusal([&] { b(op::conv, x); }), "node conv_1 (conv): takes 2 to 3 operands, not 1");
  EXPECT_EQ(refusal([&] { b(op::concat, std::span<const c::value>{}); }),
            "node concat_2 (concat): takes 1 or more operands, not 0");
}

/// How many outputs a node has is for its attributes to say.
inline constexpr struct parts : c::kind<parts> {
  struct attributes {
    std::int64_t count = 1;
    static constexpr void visit(auto& self, auto&& see) { see("count", self.count); }
  };
  static constexpr char name[] = "parts";
  static constexpr std::uint32_t outputs = c::any_number;
  static constexpr std::size_t count_outputs(const attributes& a, c::list_view<const c::body_signature>) {
    return static_cast<std::size_t>(a.count);
  }
  static constexpr c::verdict infer(const attributes&, c::inference& io) {
    for (std::size_t i = 0; i < io.out.size(); ++i) io.out[i] = io.in[0];
    return {};
  }
} parts{};

TEST(graph, refuses_a_wrong_number_of_outputs) {
  c::graph_builder b;
  const c::value x = b.input("x", image);
  for (const std::int64_t count : {std::int64_t{0}, std::int64_t{-1}, std::int64_t{1} << 40}) {
    const std::string text = refusal([&] { b(parts, x, {.count = count}); });
    EXPECT_NE(text.find("its attributes must give it 1 to 65535 outputs"), std::string::npos) << text;
  }
  EXPECT_EQ(b.at(b(parts, x, {.count = 2})[1]).producer, 0);
}

TEST(graph, refuses_values_that_do_not_exist) {
  c::graph_builder b;
  const c::value x = b.input("x", image);
  EXPECT_EQ(refusal([&] { b(op::add, x, c::value{7}); }),
            "node add_0 (add): names value 7, which does not exist yet; add values before the nodes that read them");
  EXPECT_EQ(refusal([&] { b.output("y", c::value{9}); }),
            "output: names value 9, which does not exist yet; add values before the nodes that read them");
}

TEST(graph, a_broken_shape_rule_names_node_rule_and_operands) {
  c::graph_builder b;
  const c::value x = b.input("x", image);
  const c::value w = b.constant("w", {c::dtype::f32, {4, 5, 3, 3}}, c::uniform{-1, 1});
  EXPECT_EQ(refusal([&] { b(op::conv, x, w); }),
            "node conv_0 (conv): its weights must have shape [M, C / groups, window...] for an input of C channels "
            "(operand 1); its operands are float32[1x3x8x8], float32[4x5x3x3]");
  EXPECT_EQ(
      refusal([&] { b(op::softmax, x, {.axis = 4}); }),
      "node softmax_1 (softmax): its axis must be within the rank of its input; its operands are float32[1x3x8x8]");
  const c::value one = b.scalar("one", 1);
  EXPECT_EQ(
      refusal([&] { b(op::matmul, one, x); }),
      "node matmul_2 (matmul): its operands must have at least rank 1 (operand 0); its operands are float32[scalar], "
      "float32[1x3x8x8]");
  // A named node is called by its name.
  const c::value operands[] = {x, one, w};
  EXPECT_EQ(
      refusal([&] { b.add(c::kind_of<decltype(op::clip)>, operands, {}, "layers.3/act"); }),
      "node layers.3/act (clip): its operands' shapes must broadcast (operand 2); its operands are float32[1x3x8x8], "
      "float32[scalar], float32[4x5x3x3]");
}

TEST(graph, what_was_refused_leaves_nothing_behind) {
  c::graph_builder b;
  const c::value x = b.input("x", image);
  (void)refusal([&] { b(op::softmax, x, {.axis = 4}); });
  b.output("y", b(op::softmax, x, {.axis = 1}));
  const c::graph g = b.finish();
  EXPECT_EQ(g.nodes().size(), 1U);
  EXPECT_EQ(g.values().size(), 2U);
  EXPECT_EQ(g.view().operands.size(), 1U);
  EXPECT_EQ(g.view().words.size(), 1U);
}

TEST(graph, refuses_names_used_twice) {
  const auto named = [](const char* first, const char* second) {
    c::graph_builder b;
    b.input(first, image);
    const c::value operands[] = {b.input("x", image)};
    b.output("y", b.add(c::kind_of<decltype(op::relu)>, operands, {}, second));
    return refusal([&] { (void)b.finish(); });
  };
  EXPECT_EQ(named("a", "b"), "no error");
  EXPECT_EQ(named("a", "a"), "value a: the name is used twice; give every input, constant and node a name of its own");
  EXPECT_EQ(named("relu_0", ""),
            "value relu_0: the name is used twice; give every input, constant and node a name of its own");

  c::graph_builder b;
  const c::value x = b.input("x", image);
  b.output("y", x);
  b.output("y", b(op::relu, x));
  EXPECT_EQ(refusal([&] { (void)b.finish(); }),
            "output y: the name is used twice; give every output a name of its own");
}

TEST(graph, refuses_tensors_that_are_too_large) {
  c::graph_builder b;
  const std::int64_t many = std::int64_t{1} << 40;
  const std::string limit = "; its extents and their product must be at most 2^48";
  EXPECT_EQ(refusal([&] { b.input("x", {c::dtype::f32, {many, many}}); }),
            "x: a tensor of float32[1099511627776x1099511627776] is too large" + limit);
  EXPECT_EQ(refusal([&] { b.input("x", {c::dtype::f32, {std::int64_t{1} << 62}}); }),
            "x: a tensor of float32[4611686018427387904] is too large" + limit);
  EXPECT_EQ(refusal([&] { b.input("x", {c::dtype::f32, {0, many, many}}); }),
            "x: a tensor of float32[0x1099511627776x1099511627776] is too large" + limit);
  // Results of nodes as well.
  const c::value column = b.input("column", {c::dtype::f32, {1 << 30, 1}}),
                 row = b.input("row", {c::dtype::f32, {1, 1 << 30}});
  EXPECT_EQ(refusal([&] { b(op::add, column, row); }),
            "add_0: a tensor of float32[1073741824x1073741824] is too large" + limit);
  const c::value symbolic = b.input("s", {c::dtype::f32, {c::unknown}});
  EXPECT_EQ(refusal([&] { b(op::reshape, symbolic, {.dims = {many, many, -1}}); }),
            "node reshape_1 (reshape): its target shape is too large; its operands are float32[?]");
}

TEST(graph, refuses_absurd_windows) {
  c::graph_builder b;
  const c::value x = b.input("x", image);
  const std::int64_t huge = 0x7FFFFFFFFFFFFFFF;
  for (const op::pool_attributes& a : {op::pool_attributes{.window = {huge, huge}},
                                       {.window = {2, 2}, .strides = {huge, 1}},
                                       {.window = {2, 2}, .dilations = {1, huge}},
                                       {.window = {2, 2}, .pads_begin = {huge, 0}},
                                       {.window = {2, 2}, .pads_end = {0, huge}}})
    EXPECT_NE(refusal([&] { b(op::max_pool, x, a); }).find("window, strides, dilations and pads must be below 2^31"),
              std::string::npos);
  const c::value w = b.constant("w", {c::dtype::f32, {0, 3, 3, 3}}, c::uniform{0, 1});
  EXPECT_NE(refusal([&] { b(op::conv, x, w, {.groups = huge}); }), "no error");
}

TEST(graph, refuses_constants_it_cannot_hold) {
  c::graph_builder b;
  EXPECT_EQ(refusal([&] { b.constant("w", {c::dtype::i64, {2}}, c::uniform{0, 1}); }),
            "w: only float32 constants can be filled by the generator; bind the contents instead");
  EXPECT_EQ(refusal([&] { b.constant("w", {c::dtype::f32, {c::unknown, 2}}, c::uniform{0, 1}); }),
            "w: every extent of a constant must be known, and it is float32[?x2]");
  EXPECT_EQ(refusal([&] { b.constant("w", {c::dtype::f32, {}}, std::shared_ptr<const std::byte>()); }),
            "w: a constant needs contents; pass its bytes, or add it unbound and call bind");
}

TEST(graph, refuses_scalars_that_do_not_fit) {
  c::graph_builder b;
  const std::string remedy = "; choose an element type that holds it";
  EXPECT_EQ(refusal([&] { b.scalar("s", 128, c::dtype::i8); }), "s: its value cannot be stored as int8" + remedy);
  EXPECT_EQ(refusal([&] { b.scalar("s", -1, c::dtype::u64); }), "s: its value cannot be stored as uint64" + remedy);
  EXPECT_EQ(refusal([&] { b.scalar("s", 0x1p63, c::dtype::i64); }), "s: its value cannot be stored as int64" + remedy);
  EXPECT_EQ(refusal([&] { b.scalar("s", std::nan(""), c::dtype::i32); }),
            "s: its value cannot be stored as int32" + remedy);
  EXPECT_EQ(refusal([&] { b.scalar("s", 1, c::dtype::f16); }), "s: its value cannot be stored as float16" + remedy);
  const c::value low = b.scalar("low", -0x1p63, c::dtype::i64), high = b.scalar("high", 255, c::dtype::u8);
  const c::graph g = b.finish();
  EXPECT_EQ(g.at(low.index).scalar, -0x1p63);
  EXPECT_EQ(static_cast<int>(g.bytes_of(high.index)[0]), 255);
}

TEST(graph, contents_must_be_there_when_they_are_read) {
  c::graph_builder b;
  const c::value w = b.constant("w", {c::dtype::f32, {2}}, c::uniform{0, 1});
  c::graph g = b.finish();
  try {
    (void)g.bytes_of(w.index);
    FAIL() << "nothing was thrown";
  } catch (const c::error& e) {
    EXPECT_STREQ(e.what(), "constant w: its contents were not loaded; call fill_constants(graph) first");
  }
  fill_constants(g);
  EXPECT_EQ(g.bytes_of(w.index).size(), 8U);
}

// Fingerprints --------------------------------------------------------------------------------------------------------

struct variant {
  c::shape input = {1, 3, 8, 8};
  std::int64_t stride = 1;
  bool second_relu = false, swapped = false, other_output = false;
  const char* name = "x";
  float range = 1;
};

std::uint64_t fingerprint(const variant& v) {
  c::graph_builder b;
  const c::value x = b.input(v.name, {c::dtype::f32, v.input});
  const c::value w = b.constant("w", {c::dtype::f32, {4, 3, 3, 3}}, c::uniform{-v.range, v.range});
  const c::value y = b(op::conv, x, w, {.strides = {v.stride, 1}});
  const c::value r = b(op::relu, y);
  const c::value last = v.second_relu ? b(op::relu, r) : b(op::sigmoid, r);
  const c::value d = v.swapped ? b(op::sub, last, r) : b(op::sub, r, last);
  b.output("out", v.other_output ? last : d);
  return b.finish().fingerprint();
}

TEST(graph, fingerprints_tell_networks_apart) {
  const std::uint64_t base = fingerprint({});
  EXPECT_EQ(fingerprint({}), base);
  EXPECT_EQ(fingerprint({.name = "another name"}), base);
  EXPECT_EQ(fingerprint({.range = 2}), base) << "weights do not count";
  const std::uint64_t others[] = {base,
                                  fingerprint({.input = {2, 3, 8, 8}}),
                                  fingerprint({.stride = 2}),
                                  fingerprint({.second_relu = true}),
                                  fingerprint({.swapped = true}),
                                  fingerprint({.other_output = true})};
  for (std::size_t i = 0; i < std::size(others); ++i)
    for (std::size_t j = i + 1; j < std::size(others); ++j) EXPECT_NE(others[i], others[j]) << i << " and " << j;
}

TEST(graph, a_scalar_s_value_is_structure) {
  const auto with = [](double number) {
    c::graph_builder b;
    b.output("y", b(op::mul, b.input("x", image), b.scalar("s", number)));
    return b.finish().fingerprint();
  };
  EXPECT_EQ(with(2), with(2));
  EXPECT_NE(with(2), with(3));
}

// Generated weights ---------------------------------------------------------------------------------------------------

std::vector<std::uint32_t> filled(const std::string& name, c::uniform range, std::size_t count) {
  std::vector<float> values(count);
  c::fill_uniform(values, name, range);
  std::vector<std::uint32_t> bits;
  for (const float v : values) bits.push_back(std::bit_cast<std::uint32_t>(v));
  return bits;
}

// The expected numbers were computed with numpy, by the rule as it is written down.
TEST(fill_uniform, is_exact_to_the_bit) {
  using list = std::vector<std::uint32_t>;
  EXPECT_EQ(filled("0.a.0.weight", {-0.21650635F, 0.21650635F}, 6),
            (list{0x3E061E09U, 0x3E062955U, 0xBE4DD305U, 0xBDDD8593U, 0xBD3DCF18U, 0x3E0064AFU}));
  EXPECT_EQ(filled("stages.0.0.sep.0.0.weight", {-1, 1}, 6),
            (list{0xBF04C30AU, 0x3ECC5E0CU, 0x3D905330U, 0x3F68DC1CU, 0xBDB38380U, 0x3F4C8E5AU}));
  EXPECT_EQ(filled("norm.weight", {0.9F, 1.1F}, 6),
            (list{0x3F6959AAU, 0x3F7B6AAAU, 0x3F724C99U, 0x3F8512C1U, 0x3F8B1092U, 0x3F858C82U}));
  EXPECT_EQ(filled("", {-0.1F, 0.3F}, 4), (list{0x3E81B3BAU, 0x3D94B52DU, 0xBDB7253DU, 0x3E93A2FAU}));
  EXPECT_EQ(filled("same", {0.25F, 0.25F}, 3), (list{0x3E800000U, 0x3E800000U, 0x3E800000U}));
}

TEST(fill_uniform, is_exact_over_long_lists) {
  const std::vector<std::uint32_t> bits = filled("long", {-0.3F, 0.7F}, 100003);
  EXPECT_EQ(bits.back(), 0x3DDD93B8U);
  EXPECT_EQ(std::accumulate(bits.begin(), bits.end(), std::uint64_t{0}), 168686111688009U);
  EXPECT_EQ(std::accumulate(bits.begin(), bits.end(), 0U, [](std::uint32_t a, std::uint32_t b) { return a ^ b; }),
            0x3AAEFA2DU);
}

TEST(fill_uniform, constants_are_filled_by_their_names) {
  c::graph_builder b;
  const c::value a = b.constant("norm.weight", {c::dtype::f32, {2, 3}}, c::uniform{0.9F, 1.1F});
  c::graph g = b.finish();
  fill_constants(g);
  std::uint32_t bits[6];
  ASSERT_EQ(g.bytes_of(a.index).size(), sizeof bits);
  std::memcpy(bits, g.bytes_of(a.index).data(), sizeof bits);
  EXPECT_EQ(bits[0], 0x3F6959AAU);
  EXPECT_EQ(bits[5], 0x3F858C82U);
  const c::graph copy = g;
  EXPECT_EQ(copy.bytes_of(a.index).data(), g.bytes_of(a.index).data()) << "copies share contents";
}

// Names put together in constant evaluation ---------------------------------------------------------------------------

TEST(label, is_put_together_and_cut) {
  EXPECT_STREQ((c::label("stages.") + 0 + ".sep." + 12 + ".weight").c_str(), "stages.0.sep.12.weight");
  EXPECT_STREQ((c::label() + std::int64_t{-9223372036854775807 - 1}).c_str(), "-9223372036854775808");
  const c::label whole = c::label(std::string(60, 'a').c_str()) + "bcdefg";
  std::string kept(60, 'a');
  kept += "bcd";
  EXPECT_EQ(std::string(whole.c_str()), kept);
}

}  // namespace graph_graph_test
