// BERT: encoders of transformer layers.
#pragma once

#include <collage/zoo/parts.hpp>

namespace collage::inline v0::zoo {

namespace parts {

/// The layers of a BERT encoder. x: [1, tokens, hidden].
template <class Builder>
struct transformer {
  struct extents {
    std::int64_t tokens, hidden, heads, inner;
  };
  Builder& g;
  extents of;
  double epsilon;
  // Shared by all norms: in an untrained network they are alike, and exporters keep one of equal constants.
  value norm_scale, norm_bias, root;

  constexpr transformer(Builder& builder, const extents& sizes, double norm_epsilon)
      : g(builder), of(sizes), epsilon(norm_epsilon) {
    norm_scale = constant(g, "norm.weight", {of.hidden}, around_one);
    norm_bias = constant(g, "norm.bias", {of.hidden}, small);
    root = g.scalar("root_of_head_size", square_root(static_cast<double>(of.hidden / of.heads)));
  }

  constexpr value norm(value x) {
    return g(ops::layer_norm, x, norm_scale, norm_bias, {.axis = -1, .epsilon = epsilon});
  }
  constexpr value linear(const label& name, value x, std::int64_t in, std::int64_t out, double gain = keep) {
    const value w = constant(g, name + ".weight", {in, out}, by_fan_in(in, gain));
    const value product = g(ops::matmul, x, w);
    return g(ops::add, product, constant(g, name + ".bias", {out}, small));
  }
  /// [1, tokens, heads, size of a head]
  constexpr value split_heads(value x) {
    return g(ops::reshape, x, {.dims = {1, of.tokens, of.heads, of.hidden / of.heads}});
  }
  constexpr value attention(const label& layer, value x) {
    value q = split_heads(linear(layer + ".q", x, of.hidden, of.hidden));
    q = g(ops::transpose, q, {.permutation = {0, 2, 1, 3}});
    value k = split_heads(linear(layer + ".k", x, of.hidden, of.hidden));
    value v = split_heads(linear(layer + ".v", x, of.hidden, of.hidden));
    v = g(ops::transpose, v, {.permutation = {0, 2, 1, 3}});
    k = g(ops::transpose, k, {.permutation = {0, 2, 3, 1}});
    const value scores = g(ops::div, g(ops::matmul, q, k), root);
    value y = g(ops::matmul, g(ops::softmax, scores), v);
    y = g(ops::transpose, y, {.permutation = {0, 2, 1, 3}});
    y = g(ops::reshape, y, {.dims = {1, of.tokens, of.hidden}});
    return linear(layer + ".o", y, of.hidden, of.hidden);
  }
  constexpr value up(const label& layer, value x) { return linear(layer + ".up", x, of.hidden, of.inner, before_relu); }
  constexpr value down(const label& layer, value x) { return linear(layer + ".down", x, of.inner, of.hidden); }
};

}  // namespace parts

/// The Collage paper's BERT: 8 layers with the norms in front, hidden size 256, 8 heads, relu, 64 tokens.
template <class Builder>
constexpr void bert_paper(Builder& g) {
  value x = g.input("input", {dtype::f32, {1, 64, 256}});
  parts::transformer<Builder> t{g, {.tokens = 64, .hidden = 256, .heads = 8, .inner = 1024}, 1e-6};
  for (int i = 0; i < 8; ++i) {
    const label layer = label() + i;
    x = g(ops::add, x, t.attention(layer, t.norm(x)));
    x = g(ops::add, x, t.down(layer, g(ops::relu, t.up(layer, t.norm(x)))));
  }
  g.output("output", x);
}

/// BERT-base's encoder (Devlin and others, 2018) on 128 embedded tokens: 12 layers, hidden size 768, 12 heads, GELU.
template <class Builder>
constexpr void bert_base_128(Builder& g) {
  value x = g.input("input", {dtype::f32, {1, 128, 768}});
  parts::transformer<Builder> t{g, {.tokens = 128, .hidden = 768, .heads = 12, .inner = 3072}, 1e-12};
  const value root_of_2 = g.scalar("gelu.root_of_2", parts::square_root(2));
  const value one = g.scalar("gelu.one", 1);
  const value half = g.scalar("gelu.half", 0.5);
  for (int i = 0; i < 12; ++i) {
    const label layer = label() + i;
    x = t.norm(g(ops::add, x, t.attention(layer, x)));
    const value y = t.up(layer, x);
    const value gate = g(ops::mul, half, g(ops::add, g(ops::erf, g(ops::div, y, root_of_2)), one));
    x = t.norm(g(ops::add, x, t.down(layer, g(ops::mul, y, gate))));
  }
  g.output("output", x);
}

}  // namespace collage::inline v0::zoo
