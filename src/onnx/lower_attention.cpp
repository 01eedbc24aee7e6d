// Attention: scores, masks, softmax and values.
#include "heads.hpp"
#include "importer.hpp"
#include "rules.hpp"

#include <collage/op/comparison.hpp>
#include <collage/op/elementwise.hpp>
#include <collage/op/matmul.hpp>
#include <collage/op/movement.hpp>
#include <collage/op/norm.hpp>
#include <collage/op/reduce.hpp>
#include <collage/op/slice.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace collage::inline v0::onnx {
namespace {

/// A type that holds the numbers of both.
dtype common_type(dtype a, dtype b) {
  if (a == b) return a;
  return a == dtype::f64 || b == dtype::f64 ? dtype::f64 : dtype::f32;
}

/// Swaps the dimensions 1 and 2 of four, which puts heads before tokens or back. A view is enough if one of them is 1.
value swap_middle(lowering& n, value x) {
  const shape d = n.dims_of(x);
  if (d[1] == 1 || d[2] == 1) return n.reshape(x, {d[0], d[2], d[1], d[3]});
  return n(ops::transpose, x, {.permutation = {0, 2, 1, 3}});
}

// Attention ----------------------------------------------------------------------------------------------------------

/// The extents of an Attention node.
struct attention_extents {
  bool packed = false;  ///< the operands are [batch, tokens, heads * size], and not [batch, heads, tokens, size]
  std::int64_t batch = 0;
  std::int64_t heads = 0;   ///< of the queries
  std::int64_t shared = 0;  ///< heads of keys and values: each serves as many heads of the queries
  std::int64_t queries = 0;
  std::int64_t past = 0;   ///< keys from before
  std::int64_t total = 0;  ///< keys from before and new ones
  std::int64_t size = 0;   ///< of a query and of a key
  std::int64_t width = 0;  ///< of a value

