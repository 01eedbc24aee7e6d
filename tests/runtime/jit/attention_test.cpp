// Attention on generated kernels: random shapes and layouts between guard pages, threads, texts.
#include "support/effort.hpp"
#include "testing.hpp"

#include "jit/attention.hpp"

#include <collage/error.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace jit_attention_test {

using namespace collage_test;
using namespace collage_test::jit_testing;
using jit::attention_configuration;
using jit::attention_shape;
using jit::head_steps;

constexpr int all_shapes = 500;
constexpr float infinity = std::numeric_limits<float>::infinity();

struct attention_case {
  attention_configuration how;
  attention_shape shape;
  int threads = 1;

  std::string text() const {
    const attention_shape& s = shape;
    return jit::to_text(how) + ", " + std::to_string(s.batches) + "x" + std::to_string(s.heads) + " of " +
           std::to_string(s.queries) + " queries, " + std::to_string(s.keys) + " keys of " + std::to_string(s.size) +
           ", values of " + std::to_string(s.width) + ", steps of keys " + std::to_string(s.key.row) + " and " +
           std::to_string(s.key.column) + ", of values " + std::to_string(s.value.row) + " and " +
           std::to_string(s.value.column) + (s.mask ? ", mask" : "") + ", " + std::to_string(threads) + " threads";
  }
};

/// Matrices of rows x columns one after another, with heads inside rows, or with rows and columns exchanged.
enum class order : std::uint8_t { heads_first, rows_first, turned, turned_heads_inside };
head_steps steps_in(order o, std::int64_t heads, std::int64_t rows, std::int64_t columns) {
  const std::int64_t all = heads * rows * columns;
  switch (o) {
    case order::heads_first: return {all, rows * columns, columns, 1};
    case order::rows_first: return {all, columns, heads * columns, 1};
    case order::turned: return {all, rows * columns, 1, rows};
    default: return {all, rows, 1, heads * rows};
  }
}

float element(const walled_floats& all, const head_steps& s, std::int64_t batch, std::int64_t head, std::int64_t row,
              std::int64_t column) {
  return all[batch * s.batch + head * s.head + row * s.row + column * s.column];
}

/// Compares one row of results with the definition in double precision.
void compare_row(const attention_case& c, const walled_floats& q, const walled_floats& k, const walled_floats& v,
                 const walled_floats& mask, const walled_floats& y, std::int64_t b, std::int64_t h, std::int64_t row,
                 std::uint64_t seed) {
  const attention_shape& s = c.shape;
  std::vector<double> scores;
  double largest = -std::numeric_limits<double>::infinity(), room = 0;
  for (std::int64_t key = 0; key < s.keys; ++key) {
    double sum = 0, magnitude = 0;
    for (std::int64_t i = 0; i < s.size; ++i) {
      const double term =
          static_cast<double>(element(q, s.query, b, h, row, i)) * static_cast<double>(element(k, s.key, b, h, i, key));
      sum += term;
      magnitude += std::abs(term);
    }
    sum *= static_cast<double>(s.factor);
    room = std::max(room, (static_cast<double>(s.size) + 4) * 0x1p-24 * magnitude * static_cast<double>(s.factor));
    if (s.mask) sum += static_cast<double>(element(mask, *s.mask, b, h, row, key));
    scores.push_back(sum);
    largest = std::max(largest, sum);
  }
  double all = 0;
  for (double& x : scores) all += x = std::exp(x - largest);
  for (std::int64_t i = 0; i < s.width; ++i) {
    double sum = 0, magnitude = 0;
    for (std::int64_t key = 0; key < s.keys; ++key) {
      const double term =
          scores[static_cast<std::size_t>(key)] / all * static_cast<double>(element(v, s.value, b, h, key, i));
      sum += term;
      magnitude += std::abs(term);
    }
    const double tolerance = magnitude * (4 * room + 2e-6 + 2 * (static_cast<double>(s.keys) + 8) * 0x1p-24) + 1e-37;
    if (std::isnan(sum)) {
      EXPECT_TRUE(std::isnan(element(y, s.result, b, h, row, i))) << c.text();
      continue;
    }
    ASSERT_NEAR(static_cast<double>(element(y, s.result, b, h, row, i)), sum, tolerance)
        << "at " << b << ", " << h << ", " << row << ", " << i << " of " << c.text() << ", COLLAGE_SEED=" << seed;
  }
}

