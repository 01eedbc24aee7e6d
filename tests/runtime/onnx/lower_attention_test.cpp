// How attention is lowered, against its definition over all indices; and what its rules refuse.
#ifdef COLLAGE_HAS_ONNX
#include <algorithm>
#include <cmath>
#include <collage/io/onnx.hpp>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "live_node.hpp"
#include "support/reference_check.hpp"
#include "writer.hpp"

namespace onnx_lower_attention_test {

using namespace collage_test;
using namespace collage_test::reference;

// Attention ----------------------------------------------------------------------------------------------------------

enum class masking { none, booleans, numbers };

struct attention_case {
  bool packed = false;
  std::int64_t batch = 1, heads = 1, shared = 1, queries = 1, keys = 1, past = 0, size = 1, width = 1;
  masking mask = masking::none;
  shape mask_dims = {};
  bool causal = false, has_lengths = false, has_scale = false;
  double scale = 1, softcap = 0;
  std::int64_t left = -1, right = -1, mode = 0;

  std::int64_t total() const { return past + keys; }
};

shape operand_dims(const attention_case& c, std::int64_t heads, std::int64_t tokens, std::int64_t size) {
  return c.packed ? shape{c.batch, tokens, heads * size} : shape{c.batch, heads, tokens, size};
}

double element(const attention_case& c, const oracle_value& x, std::int64_t b, std::int64_t head, std::int64_t token,
               std::int64_t i, std::int64_t size) {
  if (!c.packed) return x.real[at(x.type.dims, {b, head, token, i})];
  return x.real[at(x.type.dims, {b, token, head * size + i})];
}

struct attention_inputs {
  oracle_value q, k, v;
  std::optional<oracle_value> mask, past_keys, past_values, lengths;
};

/// The operator's definition. A query in which no key takes part gives zeros.
std::vector<oracle_value> attend(const attention_case& c, const attention_inputs& x) {
  const auto f64 = [](const shape& dims) { return oracle_value(collage::tensor_type{dtype::f64, dims}); };
  oracle_value y = f64(operand_dims(c, c.heads, c.queries, c.width));
  oracle_value keys = f64({c.batch, c.shared, c.total(), c.size}),
               values = f64({c.batch, c.shared, c.total(), c.width});
  oracle_value shown = f64({c.batch, c.heads, c.queries, c.total()});
  const auto join = [&](oracle_value& all, const std::optional<oracle_value>& before, const oracle_value& now) {
    const std::int64_t size = all.type.dims[3];
    for_each_index(all.type.dims, [&](const multi_index& i) {
      all.real[at(all.type.dims, i)] = i[2] < c.past ? before->real[at(before->type.dims, i)]
                                                     : element(c, now, i[0], i[1], i[2] - c.past, i[3], size);
    });
  };
  join(keys, x.past_keys, x.k);
  join(values, x.past_values, x.v);
  const double scale = c.has_scale ? c.scale : 1 / std::sqrt(static_cast<double>(c.size));
  for_each_index({c.batch, c.heads, c.queries}, [&](const multi_index& i) {
    const std::int64_t b = i[0], h = i[1], row = i[2], own = h / (c.heads / c.shared);
    const std::int64_t length = x.lengths ? x.lengths->integer[static_cast<std::size_t>(b)] : c.total();
    const std::int64_t place = row + (x.lengths ? length - c.queries : c.past);
    std::vector<double> raw, capped, biased, weights;
    bool any = false;
    for (std::int64_t j = 0; j < c.total(); ++j) {
      double sum = 0;
      for (std::int64_t d = 0; d < c.size; ++d)
        sum += element(c, x.q, b, h, row, d, c.size) * keys.real[at(keys.type.dims, {b, own, j, d})];
      raw.push_back(sum * scale);
      capped.push_back(c.softcap > 0 ? c.softcap * std::tanh(raw.back() / c.softcap) : raw.back());
      double bias = 0;
      const std::int64_t columns = x.mask ? x.mask->type.dims[x.mask->type.dims.rank - 1] : 0;
      if (x.mask && j >= columns) bias = -infinity;
      else if (c.mask == masking::booleans)
        bias = x.mask->integer[at(x.mask->type.dims, {b, h, row, j})] != 0 ? 0 : -infinity;
      else if (c.mask == masking::numbers) bias = x.mask->real[at(x.mask->type.dims, {b, h, row, j})];
      if (j >= length || (c.causal && j > place) || (c.left >= 0 && j < place - c.left) ||
          (c.right >= 0 && j > place + c.right))
        bias = -infinity;
      biased.push_back(capped.back() + bias);
      any = any || bias != -infinity;
    }
    double largest = -infinity, total = 0;
    for (const double s : biased) largest = std::max(largest, s);
    for (const double s : biased) weights.push_back(any ? std::exp(s - largest) : 0);
    for (const double w : weights) total += w;
    for (double& w : weights) w = any ? w / total : 0;
    for (std::int64_t d = 0; d < c.width; ++d) {
      double sum = 0;
      for (std::int64_t j = 0; j < c.total(); ++j)
        sum += weights[static_cast<std::size_t>(j)] * values.real[at(values.type.dims, {b, own, j, d})];
      y.real[c.packed ? at(y.type.dims, {b, row, h * c.width + d}) : at(y.type.dims, {b, h, row, d})] = sum;
    }
    const std::vector<double>* const modes[] = {&raw, &capped, &biased, &weights};
    for (std::int64_t j = 0; j < c.total(); ++j)
      shown.real[at(shown.type.dims, {b, h, row, j})] = (*modes[c.mode])[static_cast<std::size_t>(j)];
  });
  return {y, keys, values, shown};
}

attention_case random_case(random_source& random) {
  attention_case c;
  c.packed = random.chance(0.5);
  c.batch = random.number(1, 3);
  c.shared = random.number(1, 3);
  c.heads = c.shared * random.number(1, 3);
  c.queries = random.number(1, 5);
  c.keys = random.number(1, 6);
  c.size = random.number(1, 5);
  c.width = random.number(1, 4);
  c.causal = random.chance(0.4);
  c.has_lengths = random.chance(0.3);
  if (!c.has_lengths && random.chance(0.4)) c.past = random.number(1, 4);
  if (random.chance(0.6)) c.mask = random.chance(0.5) ? masking::booleans : masking::numbers;
  // Leading dimensions broadcast or are missing, and the last one may be too short.
  const std::int64_t columns = random.chance(0.3) ? random.number(1, c.total()) : c.total();
  const std::int64_t whole[] = {c.batch, c.heads, c.queries};
  const std::int64_t missing = random.number(0, 3);
  for (std::int64_t d = missing; d < 3; ++d) c.mask_dims.push_back(random.chance(0.4) ? 1 : whole[d]);
  c.mask_dims.push_back(columns);
  c.has_scale = random.chance(0.4);
  if (c.has_scale) c.scale = random.chance(0.2) ? 1 : random.chance(0.2) ? -0.5 : 0.25;
  if (random.chance(0.3)) c.softcap = 1.5;
  if (random.chance(0.2)) c.left = random.number(0, 3);
  if (random.chance(0.2)) c.right = random.number(0, 3);
  c.mode = random.number(0, 3);
  return c;
}

attention_inputs random_inputs(const attention_case& c, random_source& random) {
  attention_inputs x{random.tensor(operand_dims(c, c.heads, c.queries, c.size), dtype::f64),
                     random.tensor(operand_dims(c, c.shared, c.keys, c.size), dtype::f64),
                     random.tensor(operand_dims(c, c.shared, c.keys, c.width), dtype::f64),
                     {},
                     {},
                     {},
                     {}};
  if (c.past > 0) {
    x.past_keys = random.tensor({c.batch, c.shared, c.past, c.size}, dtype::f64);
    x.past_values = random.tensor({c.batch, c.shared, c.past, c.width}, dtype::f64);
  }
  if (c.mask == masking::booleans) {
    x.mask = oracle_value(collage::tensor_type{dtype::boolean, c.mask_dims});
    for (std::int64_t& m : x.mask->integer) m = random.chance(0.6) ? 1 : 0;
  } else if (c.mask == masking::numbers) {
    x.mask = random.tensor(c.mask_dims, dtype::f64);
    for (double& m : x.mask->real)
      if (random.chance(0.4)) m = -infinity;
  }
  if (c.has_lengths) {
    x.lengths = oracle_value(collage::tensor_type{dtype::i64, {c.batch}});
    for (std::int64_t& length : x.lengths->integer) length = random.number(0, c.keys);
  }
  return x;
}

live_node node_of(const attention_case& c, const attention_inputs& x, int outputs) {
  live_node n(24);
  for (const oracle_value* operand : {&x.q, &x.k, &x.v}) n.add(*operand);
  for (const auto* operand : {&x.mask, &x.past_keys, &x.past_values, &x.lengths})
    if (*operand) n.add(**operand);
    else n.leave_out();
  std::vector<proto::AttributeProto> attributes{attribute("is_causal", c.causal ? 1 : 0),
                                                attribute("qk_matmul_output_mode", c.mode)};
  if (c.packed) {
    attributes.push_back(attribute("q_num_heads", c.heads));
    attributes.push_back(attribute("kv_num_heads", c.shared));
  }
  if (c.has_scale) attributes.push_back(attribute("scale", static_cast<float>(c.scale)));
  if (c.softcap > 0) attributes.push_back(attribute("softcap", static_cast<float>(c.softcap)));
  if (c.left >= 0) attributes.push_back(attribute("left_window_size", c.left));
  if (c.right >= 0) attributes.push_back(attribute("right_window_size", c.right));
  n.finish("Attention", outputs, attributes);
  return n;
}

std::string described(const attention_case& c) {
  std::string text = std::string(c.packed ? "packed" : "four dimensions") + ", batch " + std::to_string(c.batch) +
                     ", heads " + std::to_string(c.heads) + " of " + std::to_string(c.shared) + ", queries " +
                     std::to_string(c.queries) + ", keys " + std::to_string(c.past) + " + " + std::to_string(c.keys);
  if (c.mask != masking::none) text += ", mask " + text_of(c.mask_dims);
  if (c.causal) text += ", causal";
  if (c.has_lengths) text += ", lengths";
  return text + ", windows " + std::to_string(c.left) + " " + std::to_string(c.right) + ", mode " +
         std::to_string(c.mode);
}

TEST(onnx_attention, agrees_with_its_definition) {
  random_source random;
  for (int round = 0; round < 400; ++round) {
    const attention_case c = random_case(random);
    const attention_inputs x = random_inputs(c, random);
    const int outputs = random.chance(0.5) ? 4 : 1;
    SCOPED_TRACE(described(c));
    const std::vector<oracle_value> wanted = attend(c, x), got = node_of(c, x, outputs).computed();
    ASSERT_EQ(got.size(), static_cast<std::size_t>(outputs));
    for (std::size_t i = 0; i < got.size(); ++i) expect_same(got[i], wanted[i], "output " + std::to_string(i));
    if (HasFatalFailure()) return;
  }
}

/// Exporters write the scale behind the product of two transposed operands, and kernels look for that.
TEST(onnx_attention, becomes_what_exporters_write) {
  attention_case c{.packed = true, .batch = 1, .heads = 2, .shared = 2, .queries = 4, .keys = 4, .size = 3, .width = 3};
  random_source random;
  const model_folder folder;
  const collage::graph network = collage::onnx::load(folder.write(node_of(c, random_inputs(c, random), 1).model));
  std::string kinds;
  for (const auto& node : network.nodes()) kinds += std::string(kinds.empty() ? "" : " ") + node.kind->name;
  EXPECT_EQ(kinds, "reshape transpose reshape transpose reshape transpose matmul mul softmax matmul transpose reshape");
}

/// Set 23 broadcasts a mask of one column, and 24 takes it as too short.
TEST(onnx_attention, pads_masks_since_set_24) {
  for (const std::int64_t opset : {23, 24}) {
    live_node n(opset);
    const oracle_value one = reals({1, 1, 1, 1}, {1}), keys = reals({1, 1, 2, 1}, {0, 0});
    n.add(one);
    n.add(keys);
    n.add(reals({1, 1, 2, 1}, {2, 4}));
    n.add(reals({1, 1}, {0}));
    n.finish("Attention", 1, {});
    EXPECT_EQ(n.computed()[0].real[0], opset == 23 ? 3 : 2);
  }
}

TEST(onnx_attention, refuses_what_has_no_meaning) {
  const auto refusal = [](std::initializer_list<shape> operands, const std::vector<proto::AttributeProto>& attributes) {
    live_node n(24);
    for (const shape& dims : operands)
      if (dims.rank == 0) n.leave_out();
      else n.add(oracle_value(collage::tensor_type{dims.rank == 1 ? dtype::i64 : dtype::f32, dims}));
    n.finish("Attention", 1, attributes);
    return n.refusal();
  };
  const shape q{1, 4, 2, 3}, k{1, 2, 5, 3}, none;
  const auto expect = [&](std::initializer_list<shape> operands, const std::string& text,
                          const std::vector<proto::AttributeProto>& attributes = {}) {
    EXPECT_NE(refusal(operands, attributes).find(text), std::string::npos) << text << "\n"
                                                                           << refusal(operands, attributes);
  };
  EXPECT_EQ(refusal({q, k, k}, {}), "no error");
  expect({{1, 2, 3}, k, k}, "must all have rank 3, or all have rank 4");
  expect({{1, 2, 6}, {1, 2, 6}, {1, 2, 6}}, "need the attribute q_num_heads");
  expect({{1, 2, 6}, {1, 2, 6}, {1, 2, 6}}, "do not divide into 4 heads", {attribute("q_num_heads", 4)});
  expect({q, k, k}, "but its operand has 4 heads", {attribute("q_num_heads", 2)});
  expect({q, {1, 3, 5, 3}, {1, 3, 5, 3}}, "must be a multiple of the 3 heads");
  expect({q, k, {1, 2, 6, 3}}, "as many values as keys");
  expect({q, {1, 2, 5, 4}, k}, "must have the same size");
  expect({q, {2, 2, 5, 3}, k}, "must be of one batch");
  expect({q, k, k, none, k}, "only one of the past keys");
  expect({q, k, k, none, k, {1, 2, 4, 3}}, "must have shape [batch, heads, tokens, size]");
  expect({q, k, k, {2, 5, 5}}, "its mask must broadcast");
  expect({q, k, k, {2, 6}}, "its mask must broadcast");
  expect({q, k, k, none, none, none, {2}}, "one number of keys for each of its batch");
  expect({q, k, k, none, k, k, {1}}, "it has past keys");
  expect({q, k, k}, "qk_matmul_output_mode is 4", {attribute("qk_matmul_output_mode", 4)});
  expect({q, k, k}, "softmax_precision is 7", {attribute("softmax_precision", 7)});
  expect({q, k, k}, "windows must be -1 or not negative", {attribute("left_window_size", -2)});
}

// FlexAttention ------------------------------------------------------------------------------------------------------

/// A graph that adds a number to its input, or multiplies by it.
proto::AttributeProto changing(const std::string& attribute_name, const std::string& operator_type, double number) {
  proto::GraphProto g;
  g.set_name(attribute_name);
  add_input(g, "x", {"b", "h", "q", "k"}, proto::TensorProto::DOUBLE);
  add_initializer(g, tensor_of<double>("number", {}, {number}));
  add_node(g, operator_type, {"x", "number"}, {"y"});
  add_output(g, "y", {"b", "h", "q", "k"}, proto::TensorProto::DOUBLE);
  return attribute(attribute_name, g);
}

live_node flex_node(const attention_inputs& x, const std::vector<proto::AttributeProto>& attributes) {
  live_node n(26, {x.q, x.k, x.v});
  n.finish("FlexAttention", 1, attributes).set_domain("ai.onnx.preview");
  auto& import = *n.model.add_opset_import();
  import.set_domain("ai.onnx.preview");
  import.set_version(1);
  return n;
}

TEST(onnx_flex_attention, passes_scores_and_weights_through_graphs) {
  random_source random;
  for (int round = 0; round < 50; ++round) {
    attention_case c = random_case(random);
    c.packed = c.causal = c.has_lengths = c.has_scale = false;
    c.past = 0;
    c.softcap = 0;
    c.left = c.right = -1;
    c.mask = masking::none;
    const attention_inputs x = random_inputs(c, random);
    // A number added to all scores changes no weight, and one that multiplies all weights multiplies the result.
    oracle_value wanted = attend(c, x)[0];
    for (double& y : wanted.real) y *= 0.5;
    const live_node n = flex_node(x, {changing("score_mod", "Add", 3), changing("prob_mod", "Mul", 0.5)});
    expect_same(n.computed().at(0), wanted, described(c));
    if (HasFatalFailure()) return;
  }
}

TEST(onnx_flex_attention, refuses_graphs_that_do_not_fit) {
  random_source random;
  const attention_case c{.batch = 1, .heads = 1, .shared = 1, .queries = 2, .keys = 2, .size = 3, .width = 3};
  const attention_inputs x = random_inputs(c, random);
  EXPECT_NE(flex_node(x, {changing("score_mod", "NoSuchOperator", 1)}).refusal().find("this operator is not known"),
            std::string::npos);
  EXPECT_NE(flex_node(x, {changing("prob_mod", "Less", 1)}).refusal().find("must keep the type of its input"),
            std::string::npos);
  proto::AttributeProto two = changing("prob_mod", "Mul", 1);
  add_output(*two.mutable_g(), "x", {}, proto::TensorProto::DOUBLE);
  EXPECT_NE(flex_node(x, {two}).refusal().find("must have one input and one output"), std::string::npos);
}

}  // namespace onnx_lower_attention_test
#endif