  std::int64_t group() const { return heads / shared; }
};

attention_extents extents_of(lowering& n) {
  const shape q = n.dims_of(n.operand(0)), k = n.dims_of(n.operand(1)), v = n.dims_of(n.operand(2));
  if ((q.rank != 3 && q.rank != 4) || k.rank != q.rank || v.rank != q.rank)
    n.invalid("its queries, keys and values must all have rank 3, or all have rank 4");
  attention_extents e;
  e.packed = q.rank == 3;
  e.batch = q[0];
  e.heads = heads_of(n, q, "q_num_heads");
  e.shared = heads_of(n, k, "kv_num_heads");
  if (heads_of(n, v, "kv_num_heads") != e.shared) n.invalid("its keys and values must have the same heads");
  if (e.heads % e.shared != 0)
    n.invalid("the " + std::to_string(e.heads) + " heads of its queries must be a multiple of the " +
              std::to_string(e.shared) + " heads of its keys");
  const std::size_t tokens = e.packed ? 1 : 2;
  e.queries = q[tokens];
  e.total = k[tokens];
  e.size = e.packed ? q[2] / e.heads : q[3];
  e.width = e.packed ? v[2] / e.shared : v[3];
  if (k[0] != e.batch || v[0] != e.batch) n.invalid("its queries, keys and values must be of one batch");
  if (v[tokens] != e.total) n.invalid("it must have as many values as keys");
  if ((e.packed ? k[2] / e.shared : k[3]) != e.size) n.invalid("its queries and keys must have the same size");
  if (n.has(4) != n.has(5)) n.invalid("it has only one of the past keys and the past values");
  if (!n.has(4)) return e;
  const shape before = n.dims_of(n.operand(4));
  if (before.rank == 4) e.past = before[2];
  if (!(before == shape{e.batch, e.shared, e.past, e.size}) ||
      !(n.dims_of(n.operand(5)) == shape{e.batch, e.shared, e.past, e.width}))
    n.invalid("its past keys and values must have shape [batch, heads, tokens, size]");
  e.total += e.past;
  return e;
}

/// New keys or values as [batch, heads, tokens, size].
value split_heads(lowering& n, const attention_extents& e, std::size_t operand, std::int64_t heads, std::int64_t size) {
  const value x = n.operand(operand);
  if (!e.packed) return x;
  return swap_middle(n, n.reshape(x, {e.batch, n.dims_of(x)[1], heads, size}));
}
/// All keys or values: those from before, if there are any, and the new ones.
value with_past(lowering& n, const attention_extents& e, std::size_t past, value now) {
  if (e.past == 0) return now;
  return n.concatenate({n.operand(past), now}, 2);
}

/// The mask as [..., total]. Since set 24 it may end before the last keys, which then take no part.
value whole_mask(lowering& n, const attention_extents& e) {
  const value mask = n.operand(3);
  const shape dims = n.dims_of(mask);
  if (dims.rank == 0 || dims.rank > 4) n.invalid("its mask must have from 1 to 4 dimensions");
  const std::int64_t columns = dims[dims.rank - 1];
  if (n.opset() < 24 || columns >= e.total) return mask;
  ops::pad_attributes a{.pads_begin = shape::filled(dims.rank, 0), .pads_end = shape::filled(dims.rank, 0)};
  a.pads_end[dims.rank - 1] = e.total - columns;
  const dtype type = n.element_type_of(mask);
  if (type == dtype::boolean) return n(ops::pad, mask, a);
  if (!is_floating(type)) n.unsupported("a mask of integers that is shorter than the keys");
  return n(ops::pad, mask, n.scalar(-std::numeric_limits<double>::infinity(), type), a);
}

/// A sum of masks, which is added to the scores.
struct score_bias {
  std::optional<value> added;  ///< broadcasts to the scores; minus infinity where a key takes no part
  bool can_hide_all = false;   ///< whether there may be a query in which no key takes part
};

/// Which keys take part by their places: [queries, total], or [batch, 1, queries, total] if lengths decide it. Empty if all do.
std::optional<value> places_in_reach(lowering& n, const attention_extents& e, score_bias& bias) {
  const bool causal = n.integer("is_causal", 0) != 0;
  const std::int64_t left = n.integer("left_window_size", -1), right = n.integer("right_window_size", -1);
  if (left < -1 || right < -1) n.invalid("its windows must be -1 or not negative");
  if (!causal && left < 0 && right < 0 && !n.has(6)) return std::nullopt;
  std::optional<value> all;
  const auto require = [&](value condition) { all = all ? n(ops::logical_and, *all, condition) : condition; };
  const value keys = numbers_below(n, e.total, {e.total});
  const auto number = [&](std::int64_t i) { return n.scalar(static_cast<double>(i), dtype::i64); };
  // A query stands at the place of its own key: behind those from before or, in a cache with lengths, at the end.
  value place = numbers_below(n, e.queries, {e.queries, 1});
  if (n.has(6)) {
    const value lengths = n.operand(6);
    if (!(n.dims_of(lengths) == shape{e.batch})) n.invalid("it must have one number of keys for each of its batch");
    if (n.has(4)) n.invalid("it has past keys, and so cannot have numbers of keys that are no padding");
    const value length = n.reshape(n.cast(lengths, dtype::i64), {e.batch, 1, 1, 1});
    place = n(ops::add, place, n(ops::sub, length, number(e.queries)));
    // The last query's place is the last key that is no padding.
    if (!causal) require(n(ops::less, keys, length));
    bias.can_hide_all = true;
  } else if (e.past != 0) {
    place = n(ops::add, place, number(e.past));
  }
  if (causal && (n.has(6) || e.total > e.past + 1)) require(n(ops::less_equal, keys, place));
  if (left >= 0) require(n(ops::less_equal, n(ops::sub, place, number(left)), keys));
  if (right >= 0) require(n(ops::less_equal, keys, n(ops::add, place, number(right))));
  bias.can_hide_all = bias.can_hide_all || left >= 0 || right >= 0;
  return all;
}

score_bias bias_of(lowering& n, const attention_extents& e, dtype type) {
  score_bias bias;
  std::optional<value> takes_part = places_in_reach(n, e, bias);
  if (n.has(3)) {
    const value mask = whole_mask(n, e);
    if (n.element_type_of(mask) != dtype::boolean) bias.added = n.cast(mask, type);
    else takes_part = takes_part ? n(ops::logical_and, mask, *takes_part) : mask;
    bias.can_hide_all = true;
  }
  if (takes_part) {
    const value hidden = n.scalar(-std::numeric_limits<double>::infinity(), type);
    const value choice = n(ops::where, *takes_part, n.scalar(0, type), hidden);
    bias.added = bias.added ? n(ops::add, *bias.added, choice) : choice;
  }
  if (!bias.added) return bias;
  const shape scores{e.batch, e.heads, e.queries, e.total};
  bool fits = true;
  const shape together = detail::broadcast(scores, n.dims_of(*bias.added), fits);
  if (!fits || !(together == scores)) n.invalid("its mask must broadcast to [batch, heads, queries, keys]");
  return bias;
}

/// For each query whether no key takes part, as [.., .., .., 1]. Empty if that cannot be, or is known not to be.
std::optional<value> empty_queries(lowering& n, const score_bias& bias) {
  if (!bias.added || !bias.can_hide_all) return std::nullopt;
  const shape dims = n.dims_of(*bias.added);
  const value largest =
      n(ops::reduce_max, *bias.added, {.axes = {static_cast<std::int64_t>(dims.rank) - 1}, .keep_dims = true});
  const value infinite = n.scalar(-std::numeric_limits<double>::infinity(), n.element_type_of(largest));
  const value empty = n(ops::equal, largest, infinite);
  if (n.is_known(empty)) {
    const oracle_value known = to_oracle({n.driver().builder().contents_of(empty).bytes.get(), n.type_of(empty)});
    if (std::find(known.integer.begin(), known.integer.end(), 1) == known.integer.end()) return std::nullopt;
  }
  shape spread = shape::filled(4, 1);
  for (std::size_t d = 0; d + 1 < dims.rank; ++d) spread[4 - dims.rank + d] = dims[d];
  return n.reshape(empty, spread);
}

/// The scaled products of queries and keys, [batch, heads, queries, total]. Queries that share a head of keys stand below one
/// another, so that no key is copied.
value scores_of(lowering& n, const attention_extents& e, std::optional<value> keys) {
  const dtype type = n.element_type_of(n.operand(0));
  const double scale = n.real("scale", 1 / std::sqrt(static_cast<double>(e.size)));
  value q = split_heads(n, e, 0, e.heads, e.size);
  // Without a past the keys are turned around in one step, as exporters write it.
  const bool turned = !keys;
  value k = keys ? *keys
                 : n(ops::transpose, n.reshape(n.operand(1), {e.batch, e.total, e.shared, e.size}),
                     {.permutation = {0, 2, 3, 1}});
  // Unscaled products may be too large for a 16-bit type, so both operands are scaled before.
  const bool before = is_narrow(type) && scale > 0;
  if (before) {
    const value root = n.scalar(std::sqrt(scale), type);
    q = n(ops::mul, q, root);
    k = n(ops::mul, k, root);
  }
  q = n.reshape(q, {e.batch, e.shared, e.group() * e.queries, e.size});
  const value product = n(ops::matmul, q, k, {.transpose_b = !turned});
  const value scaled = before || scale == 1 ? product : n(ops::mul, product, n.scalar(scale, type));
  return n.reshape(scaled, {e.batch, e.heads, e.queries, e.total});
}

/// The type in which softmax is computed.
dtype softmax_type(lowering& n, dtype otherwise) {
  if (!n.has_attribute("softmax_precision")) return otherwise;
  const std::int64_t number = n.integer("softmax_precision", 0);
  const bool is_number = number > 0 && number <= std::numeric_limits<int>::max();
  const std::optional<dtype> type = is_number ? element_type_of(static_cast<int>(number)) : std::nullopt;
  if (!type || !is_floating(*type))
    n.invalid("its attribute softmax_precision is " + std::to_string(number) + ", and must be a floating-point type");
  return *type;
}

void lower_attention(lowering& n) {
  const attention_extents e = extents_of(n);
  const dtype type = n.element_type_of(n.operand(0));
  if (!is_floating(type) || n.element_type_of(n.operand(1)) != type)
    n.invalid("its queries and keys must be of one floating-point type");
  const std::int64_t mode = n.integer("qk_matmul_output_mode", 0);
  if (mode < 0 || mode > 3) n.invalid("its attribute qk_matmul_output_mode is " + std::to_string(mode));

  std::optional<value> keys;
  if (!e.packed || e.past > 0 || n.wants(1)) keys = with_past(n, e, 4, split_heads(n, e, 1, e.shared, e.size));
  if (keys) n.result(1, *keys);
  const value values = with_past(n, e, 5, split_heads(n, e, 2, e.shared, e.width));
  n.result(2, values);

  value scores = scores_of(n, e, keys);
  if (mode == 0) n.result(3, scores);
  if (const double cap = n.real("softcap", 0); cap > 0) {
    const value limit = n.scalar(cap, type);
    scores = n(ops::mul, n(ops::tanh, n(ops::div, scores, limit)), limit);
  }
  if (mode == 1) n.result(3, scores);
  const score_bias bias = bias_of(n, e, type);
  if (bias.added) scores = n(ops::add, scores, *bias.added);
  if (mode == 2) n.result(3, scores);
  const value weights = n(ops::softmax, n.cast(scores, softmax_type(n, type)), {.axis = 3});

  const dtype inner = common_type(type, n.element_type_of(values));
  const shape grouped{e.batch, e.shared, e.group() * e.queries, e.total};
  const value product = n(ops::matmul, n.reshape(n.cast(weights, inner), grouped), n.cast(values, inner));
  value y = n.cast(n.reshape(product, {e.batch, e.heads, e.queries, e.width}), type);
  if (e.packed) y = swap_middle(n, y);
  // By definition a query without keys gives zeros. They are put in last, so that nothing stands between the products and softmax.
  const value zero = n.scalar(0, type);
  const std::optional<value> empty = empty_queries(n, bias);
  if (empty) y = n(ops::where, e.packed ? swap_middle(n, *empty) : *empty, zero, y);
  n.result(0, e.packed ? n.reshape(y, {e.batch, e.queries, e.heads * e.width}) : y);
  if (mode != 3 || !n.wants(3)) return;
  const value shown = n.cast(weights, type);
  n.result(3, empty ? n(ops::where, *empty, zero, shown) : shown);
}

/// Attention whose scores and weights may pass through graphs of the model.
void lower_flex_attention(lowering& n) {
  const attention_extents e = extents_of(n);
  const dtype type = n.element_type_of(n.operand(0)), result = n.element_type_of(n.operand(2));
  if (e.packed) n.invalid("its operands must have rank 4");
  if (!is_floating(type) || n.element_type_of(n.operand(1)) != type)
    n.invalid("its queries and keys must be of one floating-point type");
  const dtype inner = softmax_type(n, is_narrow(type) ? dtype::f32 : type);
  // Empty if a node of the graph was refused, which is reported already.
  const auto changed = [&](const char* attribute, value x) -> std::optional<value> {
    const model_graph* const graph = n.graph_attribute(attribute);
    if (graph == nullptr) return x;
    if (graph->inputs.size() != 1 || graph->outputs.size() != 1)
      n.invalid(std::string("its graph ") + attribute + " must have one input and one output");
    const std::optional<value> given[] = {x};
    const std::optional<value> y = n.driver().inline_graph(*graph, given)[0];
    if (y && !(n.type_of(*y) == n.type_of(x)))
      n.invalid(std::string("its graph ") + attribute + " must keep the type of its input");
    return y;
  };
  const std::optional<value> scores = changed("score_mod", n.cast(scores_of(n, e, n.operand(1)), inner));
  if (!scores) return n.driver().leave_without_values(n.node());
  const std::optional<value> weights = changed("prob_mod", n(ops::softmax, *scores, {.axis = 3}));
  if (!weights) return n.driver().leave_without_values(n.node());
  const shape grouped{e.batch, e.shared, e.group() * e.queries, e.total};
  const value y = n(ops::matmul, n.reshape(*weights, grouped), n.cast(n.operand(2), inner));
  n.result(0, n.cast(n.reshape(y, {e.batch, e.heads, e.queries, e.width}), result));
}

constexpr lowering_rule attention_lowerings[] = {
    {"", "Attention", lower_attention},
    {"ai.onnx.preview", "FlexAttention", lower_flex_attention},
};

}  // namespace

std::span<const lowering_rule> attention_rules() { return attention_lowerings; }

}  // namespace collage::inline v0::onnx
