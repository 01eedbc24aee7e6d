// Dataflows for tests of fusion: random ones, and networks written down by kinds, bytes and shapes.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <collage/fuse/dataflow.hpp>
#include <collage/fuse/fuse.hpp>
#include <collage/fuse/group.hpp>
#include <collage/shape.hpp>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "support/random_numbers.hpp"

namespace collage_test {

namespace fuse = collage::fuse;
using collage::fusion_kind;
using index_list = std::vector<std::uint32_t>;

/// Whole numbers and percentages.
class fuse_random : public random_numbers {
 public:
  /// In [low, high].
  std::uint32_t number(std::uint32_t low, std::uint32_t high) {
    return low + static_cast<std::uint32_t>(engine()() % (high - low + 1));
  }
  bool chance(std::uint32_t percent) { return number(1, 100) <= percent; }
};

/// The nodes of each group.
using groups = std::vector<index_list>;
inline groups lists(const fuse::fused& result) {
  groups all;
  for (const auto& g : result.groups) all.emplace_back(g.begin(), g.end());
  std::ranges::sort(all);
  return all;
}
using sets = std::set<index_list>;
inline sets sets_of(const fuse::group_list& listed) {
  sets all;
  for (const fuse::group& g : listed) all.insert({g.nodes.begin(), g.nodes.end()});
  EXPECT_EQ(all.size(), listed.size());
  return all;
}

/// A dataflow written down by kinds: values of 64 bytes and one shape, or of 16 bytes in another space.
struct flow_writer : fuse::flow_builder {
  std::uint32_t x = given({64, 0});
  std::uint32_t node(fusion_kind k, std::initializer_list<std::uint32_t> operands, std::uint32_t space = 0,
                     std::uint32_t row = 0) {
    return flow_builder::node(k, operands, {space == 0 ? 64u : 16u, space}, fuse::node_role::operation, row);
  }
  std::uint32_t relu(std::uint32_t v) { return node(fusion_kind::elementwise, {v}); }
  std::uint32_t add(std::uint32_t a, std::uint32_t b) { return node(fusion_kind::broadcast, {a, b}); }
  std::uint32_t conv(std::uint32_t v) { return node(fusion_kind::anchor, {v}); }
  std::uint32_t move(std::uint32_t v) { return node(fusion_kind::injective, {v}); }
  std::uint32_t sum(std::uint32_t v) { return flow_builder::node(fusion_kind::reduction, {v}, {4, 1}); }
  fuse::dataflow result(std::uint32_t v) {
    output(v);
    return finish();
  }
};

struct random_flow_options {
  std::uint32_t nodes = 13;
  std::uint32_t spaces = 2;
  std::uint32_t opaque = 10;     ///< per cent
  std::uint32_t anchors = 20;    ///< per cent
  std::uint32_t reductions = 8;  ///< per cent
  std::uint32_t near = 60;       ///< per cent of operands that are one of the last three values
  std::uint32_t outputs = 8;     ///< per cent of values that are outputs as well
  bool rows = false;             ///< reductions are over rows, and opaque operators that keep a shape work on rows
};

/// Every node has one or two outputs; those that nobody reads are outputs of the graph, but for a few dead ones.
inline fuse::dataflow random_flow(fuse_random& random, const random_flow_options& options) {
  fuse::flow_builder b;
  const auto facts = [&](std::uint32_t space) {
    return fuse::value_facts{std::uint64_t{4} * (16 + 48 * space), space};
  };
  index_list weights, readable;
  for (std::uint32_t i = 0; i < 2; ++i) weights.push_back(b.given(facts(i % options.spaces), true));
  for (std::uint32_t i = random.number(1, 2); i > 0; --i)
    readable.push_back(b.given(facts(random.number(0, options.spaces - 1))));
  std::vector<bool> is_read(1000 + 4 * options.nodes, false);
  index_list computed;
  for (std::uint32_t n = 0; n < options.nodes; ++n) {
    const auto pick = [&] {
      const auto size = static_cast<std::uint32_t>(readable.size());
      const std::uint32_t window = random.chance(options.near) ? std::min(3u, size) : size;
      const std::uint32_t v = readable[size - 1 - random.number(0, window - 1)];
      is_read[v] = true;
      return v;
    };
    fusion_kind kind = fusion_kind::elementwise;
    const std::uint32_t draw = random.number(1, 100);
    if (draw <= options.opaque) kind = fusion_kind::opaque;
    else if (draw <= options.opaque + options.anchors) kind = fusion_kind::anchor;
    else if (draw <= options.opaque + options.anchors + options.reductions) kind = fusion_kind::reduction;
    else kind = static_cast<fusion_kind>(random.number(0, 2));
    index_list operands = {pick()};
    if (kind != fusion_kind::elementwise && random.chance(60)) operands.push_back(pick());
    if (kind != fusion_kind::elementwise && random.chance(30)) operands.push_back(weights[random.number(0, 1)]);
    std::uint32_t space = b.at(operands[0]).space;
    if (kind != fusion_kind::elementwise && random.chance(25)) space = random.number(0, options.spaces - 1);
    std::uint32_t row = 0;
    if (options.rows && kind == fusion_kind::reduction) {
      space = options.spaces;  // what rows are reduced to
      row = 8;
    } else if (options.rows && kind == fusion_kind::opaque && space == b.at(operands[0]).space) {
      row = 8;
    }
    std::vector<fuse::value_facts> outputs = {facts(space)};
    if (random.chance(5)) outputs.push_back(facts(space));
    const std::uint32_t first = b.node(kind, operands, outputs, fuse::node_role::operation, row);
    for (std::uint32_t i = 0; i < outputs.size(); ++i) {
      readable.push_back(first + i);
      computed.push_back(first + i);
    }
  }
  for (const std::uint32_t v : computed) {
    const bool is_end = !is_read[v] && !random.chance(5);
    if (is_end || random.chance(options.outputs)) b.output(v);
  }
  return b.finish();
}

inline std::string describe(const fuse::dataflow& flow) {
  std::string text;
  for (std::uint32_t n = 0; n < flow.size(); ++n) {
    text += std::to_string(n) + ": kind " + std::to_string(static_cast<int>(flow.kind(n))) + " of";
    for (const std::uint32_t v : flow.operands(n))
      text += flow.at(v).producer == fuse::none ? " given" : " " + std::to_string(flow.at(v).producer);
    text += flow.is_read_outside(n) ? ", output\n" : "\n";
  }
  return text;
}

/// Networks in float32, with shapes named by number. A batch norm behind a convolution is folded into its bias; any
/// other is a scale and a shift.
class network_writer {
 public:
  struct tensor {
    std::uint32_t value;
    collage::shape dims;
  };
  using shape = collage::shape;