std::vector<float> run_case(const attention_case& c, random_numbers& random, bool at_end, unsigned features) {
  const attention_shape& s = c.shape;
  const jit::attention made(c.how, s, c.threads, features);
  const auto floats = [&](std::int64_t count) { return walled_floats(static_cast<std::size_t>(count), at_end); };
  const std::int64_t all = s.matrices();
  const walled_floats q = floats(all * s.queries * s.size), k = floats(all * s.size * s.keys),
                      v = floats(all * s.keys * s.width), y = floats(all * s.queries * s.width),
                      mask = floats(!s.mask             ? 0
                                    : s.mask->row == 0  ? s.keys
                                    : s.mask->head == 0 ? s.queries * s.keys
                                                        : all * s.queries * s.keys),
                      scratch = floats(static_cast<std::int64_t>(made.scratch_bytes()) / 4);
  for (const walled_floats* f : {&q, &k, &v, &mask})
    for (std::size_t i = 0; i < f->size(); ++i) f->data()[i] = static_cast<float>(random.real(-1.5, 1.5));
  for (std::size_t i = 0; i < mask.size(); ++i)
    if (random.chance(0.2)) mask.data()[i] = -infinity;
  for (const walled_floats* f : {&y, &scratch}) std::fill_n(f->data(), f->size(), not_a_number);
  made.run({.queries = q.data(),
            .keys = k.data(),
            .values = v.data(),
            .mask = mask.data(),
            .result = y.data(),
            .scratch = scratch.data()});
  for (std::int64_t b = 0; b < s.batches; ++b)
    for (std::int64_t h = 0; h < s.heads; ++h)
      for (std::int64_t row = 0; row < s.queries && !testing::Test::HasFailure(); ++row)
        compare_row(c, q, k, v, mask, y, b, h, row, random.seed());
  return {y.data(), y.data() + y.size()};
}

std::int64_t awkward_extent(random_numbers& random, std::int64_t most) {
  constexpr std::int64_t awkward[] = {1, 2, 3, 7, 15, 16, 17, 31, 33, 64, 65};
  return std::min(random.chance(0.5) ? awkward[random.number(0, 10)] : random.number(1, most), most);
}

attention_case random_case(random_numbers& random, instruction_set set) {
  attention_case c;
  c.how.product = random_configuration(random, set);
  c.how.product.rows = std::min(c.how.product.rows, 6);  // the mask and the factor need registers
  c.how.product.vectors = std::min(c.how.product.vectors, 2);
  c.how.rows = static_cast<int>(random.number(1, 40));
  c.threads = random.chance(0.6) ? 1 : static_cast<int>(random.number(2, 4));
  attention_shape& s = c.shape;
  s.batches = random.number(1, 3);
  s.heads = random.number(1, 4);
  s.queries = awkward_extent(random, 50);
  s.keys = awkward_extent(random, 90);
  s.size = awkward_extent(random, 70);
  s.width = awkward_extent(random, 70);
  const auto any = [&](int most) { return static_cast<order>(random.number(0, most)); };
  s.query = steps_in(any(1), s.heads, s.queries, s.size);
  s.key = steps_in(any(3), s.heads, s.size, s.keys);
  s.value = steps_in(any(3), s.heads, s.keys, s.width);
  s.result = steps_in(any(1), s.heads, s.queries, s.width);
  s.factor = random.chance(0.5) ? 1.0F : 0.3F;
  switch (random.number(0, 3)) {
    case 0: s.mask = head_steps{0, 0, 0, 1}; break;
    case 1: s.mask = head_steps{0, 0, s.keys, 1}; break;
    case 2: s.mask = steps_in(order::heads_first, s.heads, s.queries, s.keys); break;
    default: break;
  }
  return c;
}

/// `features` are the processor's, or none: then the replica runs.
void run_random(int count, unsigned features) {
  random_numbers random;
  for (const instruction_set set : {instruction_set::avx512, instruction_set::avx2}) {
    if (features != 0 && !jit::refusal_of(set).empty()) continue;
    for (int i = 0; i < count && !testing::Test::HasFailure(); ++i)
      run_case(random_case(random, set), random, random.chance(0.5), features);
  }
}
TEST(jit_attention, random_shapes) { run_random(cases(all_shapes / 5), jit::processor_features()); }
TEST(jit_attention_long, random_shapes) { run_random(all_shapes, jit::processor_features()); }
TEST(jit_attention, random_shapes_of_the_replica) { run_random(cases(20), 0); }

