// Operators that decoders have around attention: rotary embeddings, caches, convolutions and attention with a state.
#include "heads.hpp"
#include "rules.hpp"

#include <collage/op/activation.hpp>
#include <collage/op/conv.hpp>
#include <collage/op/elementwise.hpp>
#include <collage/op/gather.hpp>
#include <collage/op/matmul.hpp>
#include <collage/op/movement.hpp>
#include <collage/op/slice.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace collage::inline v0::onnx {
namespace {

/// `count` places of an axis from the first on, every `step`-th.
value places_of(lowering& n, value x, std::size_t axis, std::int64_t first, std::int64_t count, std::int64_t step = 1) {
  shape extents = n.dims_of(x);
  if (extents[axis] == count) return x;
  shape starts = shape::filled(extents.rank, 0), steps = shape::filled(extents.rank, 1);
  starts[axis] = first;
  steps[axis] = step;
  extents[axis] = count;
  return n(ops::slice, x, {.starts = starts, .steps = steps, .extents = extents});
}

// Rotary embeddings --------------------------------------------------------------------------------------------------

/// Turns pairs of numbers by an angle of the token's position: halves of each head, or neighbours.
void lower_rotary_embedding(lowering& n) {
  const value x = n.operand(0);
  const shape dims = n.dims_of(x);
  if (dims.rank != 3 && dims.rank != 4) n.invalid("its input must have rank 3 or 4");
  const bool packed = dims.rank == 3;
  const std::int64_t heads = heads_of(n, dims, "num_heads");
  const std::int64_t tokens = dims[packed ? 1 : 2], size = packed ? dims[2] / heads : dims[3];
  const std::int64_t stated = n.integer("rotary_embedding_dim", 0), turned = stated == 0 ? size : stated;
  if (turned < 0 || turned > size || turned % 2 != 0)
    n.invalid("it turns " + std::to_string(turned) + " of " + std::to_string(size) +
              " numbers, and must turn an even number of them");
  const std::int64_t half = turned / 2;
  const auto table = [&](std::size_t operand) {
    value angles = n.operand(operand);
    if (n.has(3)) {
      if (n.rank_of(angles) != 2) n.invalid("its cosines and sines must be matrices if it has positions");
      angles = n(ops::gather, angles, n.operand(3), {.axis = 0});
    }
    const shape d = n.dims_of(angles);
    if (d.rank != 3 || (d[0] != 1 && d[0] != dims[0]) || (d[1] != 1 && d[1] != tokens) || d[2] != half)
      n.invalid("its cosines and sines must be " + std::to_string(half) + " numbers for each token");
    return n.reshape(angles, packed ? shape{d[0], d[1], 1, half} : shape{d[0], 1, d[1], half});
  };
  const value cosine = table(1), sine = table(2);
  const value whole = packed ? n.reshape(x, {dims[0], tokens, heads, size}) : x;
  const bool neighbours = n.integer("interleaved", 0) != 0;
  const value a = places_of(n, whole, 3, 0, half, neighbours ? 2 : 1);
  const value b = places_of(n, whole, 3, neighbours ? 1 : half, half, neighbours ? 2 : 1);
  value first = n(ops::sub, n(ops::mul, cosine, a), n(ops::mul, sine, b));
  value second = n(ops::add, n(ops::mul, sine, a), n(ops::mul, cosine, b));
  std::vector<value> parts{first, second};
  if (neighbours) {
    shape pairs = n.dims_of(first), together = pairs;
    pairs.push_back(1);
    together[3] = turned;
    const value both = n.concatenate({n.reshape(first, pairs), n.reshape(second, pairs)}, 4);
    parts = {n.reshape(both, together)};
  }
  if (turned < size) parts.push_back(places_of(n, whole, 3, turned, size - turned));
  n.result(0, n.reshape(n.concatenate(std::move(parts), 3), dims));
}

// Caches -------------------------------------------------------------------------------------------------------------

/// Writes the update into the cache, from another place of the axis on for each of the batch.
void lower_tensor_scatter(lowering& n) {
  const value cache = n.operand(0), update = n.operand(1);
  const shape dims = n.dims_of(cache);
  if (dims.rank < 2) n.invalid("its cache must have at least two dimensions: the batch and the places");
  const auto axis = static_cast<std::size_t>(n.axis(n.integer("axis", -2), dims.rank));
  if (axis == 0) n.invalid("its axis is the batch");
  const std::string mode = n.text("mode", "linear");
  if (mode != "linear" && mode != "circular") n.invalid("its mode is \"" + mode + "\", and must be linear or circular");
  shape wanted = n.dims_of(update);
  const bool same_rank = wanted.rank == dims.rank;
  const std::int64_t places = dims[axis], written = same_rank ? wanted[axis] : 0;
  if (same_rank) wanted[axis] = places;
  if (!(wanted == dims) || written > places)
    n.invalid("its update must have the shape of its cache, with no more places on the axis");
  if (!n.has(2)) {
    if (written == places) return n.result(0, update);
    const value kept = places_of(n, cache, axis, written, places - written);
    return n.result(0, n.concatenate({update, kept}, static_cast<std::int64_t>(axis)));
  }
  const value first = n.operand(2);
  if (!(n.dims_of(first) == shape{dims[0]})) n.invalid("it must have one index to write at for each of its batch");
  // As [batch, rows, places, numbers], of which each update writes a row of numbers.
  std::int64_t rows = 1, numbers = 1;
  for (std::size_t d = 1; d < dims.rank; ++d)
    if (d != axis) (d < axis ? rows : numbers) *= dims[d];
  const shape one_each{dims[0], rows, written, 1};
  value at =
      n(ops::add, n.reshape(n.cast(first, dtype::i64), {dims[0], 1, 1, 1}), numbers_below(n, written, {written, 1}));
  if (mode == "circular") at = n(ops::modulo, at, n.scalar(static_cast<double>(places), dtype::i64));
  const auto spread = [&](value indices) { return n(ops::expand, indices, {.dims = one_each}); };
  const value indices = n.concatenate(
      {spread(numbers_below(n, dims[0], {dims[0], 1, 1, 1})), spread(numbers_below(n, rows, {rows, 1, 1})), spread(at)},
      3);
  const value y = n(ops::scatter_nd, n.reshape(cache, {dims[0], rows, places, numbers}), indices,
                    n.reshape(update, {dims[0], rows, written, numbers}));
  n.result(0, n.reshape(y, dims));
}

// States -------------------------------------------------------------------------------------------------------------

/// A depthwise convolution over the places before each, some of which are a state from before.
void lower_causal_conv_with_state(lowering& n) {
  const value x = n.operand(0), weights = n.operand(1);
  const shape dims = n.dims_of(x), w = n.dims_of(weights);
  if (dims.rank != 3 || w.rank != 3 || w[0] != dims[1] || w[1] != 1 || w[2] < 1)
    n.invalid("its input must be [batch, channels, length], and its weights [channels, 1, window]");
  const std::int64_t before = w[2] - 1;
  if (n.has(3) && !(n.dims_of(n.operand(3)) == shape{dims[0], dims[1], before}))
    n.invalid("its state must be [batch, channels, " + std::to_string(before) + "]");
  const std::string activation = n.text("activation", "none");
  if (activation != "none" && activation != "silu" && activation != "swish")
    n.invalid("its activation is \"" + activation + "\", and must be none, silu or swish");

  value padded = x;
  ops::conv_attributes a{.groups = dims[1]};
  if (before != 0 && n.has(3)) padded = n.concatenate({n.operand(3), x}, 2);
  else if (before != 0) a.pads_begin = {before}, a.pads_end = {0};
  std::vector<value> operands{padded, weights};
  if (n.has(2)) operands.push_back(n.operand(2));
  value y = n(ops::conv, operands, a);
  if (activation != "none") {
    const value wide = n.cast(y, is_narrow(n.element_type_of(y)) ? dtype::f32 : n.element_type_of(y));
    y = n.cast(n(ops::mul, wide, n(ops::sigmoid, wide)), n.element_type_of(x));
  }
  n.result(0, y);
  if (!n.wants(1)) return;
  if (before != 0 && !n.has(3)) padded = n(ops::pad, x, {.pads_begin = {0, 0, before}, .pads_end = {0, 0, 0}});
  n.result(1, places_of(n, padded, 2, n.dims_of(padded)[2] - before, before));
}

/// How a LinearAttention node changes its state, and its extents.
struct linear_attention {
  bool decays = false, corrects = false;
  std::int64_t batch = 0, tokens = 0, heads = 0, shared = 0, size = 0, width = 0;
};

linear_attention linear_attention_of(lowering& n) {
  linear_attention e;
  const std::string rule = n.text("update_rule", "gated_delta");
  if (rule != "linear" && rule != "gated" && rule != "delta" && rule != "gated_delta")
    n.invalid("its update_rule is \"" + rule + "\", and must be linear, gated, delta or gated_delta");
  e.decays = rule == "gated" || rule == "gated_delta";
  e.corrects = rule == "delta" || rule == "gated_delta";
  if (n.has(4) != e.decays || n.has(5) != e.corrects)
    n.invalid("its update_rule " + rule + " does not go with the operands decay and beta that it has");
  const shape q = n.dims_of(n.operand(0)), k = n.dims_of(n.operand(1)), v = n.dims_of(n.operand(2));
  if (q.rank != 3 || k.rank != 3 || v.rank != 3) n.invalid("its queries, keys and values must have rank 3");
  e.batch = q[0];
  e.tokens = q[1];
  e.heads = heads_of(n, q, "q_num_heads");
  e.shared = heads_of(n, k, "kv_num_heads");
  if (heads_of(n, v, "kv_num_heads") != e.shared || e.heads % e.shared != 0)
    n.invalid("the heads of its queries must be a multiple of those of its keys");
  e.size = q[2] / e.heads;
  e.width = v[2] / e.shared;
  if (!(k == shape{e.batch, e.tokens, e.shared * e.size}) || v[0] != e.batch || v[1] != e.tokens)
    n.invalid("its queries, keys and values must be as many, and its queries and keys of the same size");
  if (n.has(3) && !(n.dims_of(n.operand(3)) == shape{e.batch, e.shared, e.size, e.width}))
    n.invalid("its state must be [batch, heads, size of a key, size of a value]");
  return e;
}

/// A tensor of numbers for each token, with the columns that it may have: [batch, tokens, columns].
value gate_of(lowering& n, const linear_attention& e, std::size_t operand, dtype type, std::int64_t other) {
  const value x = n.operand(operand);
  const shape dims = n.dims_of(x);
  if (dims.rank != 3 || dims[0] != e.batch || dims[1] != e.tokens || (dims[2] != e.shared && dims[2] != other))
    n.invalid("its decay and beta must have numbers for each token and head");
  return n.cast(x, type);
}

/// Token by token. The state holds a matrix for each head, to which each token adds the product of its key and its value.
void lower_linear_attention(lowering& n) {
  const linear_attention e = linear_attention_of(n);
  constexpr std::int64_t most = 256;
  if (e.tokens > most) n.unsupported("a linear attention over more than " + std::to_string(most) + " tokens");
  const dtype given = n.element_type_of(n.operand(0));
  const dtype type = is_narrow(given) ? dtype::f32 : given;
  const std::int64_t group = e.heads / e.shared;
  const auto of_token = [&](value x, std::int64_t t, const shape& dims) {
    return n.reshape(places_of(n, x, 1, t, 1), dims);
  };
  const value q = n.cast(n.operand(0), type), k = n.cast(n.operand(1), type), v = n.cast(n.operand(2), type);
  std::optional<value> decay, beta;
  if (e.decays) decay = n(ops::exp, gate_of(n, e, 4, type, e.shared * e.size));
  if (e.corrects) beta = gate_of(n, e, 5, type, 1);
  const shape whole{e.batch, e.shared, e.size, e.width};
  value state = n.has(3) ? n.cast(n.operand(3), type) : n.filled({type, whole}, 0);
  std::vector<value> results;
  for (std::int64_t t = 0; t < e.tokens; ++t) {
    if (decay) {
      const std::int64_t columns = n.dims_of(*decay)[2] / e.shared;
      state = n(ops::mul, state, of_token(*decay, t, {e.batch, e.shared, columns, 1}));
    }
    value added = of_token(v, t, {e.batch, e.shared, 1, e.width});
    if (beta) {
      const value known = n(ops::matmul, of_token(k, t, {e.batch, e.shared, 1, e.size}), state);
      added = n(ops::mul, of_token(*beta, t, {e.batch, n.dims_of(*beta)[2], 1, 1}), n(ops::sub, added, known));
    }
    state = n(ops::add, state, n(ops::mul, of_token(k, t, {e.batch, e.shared, e.size, 1}), added));
    const value y = n(ops::matmul, of_token(q, t, {e.batch, e.shared, group, e.size}), state);
    results.push_back(n.reshape(y, {e.batch, 1, e.heads * e.width}));
  }
  const double stated = n.real("scale", 0), scale = stated == 0 ? 1 / std::sqrt(static_cast<double>(e.size)) : stated;
  if (results.empty()) results.push_back(n.filled({type, {e.batch, 0, e.heads * e.width}}, 0));
  const value y = n(ops::mul, n.concatenate(std::move(results), 1), n.scalar(scale, type));
  n.result(0, n.cast(y, given));
  n.result(1, n.cast(state, n.has(3) ? n.element_type_of(n.operand(3)) : given));
}

constexpr lowering_rule decoding_lowerings[] = {
    {"", "CausalConvWithState", lower_causal_conv_with_state},
    {"", "LinearAttention", lower_linear_attention},
    {"", "RotaryEmbedding", lower_rotary_embedding},
    {"", "TensorScatter", lower_tensor_scatter},
};

}  // namespace

std::span<const lowering_rule> decoding_rules() { return decoding_lowerings; }

}  // namespace collage::inline v0::onnx
