// Elementwise kinds of every element type: the reference against definitions written apart from it, and the plain loops
// of `portable` against the reference.
#include "support/reference_check.hpp"

#include <collage/backend_set.hpp>
#include <collage/backends/portable.hpp>
#include <collage/graph/graph.hpp>
#include <collage/op/built_in.hpp>
#include <collage/run/agreement.hpp>
#include <collage/run/backend_table.hpp>
#include <collage/run/tensor.hpp>

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <utility>

namespace backends_elementwise_types_test {

using namespace collage_test::reference;

constexpr dtype integer_types[] = {dtype::i8, dtype::i16, dtype::i32, dtype::i64,
                                   dtype::u8, dtype::u16, dtype::u32, dtype::u64};
constexpr dtype every_type[] = {dtype::f32,        dtype::f64,    dtype::f16,      dtype::bf16,       dtype::i8,
                                dtype::i16,        dtype::i32,    dtype::i64,      dtype::u8,         dtype::u16,
                                dtype::u32,        dtype::u64,    dtype::boolean,  dtype::i4,         dtype::u4,
                                dtype::i2,         dtype::u2,     dtype::f8e4m3fn, dtype::f8e4m3fnuz, dtype::f8e5m2,
                                dtype::f8e5m2fnuz, dtype::f8e8m0, dtype::f4e2m1};

/// A tensor's elements as they are once stored.
oracle_value stored(oracle_value v) {
  const collage::tensor memory(v.type);
  collage::from_oracle(v, memory.data());
  return collage::to_oracle(memory);
}

// The reference against definitions -----------------------------------------------------------------------------------

using arguments = std::array<double, 4>;  // operands, then attributes

/// Over float32, with NaN, infinities and broadcasting; where the kind answers booleans they are compared as 0 and 1.
template <class K>
void check_reals(random_source& random, const K& kind, const std::function<double(const arguments&)>& definition,
                 const typename K::attributes& attributes = {}, const std::vector<double>& list = {}) {
  const shape dims{3, 40, 7};
  const shape shapes[] = {dims, {40, 1}, {3, 1, 7}};
  std::vector<oracle_value> in;
  for (std::uint32_t k = 0; k < K::body_inputs; ++k) in.push_back(random.tensor(shapes[k], dtype::f32, 0.1));
  if (K::body_inputs > 1)  // equal operands, which random ones are not
    for (std::size_t e = 0; e < 40; ++e) in[0].real[7 * e] = in[1].real[e];
  const oracle_value y = run(kind, in, attributes);
  oracle_value expected(y.type);
  ASSERT_EQ(text_of(y.type.dims), text_of(dims));
  for_each_index(dims, [&](const multi_index& i) {
    arguments a{};
    for (std::size_t k = 0; k < in.size(); ++k) a[k] = in[k].real[at(in[k].type.dims, i)];
    std::copy(list.begin(), list.end(), a.begin() + K::body_inputs);
    if (expected.real.empty()) expected.integer[at(dims, i)] = static_cast<std::int64_t>(definition(a));
    else expected.real[at(dims, i)] = definition(a);
  });
  expect_same(y, expected, K::name);
}

TEST(elementwise_types, reals_agree_with_their_definitions) {
  random_source random;
  using a = const arguments&;
  check_reals(random, op::tan, [](a x) { return std::sin(x[0]) / std::cos(x[0]); });
  check_reals(random, op::asin, [](a x) { return std::asin(x[0]); });
  check_reals(random, op::acos, [](a x) { return std::asin(1.0) - std::asin(x[0]); });
  check_reals(random, op::atan, [](a x) { return std::atan2(x[0], 1.0); });
  check_reals(random, op::sinh, [](a x) { return (std::exp(x[0]) - std::exp(-x[0])) / 2; });
  check_reals(random, op::cosh, [](a x) { return (std::exp(x[0]) + std::exp(-x[0])) / 2; });
  check_reals(random, op::asinh, [](a x) {
    return std::isinf(x[0]) ? x[0] : std::copysign(std::log(std::abs(x[0]) + std::hypot(x[0], 1.0)), x[0]);
  });
  check_reals(random, op::acosh, [](a x) { return std::log(x[0] + std::sqrt(x[0] - 1) * std::sqrt(x[0] + 1)); });
  check_reals(random, op::atanh, [](a x) { return (std::log1p(x[0]) - std::log1p(-x[0])) / 2; });
  check_reals(random, op::round, [](a x) { return std::isfinite(x[0]) ? x[0] - std::remainder(x[0], 1.0) : x[0]; });
  check_reals(random, op::sign, [](a x) { return x[0] == 0 || std::isnan(x[0]) ? x[0] : std::copysign(1.0, x[0]); });
  check_reals(random, op::prelu, [](a x) { return x[0] < 0 ? x[0] * x[1] : x[0]; });
  check_reals(random, op::celu, [](a x) { return x[0] < 0 ? x[1] * std::expm1(x[0] / x[1]) : x[0]; }, {.alpha = 1.5},
              {1.5});
  check_reals(random, op::selu, [](a x) { return x[2] * (x[0] < 0 ? x[1] * std::expm1(x[0]) : x[0]); },
              {.alpha = 1.5, .gamma = 0.5}, {1.5, 0.5});
  check_reals(random, op::thresholded_relu, [](a x) { return x[0] > x[1] ? x[0] : 0; }, {.alpha = 0.3}, {0.3});
  check_reals(random, op::shrink, [](a x) { return x[0] > x[2]    ? x[0] - x[1]
                                                   : x[0] < -x[2] ? x[0] + x[1]
                                                                  : 0; },
              {.bias = 0.2, .lambda = 0.6}, {0.2, 0.6});
  check_reals(random, op::hard_swish,
              [](a x) { return std::isnan(x[0]) ? x[0] : x[0] * std::clamp(x[0] / 6 + 0.5, 0.0, 1.0); });
  check_reals(random, op::gelu_tanh, [](a x) {
    return x[0] / 2 * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x[0] + 0.044715 * x[0] * x[0] * x[0])));
  });
  check_reals(random, op::mish,
              [](a x) { return x[0] * (x[0] == infinity ? 1 : std::tanh(std::log1p(std::exp(x[0])))); });
  check_reals(random, op::softsign, [](a x) { return x[0] / (1 + std::abs(x[0])); });
  check_reals(random, op::remainder, [](a x) { return std::fmod(x[0], x[1]); });
  check_reals(random, op::modulo, [](a x) {
    const double r = std::fmod(x[0], x[1]);
    return r * x[1] < 0 ? r + x[1] : r;
  });
  check_reals(random, op::less, [](a x) { return x[0] < x[1] ? 1 : 0; });
  check_reals(random, op::less_equal, [](a x) { return x[0] <= x[1] ? 1 : 0; });
  check_reals(random, op::greater, [](a x) { return x[0] > x[1] ? 1 : 0; });
  check_reals(random, op::greater_equal, [](a x) { return x[0] >= x[1] ? 1 : 0; });
  check_reals(random, op::equal, [](a x) { return x[0] == x[1] ? 1 : 0; });
  check_reals(random, op::is_nan, [](a x) { return std::isnan(x[0]) ? 1 : 0; });
  check_reals(random, op::is_infinite, [](a x) { return std::isinf(x[0]) ? 1 : 0; });
  expect_same(run(op::round, {reals({5}, {0.5, 1.5, 2.5, -0.5, -1.5})}), reals({5}, {0, 2, 2, 0, -2}), "halves");
}

