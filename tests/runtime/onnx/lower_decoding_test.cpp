// How rotary embeddings, caches and operators with a state are lowered, against their definitions; and what their rules refuse.
#ifdef COLLAGE_HAS_ONNX
#include <algorithm>
#include <cmath>
#include <collage/io/onnx.hpp>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "live_node.hpp"
#include "support/reference_check.hpp"
#include "writer.hpp"

namespace onnx_lower_decoding_test {

using namespace collage_test;
using namespace collage_test::reference;

// Rotary embeddings --------------------------------------------------------------------------------------------------

TEST(onnx_rotary_embedding, agrees_with_its_definition) {
  random_source random;
  for (int round = 0; round < 200; ++round) {
    const bool packed = random.chance(0.5), neighbours = random.chance(0.5), has_positions = random.chance(0.5);
    const std::int64_t batch = random.number(1, 3), heads = random.number(1, 3), tokens = random.number(1, 4);
    const std::int64_t half = random.number(1, 3), rest = random.chance(0.5) ? random.number(1, 3) : 0;
    const std::int64_t size = 2 * half + rest, most = 7;
    const oracle_value x =
        random.tensor(packed ? shape{batch, tokens, heads * size} : shape{batch, heads, tokens, size}, dtype::f64);
    const shape table = has_positions ? shape{most, half} : shape{batch, tokens, half};
    const oracle_value cosine = random.tensor(table, dtype::f64), sine = random.tensor(table, dtype::f64);
    oracle_value positions(collage::tensor_type{dtype::i64, {batch, tokens}});
    for (std::int64_t& p : positions.integer) p = random.number(0, most - 1);
    live_node n(23);
    for (const oracle_value* operand : {&x, &cosine, &sine}) n.add(*operand);
    if (has_positions) n.add(positions);
    std::vector<proto::AttributeProto> attributes{attribute("interleaved", neighbours ? 1 : 0)};
    if (rest != 0) attributes.push_back(attribute("rotary_embedding_dim", 2 * half));
    if (packed) attributes.push_back(attribute("num_heads", heads));
    n.finish("RotaryEmbedding", 1, attributes);

    oracle_value wanted(x.type);
    for_each_index({batch, heads, tokens, size}, [&](const multi_index& i) {
      const auto place = [&](std::int64_t d) {
        return packed ? at(x.type.dims, {i[0], i[2], i[1] * size + d}) : at(x.type.dims, {i[0], i[1], i[2], d});
      };
      const std::int64_t d = i[3];
      if (d >= 2 * half) {
        wanted.real[place(d)] = x.real[place(d)];
        return;
      }
      const std::int64_t pair = neighbours ? d / 2 : d % half;
      const bool is_second = neighbours ? d % 2 == 1 : d >= half;
      const std::int64_t other = neighbours ? (is_second ? d - 1 : d + 1) : (is_second ? d - half : d + half);
      const std::size_t angle = has_positions ? at(table, {positions.integer[at({batch, tokens}, {i[0], i[2]})], pair})
                                              : at(table, {i[0], i[2], pair});
      wanted.real[place(d)] =
          cosine.real[angle] * x.real[place(d)] + (is_second ? 1 : -1) * sine.real[angle] * x.real[place(other)];
    });
    expect_same(n.computed().at(0), wanted, "round " + std::to_string(round));
    if (HasFatalFailure()) return;
  }
}

TEST(onnx_rotary_embedding, refuses_what_has_no_meaning) {
  const auto refusal = [](const std::vector<shape>& operands, const std::vector<proto::AttributeProto>& attributes) {
    live_node n(23);
    for (const shape& dims : operands) n.add(oracle_value(collage::tensor_type{dtype::f32, dims}));
    n.finish("RotaryEmbedding", 1, attributes);
    return n.refusal();
  };
  const shape table{1, 4, 2};
  EXPECT_EQ(refusal({{1, 3, 4, 4}, table, table}, {}), "no error");
  for (const auto& [operands, attributes] :
       std::initializer_list<std::pair<std::vector<shape>, std::vector<proto::AttributeProto>>>{
           {{{1, 4, 12}, table, table}, {}},
           {{{1, 4, 12}, table, table}, {attribute("num_heads", 5)}},
           {{{1, 3, 4, 5}, table, table}, {}},
           {{{1, 3, 4, 4}, table, {1, 4, 1}}, {}},
           {{{1, 3, 4, 4}, table, {1, 3, 2}}, {}},
           {{{1, 3, 4, 4}, table, table}, {attribute("rotary_embedding_dim", 6)}},
           {{{1, 3, 4, 4}, table, table}, {attribute("rotary_embedding_dim", -2)}}})
    EXPECT_NE(refusal(operands, attributes), "no error");
}

// Caches -------------------------------------------------------------------------------------------------------------

TEST(onnx_tensor_scatter, agrees_with_its_definition) {
  random_source random;
  for (int round = 0; round < 200; ++round) {
    const std::int64_t rank = random.number(2, 5), axis = random.number(1, rank - 1);
    shape dims;
    for (std::int64_t d = 0; d < rank; ++d) dims.push_back(random.number(1, 4));
    shape written = dims;
    const auto along = static_cast<std::size_t>(axis);
    written[along] = random.number(1, dims[along]);
    const bool circular = random.chance(0.5), has_starts = random.chance(0.8);
    const oracle_value cache = random.tensor(dims, dtype::f64), update = random.tensor(written, dtype::f64);
    oracle_value starts(collage::tensor_type{dtype::i64, {dims[0]}});
    if (has_starts)
      for (std::int64_t& s : starts.integer) s = random.number(0, circular ? 9 : dims[along] - written[along]);
    live_node n(24);
    n.add(cache);
    n.add(update);
    if (has_starts) n.add(starts);
    std::vector<proto::AttributeProto> attributes{attribute("mode", circular ? "circular" : "linear")};
    if (axis != rank - 2 || random.chance(0.5)) attributes.push_back(attribute("axis", axis));
    n.finish("TensorScatter", 1, attributes);
    oracle_value wanted = cache;
    for_each_index(written, [&](const multi_index& i) {
      multi_index to = i;
      to[along] = (starts.integer[static_cast<std::size_t>(i[0])] + i[along]) % dims[along];
      wanted.real[at(dims, to)] = update.real[at(written, i)];
    });
    expect_same(n.computed().at(0), wanted, "round " + std::to_string(round) + ", cache " + text_of(dims));
    if (HasFatalFailure()) return;
  }
}

TEST(onnx_tensor_scatter, refuses_what_has_no_meaning) {
  const auto refusal = [](std::initializer_list<shape> operands, const std::vector<proto::AttributeProto>& attributes) {
    live_node n(24);
    for (const shape& dims : operands)
      n.add(oracle_value(collage::tensor_type{dims.rank == 1 ? dtype::i64 : dtype::f32, dims}));
    n.finish("TensorScatter", 1, attributes);
    return n.refusal();
  };
  EXPECT_EQ(refusal({{2, 4, 3}, {2, 1, 3}, {2}}, {}), "no error");
  EXPECT_NE(refusal({{2, 4, 3}, {2, 5, 3}}, {}), "no error");
  EXPECT_NE(refusal({{2, 4, 3}, {2, 1, 2}}, {}), "no error");
  EXPECT_NE(refusal({{2, 4, 3}, {1, 3}}, {}), "no error");
  EXPECT_NE(refusal({{2, 4, 3}, {2, 1, 3}, {3}}, {}), "no error");
  EXPECT_NE(refusal({{2, 4, 3}, {2, 4, 3}}, {attribute("axis", 0)}), "no error");
  EXPECT_NE(refusal({{2, 4, 3}, {2, 1, 3}}, {attribute("mode", "spiral")}), "no error");
}

// States -------------------------------------------------------------------------------------------------------------

TEST(onnx_causal_conv_with_state, agrees_with_its_definition) {
  random_source random;
  for (int round = 0; round < 100; ++round) {
    const std::int64_t batch = random.number(1, 2), channels = random.number(1, 4), length = random.number(1, 5);
    const std::int64_t window = random.number(1, 4), before = window - 1;
    const bool has_bias = random.chance(0.5), has_state = random.chance(0.5), activated = random.chance(0.5);
    const oracle_value x = random.tensor({batch, channels, length}, dtype::f64);
    const oracle_value w = random.tensor({channels, 1, window}, dtype::f64);
    const oracle_value bias = random.tensor({channels}, dtype::f64);
    const oracle_value state = random.tensor({batch, channels, before}, dtype::f64);
    live_node n(27, {x, w});
    if (has_bias) n.add(bias);
    else n.leave_out();
    if (has_state) n.add(state);
    n.finish("CausalConvWithState", 2, {attribute("activation", activated ? "silu" : "none")});
    const auto at_place = [&](std::int64_t b, std::int64_t c, std::int64_t place) {
      if (place >= 0) return x.real[at(x.type.dims, {b, c, place})];
      return has_state ? state.real[at(state.type.dims, {b, c, before + place})] : 0.0;
    };
    oracle_value y(x.type), last(collage::tensor_type{dtype::f64, {batch, channels, before}});
    for_each_index(x.type.dims, [&](const multi_index& i) {
      double sum = has_bias ? bias.real[static_cast<std::size_t>(i[1])] : 0;
      for (std::int64_t k = 0; k < window; ++k)
        sum += w.real[at(w.type.dims, {i[1], 0, k})] * at_place(i[0], i[1], i[2] + k - before);
      y.real[at(y.type.dims, i)] = activated ? sum / (1 + std::exp(-sum)) : sum;
    });
    for_each_index(last.type.dims, [&](const multi_index& i) {
      last.real[at(last.type.dims, i)] = at_place(i[0], i[1], length - before + i[2]);
    });
    const std::vector<oracle_value> got = n.computed();
    expect_same(got.at(0), y, "result");
    expect_same(got.at(1), last, "state");
    if (HasFatalFailure()) return;
  }
}

struct linear_case {
  std::int64_t batch, tokens, heads, shared, size, width;
  bool decays, corrects, has_state, decays_by_head, corrects_all_heads;
};
struct linear_inputs {
  oracle_value q, k, v, state, decay, beta;
};

/// The recurrence, number by number.
std::vector<oracle_value> remember(const linear_case& c, const linear_inputs& x) {
  oracle_value y(collage::tensor_type{dtype::f64, {c.batch, c.tokens, c.heads * c.width}}), state = x.state;
  if (!c.has_state) std::fill(state.real.begin(), state.real.end(), 0.0);
  const shape& dims = state.type.dims;
  for_each_index({c.batch, c.tokens, c.shared}, [&](const multi_index& i) {
    const std::int64_t b = i[0], t = i[1], h = i[2];
    const auto number = [&](const oracle_value& of, std::int64_t column) {
      return of.real[at(of.type.dims, {b, t, column})];
    };
    const auto cell = [&](std::int64_t d, std::int64_t m) -> double& { return state.real[at(dims, {b, h, d, m})]; };
    for (std::int64_t d = 0; c.decays && d < c.size; ++d)
      for (std::int64_t m = 0; m < c.width; ++m)
        cell(d, m) *= std::exp(number(x.decay, c.decays_by_head ? h : h * c.size + d));
    for (std::int64_t m = 0; m < c.width; ++m) {
      double added = number(x.v, h * c.width + m);
      for (std::int64_t d = 0; c.corrects && d < c.size; ++d) added -= number(x.k, h * c.size + d) * cell(d, m);
      if (c.corrects) added *= number(x.beta, c.corrects_all_heads ? 0 : h);
      for (std::int64_t d = 0; d < c.size; ++d) cell(d, m) += number(x.k, h * c.size + d) * added;
    }
    const std::int64_t group = c.heads / c.shared;
    for (std::int64_t head = h * group; head < (h + 1) * group; ++head)
      for (std::int64_t m = 0; m < c.width; ++m) {
        double sum = 0;
        for (std::int64_t d = 0; d < c.size; ++d) sum += number(x.q, head * c.size + d) * cell(d, m);
        y.real[at(y.type.dims, {b, t, head * c.width + m})] = sum / std::sqrt(static_cast<double>(c.size));
      }
  });
  return {y, state};
}

live_node linear_node(const linear_case& c, const linear_inputs& x) {
  live_node n(27, {x.q, x.k, x.v});
  if (c.has_state) n.add(x.state);
  else n.leave_out();
  if (c.decays) n.add(x.decay);
  else n.leave_out();
  if (c.corrects) n.add(x.beta);
  const char* const rule = c.decays ? (c.corrects ? "gated_delta" : "gated") : c.corrects ? "delta" : "linear";
  n.finish("LinearAttention", 2,
           {attribute("q_num_heads", c.heads), attribute("kv_num_heads", c.shared), attribute("update_rule", rule)});
  return n;
}

linear_inputs inputs_of(const linear_case& c, random_source& random) {
  const auto tensor = [&](std::int64_t columns) { return random.tensor({c.batch, c.tokens, columns}, dtype::f64); };
  return {tensor(c.heads * c.size),
          tensor(c.shared * c.size),
          tensor(c.shared * c.width),
          random.tensor({c.batch, c.shared, c.size, c.width}, dtype::f64),
          tensor(c.decays_by_head ? c.shared : c.shared * c.size),
          tensor(c.corrects_all_heads ? 1 : c.shared)};
}

TEST(onnx_linear_attention, agrees_with_its_definition) {
  random_source random;
  for (int round = 0; round < 100; ++round) {
    const std::int64_t shared = random.number(1, 3);
    const linear_case c{random.number(1, 2),
                        random.number(1, 4),
                        shared * random.number(1, 2),
                        shared,
                        random.number(2, 3),
                        random.number(1, 3),
                        random.chance(0.5),
                        random.chance(0.5),
                        random.chance(0.5),
                        random.chance(0.5),
                        random.chance(0.5)};
    const linear_inputs x = inputs_of(c, random);
    const std::vector<oracle_value> got = linear_node(c, x).computed(), wanted = remember(c, x);
    for (std::size_t i = 0; i < 2; ++i) expect_same(got.at(i), wanted[i], "output " + std::to_string(i));
    if (HasFatalFailure()) return;
  }
}

TEST(onnx_linear_attention, refuses_what_has_no_meaning) {
  random_source random;
  linear_case c{1, 2, 2, 1, 2, 2, true, true, false, true, true};
  linear_inputs x = inputs_of(c, random);
  EXPECT_EQ(linear_node(c, x).refusal(), "no error");
  linear_inputs wrong = x;
  wrong.beta = random.tensor({1, 2, 3}, dtype::f64);
  EXPECT_NE(linear_node(c, wrong).refusal().find("numbers for each token and head"), std::string::npos);
  wrong = x;
  wrong.k = random.tensor({1, 2, 3}, dtype::f64);
  EXPECT_NE(linear_node(c, wrong).refusal().find("of the same size"), std::string::npos);
  live_node lacks(27, {x.q, x.k, x.v});
  lacks.finish("LinearAttention", 2, {attribute("q_num_heads", 2), attribute("kv_num_heads", 1)});
  EXPECT_NE(lacks.refusal().find("does not go with the operands"), std::string::npos);
  c.tokens = 300;
  EXPECT_NE(linear_node(c, inputs_of(c, random)).refusal().find("more than 256 tokens"), std::string::npos);
}

}  // namespace onnx_lower_decoding_test
#endif
