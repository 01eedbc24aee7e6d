// Selected elements of the reference against all of them, over random networks.
#include "support/messages.hpp"
#include "support/reference_check.hpp"

#include <collage/graph/graph.hpp>
#include <collage/ops.hpp>
#include <collage/run/buffers.hpp>
#include <collage/run/tensor.hpp>

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

namespace backends_reference_selected_test {

using namespace collage_test::reference;
using collage::graph;
using collage::graph_builder;
using collage::value;

/// A network under construction, with random inputs and constants.
struct random_network {
  random_source& random;
  graph_builder g = {};
  int names = 0;

  value input(const shape& dims, dtype type = dtype::f32) {
    // Some operands are constants, which are read in another way.
    if (random.chance(0.3)) return g.constant(name(), {type, dims}, bytes_of(random.tensor(dims, type)));
    return g.input(name(), {type, dims});
  }
  std::string name() { return "v" + std::to_string(names++); }
  dtype real_type() { return random.chance(0.7) ? dtype::f32 : random.chance(0.5) ? dtype::f64 : dtype::f16; }
  dtype any_type() {
    const dtype types[] = {dtype::i64, dtype::i8, dtype::u16, dtype::boolean};
    return random.chance(0.5) ? real_type() : types[random.number(0, 3)];
  }