__extension__ using wide = __int128;  // holds every integer and every product of two

/// Over every integer type, often at the ends of its range; what the definition says wraps to the type.
template <class K>
void check_integers(random_source& random, const K& kind, const std::function<wide(wide, wide)>& definition) {
  for (const dtype type : integer_types)
    collage::detail::with_integer_type(type, [&](auto zero) {
      using T = decltype(zero);
      const std::vector<oracle_value> in(
          {random.tensor({9, 50}, type), random.tensor({9, K::body_inputs == 1 ? 1 : 50}, type)});
      const oracle_value y = run(kind, {in.begin(), in.begin() + K::body_inputs});
      oracle_value expected(y.type);
      for_each_index(y.type.dims, [&](const multi_index& i) {
        const auto operand = [&](std::size_t k) -> wide {
          return static_cast<T>(in[k].integer[at(in[k].type.dims, i)]);
        };
        const wide exact = definition(operand(0), operand(1));
        expected.integer[at(y.type.dims, i)] =
            y.type.type == dtype::boolean ? (exact != 0 ? 1 : 0) : static_cast<std::int64_t>(static_cast<T>(exact));
      });
      expect_same(y, expected, std::string(K::name) + " of " + collage::name_of(type));
    });
}

TEST(elementwise_types, integers_agree_with_their_definitions) {
  random_source random;
  check_integers(random, op::add, [](wide x, wide y) { return x + y; });
  check_integers(random, op::sub, [](wide x, wide y) { return x - y; });
  check_integers(random, op::mul, [](wide x, wide y) {
    return static_cast<wide>(static_cast<std::uint64_t>(x) * static_cast<std::uint64_t>(y));
  });
  check_integers(random, op::div, [](wide x, wide y) { return y == 0 ? 0 : x / y; });
  check_integers(random, op::max, [](wide x, wide y) { return std::max(x, y); });
  check_integers(random, op::min, [](wide x, wide y) { return std::min(x, y); });
  check_integers(random, op::neg, [](wide x, wide) { return -x; });
  check_integers(random, op::abs, [](wide x, wide) { return x < 0 ? -x : x; });
  check_integers(random, op::sign, [](wide x, wide) { return wide{x > 0} - wide{x < 0}; });
  check_integers(random, op::relu, [](wide x, wide) { return x < 0 ? 0 : x; });
  check_integers(random, op::round, [](wide x, wide) { return x; });
  check_integers(random, op::remainder, [](wide x, wide y) { return y == 0 ? 0 : x % y; });
  check_integers(random, op::modulo, [](wide x, wide y) { return y == 0 ? 0 : (x % y + y) % y; });
  check_integers(random, op::bitwise_not, [](wide x, wide) { return -1 - x; });
  check_integers(random, op::bitwise_and, [](wide x, wide y) { return x & y; });
  check_integers(random, op::bitwise_or, [](wide x, wide y) { return x | y; });
  check_integers(random, op::bitwise_xor, [](wide x, wide y) { return (x | y) - (x & y); });
  check_integers(random, op::less, [](wide x, wide y) { return wide{x < y}; });
  check_integers(random, op::less_equal, [](wide x, wide y) { return wide{x <= y}; });
  check_integers(random, op::greater, [](wide x, wide y) { return wide{x > y}; });
  check_integers(random, op::greater_equal, [](wide x, wide y) { return wide{x >= y}; });
  check_integers(random, op::equal, [](wide x, wide y) { return wide{x == y}; });
}