  tensor input(const shape& dims) { return {b_.given(facts(dims)), dims}; }
  std::uint32_t weight(const shape& dims) { return b_.given(facts(dims), true); }
  void output(const tensor& x) { b_.output(x.value); }
  fuse::dataflow finish() { return b_.finish(); }

  tensor unary(const tensor& x) { return make(fusion_kind::elementwise, {x.value}, x.dims); }
  /// With a scalar or a weight of the last or the channel dimension: which one changes nothing.
  tensor with_weight(const tensor& x) {
    return make(fusion_kind::broadcast, {x.value, weight({1, x.dims[1]})}, x.dims);
  }
  tensor binary(const tensor& x, const tensor& y) {
    return make(fusion_kind::broadcast, {x.value, y.value}, x.dims.elements() >= y.dims.elements() ? x.dims : y.dims);
  }
  tensor move(const tensor& x, const shape& dims) { return make(fusion_kind::injective, {x.value}, dims); }
  tensor concat(const tensor& x, const tensor& y) {
    shape dims = x.dims;
    dims[1] += y.dims[1];
    return make(fusion_kind::injective, {x.value, y.value}, dims);
  }
  tensor conv(const tensor& x, std::int64_t channels, std::int64_t window, std::int64_t stride = 1) {
    const shape dims = {1, channels, x.dims[2] / stride, x.dims[3] / stride};
    return make(fusion_kind::anchor, {x.value, weight({channels, x.dims[1], window, window})}, dims);
  }
  tensor pool(const tensor& x, std::int64_t stride) {
    return make(fusion_kind::anchor, {x.value}, {1, x.dims[1], x.dims[2] / stride, x.dims[3] / stride});
  }
  tensor biased(const tensor& x, bool relu) {
    const tensor y = with_weight(x);
    return relu ? unary(y) : y;
  }
  /// relu(x * scale + shift)
  tensor norm_relu(const tensor& x) { return unary(with_weight(with_weight(x))); }
  tensor linear(const tensor& x, std::int64_t columns) {
    shape dims = x.dims;
    dims[dims.size() - 1] = columns;
    return make(fusion_kind::anchor, {x.value, weight({x.dims[x.dims.size() - 1], columns})}, dims);
  }
  tensor product(const tensor& x, const tensor& y, const shape& dims) {
    return make(fusion_kind::anchor, {x.value, y.value}, dims);
  }
  tensor opaque(const tensor& x, std::uint32_t row) { return make(fusion_kind::opaque, {x.value}, x.dims, row); }
  /// The mean over the last dimension, which stays with extent 1.
  tensor row_mean(const tensor& x) {
    shape dims = x.dims;
    const auto row = static_cast<std::uint32_t>(dims[dims.size() - 1]);
    dims[dims.size() - 1] = 1;
    return make(fusion_kind::reduction, {x.value}, dims, row);
  }
  tensor make(fusion_kind kind, const index_list& operands, const shape& dims, std::uint32_t row = 0) {
    const fuse::value_facts of = facts(dims);
    return {b_.node(kind, operands, std::span(&of, 1), fuse::node_role::operation, row), dims};
  }