  /// Compares selected elements of a computed value with all that the reference computes.
  void check(value y, const std::string& what) {
    g.output("y", y);
    const graph network = g.finish();
    std::vector<collage::tensor> tensors;
    for (const std::uint32_t v : network.inputs())
      collage::fill_random(tensors.emplace_back(network.type_of(v)), random.engine());
    std::vector<collage::known_value> known;
    for (std::size_t i = 0; i < tensors.size(); ++i) known.push_back({network.inputs()[i], tensors[i]});
    std::vector<std::uint32_t> nodes(network.nodes().size());
    std::iota(nodes.begin(), nodes.end(), 0U);
    const std::uint32_t wanted[] = {network.outputs()[0]};
    const oracle_value all = collage::evaluate_group(network, nodes, known, wanted).at(0);
    collage::selected_elements some{wanted[0], {}};
    const auto count = static_cast<std::int64_t>(all.size());
    for (std::int64_t i = count == 0 ? 0 : random.number(1, 40); i > 0; --i)
      some.at.push_back(random.number(0, count - 1));
    oracle_value expected(collage::tensor_type{all.type.type, {static_cast<std::int64_t>(some.at.size())}});
    for (std::size_t i = 0; i < some.at.size(); ++i) {
      const auto at = static_cast<std::size_t>(some.at[i]);
      if (is_floating(all.type.type)) expected.real[i] = all.real[at];
      else expected.integer[i] = all.integer[at];
    }
    const oracle_value found = collage::evaluate_elements(network, nodes, known, {&some, 1}).at(0);
    expect_same(found, expected, what + " to " + text_of(all.type.dims));
    EXPECT_TRUE(collage::reads_of_elements(network, nodes, {&some, 1}, infinity)) << what;
  }
};

template <class Body>
void repeat(int rounds, const Body& body) {
  random_source random;
  for (int i = 0; i < rounds && !::testing::Test::HasFatalFailure(); ++i) {
    random_network n{random};
    body(n);
  }
}

/// Extents and attributes of a window that fits. Pads are smaller than the window.
struct window {
  shape extent, size, strides, dilations, pads_begin, pads_end;
};
window random_window(random_source& random) {
  window w;
  for (std::int64_t rank = random.number(1, 3); rank > 0; --rank) {
    const std::int64_t size = random.number(1, 4), dilation = random.chance(0.6) ? 1 : random.number(1, 3);
    w.size.push_back(size);
    w.dilations.push_back(dilation);
    w.strides.push_back(random.number(1, 3));
    w.pads_begin.push_back(random.number(0, size - 1));
    w.pads_end.push_back(random.number(0, size - 1));
    w.extent.push_back(dilation * (size - 1) + random.number(1, 8));
  }
  return w;
}

TEST(reference_selected, conv) {
  repeat(100, [](random_network& n) {
    const window w = random_window(n.random);
    const std::int64_t groups = n.random.chance(0.5) ? 1 : n.random.number(1, 4), depth = n.random.number(1, 5);
    const std::int64_t filters = groups * n.random.number(1, 5);
    const dtype type = n.real_type();
    const value x = n.input(joined({n.random.number(1, 3), groups * depth}, w.extent), type);
    const value weights = n.input(joined({filters, depth}, w.size), type);
    const op::conv_attributes a{.groups = groups,
                                .strides = w.strides,
                                .dilations = w.dilations,
                                .pads_begin = w.pads_begin,
                                .pads_end = w.pads_end};
    n.check(
        n.random.chance(0.5) ? n.g(op::conv, x, weights, n.input({filters}, type), a) : n.g(op::conv, x, weights, a),
        "conv");
  });
}

TEST(reference_selected, conv_transpose) {
  repeat(100, [](random_network& n) {
    const window w = random_window(n.random);
    const std::int64_t groups = n.random.chance(0.5) ? 1 : n.random.number(1, 4), depth = n.random.number(1, 5);
    const std::int64_t channels = n.random.number(1, 4);
    op::conv_transpose_attributes a{.groups = groups, .strides = w.strides, .dilations = w.dilations};
    for (std::size_t d = 0; d < w.size.size(); ++d) {
      a.pads_begin.push_back(w.extent[d] > 1 ? n.random.number(0, w.size[d] - 1) : 0);
      a.pads_end.push_back(0);
      a.output_padding.push_back(n.random.number(0, 2));
    }
    const value x = n.input(joined({n.random.number(1, 3), groups * depth}, w.extent));
    const value weights = n.input(joined({groups * depth, channels}, w.size));
    n.check(n.random.chance(0.5) ? n.g(op::conv_transpose, x, weights, n.input({groups * channels}), a)
                                 : n.g(op::conv_transpose, x, weights, a),
            "conv_transpose");
  });
}

TEST(reference_selected, matmul) {
  repeat(150, [](random_network& n) {
    const std::int64_t m = n.random.number(1, 9), columns = n.random.number(1, 9), k = n.random.number(1, 300);
    const op::matmul_attributes t{.transpose_a = n.random.chance(0.5), .transpose_b = n.random.chance(0.5)};
    const shape batch = n.random.dims(n.random.number(0, 3), false);
    const auto operand = [&](std::int64_t rows, std::int64_t across, bool transposed) {
      shape dims;
      for (std::size_t d = n.random.chance(0.3) ? batch.size() : 0; d < batch.size(); ++d)
        dims.push_back(n.random.chance(0.3) ? 1 : batch[d]);
      dims.push_back(transposed ? across : rows);
      dims.push_back(transposed ? rows : across);
      return dims;
    };
    const dtype type = n.real_type();
    const value a = n.input(n.random.chance(0.1) ? shape{k} : operand(m, k, t.transpose_a), type);
    const value b = n.input(n.random.chance(0.1) ? shape{k} : operand(k, columns, t.transpose_b), type);
    n.check(n.g(op::matmul, a, b, t), "matmul");
  });
}

TEST(reference_selected, pools) {
  repeat(150, [](random_network& n) {
    const window w = random_window(n.random);
    op::lp_pool_attributes a;
    a.window = w.size;
    a.strides = w.strides;
    a.dilations = w.dilations;
    a.pads_begin = w.pads_begin;
    a.pads_end = w.pads_end;
    a.round_up = n.random.chance(0.5);
    a.count_padding = n.random.chance(0.5);
    a.p = 3;
    const value x = n.input(joined({n.random.number(1, 3), n.random.number(1, 3)}, w.extent), n.real_type());
    const std::int64_t which = n.random.number(0, 2);
    n.check(which == 0   ? n.g(op::max_pool, x, static_cast<const op::pool_attributes&>(a))
            : which == 1 ? n.g(op::average_pool, x, static_cast<const op::pool_attributes&>(a))
                         : n.g(op::lp_pool, x, a),
            which == 0   ? "max_pool"
            : which == 1 ? "average_pool"
                         : "lp_pool");
  });
}

TEST(reference_selected, reductions) {
  repeat(150, [](random_network& n) {
    const shape dims = n.random.dims(n.random.number(1, 4), false);
    op::reduce_attributes a{.axes = {}, .keep_dims = n.random.chance(0.5)};
    for (std::size_t d = 0; d < dims.size(); ++d)
      if (n.random.chance(0.5)) a.axes.push_back(static_cast<std::int64_t>(d));
    const bool is_real = n.random.chance(0.7);
    const value x = n.input(dims, is_real ? n.real_type() : dtype::i32);
    switch (n.random.number(0, is_real ? 5 : 4)) {
      case 0: return n.check(n.g(op::reduce_mean, x, a), "reduce_mean");
      case 1: return n.check(n.g(op::reduce_sum, x, a), "reduce_sum");
      case 2: return n.check(n.g(op::reduce_max, x, a), "reduce_max");
      case 3: return n.check(n.g(op::reduce_min, x, a), "reduce_min");
      case 4: return n.check(n.g(op::reduce_prod, x, a), "reduce_prod");
      default: return n.check(n.g(op::reduce_log_sum_exp, x, a), "reduce_log_sum_exp");
    }
  });
}

TEST(reference_selected, operators_that_move_elements) {
  repeat(200, [](random_network& n) {
    const shape dims = n.random.dims(n.random.number(1, 4), false);
    const dtype type = n.any_type();
    const value x = n.input(dims, type);
    const std::int64_t which = n.random.number(0, 4);
    if (which == 0) return n.check(n.g(op::reshape, x, {.dims = {-1}}), "reshape");
    if (which == 1) {
      op::transpose_attributes a;
      std::vector<std::int64_t> order(dims.size());
      std::iota(order.begin(), order.end(), 0);
      std::ranges::shuffle(order, n.random.engine());
      for (const std::int64_t d : order) a.permutation.push_back(d);
      return n.check(n.g(op::transpose, x, a), "transpose");
    }
    if (which == 2) {
      op::slice_attributes a;
      for (const std::int64_t extent : dims) {
        const bool is_backward = n.random.chance(0.5);
        const std::int64_t step = n.random.number(1, 3), taken = n.random.number(1, (extent - 1) / step + 1);
        a.extents.push_back(taken);
        a.steps.push_back(is_backward ? -step : step);
        a.starts.push_back(is_backward ? (taken - 1) * step : extent - 1 - (taken - 1) * step);
      }
      return n.check(n.g(op::slice, x, a), "slice");
    }
    if (which == 3) {
      shape wide{n.random.number(1, 3)};
      for (const std::int64_t extent : dims) wide.push_back(extent == 1 ? n.random.number(1, 5) : extent);
      return n.check(n.g(op::expand, x, {.dims = wide}), "expand");
    }
    const auto axis = static_cast<std::size_t>(n.random.number(0, static_cast<std::int64_t>(dims.size()) - 1));
    std::vector<value> operands{x};
    for (std::int64_t more = n.random.number(0, 3); more > 0; --more) {
      shape other = dims;
      other[axis] = n.random.number(0, 5);
      operands.push_back(n.input(other, type));
    }
    n.check(n.g(op::concat, operands, {.axis = static_cast<std::int64_t>(axis)}), "concat");
  });
}

TEST(reference_selected, elementwise_operators_of_every_type) {
  repeat(150, [](random_network& n) {
    const shape dims = n.random.dims(n.random.number(1, 4), false);
    const auto narrowed = [&] {
      shape s;
      for (std::size_t d = n.random.chance(0.3) ? 1 : 0; d < dims.size(); ++d)
        s.push_back(n.random.chance(0.3) ? 1 : dims[d]);
      return s;
    };
    const dtype type = n.random.chance(0.5) ? n.real_type() : dtype::i16;
    const value x = n.input(dims, type), y = n.input(narrowed(), type);
    switch (n.random.number(0, 4)) {
      case 0: return n.check(n.g(op::sub, x, y), "sub");
      case 1: return n.check(n.g(op::where, n.g(op::less, y, x), x, y), "where");
      case 2: return n.check(n.g(op::leaky_relu, x, {.alpha = 0.25}), "leaky_relu");
      case 3: return n.check(n.g(op::cast, x, {.to = n.any_type()}), "cast");
      default: return n.check(n.g(op::clip, x, y, n.input(narrowed(), type)), "clip");
    }
  });
}

TEST(reference_selected, operators_one_after_the_other) {
  repeat(40, [](random_network& n) {
    const std::int64_t channels = n.random.number(1, 6);
    const value x = n.input({2, channels, 9, 11});
    const auto conv = [&](value from) {
      return n.g(op::conv, from, n.input({channels, channels, 3, 3}), {.pads_begin = {1, 1}, .pads_end = {1, 1}});
    };
    const value first = n.g(op::relu, n.g(op::add, conv(x), n.input({1, channels, 1, 1})));
    const value sum = n.g(op::sigmoid, n.g(op::add, conv(first), first));
    const value pooled = n.g(op::max_pool, sum, {.window = {3, 3}, .strides = {2, 2}, .pads_begin = {1, 1}});
    const value rows = n.g(op::reshape, n.g(op::concat, {pooled, pooled}, {.axis = 1}), {.dims = {2, -1}});
    const value scores = n.g(op::matmul, rows, n.input({7, 2 * channels * 20}), {.transpose_b = true});
    n.check(n.random.chance(0.5) ? scores : n.g(op::reduce_mean, sum, {.axes = {2, 3}}), "a chain");
  });
}

TEST(reference_selected, what_is_read_is_counted_and_limited) {
  graph_builder g;
  const value x = g.input("x", {dtype::f32, {1, 8, 20, 20}}), w = g.input("w", {dtype::f32, {8, 8, 3, 3}});
  g.output("y", g(op::conv, g(op::conv, x, w), w));
  const graph network = g.finish();
  const std::uint32_t nodes[] = {0, 1};
  const collage::selected_elements one{network.outputs()[0], {0}};
  // 72 elements of the first convolution are read for one of the second.
  EXPECT_EQ(collage::reads_of_elements(network, nodes, {&one, 1}, infinity), std::optional<double>(73 * 72.0));
  EXPECT_EQ(collage::reads_of_elements(network, nodes, {&one, 1}, 73 * 72.0 - 1), std::nullopt);
}

TEST(reference_selected, other_kinds_are_refused) {
  graph_builder g;
  g.output("y", g(op::softmax, g.input("x", {dtype::f32, {3, 4}})));
  const graph network = g.finish();
  const std::uint32_t nodes[] = {0};
  const collage::selected_elements one{network.outputs()[0], {0}};
  EXPECT_EQ(collage::reads_of_elements(network, nodes, {&one, 1}, infinity), std::nullopt);
  EXPECT_EQ(collage_test::message_of([&] { (void)collage::evaluate_elements(network, nodes, {}, {&one, 1}); }, 2),
            "reference: some of its elements cannot be computed without the others; compute the whole group");
}

}  // namespace backends_reference_selected_test