TEST(elementwise_types, shifts_move_bits_of_the_type) {
  for (const dtype type : integer_types)
    collage::detail::with_integer_type(type, [&](auto zero) {
      using T = decltype(zero);
      const int width = static_cast<int>(8 * sizeof(T));
      const auto as_stored = [](wide x) { return static_cast<std::int64_t>(static_cast<T>(x)); };
      for (const wide x : {wide{1}, wide{0x65}, wide{-1}, wide{std::numeric_limits<T>::min()}})
        for (const int count : {0, 1, 3, width - 1, width, 100, -1}) {
          wide left = static_cast<T>(x);
          wide right = left;
          for (int i = 0; i < (count < 0 || count > width ? width : count); ++i) {
            left = static_cast<T>(left * 2);
            right = right >= 0 ? right / 2 : (right - 1) / 2;
          }
          const std::vector<oracle_value> in = {integers({1}, {as_stored(x)}, type),
                                                integers({1}, {as_stored(count)}, type)};
          const std::string what = std::string(collage::name_of(type)) + " by " + std::to_string(count);
          expect_same(run(op::shift_left, in), integers({1}, {as_stored(left)}, type), "left " + what);
          expect_same(run(op::shift_right, in), integers({1}, {as_stored(right)}, type), "right " + what);
        }
    });
}