TEST(jit_attention, results_do_not_depend_on_threads) {
  for (const std::int64_t heads : {1, 3, 40}) {
    std::vector<float> expected;
    for (int threads = 1; threads <= 5; ++threads) {
      random_numbers random(7);
      attention_case c{.how = {jit::default_configuration(instruction_set::avx2), 9}, .shape = {}, .threads = threads};
      attention_shape& s = c.shape;
      s.heads = heads;
      s.queries = 31, s.keys = 45, s.size = 20, s.width = 24;
      s.query = steps_in(order::rows_first, heads, s.queries, s.size);
      s.key = steps_in(order::turned_heads_inside, heads, s.size, s.keys);
      s.value = steps_in(order::rows_first, heads, s.keys, s.width);
      s.result = steps_in(order::rows_first, heads, s.queries, s.width);
      const std::vector<float> found = run_case(c, random, true, jit::processor_features());
      if (expected.empty()) expected = found;
      EXPECT_EQ(found, expected) << threads << " threads, " << heads << " heads";
    }
  }
}

/// Large scores, whose exponentials alone would overflow, and rows without a key.
TEST(jit_attention, extreme_scores) {
  attention_case c{.how = {jit::default_configuration(instruction_set::avx2), 4}, .shape = {}};
  attention_shape& s = c.shape;
  s.queries = 3, s.keys = 21, s.size = 1, s.width = 2;
  s.query = {3, 3, 1, 1};
  s.key = {21, 21, 21, 1};
  s.value = {42, 42, 2, 1};
  s.result = {6, 6, 2, 1};
  s.mask = head_steps{63, 63, 21, 1};
  const jit::attention made(c.how, s, 1);
  std::vector<float> q = {1, 1, 1}, k(21, 0), v(42, 2), mask(63, 0), y(6, 0), scratch(made.scratch_bytes() / 4);
  k[4] = 300;                                    // the only key that counts
  v[8] = 5, v[9] = 7;                            // its value
  std::fill_n(mask.data() + 21, 21, -infinity);  // the second query has no key
  mask[42] = not_a_number;
  made.run({q.data(), k.data(), v.data(), mask.data(), y.data(), scratch.data()});
  EXPECT_EQ(y[0], 5);
  EXPECT_EQ(y[1], 7);
  for (std::size_t i = 2; i < 6; ++i) EXPECT_TRUE(std::isnan(y[i])) << i;
}

TEST(jit_attention, texts) {
  constexpr const char* example = "attention1 avx512 tile 14x2 unroll 4 prefetch 0 broadcast memory rows 28";
  EXPECT_EQ(jit::to_text(jit::parse_attention_configuration(example)), example);
  const auto fault = [](const std::string& text) -> std::string {
    try {
      static_cast<void>(jit::parse_attention_configuration(text));
    } catch (const collage::error& e) { return e.what(); }
    return "";
  };
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = example;
    return fault(text.replace(text.find(from), from.size(), to));
  };
  EXPECT_NE(with("attention1", "attention2").find("it is for the generator 'attention2'"), std::string::npos);
  EXPECT_NE(with("rows 28", "rows 0").find("the number of rows is 0, and must be from 1 to 65536"), std::string::npos);
  EXPECT_NE(with("rows 28", "rows 028").find("it is written as"), std::string::npos);
  EXPECT_NE(with("14x2", "30x2").find("needs 62 vector registers"), std::string::npos);
  EXPECT_NE(fault(""), "");
}

TEST(jit_attention, proposed_configurations_fit) {
  random_numbers random;
  for (int i = 0; i < 200; ++i)
    for (const instruction_set set : {instruction_set::avx512, instruction_set::avx2})
      for (const int threads : {1, 2, 64}) {
        attention_shape s = random_case(random, set).shape;
        if (random.chance(0.2)) s.keys = random.number(1, 100000);
        const std::vector<attention_configuration> list = jit::propose_attention(s, set, 1 << 20, threads);
        ASSERT_GE(list.size(), 1U);
        ASSERT_LE(list.size(), 2U);
        for (const attention_configuration& c : list) EXPECT_TRUE(jit::fault_of(c).empty()) << jit::to_text(c);
      }
}

}  // namespace jit_attention_test