 private:
  fuse::value_facts facts(const shape& dims) {
    const auto known = std::ranges::find(spaces_, dims);
    const auto space = static_cast<std::uint32_t>(known - spaces_.begin());
    if (known == spaces_.end()) spaces_.push_back(dims);
    return {static_cast<std::uint64_t>(dims.elements()) * 4, space};
  }
  fuse::flow_builder b_;
  std::vector<shape> spaces_;
};

/// ResNet (He and others, 2015 and 2016): `blocks` of each stage; bottlenecks for 50 layers and more, with the stride
/// in their first convolution.
inline fuse::dataflow resnet(const std::vector<int>& blocks, bool bottleneck, int version) {
  network_writer g;
  using tensor = network_writer::tensor;
  tensor x = g.pool(g.biased(g.conv(g.input({1, 3, 224, 224}), 64, 7, 2), true), 2);
  std::int64_t in = 64;
  for (std::size_t stage = 0; stage < blocks.size(); ++stage) {
    const std::int64_t inner = std::int64_t{64} << stage;
    const std::int64_t out = bottleneck ? 4 * inner : inner;
    for (int block = 0; block < blocks[stage]; ++block) {
      const std::int64_t stride = stage > 0 && block == 0 ? 2 : 1;
      const tensor start = version == 2 ? g.norm_relu(x) : x;
      tensor y = g.biased(g.conv(start, inner, bottleneck ? 1 : 3, stride), true);
      if (bottleneck) y = g.biased(g.conv(y, inner, 3), true);
      y = g.conv(y, out, bottleneck ? 1 : 3);
      if (version == 1) y = g.biased(y, false);
      tensor shortcut = x;
      if (in != out) {
        shortcut = g.conv(start, out, 1, stride);
        if (version == 1) shortcut = g.biased(shortcut, false);
      }
      x = g.binary(y, shortcut);
      if (version == 1) x = g.unary(x);
      in = out;
    }
  }
  if (version == 2) x = g.norm_relu(x);
  x = g.move(g.pool(x, x.dims[2]), {1, in});
  g.output(g.with_weight(g.linear(x, 1000)));
  return g.finish();
}

/// MobileNet-V2 (Sandler and others, 2018) to the last convolution.
inline fuse::dataflow mobilenet_v2() {
  network_writer g;
  using tensor = network_writer::tensor;
  tensor x = g.biased(g.conv(g.input({1, 3, 224, 224}), 32, 3, 2), true);
  struct stage {
    std::int64_t expand, channels, count, stride;
  };
  for (const stage s : {stage{1, 16, 1, 1},
                        {6, 24, 2, 2},
                        {6, 32, 3, 2},
                        {6, 64, 4, 2},
                        {6, 96, 3, 1},
                        {6, 160, 3, 2},
                        {6, 320, 1, 1}}) {
    for (std::int64_t i = 0; i < s.count; ++i) {
      const std::int64_t stride = i == 0 ? s.stride : 1, inner = x.dims[1] * s.expand;
      tensor y = s.expand > 1 ? g.biased(g.conv(x, inner, 1), true) : x;
      y = g.biased(g.conv(y, inner, 3, stride), true);
      y = g.biased(g.conv(y, s.channels, 1), false);
      x = stride == 1 && x.dims[1] == s.channels ? g.binary(y, x) : y;
    }
  }
  g.output(g.biased(g.conv(x, 1280, 1), true));
  return g.finish();
}

/// DenseNet-121 (Huang and others, 2016) to its last pooling.
inline fuse::dataflow densenet121() {
  network_writer g;
  using tensor = network_writer::tensor;
  tensor x = g.pool(g.biased(g.conv(g.input({1, 3, 224, 224}), 64, 7, 2), true), 2);
  const int layers[] = {6, 12, 24, 16};
  for (int block = 0; block < 4; ++block) {
    for (int i = 0; i < layers[block]; ++i)
      x = g.concat(x, g.conv(g.biased(g.conv(g.norm_relu(x), 128, 1), true), 32, 3));
    if (block < 3) x = g.pool(g.conv(g.norm_relu(x), x.dims[1] / 2, 1), 2);
  }
  x = g.norm_relu(x);
  g.output(g.pool(x, x.dims[2]));
  return g.finish();
}

/// Layers of a transformer's encoder (Vaswani and others, 2017), norms written out, softmax one operator.
inline fuse::dataflow transformer(bool norms_first, int layers = 6, std::int64_t tokens = 128,
                                  std::int64_t hidden = 1024, std::int64_t heads = 16) {
  network_writer g;
  using tensor = network_writer::tensor;
  const auto norm = [&](const tensor& x) {
    const tensor centred = g.binary(x, g.row_mean(x));
    const tensor variance = g.row_mean(g.unary(centred));
    const tensor scaled = g.binary(centred, g.unary(g.with_weight(variance)));
    return g.with_weight(g.with_weight(scaled));
  };
  const auto dense = [&](const tensor& x, std::int64_t columns) { return g.with_weight(g.linear(x, columns)); };
  const std::int64_t head = hidden / heads;
  tensor x = g.input({1, tokens, hidden});
  for (int i = 0; i < layers; ++i) {
    const auto attention = [&](const tensor& y) {
      const auto split = [&](const network_writer::shape& dims) {
        return g.move(g.move(dense(y, hidden), {1, tokens, heads, head}), dims);
      };
      const tensor q = split({1, heads, tokens, head}), k = split({1, heads, head, tokens}),
                   v = split({1, heads, tokens, head});
      const tensor scores = g.with_weight(g.product(q, k, {1, heads, tokens, tokens}));
      const tensor mixed = g.product(g.opaque(scores, static_cast<std::uint32_t>(tokens)), v, {1, heads, tokens, head});
      return dense(g.move(g.move(mixed, {1, tokens, heads, head}), {1, tokens, hidden}), hidden);
    };
    const auto perceptron = [&](const tensor& y) {
      const tensor up = dense(y, 4 * hidden);
      const tensor gate = g.with_weight(g.unary(g.with_weight(up)));  // GELU's erf(x / sqrt 2) + 1
      return dense(g.binary(up, gate), hidden);
    };
    if (norms_first) {
      x = g.binary(attention(norm(x)), x);
      x = g.binary(perceptron(norm(x)), x);
    } else {
      x = norm(g.binary(attention(x), x));
      x = norm(g.binary(perceptron(x), x));
    }
  }
  g.output(norms_first ? norm(x) : x);
  return g.finish();
}

/// An LSTM layer (Hochreiter and Schmidhuber, 1997), step by step; its answer is the last hidden state.
inline fuse::dataflow lstm(int steps = 32, std::int64_t inputs = 512, std::int64_t hidden = 512) {
  network_writer g;
  using tensor = network_writer::tensor;
  tensor h = g.input({1, hidden}), c = g.input({1, hidden});
  for (int t = 0; t < steps; ++t) {
    const tensor from_x = g.linear(g.input({1, inputs}), 4 * hidden);
    const tensor gates = g.with_weight(g.binary(g.linear(h, 4 * hidden), from_x));
    const auto gate = [&] { return g.unary(g.move(gates, {1, hidden})); };
    const tensor forget = gate(), in = gate(), cell = gate(), out = gate();
    c = g.binary(g.binary(forget, c), g.binary(in, cell));
    h = g.binary(out, g.unary(c));
  }
  g.output(h);
  return g.finish();
}

}  // namespace collage_test