TEST(elementwise_types, logic_and_choice) {
  const auto truth = [](std::vector<std::int64_t> list) { return integers({4}, std::move(list), dtype::boolean); };
  const oracle_value x = truth({0, 0, 1, 1}), y = truth({0, 1, 0, 1});
  expect_same(run(op::logical_not, {x}), truth({1, 1, 0, 0}), "not");
  expect_same(run(op::logical_and, {x, y}), truth({0, 0, 0, 1}), "and");
  expect_same(run(op::logical_or, {x, y}), truth({0, 1, 1, 1}), "or");
  expect_same(run(op::logical_xor, {x, y}), truth({0, 1, 1, 0}), "xor");
  expect_same(run(op::equal, {x, y}), truth({1, 0, 0, 1}), "equal");
  expect_same(run(op::where, {x, reals({4}, {1, 2, 3, not_a_number}), reals({}, {infinity})}),
              reals({4}, {infinity, infinity, 3, not_a_number}), "where");
  expect_same(run(op::where, {x, integers({2, 1}, {INT64_MAX, 7}), integers({1}, {INT64_MIN})}),
              integers({2, 4}, {INT64_MIN, INT64_MIN, INT64_MAX, INT64_MAX, INT64_MIN, INT64_MIN, 7, 7}), "where");
  expect_same(run(op::where, {x, y, truth({1, 1, 0, 0})}), truth({1, 1, 0, 1}), "where of booleans");
  expect_same(run(op::clip, {integers({3}, {-1, 1, 5}, dtype::u64), integers({}, {2}, dtype::u64),
                             integers({}, {-2}, dtype::u64)}),
              integers({3}, {-2, 2, 5}, dtype::u64), "clip of large numbers without a sign");
}

// Casts ---------------------------------------------------------------------------------------------------------------

oracle_value of_type(dtype type, std::vector<double> list) {
  oracle_value v({type, {static_cast<std::int64_t>(list.size())}});
  v.real = std::move(list);
  return stored(v);
}

