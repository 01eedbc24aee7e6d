// Transposed convolution, further poolings, local response normalisation, reductions and softmax's logarithm against
// their definitions.
#include "support/reference_check.hpp"

#include <functional>

namespace backends_reference_layers_test {

using namespace collage_test::reference;

template <class K>
std::vector<oracle_value> run_all(const K&, const oracle_value& x, typename K::attributes a) {
  const std::vector<collage::tensor_type> types{x.type};
  K::normalise(a, types);
  std::vector<oracle_value> in{x};
  return collage::evaluate_node(collage::kind_of<K>, collage::to_words(a).list(), in);
}

/// Brings a sum of wrapped-around products back to an integer type.
std::int64_t wrapped(dtype type, std::uint64_t x) {
  return collage::detail::with_integer_type(
      type, [&](auto zero) { return static_cast<std::int64_t>(static_cast<decltype(zero)>(x)); });
}

TEST(conv_transpose, agrees_with_its_definition) {
  random_source random;
  for (int round = 0; round < 120; ++round) {
    const dtype type = random.chance(0.25) ? (random.chance(0.5) ? dtype::i64 : dtype::u8) : dtype::f32;
    const std::int64_t groups = random.number(1, 3), depth = random.chance(0.05) ? 0 : random.number(1, 3);
    const std::int64_t channels = random.number(1, 4), batch = random.chance(0.05) ? 0 : random.number(1, 2);
    const std::int64_t rank = random.chance(0.1) ? 4 : random.number(1, 3);
    op::conv_transpose_attributes a{.groups = groups};
    shape extent, window;
    for (std::int64_t d = 0; d < rank; ++d) {
      extent.push_back(random.number(1, 4));
      window.push_back(random.number(1, 3));
      a.strides.push_back(random.chance(0.1) ? 7 : random.number(1, 3));
      a.dilations.push_back(random.number(1, 2));
      a.output_padding.push_back(random.chance(0.7) ? 0 : random.number(1, 9));
      const std::int64_t reach = a.dilations.end()[-1] * (window.end()[-1] - 1);
      a.pads_begin.push_back(random.number(0, reach / 2));
      a.pads_end.push_back(random.number(0, reach / 2));
    }
    std::vector<oracle_value> in{random.tensor(joined({batch, groups * depth}, extent), type),
                                 random.tensor(joined({groups * depth, channels}, window), type)};
    if (random.chance(0.5)) in.push_back(random.tensor({groups * channels}, type));
    const oracle_value y = run(op::conv_transpose, in, a);
    oracle_value expected(y.type);
    std::vector<std::uint64_t> sums(expected.integer.size());
    for_each_index(y.type.dims, [&](const multi_index& o) {
      if (in.size() < 3) return;
      const auto channel = static_cast<std::size_t>(o[1]);
      if (type == dtype::f32) expected.real[at(y.type.dims, o)] = in[2].real[channel];
      else sums[at(y.type.dims, o)] = static_cast<std::uint64_t>(in[2].integer[channel]);
    });
    for_each_index(in[0].type.dims, [&](const multi_index& i) {
      for_each_index(joined({channels}, window), [&](const multi_index& tap) {
        multi_index o{i[0], i[1] / depth * channels + tap[0]};
        multi_index k{i[1], tap[0]};
        bool inside = true;
        for (std::size_t d = 0; d < window.size(); ++d) {
          o.push_back(i[d + 2] * a.strides[d] + tap[d + 1] * a.dilations[d] - a.pads_begin[d]);
          k.push_back(tap[d + 1]);
          inside = inside && o.back() >= 0 && o.back() < y.type.dims[d + 2];
        }
        if (!inside) return;
        const std::size_t from = at(in[0].type.dims, i), weight = at(in[1].type.dims, k), to = at(y.type.dims, o);
        if (type == dtype::f32) expected.real[to] += in[0].real[from] * in[1].real[weight];
        else
          sums[to] +=
              static_cast<std::uint64_t>(in[0].integer[from]) * static_cast<std::uint64_t>(in[1].integer[weight]);
      });
    });
    for (std::size_t i = 0; i < sums.size(); ++i) expected.integer[i] = wrapped(type, sums[i]);
    expect_same(y, expected, "conv_transpose of " + text_of(in[0].type.dims) + " with " + text_of(in[1].type.dims));
  }
}

TEST(conv_transpose, channels_that_do_not_fit_one_product) {
  // One row of products has 9 x 40000 elements: twelve channels at a time.
  random_source random;
  const oracle_value x = random.tensor({1, 2, 200, 200});
  const oracle_value w = random.tensor({2, 14, 3, 3});
  const oracle_value y = run(op::conv_transpose, {x, w}, {.pads_begin = {1, 1}, .pads_end = {1, 1}});
  ASSERT_EQ(y.type.dims, (shape{1, 14, 200, 200}));
  for (int sample = 0; sample < 300; ++sample) {
    const multi_index o{0, random.number(0, 13), random.number(0, 199), random.number(0, 199)};
    double sum = 0;
    for_each_index({2, 3, 3}, [&](const multi_index& t) {
      const std::int64_t row = o[2] + 1 - t[1], column = o[3] + 1 - t[2];
      if (row >= 0 && row < 200 && column >= 0 && column < 200)
        sum += x.real[at(x.type.dims, {0, t[0], row, column})] * w.real[at(w.type.dims, {t[0], o[1], t[1], t[2]})];
    });
    ASSERT_NEAR(y.real[at(y.type.dims, o)], sum, 1e-12);
  }
}

// Pooling
// ---------------------------------------------------------------------------------------------------------------------

struct pool_case {
  op::pool_attributes attributes;
  shape dims;
};
pool_case random_pool(random_source& random) {
  pool_case c{{.round_up = random.chance(0.5)}, {random.number(1, 2), random.number(1, 3)}};
  for (std::int64_t d = random.number(1, 3); d > 0; --d) {
    const std::int64_t window = random.number(1, 3), dilation = random.number(1, 2);
    c.attributes.window.push_back(window);
    c.attributes.dilations.push_back(dilation);
    c.attributes.strides.push_back(random.number(1, 3));
    c.attributes.pads_begin.push_back(random.number(0, window - 1));
    c.attributes.pads_end.push_back(random.number(0, window - 1));
    c.dims.push_back(dilation * (window - 1) + random.number(1, 5));
  }
  return c;
}
/// Calls body(index of x) for the elements under the window at index `o` of the output.
void for_window(const pool_case& c, const multi_index& o, const std::function<void(const multi_index&)>& body) {
  for_each_index(c.attributes.window, [&](const multi_index& tap) {
    multi_index i{o[0], o[1]};
    for (std::size_t d = 0; d < tap.size(); ++d) {
      i.push_back(o[d + 2] * c.attributes.strides[d] + tap[d] * c.attributes.dilations[d] - c.attributes.pads_begin[d]);
      if (i.back() < 0 || i.back() >= c.dims[d + 2]) return;
    }
    body(i);
  });
}

TEST(max_pool_with_indices, agrees_with_its_definition) {
  random_source random;
  constexpr dtype types[] = {dtype::f32, dtype::f64, dtype::i8, dtype::u8, dtype::u64};
  for (int round = 0; round < 150; ++round) {
    const pool_case c = random_pool(random);
    const bool column_major = random.chance(0.5);
    const oracle_value x = random.tensor(c.dims, types[random.number(0, 4)], random.chance(0.3) ? 0.2 : 0.0);
    const std::vector<oracle_value> y = run_all(op::max_pool_with_indices, x, {c.attributes, column_major});
    expect_same(y[0], run(op::max_pool, {x}, c.attributes), "max_pool_with_indices of " + text_of(c.dims));
    ASSERT_EQ(y[1].type, (collage::tensor_type{dtype::i64, y[0].type.dims}));
    for_each_index(y[0].type.dims, [&](const multi_index& o) {
      std::vector<std::size_t> seen;
      std::size_t best = 0;
      std::int64_t index = -1;
      for_window(c, o, [&](const multi_index& i) {
        const std::size_t e = at(c.dims, i);
        const auto beats = [&] {
          if (!x.real.empty()) return x.real[e] > x.real[best] || (std::isnan(x.real[e]) && !std::isnan(x.real[best]));
          if (x.type.type == dtype::u64)
            return static_cast<std::uint64_t>(x.integer[e]) > static_cast<std::uint64_t>(x.integer[best]);
          return x.integer[e] > x.integer[best];
        };
        if (index >= 0 && !beats()) return;
        best = e;
        index = i[0] * c.dims[1] + i[1];
        std::int64_t place = 0;
        for (std::size_t d = 0; d + 2 < i.size(); ++d) {
          const std::size_t which = column_major ? i.size() - 1 - d : d + 2;
          place = place * c.dims[which] + i[which];
          index *= c.dims[d + 2];
        }
        index += place;
      });
      ASSERT_EQ(y[1].integer[at(y[1].type.dims, o)], index) << text_of(c.dims);
    });
  }
}

TEST(lp_pool, agrees_with_its_definition) {
  random_source random;
  for (int round = 0; round < 60; ++round) {
    const pool_case c = random_pool(random);
    const double p = 0.5 * static_cast<double>(random.number(1, 6));
    const oracle_value x = random.tensor(c.dims, dtype::f32, random.chance(0.2) ? 0.02 : 0.0);
    const oracle_value y = run(op::lp_pool, {x}, {c.attributes, p});
    oracle_value expected(y.type);
    for_each_index(y.type.dims, [&](const multi_index& o) {
      double sum = 0;
      for_window(c, o, [&](const multi_index& i) { sum += std::pow(std::abs(x.real[at(c.dims, i)]), p); });
      expected.real[at(y.type.dims, o)] = std::pow(sum, 1 / p);
    });
    expect_same(y, expected, "lp_pool of " + text_of(c.dims));
  }
}

// Norms
// ---------------------------------------------------------------------------------------------------------------------

TEST(lrn, agrees_with_its_definition) {
  random_source random;
  for (int round = 0; round < 60; ++round) {
    const shape dims = random.dims(random.number(2, 4));
    const op::lrn_attributes a{
        .size = random.chance(0.05) ? std::numeric_limits<std::int64_t>::max() : random.number(1, 9),
        .alpha = 0.3,
        .beta = 0.6,
        .bias = 1.5};
    const oracle_value x = random.tensor(dims);
    oracle_value expected(x.type);
    for_each_index(dims, [&](const multi_index& i) {
      double sum = 0;
      multi_index j = i;
      for (j[1] = 0; j[1] < dims[1]; ++j[1])
        if (j[1] - i[1] <= a.size / 2 && i[1] - j[1] <= (a.size - 1) / 2)
          sum += x.real[at(dims, j)] * x.real[at(dims, j)];
      expected.real[at(dims, i)] = x.real[at(dims, i)] / std::pow(1.5 + 0.3 / static_cast<double>(a.size) * sum, 0.6);
    });
    expect_same(run(op::lrn, {x}, a), expected, "lrn of " + text_of(dims) + ", size " + std::to_string(a.size));
  }
}

TEST(log_softmax, agrees_with_its_definition) {
  random_source random;
  for (int round = 0; round < 60; ++round) {
    const shape dims = random.dims(random.number(1, 4));
    const std::int64_t axis = random.number(0, static_cast<std::int64_t>(dims.size()) - 1);
    const oracle_value x = random.tensor(dims);
    oracle_value expected(x.type);
    for_each_index(dims, [&](const multi_index& i) {
      double sum = 0;
      multi_index j = i;
      const auto along = static_cast<std::size_t>(axis);
      for (j[along] = 0; j[along] < dims[along]; ++j[along]) sum += std::exp(x.real[at(dims, j)]);
      expected.real[at(dims, i)] = x.real[at(dims, i)] - std::log(sum);
    });
    expect_same(run(op::log_softmax, {x}, {.axis = axis}), expected, "log_softmax of " + text_of(dims));
  }
  const double below = -std::log1p(std::exp(-1000.0));
  expect_same(run(op::log_softmax, {reals({3}, {1000, 2000, -infinity})}),
              reals({3}, {-1000 + below, below, -infinity}), "far apart");
  expect_same(run(op::log_softmax, {reals({2}, {1, not_a_number})}), reals({2}, {not_a_number, not_a_number}), "NaN");
}

// Reductions
// ---------------------------------------------------------------------------------------------------------------------

TEST(reduce, products_and_sums_of_exponentials_agree_with_their_definitions) {
  random_source random;
  for (int round = 0; round < 120; ++round) {
    const dtype type = random.chance(0.3) ? (random.chance(0.5) ? dtype::i64 : dtype::i8) : dtype::f32;
    const oracle_value x = random.tensor(random.dims(random.number(0, 4)), type);
    op::reduce_attributes a;
    shape kept;
    for (std::size_t d = 0; d < x.type.dims.size(); ++d) {
      const bool folds = random.chance(0.5);
      if (folds) a.axes.push_back(static_cast<std::int64_t>(d));
      kept.push_back(folds ? 1 : x.type.dims[d]);
    }
    if (a.axes.empty()) kept = shape::filled(kept.size(), 1);
    oracle_value product(collage::tensor_type{type, kept}), sum(collage::tensor_type{dtype::f32, kept});
    std::vector<std::uint64_t> whole(product.integer.size(), 1);
    std::fill(product.real.begin(), product.real.end(), 1.0);
    for_each_index(x.type.dims, [&](const multi_index& i) {
      const std::size_t from = at(x.type.dims, i), to = at(kept, i);
      if (type == dtype::f32) {
        product.real[to] *= x.real[from];
        sum.real[to] += std::exp(x.real[from]);
      } else {
        whole[to] *= static_cast<std::uint64_t>(x.integer[from]);
      }
    });
    for (std::size_t i = 0; i < whole.size(); ++i) product.integer[i] = wrapped(type, whole[i]);
    for (double& s : sum.real) s = std::log(s);
    expect_same(run(op::reduce_prod, {x}, a), product, "reduce_prod of " + text_of(x.type.dims));
    if (type == dtype::f32)
      expect_same(run(op::reduce_log_sum_exp, {x}, a), sum, "reduce_log_sum_exp of " + text_of(x.type.dims));
  }
}

TEST(reduce, sums_of_exponentials_do_not_overflow) {
  const auto of = [](std::vector<double> list) {
    const auto count = static_cast<std::int64_t>(list.size());
    return run(op::reduce_log_sum_exp, {reals({count}, std::move(list))}, {.keep_dims = false}).real[0];
  };
  EXPECT_DOUBLE_EQ(of({1000, 1000, -5000}), 1000 + std::log(2.0));
  EXPECT_DOUBLE_EQ(of({-1000, 3, -1001}), 3);
  EXPECT_DOUBLE_EQ(of({-1001, -1000}), -1000 + std::log1p(std::exp(-1.0)));
  EXPECT_EQ(of({}), -infinity);
  EXPECT_EQ(of({-infinity, -infinity}), -infinity);
  EXPECT_EQ(of({-infinity, 7}), 7);
  EXPECT_EQ(of({1, infinity, infinity, -infinity}), infinity);
  EXPECT_TRUE(std::isnan(of({1, not_a_number, infinity})));
  EXPECT_TRUE(std::isnan(of({infinity, not_a_number})));
}

TEST(reduce, narrow_types_and_booleans) {
  const auto bytes = [](std::vector<std::int64_t> list, dtype type) {
    const auto count = static_cast<std::int64_t>(list.size());
    return integers({count}, std::move(list), type);
  };
  const auto first = [](const oracle_value& v) { return v.integer.at(0); };
  EXPECT_EQ(first(run(op::reduce_max, {bytes({0, 1, 0}, dtype::boolean)})), 1);
  EXPECT_EQ(first(run(op::reduce_min, {bytes({1, 1, 0}, dtype::boolean)})), 0);
  EXPECT_EQ(first(run(op::reduce_max, {bytes({}, dtype::boolean)})), 0);
  EXPECT_EQ(first(run(op::reduce_min, {bytes({}, dtype::boolean)})), 1);
  EXPECT_EQ(first(run(op::reduce_max, {bytes({3, 250, 7}, dtype::u8)})), 250);
  EXPECT_EQ(first(run(op::reduce_max, {bytes({-1, 5}, dtype::u64)})), -1);  // the bits of 2^64 - 1
  EXPECT_EQ(first(run(op::reduce_mean, {bytes({-128, -128, -127}, dtype::i8)})), -127);
  EXPECT_EQ(first(run(op::reduce_sum, {bytes({100, 100}, dtype::i8)})), -56);
  EXPECT_EQ(first(run(op::reduce_prod, {bytes({}, dtype::i32)})), 1);
  EXPECT_EQ(first(run(op::reduce_mean, {bytes({}, dtype::i32)})), 0);
}

}  // namespace backends_reference_layers_test
