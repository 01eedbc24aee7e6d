// The reference's other kinds against independent definitions: elementwise kinds, matmul, reductions, norms, movers,
// resize.
#include "support/reference_check.hpp"

#include <array>
#include <functional>
#include <map>

namespace backends_reference_test {

using namespace collage_test::reference;
using collage::ops::resize_coordinates;
using collage::ops::resize_mode;
using collage::ops::resize_rounding;

// Elementwise
// ------------------------------------------------------------------------------------------------------------

using arguments = std::array<double, 5>;  // operands, then attributes

template <class K>
void check_elementwise(random_source& random, const K& kind, const std::function<double(const arguments&)>& definition,
                       typename K::attributes attributes = {}, std::vector<double> attribute_list = {}) {
  for (int round = 0; round < 30; ++round) {
    // The first operand may itself be the one that is broadcast.
    const shape dims = round == 0 ? shape{3, 1000} : random.dims(random.number(0, 4));
    std::vector<oracle_value> in;
    for (std::uint32_t k = 0; k < K::body_inputs; ++k) {
      shape own;
      const std::int64_t drop = random.chance(0.3) ? random.number(0, static_cast<std::int64_t>(dims.size())) : 0;
      for (std::size_t d = static_cast<std::size_t>(drop); d < dims.size(); ++d)
        own.push_back(K::body_inputs > 1 && random.chance(0.3) ? 1 : dims[d]);
      in.push_back(random.tensor(own, dtype::f32, random.chance(0.5) ? 0.2 : 0.0));
    }
    const oracle_value y = run(kind, in, attributes);
    bool fits = true;
    shape broadcast = in[0].type.dims;
    for (const oracle_value& v : in) broadcast = collage::detail::broadcast(broadcast, v.type.dims, fits);
    ASSERT_TRUE(fits);
    oracle_value expected(collage::tensor_type{dtype::f32, broadcast});
    for_each_index(broadcast, [&](const multi_index& i) {
      arguments a{};
      for (std::size_t k = 0; k < in.size(); ++k) a[k] = in[k].real[at(in[k].type.dims, i)];
      for (std::size_t k = 0; k < attribute_list.size(); ++k) a[in.size() + k] = attribute_list[k];
      expected.real[at(broadcast, i)] = definition(a);
    });
    expect_same(y, expected, K::name);
  }
}

double larger(double x, double y) { return std::isnan(x) || std::isnan(y) ? not_a_number : std::max(x, y); }
double smaller(double x, double y) { return std::isnan(x) || std::isnan(y) ? not_a_number : std::min(x, y); }

TEST(reference_elementwise, every_kind_agrees_with_its_definition) {
  random_source random;
  using a = const arguments&;
  check_elementwise(random, op::relu, [](a x) { return larger(x[0], 0); });
  check_elementwise(random, op::leaky_relu, [](a x) { return x[0] < 0 ? x[1] * x[0] : x[0]; }, {.alpha = 0.1}, {0.1});
  check_elementwise(random, op::elu, [](a x) { return x[0] < 0 ? x[1] * std::expm1(x[0]) : x[0]; }, {.alpha = 0.7},
                    {0.7});
  check_elementwise(random, op::hard_sigmoid, [](a x) { return larger(smaller(x[1] * x[0] + x[2], 1), 0); },
                    {.alpha = 0.3, .beta = 0.4}, {0.3, 0.4});
  check_elementwise(random, op::sigmoid, [](a x) { return 1 / (1 + std::exp(-x[0])); });
  check_elementwise(random, op::tanh, [](a x) { return std::tanh(x[0]); });
  check_elementwise(random, op::erf, [](a x) { return std::erf(x[0]); });
  check_elementwise(random, op::exp, [](a x) { return std::exp(x[0]); });
  check_elementwise(random, op::log, [](a x) { return std::log(x[0]); });
  check_elementwise(random, op::sqrt, [](a x) { return std::sqrt(x[0]); });
  check_elementwise(random, op::reciprocal, [](a x) { return 1 / x[0]; });
  check_elementwise(random, op::neg, [](a x) { return -x[0]; });
  check_elementwise(random, op::abs, [](a x) { return std::abs(x[0]); });
  check_elementwise(random, op::floor, [](a x) { return std::floor(x[0]); });
  check_elementwise(random, op::ceil, [](a x) { return std::ceil(x[0]); });
  check_elementwise(random, op::sin, [](a x) { return std::sin(x[0]); });
  check_elementwise(random, op::cos, [](a x) { return std::cos(x[0]); });
  check_elementwise(random, op::softplus,
                    [](a x) { return std::isinf(x[0]) ? larger(x[0], 0) : std::log1p(std::exp(x[0])); });
  check_elementwise(random, op::add, [](a x) { return x[0] + x[1]; });
  check_elementwise(random, op::sub, [](a x) { return x[0] - x[1]; });
  check_elementwise(random, op::mul, [](a x) { return x[0] * x[1]; });
  check_elementwise(random, op::div, [](a x) { return x[0] / x[1]; });
  check_elementwise(random, op::max, [](a x) { return larger(x[0], x[1]); });
  check_elementwise(random, op::min, [](a x) { return smaller(x[0], x[1]); });
  check_elementwise(random, op::pow, [](a x) { return std::pow(x[0], x[1]); });
  check_elementwise(random, op::clip, [](a x) { return smaller(larger(x[0], x[1]), x[2]); });
}

// A body may be an operand as it is, or a constant.
constexpr struct second : collage::elementwise_kind<second, 2> {
  static constexpr char name[] = "test_second";
  static constexpr auto body(auto, auto y) { return y; }
} second{};
constexpr struct logic : collage::elementwise_kind<logic, 2> {
  static constexpr char name[] = "test_logic";
  static constexpr auto body(auto x, auto y) {
    namespace m = collage::math;
    return m::select(!(x < y) && (x == y || m::round(x) == y), m::select(x < 0.0, -x, x) + 10.0, m::round(y));
  }
} logic{};

TEST(reference_elementwise, bodies_of_users_kinds_run) {
  random_source random;
  check_elementwise(random, second, [](const arguments& x) { return x[1]; });
  check_elementwise(random, logic, [](const arguments& x) {
    const bool p = !(x[0] < x[1]) && (x[0] == x[1] || std::nearbyint(x[0]) == x[1]);
    return p ? std::abs(x[0]) + 10 : std::nearbyint(x[1]);
  });
  const oracle_value half = run(logic, {reals({4}, {0, 0, 0, 0}), reals({4}, {0.5, 1.5, 2.5, -0.5})});
  expect_same(half, reals({4}, {0, 2, 2, 0}), "halves round to even");
}

TEST(reference_elementwise, integers_wrap_around_and_never_trap) {
  constexpr std::int64_t low = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t high = std::numeric_limits<std::int64_t>::max();
  const auto both = [](const auto& kind, std::int64_t x, std::int64_t y, dtype type = dtype::i64) {
    return run(kind, {integers({1}, {x}, type), integers({1}, {y}, type)}).integer.at(0);
  };
  EXPECT_EQ(both(op::add, high, 1), low);
  EXPECT_EQ(both(op::sub, low, 1), high);
  EXPECT_EQ(both(op::mul, high, 2), -2);
  EXPECT_EQ(both(op::mul, 3037000500, 3037000500), static_cast<std::int64_t>(9223372037000250000U));
  EXPECT_EQ(both(op::div, 7, 2), 3);
  EXPECT_EQ(both(op::div, -7, 2), -3);
  EXPECT_EQ(both(op::div, 7, -2), -3);
  EXPECT_EQ(both(op::div, 7, 0), 0);
  EXPECT_EQ(both(op::div, low, -1), low);
  EXPECT_EQ(both(op::div, high, -1), -high);
  EXPECT_EQ(both(op::max, low, high), high);
  EXPECT_EQ(both(op::min, low, high), low);
  EXPECT_EQ(both(op::pow, -3, 3), -27);
  EXPECT_EQ(both(op::pow, 2, 64), 0);
  EXPECT_EQ(both(op::pow, 2, -1), 0);
  EXPECT_EQ(both(op::pow, -1, -3), -1);
  EXPECT_EQ(both(op::pow, 0, 0), 1);
  EXPECT_EQ(run(op::neg, {integers({1}, {low})}).integer.at(0), low);
  EXPECT_EQ(run(op::abs, {integers({1}, {low})}).integer.at(0), low);
  EXPECT_EQ(run(op::relu, {integers({3}, {low, -1, high})}).integer, (std::vector<std::int64_t>{0, 0, high}));
  // Beyond 2^53 nothing may pass through double.
  EXPECT_EQ(both(op::add, (std::int64_t{1} << 53) + 1, 1), (std::int64_t{1} << 53) + 2);
  EXPECT_EQ(run(op::floor, {integers({1}, {high})}).integer.at(0), high);
  // Narrow types wrap at their own width, uint64 compares and divides as what it is.
  EXPECT_EQ(both(op::add, 127, 1, dtype::i8), -128);
  EXPECT_EQ(both(op::mul, 16, 16, dtype::u8), 0);
  EXPECT_EQ(both(op::sub, 0, 1, dtype::u16), 65535);
  EXPECT_EQ(both(op::div, -128, -1, dtype::i8), -128);
  EXPECT_EQ(both(op::max, -1, 1, dtype::u64), -1);
  EXPECT_EQ(both(op::div, -1, 2, dtype::u64), high);
  EXPECT_EQ(both(op::add, 1, 1, dtype::boolean), 1);
  EXPECT_EQ(run(op::exp, {integers({2}, {1000, -1000})}).integer, (std::vector<std::int64_t>{high, 0}));
  EXPECT_EQ(run(op::sqrt, {integers({2}, {-1, 17})}).integer, (std::vector<std::int64_t>{0, 4}));
}

// Matmul
// -----------------------------------------------------------------------------------------------------------------

TEST(reference_matmul, agrees_with_its_definition) {
  random_source random;
  for (int round = 0; round < 300; ++round) {
    const dtype type = random.chance(0.25) ? (random.chance(0.5) ? dtype::i64 : dtype::u8) : dtype::f32;
    const op::matmul_attributes t{.transpose_a = random.chance(0.5), .transpose_b = random.chance(0.5)};
    const auto extent = [&] { return random.chance(0.05) ? 0 : random.number(1, random.chance(0.05) ? 300 : 9); };
    const std::int64_t m = extent(), n = extent(), k = extent();
    const shape batch = random.dims(random.number(0, 3));
    const auto operand = [&](std::int64_t rows, std::int64_t columns, bool transposed) {
      shape s;
      const auto drop =
          static_cast<std::size_t>(random.chance(0.5) ? random.number(0, static_cast<std::int64_t>(batch.size())) : 0);
      for (std::size_t d = drop; d < batch.size(); ++d) s.push_back(random.chance(0.3) ? 1 : batch[d]);
      s.push_back(transposed ? columns : rows);
      s.push_back(transposed ? rows : columns);
      return random.tensor(s, type);
    };
    const bool row = random.chance(0.1);
    const bool column = random.chance(0.1);
    const oracle_value a = row ? random.tensor({k}, type) : operand(m, k, t.transpose_a);
    const oracle_value b = column ? random.tensor({k}, type) : operand(k, n, t.transpose_b);
    const oracle_value y = run(op::matmul, {a, b}, t);
    oracle_value expected(y.type);
    for_each_index(y.type.dims, [&](const multi_index& o) {
      const std::size_t tail = (row ? 0U : 1U) + (column ? 0U : 1U);
      multi_index i(o.begin(), o.end() - static_cast<std::ptrdiff_t>(tail));
      multi_index j = i;
      double sum = 0;
      std::uint64_t whole = 0;
      for (std::int64_t step = 0; step < k; ++step) {
        multi_index in_a = i;
        multi_index in_b = j;
        if (!row) in_a.push_back(o[o.size() - tail]);
        in_a.push_back(step);
        in_b.push_back(step);
        if (!column) in_b.push_back(o.back());
        if (!row && t.transpose_a) std::swap(in_a[in_a.size() - 1], in_a[in_a.size() - 2]);
        if (!column && t.transpose_b) std::swap(in_b[in_b.size() - 1], in_b[in_b.size() - 2]);
        if (type == dtype::f32) sum += a.real[at(a.type.dims, in_a)] * b.real[at(b.type.dims, in_b)];
        else
          whole += static_cast<std::uint64_t>(a.integer[at(a.type.dims, in_a)]) *
                   static_cast<std::uint64_t>(b.integer[at(b.type.dims, in_b)]);
      }
      if (type == dtype::f32) expected.real[at(y.type.dims, o)] = sum;
      else
        expected.integer[at(y.type.dims, o)] =
            type == dtype::u8 ? static_cast<std::uint8_t>(whole) : static_cast<std::int64_t>(whole);
    });
    expect_same(y, expected, "matmul of " + text_of(a.type.dims) + " and " + text_of(b.type.dims));
  }
}

// Reductions and norms
// ---------------------------------------------------------------------------------------------------

TEST(reference_reduce, every_kind_agrees_with_its_definition) {
  random_source random;
  for (int round = 0; round < 200; ++round) {
    const dtype type = random.chance(0.3) ? dtype::i64 : dtype::f32;
    const oracle_value x = random.tensor(random.dims(random.number(1, 5)), type, random.chance(0.3) ? 0.05 : 0.0);
    const shape& dims = x.type.dims;
    op::reduce_attributes a{.axes = {}, .keep_dims = random.chance(0.5)};
    std::vector<bool> reduced(dims.size(), false);
    for (std::size_t d = 0; d < dims.size(); ++d)
      if (random.chance(0.5)) {
        reduced[d] = true;
        const auto axis = static_cast<std::int64_t>(d);
        a.axes.push_back(random.chance(0.5) ? axis : axis - static_cast<std::int64_t>(dims.size()));
      }
    if (a.axes.empty()) reduced.assign(dims.size(), true);
    shape kept;
    std::int64_t count = 1;
    for (std::size_t d = 0; d < dims.size(); ++d) {
      kept.push_back(reduced[d] ? 1 : dims[d]);
      if (reduced[d]) count *= dims[d];
    }
    const auto size = static_cast<std::size_t>(kept.elements());
    std::vector<double> sum(size, 0), top(size, -infinity), bottom(size, infinity);
    std::vector<std::uint64_t> whole_sum(size, 0);
    std::vector<std::int64_t> whole_top(size, std::numeric_limits<std::int64_t>::min());
    std::vector<std::int64_t> whole_bottom(size, std::numeric_limits<std::int64_t>::max());
    for_each_index(dims, [&](const multi_index& i) {
      const std::size_t to = at(kept, i);
      if (type == dtype::i64) {
        const std::int64_t e = x.integer[at(dims, i)];
        whole_sum[to] += static_cast<std::uint64_t>(e);
        whole_top[to] = std::max(whole_top[to], e);
        whole_bottom[to] = std::min(whole_bottom[to], e);
      } else {
        const double e = x.real[at(dims, i)];
        sum[to] += e;
        top[to] = larger(top[to], e);
        bottom[to] = smaller(bottom[to], e);
      }
    });
    const auto check = [&](const oracle_value& got, const std::vector<double>& real,
                           const std::vector<std::int64_t>& whole, const char* name) {
      shape out;
      for (std::size_t d = 0; d < dims.size(); ++d)
        if (a.keep_dims || !reduced[d]) out.push_back(kept[d]);
      oracle_value expected(collage::tensor_type{type, out});
      if (type == dtype::i64) expected.integer = whole;
      else expected.real = real;
      expect_same(got, expected, name + (" of " + text_of(dims)));
    };
    std::vector<double> mean;
    std::vector<std::int64_t> whole, whole_mean;
    for (const double s : sum) mean.push_back(s / static_cast<double>(count));
    for (const std::uint64_t s : whole_sum) {
      whole.push_back(static_cast<std::int64_t>(s));
      whole_mean.push_back(count == 0 ? 0 : static_cast<std::int64_t>(s) / count);
    }
    check(run(op::reduce_sum, {x}, a), sum, whole, "reduce_sum");
    check(run(op::reduce_mean, {x}, a), mean, whole_mean, "reduce_mean");
    check(run(op::reduce_max, {x}, a), top, whole_top, "reduce_max");
    check(run(op::reduce_min, {x}, a), bottom, whole_bottom, "reduce_min");
  }
}

TEST(reference_reduce, of_nothing) {
  const oracle_value x = reals({2, 0}, {});
  expect_same(run(op::reduce_sum, {x}, {.axes = {1}}), reals({2, 1}, {0, 0}), "sum");
  expect_same(run(op::reduce_mean, {x}, {.axes = {1}}), reals({2, 1}, {not_a_number, not_a_number}), "mean");
  expect_same(run(op::reduce_max, {x}, {.axes = {-1}}), reals({2, 1}, {-infinity, -infinity}), "max");
  expect_same(run(op::reduce_min, {x}, {.axes = {1}, .keep_dims = false}), reals({2}, {infinity, infinity}), "min");
}

TEST(reference_norm, softmax_agrees_with_its_definition) {
  random_source random;
  for (int round = 0; round < 100; ++round) {
    const oracle_value x = random.tensor(random.dims(random.number(1, 4)), dtype::f32, random.chance(0.2) ? 0.02 : 0.0);
    const shape& dims = x.type.dims;
    const auto axis = static_cast<std::size_t>(random.number(0, static_cast<std::int64_t>(dims.size()) - 1));
    shape line = dims;
    line[axis] = 1;
    std::vector<double> sum(static_cast<std::size_t>(line.elements()), 0), top(sum.size(), -infinity);
    for_each_index(dims,
                   [&](const multi_index& i) { top[at(line, i)] = larger(top[at(line, i)], x.real[at(dims, i)]); });
    for_each_index(dims,
                   [&](const multi_index& i) { sum[at(line, i)] += std::exp(x.real[at(dims, i)] - top[at(line, i)]); });
    oracle_value expected(x.type);
    for_each_index(dims, [&](const multi_index& i) {
      expected.real[at(dims, i)] = std::exp(x.real[at(dims, i)] - top[at(line, i)]) / sum[at(line, i)];
    });
    const auto given =
        static_cast<std::int64_t>(axis) - (random.chance(0.5) ? static_cast<std::int64_t>(dims.size()) : 0);
    expect_same(run(op::softmax, {x}, {.axis = given}), expected, "softmax of " + text_of(dims));
  }
  // Large numbers do not overflow, a masked element is 0, a NaN spoils its own line alone.
  const oracle_value y = run(op::softmax, {reals({3, 2}, {1000, 1000, -infinity, 5, not_a_number, 1})});
  expect_same(y, reals({3, 2}, {0.5, 0.5, 0, 1, not_a_number, not_a_number}), "softmax");
}

TEST(reference_norm, layer_norm_agrees_with_its_definition) {
  random_source random;
  for (int round = 0; round < 100; ++round) {
    const oracle_value x = random.tensor(random.dims(random.number(1, 4)));
    const shape& dims = x.type.dims;
    const auto axis = static_cast<std::size_t>(random.number(0, static_cast<std::int64_t>(dims.size()) - 1));
    std::vector<oracle_value> in{x};
    for (std::int64_t k = random.number(1, 2); k > 0; --k) {
      shape own;
      for (std::size_t d = random.chance(0.5) ? axis : 0; d < dims.size(); ++d)
        own.push_back(random.chance(0.2) ? 1 : dims[d]);
      in.push_back(random.tensor(own));
    }
    shape row = dims;
    double length = 1;
    for (std::size_t d = axis; d < dims.size(); ++d) {
      length *= static_cast<double>(dims[d]);
      row[d] = 1;
    }
    std::vector<double> mean(static_cast<std::size_t>(row.elements()), 0), variance(mean.size(), 0);
    for_each_index(dims, [&](const multi_index& i) { mean[at(row, i)] += x.real[at(dims, i)] / length; });
    for_each_index(dims, [&](const multi_index& i) {
      variance[at(row, i)] += std::pow(x.real[at(dims, i)] - mean[at(row, i)], 2) / length;
    });
    oracle_value expected(x.type);
    for_each_index(dims, [&](const multi_index& i) {
      double y = (x.real[at(dims, i)] - mean[at(row, i)]) / std::sqrt(variance[at(row, i)] + 1e-3);
      y *= in[1].real[at(in[1].type.dims, i)];
      if (in.size() == 3) y += in[2].real[at(in[2].type.dims, i)];
      expected.real[at(dims, i)] = y;
    });
    const auto given =
        static_cast<std::int64_t>(axis) - (random.chance(0.5) ? static_cast<std::int64_t>(dims.size()) : 0);
    expect_same(run(op::layer_norm, in, {.axis = given, .epsilon = 1e-3}), expected, "layer_norm of " + text_of(dims));
  }
}

TEST(reference_norm, refuses_integers) {
  EXPECT_THROW((void)run(op::softmax, {integers({2}, {1, 2})}), collage::error);
  EXPECT_THROW((void)run(op::layer_norm, {integers({2}, {1, 2}), integers({2}, {1, 2})}), collage::error);
  EXPECT_THROW((void)run(op::resize, {integers({2}, {1, 2})}, {.sizes = {3}, .mode = resize_mode::linear}),
               collage::error);
}

// Movers
// -----------------------------------------------------------------------------------------------------------------

TEST(reference_movement, agrees_with_its_definition) {
  random_source random;
  for (int round = 0; round < 200; ++round) {
    const dtype type = random.chance(0.3) ? dtype::i32 : dtype::f32;
    const oracle_value x = random.tensor(random.dims(random.number(1, 5)), type, 0.1);
    const shape& dims = x.type.dims;
    const auto copy = [&](oracle_value& to, std::size_t i, const oracle_value& from, std::size_t j) {
      if (type == dtype::f32) to.real[i] = from.real[j];
      else to.integer[i] = from.integer[j];
    };
    // transpose
    std::vector<std::int64_t> order(dims.size());
    for (std::size_t d = 0; d < order.size(); ++d) order[d] = static_cast<std::int64_t>(d);
    for (std::size_t d = order.size(); d > 1; --d)
      std::swap(order[d - 1], order[static_cast<std::size_t>(random.number(0, static_cast<std::int64_t>(d) - 1))]);
    const oracle_value turned = run(op::transpose, {x}, {.permutation = shape(std::span<const std::int64_t>(order))});
    oracle_value expected(turned.type);
    for_each_index(turned.type.dims, [&](const multi_index& o) {
      multi_index i(o.size());
      for (std::size_t d = 0; d < o.size(); ++d) i[static_cast<std::size_t>(order[d])] = o[d];
      copy(expected, at(turned.type.dims, o), x, at(dims, i));
    });
    expect_same(turned, expected, "transpose of " + text_of(dims));
    // reshape
    oracle_value flat = run(op::reshape, {x}, {.dims = {dims.elements()}, .allow_zero = true});
    EXPECT_EQ(flat.type.dims, shape{dims.elements()});
    flat.type = x.type;
    expect_same(flat, x, "reshape");
    // concat
    const auto axis = static_cast<std::size_t>(random.number(0, static_cast<std::int64_t>(dims.size()) - 1));
    std::vector<oracle_value> parts;
    for (std::int64_t k = random.number(1, 4); k > 0; --k) {
      shape own = dims;
      own[axis] = random.number(0, 3);
      parts.push_back(random.tensor(own, type));
    }
    const oracle_value all = run(op::concat, parts, {.axis = static_cast<std::int64_t>(axis)});
    oracle_value joined(all.type);
    std::int64_t start = 0;
    for (const oracle_value& part : parts) {
      for_each_index(part.type.dims, [&](const multi_index& i) {
        multi_index o = i;
        o[axis] += start;
        // `at` reads an extent of 1 as index 0, which is wrong only where the part is the whole.
        copy(joined, at(all.type.dims, o), part, at(part.type.dims, i));
      });
      start += part.type.dims[axis];
    }
    expect_same(all, joined, "concat along " + std::to_string(axis));
  }
}

TEST(reference_movement, reshape_reads_its_target_from_an_operand) {
  const oracle_value x = reals({2, 3}, {1, 2, 3, 4, 5, 6});
  expect_same(run(op::reshape, {x, integers({2}, {-1, 2})}), reals({3, 2}, {1, 2, 3, 4, 5, 6}), "reshape");
  EXPECT_THROW((void)run(op::reshape, {x, integers({1}, {4})}), collage::error);
}

// Resize
// -----------------------------------------------------------------------------------------------------------------

/// The formulas of ONNX Resize as they are written, in long double.
long double source_of(resize_coordinates how, std::int64_t o, std::int64_t in, std::int64_t out) {
  const long double scale = static_cast<long double>(out) / static_cast<long double>(in);
  const auto x = static_cast<long double>(o);
  switch (how) {
    case resize_coordinates::asymmetric: return x / scale;
    case resize_coordinates::align_corners:
      return out == 1 ? 0 : x * static_cast<long double>(in - 1) / static_cast<long double>(out - 1);
    case resize_coordinates::pytorch_half_pixel: return out > 1 ? (x + 0.5L) / scale - 0.5L : 0;
    default: break;  // half_pixel; the others have tests of their own
  }
  return (x + 0.5L) / scale - 0.5L;
}

TEST(reference_resize, linear_agrees_with_its_definition) {
  random_source random;
  for (int round = 0; round < 200; ++round) {
    const shape dims = random.dims(random.number(1, 4), false);
    shape sizes;
    for (const std::int64_t e : dims) sizes.push_back(random.chance(0.3) ? e : random.number(0, 9));
    const auto how = static_cast<resize_coordinates>(random.number(0, 3));
    const oracle_value x = random.tensor(dims);
    const oracle_value y = run(op::resize, {x}, {.sizes = sizes, .mode = resize_mode::linear, .coordinates = how});
    oracle_value expected(y.type);
    for_each_index(sizes, [&](const multi_index& o) {
      // The mean of the 2^rank neighbours, each by the product of its weights.
      long double sum = 0;
      for (std::uint32_t corner = 0; corner < 1U << o.size(); ++corner) {
        long double weight = 1;
        multi_index i(o.size());
        for (std::size_t d = 0; d < o.size(); ++d) {
          const long double last = static_cast<long double>(dims[d] - 1);
          const long double at_d = std::min(std::max(source_of(how, o[d], dims[d], sizes[d]), 0.0L), last);
          const long double low = std::floor(at_d);
          const bool upper = (corner >> d & 1U) != 0;
          weight *= upper ? at_d - low : 1 - (at_d - low);
          i[d] = static_cast<std::int64_t>(std::min(upper ? low + 1 : low, last));
        }
        sum += weight * static_cast<long double>(x.real[at(dims, i)]);
      }
      expected.real[at(sizes, o)] = static_cast<double>(sum);
    });
    expect_same(y, expected, "resize of " + text_of(dims) + " to " + text_of(sizes));
  }
}

TEST(reference_resize, nearest_agrees_with_its_definition) {
  random_source random;
  for (int round = 0; round < 300; ++round) {
    const shape dims = random.dims(random.number(1, 3), false);
    shape sizes;
    for (std::size_t d = 0; d < dims.size(); ++d) sizes.push_back(random.number(0, 9));
    const auto how = static_cast<resize_coordinates>(random.number(0, 3));
    const auto rounding = static_cast<resize_rounding>(random.number(0, 3));
    const oracle_value x = random.tensor(dims, random.chance(0.5) ? dtype::i32 : dtype::f32);
    const oracle_value y = run(op::resize, {x}, {.sizes = sizes, .coordinates = how, .rounding = rounding});
    oracle_value expected(y.type);
    for_each_index(sizes, [&](const multi_index& o) {
      multi_index i(o.size());
      for (std::size_t d = 0; d < o.size(); ++d) {
        // Coordinates are multiples of 1 / (2 out) or 1 / (out - 1): this much away from a half or a whole is rounding.
        const long double p = source_of(how, o[d], dims[d], sizes[d]);
        const long double exact = std::abs(p * 2 - std::round(p * 2)) < 1e-12L ? std::round(p * 2) / 2 : p;
        const long double nearest = rounding == resize_rounding::prefer_floor  ? std::ceil(exact - 0.5L)
                                    : rounding == resize_rounding::prefer_ceil ? std::floor(exact + 0.5L)
                                    : rounding == resize_rounding::down        ? std::floor(exact)
                                                                               : std::ceil(exact);
        i[d] = static_cast<std::int64_t>(std::min(std::max(nearest, 0.0L), static_cast<long double>(dims[d] - 1)));
      }
      if (y.real.empty()) expected.integer[at(sizes, o)] = x.integer[at(dims, i)];
      else expected.real[at(sizes, o)] = x.real[at(dims, i)];
    });
    expect_same(y, expected, "resize of " + text_of(dims) + " to " + text_of(sizes));
  }
}

// Computed by ONNX Runtime 1.31 (opset 22).
TEST(reference_resize, agrees_with_onnx_runtime) {
  const oracle_value row = reals({1, 1, 1, 4}, {1, -2, 4, 8});
  struct sample {
    resize_mode mode;
    resize_coordinates coordinates;
    resize_rounding rounding;
    std::int64_t size;
    std::vector<double> expected;
  };
  const sample samples[] = {
      {resize_mode::nearest, resize_coordinates::half_pixel, resize_rounding::prefer_floor, 6, {1, 1, -2, 4, 4, 8}},
      {resize_mode::nearest, resize_coordinates::half_pixel, resize_rounding::prefer_ceil, 6, {1, -2, -2, 4, 8, 8}},
      {resize_mode::nearest, resize_coordinates::half_pixel, resize_rounding::down, 6, {1, 1, -2, -2, 4, 8}},
      {resize_mode::nearest, resize_coordinates::half_pixel, resize_rounding::up, 6, {1, -2, 4, 4, 8, 8}},
      {resize_mode::nearest, resize_coordinates::half_pixel, resize_rounding::prefer_floor, 3, {1, -2, 8}},
      {resize_mode::linear,
       resize_coordinates::half_pixel,
       resize_rounding::down,
       7,
       {1, -0.071428597, -1.78571439, 1, 4.28571415, 6.5714283, 8}},
      {resize_mode::linear, resize_coordinates::half_pixel, resize_rounding::down, 3, {0.49999994, 1, 7.33333302}},
      {resize_mode::linear, resize_coordinates::half_pixel, resize_rounding::down, 1, {1}},
      {resize_mode::nearest, resize_coordinates::asymmetric, resize_rounding::prefer_floor, 6, {1, -2, -2, 4, 8, 8}},
      {resize_mode::nearest, resize_coordinates::asymmetric, resize_rounding::prefer_ceil, 6, {1, -2, -2, 4, 8, 8}},
      {resize_mode::nearest, resize_coordinates::asymmetric, resize_rounding::down, 6, {1, 1, -2, 4, 4, 8}},
      {resize_mode::nearest, resize_coordinates::asymmetric, resize_rounding::up, 6, {1, -2, 4, 4, 8, 8}},
      {resize_mode::nearest, resize_coordinates::asymmetric, resize_rounding::prefer_floor, 3, {1, -2, 8}},
      {resize_mode::linear,
       resize_coordinates::asymmetric,
       resize_rounding::down,
       7,
       {1, -0.714285791, -1.14285684, 2.28571439, 5.14285755, 7.4285717, 8}},
      {resize_mode::linear, resize_coordinates::asymmetric, resize_rounding::down, 3, {1, 2.38418579e-07, 6.66666698}},
      {resize_mode::linear, resize_coordinates::asymmetric, resize_rounding::down, 1, {1}},
      {resize_mode::nearest, resize_coordinates::align_corners, resize_rounding::prefer_floor, 6, {1, -2, -2, 4, 4, 8}},
      {resize_mode::nearest, resize_coordinates::align_corners, resize_rounding::prefer_ceil, 6, {1, -2, -2, 4, 4, 8}},
      {resize_mode::nearest, resize_coordinates::align_corners, resize_rounding::down, 6, {1, 1, -2, -2, 4, 8}},
      {resize_mode::nearest, resize_coordinates::align_corners, resize_rounding::up, 6, {1, -2, 4, 4, 8, 8}},
      {resize_mode::nearest, resize_coordinates::align_corners, resize_rounding::prefer_floor, 3, {1, -2, 8}},
      {resize_mode::linear, resize_coordinates::align_corners, resize_rounding::down, 7, {1, -0.5, -2, 1, 4, 6, 8}},
      {resize_mode::linear, resize_coordinates::align_corners, resize_rounding::down, 3, {1, 1, 8}},
      {resize_mode::linear, resize_coordinates::align_corners, resize_rounding::down, 1, {1}},
      {resize_mode::nearest,
       resize_coordinates::pytorch_half_pixel,
       resize_rounding::prefer_floor,
       6,
       {1, 1, -2, 4, 4, 8}},
      {resize_mode::nearest,
       resize_coordinates::pytorch_half_pixel,
       resize_rounding::prefer_ceil,
       6,
       {1, -2, -2, 4, 8, 8}},
      {resize_mode::nearest, resize_coordinates::pytorch_half_pixel, resize_rounding::down, 6, {1, 1, -2, -2, 4, 8}},
      {resize_mode::nearest, resize_coordinates::pytorch_half_pixel, resize_rounding::up, 6, {1, -2, 4, 4, 8, 8}},
      {resize_mode::nearest, resize_coordinates::pytorch_half_pixel, resize_rounding::prefer_floor, 3, {1, -2, 8}},
      {resize_mode::linear,
       resize_coordinates::pytorch_half_pixel,
       resize_rounding::down,
       7,
       {1, -0.071428597, -1.78571439, 1, 4.28571415, 6.5714283, 8}},
      {resize_mode::linear,
       resize_coordinates::pytorch_half_pixel,
       resize_rounding::down,
       3,
       {0.49999994, 1, 7.33333302}},
      {resize_mode::linear, resize_coordinates::pytorch_half_pixel, resize_rounding::down, 1, {1}},
  };
  for (const sample& s : samples) {
    const oracle_value y =
        run(op::resize, {row},
            {.sizes = {1, 1, 1, s.size}, .mode = s.mode, .coordinates = s.coordinates, .rounding = s.rounding});
    ASSERT_EQ(y.real.size(), s.expected.size());
    for (std::size_t i = 0; i < y.real.size(); ++i)
      EXPECT_NEAR(y.real[i], s.expected[i], 1e-6)
          << "mode " << static_cast<int>(s.mode) << " coordinates " << static_cast<int>(s.coordinates) << " rounding "
          << static_cast<int>(s.rounding) << " size " << s.size << " element " << i;
  }
  const oracle_value square = reals({1, 1, 2, 2}, {1, 2, 3, 5});
  const oracle_value y = run(op::resize, {square}, {.sizes = {1, 1, 3, 4}, .mode = resize_mode::linear});
  expect_same(y, reals({1, 1, 3, 4}, {1, 1.25, 1.75, 2, 2, 2.375, 3.125, 3.5, 3, 3.5, 4.5, 5}), "resize");
}

}  // namespace backends_reference_test