TEST(elementwise_types, casts) {
  const auto cast = [](const oracle_value& x, dtype to) { return run(op::cast, {x}, {.to = to}); };
  const auto list = [](std::vector<std::int64_t> l, dtype type) {
    const auto count = static_cast<std::int64_t>(l.size());
    return integers({count}, std::move(l), type);
  };
  const oracle_value x =
      of_type(dtype::f32, {-1.5, 2.9, 300.7, -1e30, 1e30, infinity, -infinity, not_a_number, 0.5, -0.0});
  expect_same(cast(x, dtype::i8), list({-1, 2, 127, -128, 127, 127, -128, 0, 0, 0}, dtype::i8), "to int8");
  expect_same(cast(x, dtype::u8), list({0, 2, 255, 0, 255, 255, 0, 0, 0, 0}, dtype::u8), "to uint8");
  expect_same(cast(x, dtype::i64), list({-1, 2, 300, INT64_MIN, INT64_MAX, INT64_MAX, INT64_MIN, 0, 0, 0}, dtype::i64),
              "to int64");
  expect_same(cast(x, dtype::u64), list({0, 2, 300, 0, -1, -1, 0, 0, 0, 0}, dtype::u64), "to uint64");
  expect_same(cast(x, dtype::boolean), list({1, 1, 1, 1, 1, 1, 1, 1, 1, 0}, dtype::boolean), "to bool");
  const oracle_value n = list({300, -1, INT64_MIN, INT64_MAX, (std::int64_t{1} << 62) + 128, 0}, dtype::i64);
  expect_same(cast(n, dtype::i8), list({44, -1, 0, -1, -128, 0}, dtype::i8), "int64 to int8");
  expect_same(cast(n, dtype::u16), list({300, 65535, 0, 65535, 128, 0}, dtype::u16), "int64 to uint16");
  expect_same(cast(n, dtype::u64), list({300, -1, INT64_MIN, INT64_MAX, (std::int64_t{1} << 62) + 128, 0}, dtype::u64),
              "int64 to uint64");
  expect_same(cast(n, dtype::boolean), list({1, 1, 1, 1, 1, 0}, dtype::boolean), "int64 to bool");
  oracle_value f({dtype::f64, {6}});
  f.real = {300, -1, -0x1p63, 0x1p63, 0x1p62 + 128, 0};
  expect_same(cast(n, dtype::f64), f, "int64 to float64");
  oracle_value large({dtype::f64, {1}});
  large.real = {0x1p64};
  expect_same(cast(list({-1}, dtype::u64), dtype::f64), large, "uint64 to float64");
  // Rounding twice would answer 1 for the first; 65520 is the first number that is too large.
  const oracle_value d = of_type(dtype::f64, {1 + 0x1p-11 + 0x1p-40, 1 + 0x1p-11, 65519.99, 65520, 0x1p-25, 0x1.8p-25});
  expect_same(cast(d, dtype::f16), of_type(dtype::f16, {1 + 0x1p-10, 1, 65504, infinity, 0, 0x1p-24}), "to float16");
  expect_same(cast(of_type(dtype::f64, {1 + 0x1p-8 + 0x1p-40, 1 + 0x1p-8, 3.4e38}), dtype::bf16),
              of_type(dtype::bf16, {1 + 0x1p-7, 1, infinity}), "to bfloat16");
  expect_same(cast(of_type(dtype::f64, {0.1}), dtype::f32), of_type(dtype::f32, {0.1}), "to float32");
  expect_same(cast(list({0, 1}, dtype::boolean), dtype::f16), of_type(dtype::f16, {0, 1}), "of booleans");
}

TEST(elementwise_types, casts_to_integers_of_few_bits_wrap_around) {
  const auto cast = [](const oracle_value& x, dtype to) { return run(op::cast, {x}, {.to = to}).integer; };
  using list = std::vector<std::int64_t>;
  const oracle_value x = of_type(dtype::f32, {-9, -8.7, -1, 0.9, 7, 8, 15, 16, 1000, infinity, not_a_number});
  EXPECT_EQ(cast(x, dtype::i4), (list{7, -8, -1, 0, 7, -8, -1, 0, -8, -1, 0}));
  EXPECT_EQ(cast(x, dtype::u4), (list{7, 8, 15, 0, 7, 8, 15, 0, 8, 15, 0}));
  EXPECT_EQ(cast(x, dtype::i2), (list{-1, 0, -1, 0, -1, 0, -1, 0, 0, -1, 0}));
  EXPECT_EQ(cast(x, dtype::u2), (list{3, 0, 3, 0, 3, 0, 3, 0, 0, 3, 0}));
  const oracle_value n = integers({5}, {300, -1, INT64_MIN, INT64_MAX, 9});
  EXPECT_EQ(cast(n, dtype::i4), (list{-4, -1, 0, -1, -7}));
  EXPECT_EQ(cast(n, dtype::u2), (list{0, 3, 0, 3, 1}));
  EXPECT_EQ(cast(integers({4}, {-8, -1, 0, 7}, dtype::i4), dtype::u4), (list{8, 15, 0, 7}));
  EXPECT_EQ(cast(integers({4}, {-8, -1, 0, 7}, dtype::i4), dtype::boolean), (list{1, 1, 0, 1}));
}

TEST(elementwise_types, casts_to_small_floating_point_types) {
  const oracle_value x = of_type(dtype::f32, {1e6, -infinity, not_a_number, -1e-7, 0.479, 1.1, 5.1, 0});
  const auto cast = [&](dtype to, bool saturate) { return run(op::cast, {x}, {.to = to, .saturate = saturate}); };
  expect_same(cast(dtype::f8e4m3fn, true),
              of_type(dtype::f8e4m3fn, {448, -448, not_a_number, -0.0, 0.46875, 1.125, 5, 0}), "e4m3fn");
  EXPECT_TRUE(std::isnan(cast(dtype::f8e4m3fn, false).real[0]));
  expect_same(cast(dtype::f8e5m2, true), of_type(dtype::f8e5m2, {57344, -57344, not_a_number, -0.0, 0.5, 1, 5, 0}),
              "e5m2");
  expect_same(cast(dtype::f8e5m2, false),
              of_type(dtype::f8e5m2, {infinity, -infinity, not_a_number, -0.0, 0.5, 1, 5, 0}), "e5m2 beyond");
  expect_same(cast(dtype::f4e2m1, false), of_type(dtype::f4e2m1, {6, -6, -0.0, -0.0, 0.5, 1, 6, 0}), "e2m1");
  expect_same(cast(dtype::f8e8m0, true),
              of_type(dtype::f8e8m0, {0x1p20, not_a_number, not_a_number, not_a_number, 0.5, 2, 8, 0x1p-127}), "e8m0");
  EXPECT_TRUE(std::isnan(cast(dtype::f8e8m0, false).real[7]));
  // A cast to the same type changes nothing.
  const oracle_value all = of_type(dtype::f8e5m2, {infinity, -infinity, 57344, 0x1p-16});
  expect_same(run(op::cast, {all}, {.to = dtype::f8e5m2}), all, "the same type");
}

// The loops of `portable` ---------------------------------------------------------------------------------------------

/// Operands of a type: reals that are sometimes NaN or infinite; integers often at the ends of the range, often small.
oracle_value operand(random_source& random, dtype type, const shape& dims) {
  return stored(random.tensor(dims, type, 0.05));
}

/// Runs an elementwise kind as one node of a graph by the backend and by the reference.
void check_portable(const collage::kind_info& kind, const collage::attribute_words& words,
                    const std::vector<oracle_value>& in, int threads, bool exactly = false) {
  const collage::backend_entry& backend = collage::table_of<collage::backend_set<collage::portable>>[0];
  collage::graph_builder g;
  std::vector<collage::value> operands;
  std::string what = kind.name;
  for (const oracle_value& x : in) {
    operands.push_back(g.input("x" + std::to_string(operands.size()), x.type));
    what += " " + collage::detail::to_string(x.type);
  }
  g.output("y", g.add(kind, operands, words, "node"));
  const collage::graph network = g.finish();
  const collage::pattern_entry& pattern = *backend.find("loops");
  collage::match_record record;
  ASSERT_TRUE(collage::match_at(network.view(), pattern.nodes, 0, record)) << what;
  ASSERT_TRUE(pattern.accepts(network.view(), record)) << what;
  collage::packed_weights packed;
  collage::build_context context(network, threads, packed);
  const collage::kernel kernel = pattern.build(network.view(), record, context);
  EXPECT_EQ(kernel.name().find("elementwise"), 0U) << what << " runs as " << kernel.name();

  std::vector<collage::tensor> memory;
  std::vector<const void*> pointers;
  for (const oracle_value& x : in) {
    memory.emplace_back(x.type);
    collage::from_oracle(x, memory.back().data());
  }
  for (const std::uint32_t v : record.argument_list()) pointers.push_back(memory[v].data());
  const collage::tensor result(network.type_of(network.outputs()[0])),
      workspace({dtype::u8, {static_cast<std::int64_t>(kernel.workspace())}});
  void* const out[] = {result.data()};
  const collage::thread_scope scope(backend, threads);
  kernel(collage::kernel_call{pointers.data(), out, workspace.data()});

  std::vector<oracle_value> copies = in;
  const oracle_value expected = collage::evaluate_node(kind, words.list(), copies).front();
  const auto expect_right = [&](const collage::tensor& y, const char* how) {
    const collage::agreement a = exactly ? collage::compare(y, expected, {0, 0}) : collage::compare(y, expected);
    EXPECT_TRUE(a.agrees) << what << " to " << collage::name_of(y.type().type) << how << ": "
                          << (a.why != nullptr ? a.why : "") << " at element " << a.worst_index << ": " << a.actual
                          << ", the reference has " << a.expected;
  };
  expect_right(result, "");
  for (std::size_t i = 0; i < pointers.size(); ++i) {
    const collage::tensor& x = memory[record.argument[i]];
    // Operands of the same shape and size of elements, and no others.
    EXPECT_EQ(kernel.writes_over(i) && kernel.reads(i),
              kernel.reads(i) && x.type().dims.elements() == result.type().dims.elements() &&
                  collage::size_of(x.type().type) == collage::size_of(result.type().type))
        << what << ", operand " << i;
    if (!kernel.writes_over(i)) continue;
    const collage::tensor both(result.type());
    if (both.bytes() != 0) std::memcpy(both.data(), x.data(), both.bytes());
    const void* const apart = std::exchange(pointers[i], both.data());
    void* const over[] = {both.data()};
    kernel(collage::kernel_call{pointers.data(), over, workspace.data()});
    pointers[i] = apart;
    expect_right(both, " in place");
  }
}

TEST(portable_elementwise, every_kind_of_every_type_agrees_with_the_reference) {
  random_source random;
  const std::vector<std::vector<shape>> cases = {{{2, 1500}, {2, 1500}, {2, 1500}},
                                                 {{}, {700, 3}, {3}},
                                                 {{5, 1, 130}, {1, 4, 1}, {}},
                                                 {{6, 5}, {5}, {6, 1}},
                                                 {{0, 3}, {3}, {1, 1}}};
  std::size_t checked = 0;
  for (const collage::kind_info* kind : collage::built_in_kinds) {
    if (kind->body == nullptr || kind == &collage::kind_of<decltype(op::cast)>) continue;
    for (const dtype type : every_type)
      for (const auto& shapes : cases) {
        std::vector<collage::tensor_type> types;
        for (std::size_t k = 0; k < kind->inputs.most; ++k) types.push_back({type, shapes[k]});
        if (kind == &collage::kind_of<decltype(op::where)>) types[0].type = dtype::boolean;
        collage::tensor_type out[1];
        collage::inference io{types, out};
        if (!kind->infer(kind->defaults().list(), io)) continue;
        std::vector<oracle_value> in;
        for (const collage::tensor_type& t : types) in.push_back(operand(random, t.type, t.dims));
        check_portable(*kind, kind->defaults(), in, 1);
        ++checked;
      }
  }
  EXPECT_GT(checked, 1500U);
}

TEST(portable_elementwise, casts_between_all_types_agree_with_the_reference) {
  random_source random;
  for (const dtype from : every_type)
    for (const dtype to : every_type) {
      oracle_value x = operand(random, from, {3000});
      // Reals of every size, whose last bits decide how they are rounded.
      for (double& e : x.real)
        e = random.chance(0.1) ? e
                               : std::ldexp(1 + std::ldexp(static_cast<double>(random.number(0, 4095)), -12) +
                                                (random.chance(0.5) ? 0x1p-45 : 0),
                                            static_cast<int>(random.number(-30, 70))) *
                                     (random.chance(0.5) ? 1 : -1);
      x = stored(x);
      // int64 to float32 goes through double in the reference, and so rounds twice.
      const bool exactly = from != dtype::i64 && from != dtype::u64;
      check_portable(collage::kind_of<decltype(op::cast)>, collage::to_words(op::cast_attributes{.to = to}), {x}, 1,
                     exactly);
    }
}

TEST(portable_elementwise, casts_to_small_types_obey_their_attributes) {
  random_source random;
  for (const dtype from : every_type)
    for (const dtype to : every_type) {
      if (!collage::detail::is_small_real(to)) continue;
      oracle_value x = operand(random, from, {500});
      for (double& e : x.real)
        if (!random.chance(0.1)) e *= std::exp2(static_cast<double>(random.number(-20, 140)));
      x = stored(x);
      const bool exactly = from != dtype::i64 && from != dtype::u64;
      for (const bool saturate : {false, true})
        for (const auto rounding :
             {collage::power_rounding::up, collage::power_rounding::down, collage::power_rounding::nearest})
          check_portable(collage::kind_of<decltype(op::cast)>,
                         collage::to_words(op::cast_attributes{.to = to, .saturate = saturate, .rounding = rounding}),
                         {x}, 1, exactly);
    }
}

TEST(portable_elementwise, every_byte_of_a_small_type_is_read) {
  for (const dtype type : every_type) {
    if (!collage::is_small(type)) continue;
    std::vector<std::uint8_t> bytes(256);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i);
    const oracle_value x = collage::to_oracle({bytes.data(), {type, {256}}});
    for (const dtype to : {dtype::f64, dtype::f32, dtype::i8, dtype::u8, type})
      check_portable(collage::kind_of<decltype(op::cast)>, collage::to_words(op::cast_attributes{.to = to}), {x}, 1,
                     true);
  }
}

TEST(portable_elementwise, every_number_of_16_bits_is_read_and_written) {
  for (const dtype type : {dtype::f16, dtype::bf16}) {
    oracle_value x({type, {65536}});
    std::vector<std::uint16_t> bits(65536);
    for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<std::uint16_t>(i);
    collage::load_elements(type, bits.data(), std::span<double>(x.real));
    for (const dtype to : {dtype::f32, dtype::f64, type})
      check_portable(collage::kind_of<decltype(op::cast)>, collage::to_words(op::cast_attributes{.to = to}), {x}, 1,
                     true);
  }
}

TEST(portable_elementwise, large_tensors_on_two_threads) {
  random_source random;
  const shape x{3, 401, 300}, y{401, 1};
  check_portable(collage::kind_of<decltype(op::less)>, {},
                 {operand(random, dtype::i16, x), operand(random, dtype::i16, y)}, 2);
  check_portable(collage::kind_of<decltype(op::mul)>, {},
                 {operand(random, dtype::bf16, y), operand(random, dtype::bf16, x)}, 2);
  check_portable(collage::kind_of<decltype(op::where)>, {},
                 {operand(random, dtype::boolean, x), operand(random, dtype::f64, {}), operand(random, dtype::f64, y)},
                 2);
}

TEST(portable_elementwise, known_numbers_and_any_byte_that_is_true) {
  collage::graph_builder g;
  const collage::value x = g.input("x", {dtype::i64, {4}});
  EXPECT_EQ(collage::detail::to_string(g.type_of(g(op::greater, x, g.scalar("limit", 3, dtype::i64)))), "bool[4]");
  // A byte that is neither 0 nor 1 is true, and equal to true.
  const std::uint8_t bytes[] = {0, 1, 2, 255};
  collage::graph_builder h;
  h.output("y", h(op::equal, h.input("x", {dtype::boolean, {4}}), h.input("y_", {dtype::boolean, {1}})));
  const collage::graph network = h.finish();
  const collage::backend_entry& backend = collage::table_of<collage::backend_set<collage::portable>>[0];
  collage::match_record record;
  ASSERT_TRUE(collage::match_at(network.view(), backend.find("loops")->nodes, 0, record));
  collage::packed_weights packed;
  collage::build_context context(network, 1, packed);
  const collage::kernel kernel = backend.find("loops")->build(network.view(), record, context);
  std::uint8_t answer[4] = {9, 9, 9, 9};
  const void* const in[] = {bytes, bytes + 2};
  void* const out[] = {answer};
  kernel({in, out, nullptr});
  EXPECT_EQ((std::vector<std::uint8_t>(answer, answer + 4)), (std::vector<std::uint8_t>{0, 1, 1, 1}));
}

}  // namespace backends_elementwise_types_test
