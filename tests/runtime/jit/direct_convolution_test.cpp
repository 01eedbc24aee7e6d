// Convolutions by their definition on generated kernels: random and awkward shapes, threads, texts.
#include "convolution_testing.hpp"

#include "jit/direct_convolution.hpp"
#include "support/effort.hpp"

#include <collage/error.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace jit_direct_convolution_test {

using namespace collage_test;
using namespace collage_test::jit_testing;
using jit::direct_configuration;
using jit::direct_extent;
using jit::direct_shape;

constexpr int all_shapes = 500;

struct direct_case {
  direct_configuration how;
  direct_shape shape;
  epilogue finish;
  int threads = 1;

  std::string text() const {
    std::string made = jit::to_text(how) + ", batch " + std::to_string(shape.batch) + ", channels " +
                       std::to_string(shape.channels) + " to " + std::to_string(shape.outputs);
    for (const direct_extent* e : {&shape.depth, &shape.height, &shape.width})
      made += ", " + std::to_string(e->size) + " by " + std::to_string(e->window) + " stride " +
              std::to_string(e->stride) + " dilation " + std::to_string(e->dilation) + " pads " +
              std::to_string(e->pad_begin) + " " + std::to_string(e->pad_end);
    return made + ", " + std::to_string(threads) + " threads, " + std::to_string(finish.steps.size()) + " steps";
  }
};

/// One result by the definition in double precision, and the sum of the terms' magnitudes.
bounded defined(const direct_shape& s, const float* from, const float* weights, std::int64_t n, std::int64_t o,
                std::int64_t z, std::int64_t y, std::int64_t x) {
  double sum = 0, magnitude = 0;
  for (std::int64_t c = 0; c < s.channels; ++c)
    for (std::int64_t i = 0; i < s.depth.window; ++i)
      for (std::int64_t j = 0; j < s.height.window; ++j)
        for (std::int64_t k = 0; k < s.width.window; ++k) {
          const std::int64_t a = z * s.depth.stride + i * s.depth.dilation - s.depth.pad_begin;
          const std::int64_t b = y * s.height.stride + j * s.height.dilation - s.height.pad_begin;
          const std::int64_t d = x * s.width.stride + k * s.width.dilation - s.width.pad_begin;
          if (a < 0 || a >= s.depth.size || b < 0 || b >= s.height.size || d < 0 || d >= s.width.size) continue;
          const std::int64_t at = (((n * s.depth.size + a) * s.height.size + b) * s.width.size + d) * s.channels + c;
          const std::int64_t tap =
              (((o * s.channels + c) * s.depth.window + i) * s.height.window + j) * s.width.window + k;
          const double term = static_cast<double>(from[at]) * static_cast<double>(weights[tap]);
          sum += term;
          magnitude += std::abs(term);
        }
  const auto terms = static_cast<double>(s.products() * s.inner());
  return {sum, (terms + 1) * 0x1p-24 * magnitude + 1e-37, true};
}

std::vector<float> run_case(const direct_case& c, random_numbers& random, bool at_end, unsigned features) {
  const direct_shape& s = c.shape;
  const jit::direct_convolution made(c.how, s, c.finish, c.threads, features);
  const auto size_of = [](std::int64_t floats) { return static_cast<std::size_t>(floats); };
  const std::int64_t window = s.depth.window * s.height.window * s.width.window;
  walled_floats from(size_of(s.batch * s.depth.size * s.height.size * s.width.size * s.channels), at_end);
  walled_floats weights(size_of(s.outputs * s.channels * window), at_end);
  walled_floats packed(size_of(jit::weight_bytes(c.how, s) / 4), at_end);
  walled_floats scratch(made.scratch_bytes() / 4, at_end);
  std::vector<walled_floats> to;
  std::vector<float*> written;
  for (std::size_t i = 0; i < std::max<std::size_t>(1, c.finish.outputs.size()); ++i) {
    to.emplace_back(size_of(s.output_floats()), at_end);
    std::fill_n(to[i].data(), to[i].size(), not_a_number);
    written.push_back(to[i].data());
  }
  const auto fill = [&](walled_floats& f, double scale) {
    for (std::size_t i = 0; i < f.size(); ++i)
      f[static_cast<std::int64_t>(i)] = static_cast<float>(scale * random.real(-1, 1));
  };
  fill(from, 1);
  fill(weights, 1.7 / std::sqrt(static_cast<double>(s.channels * window)));
  std::fill_n(scratch.data(), scratch.size(), not_a_number);
  made.pack(weights.data(), packed.data());
  std::vector<walled_floats> operands;
  std::vector<const float*> read;
  for (const operand_shape o : c.finish.operands) {
    operands.emplace_back(o == operand_shape::whole        ? to[0].size()
                          : o == operand_shape::per_column ? size_of(s.outputs)
                                                           : 1,
                          at_end);
    fill(operands.back(), 1);
    read.push_back(operands.back().data());
  }
  made.run({.from = from.data(), .weights = packed.data(), .operands = read, .to = written, .scratch = scratch.data()});
  std::int64_t at = 0;
  for (std::int64_t n = 0; n < s.batch; ++n)
    for (std::int64_t z = 0; z < s.depth.outputs(); ++z)
      for (std::int64_t y = 0; y < s.height.outputs(); ++y)
        for (std::int64_t x = 0; x < s.width.outputs(); ++x)
          for (std::int64_t o = 0; o < s.outputs; ++o, ++at) {
            if (testing::Test::HasFailure()) return {};
            std::vector<bounded> expected = {defined(s, from.data(), weights.data(), n, o, z, y, x)};
            if (!c.finish.empty())
              expected = epilogue_in_double(c.finish, expected[0], [&](std::uint32_t index) {
                const operand_shape shape = c.finish.operands[index];
                const std::int64_t place = shape == operand_shape::whole        ? at
                                           : shape == operand_shape::per_column ? o
                                                                                : 0;
                return bounded{static_cast<double>(operands[index][place])};
              });
            for (std::size_t i = 0; i < to.size(); ++i) {
              if (!expected[i].is_certain) continue;
              EXPECT_NEAR(static_cast<double>(to[i][at]), expected[i].value, expected[i].room)
                  << "output " << i << " at " << n << ", " << z << ", " << y << ", " << x << ", " << o << " of "
                  << c.text() << ", COLLAGE_SEED=" << random.seed();
            }
          }
  return {to[0].data(), to[0].data() + to[0].size()};
}

direct_case random_case(random_numbers& random, instruction_set set) {
  direct_case c;
  c.how.product = random_configuration(random, set);
  c.how.rows = static_cast<int>(random.number(1, 9));
  c.threads = random.chance(0.7) ? 1 : static_cast<int>(random.number(2, 4));
  direct_shape& s = c.shape;
  const auto extent = [&](bool is_used) {
    if (!is_used) return direct_extent{};
    const auto pad = [&] { return random.chance(0.5) ? 0 : random.number(0, random.chance(0.8) ? 3 : 9); };
    return direct_extent{awkward(random, 20),
                         random.number(1, random.chance(0.8) ? 4 : 11),
                         random.chance(0.5) ? 1 : random.number(2, 4),
                         random.chance(0.7) ? 1 : random.number(2, 3),
                         pad(),
                         pad()};
  };
  double work = 0;
  do {
    s = {random.number(1, 2), awkward(random, 40), awkward(random, 70), {}, {}, {}};
    s.depth = extent(random.chance(0.3));
    s.height = extent(random.chance(0.9));
    s.width = extent(true);
    work = static_cast<double>(s.output_floats()) * static_cast<double>(s.products() * s.inner());
  } while (!jit::fault_of(s).empty() || work > 4e5);
  if (random.chance(0.4)) return c;
  c.finish = random_finish(random);
  // It needs registers beside those of the tile.
  c.how.product.rows = std::min(c.how.product.rows, 3);
  c.how.product.vectors = std::min(c.how.product.vectors, 2);
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
TEST(jit_direct_convolutions, random_shapes) { run_random(cases(all_shapes / 5), jit::processor_features()); }
TEST(jit_direct_convolutions_long, random_shapes) { run_random(all_shapes, jit::processor_features()); }
TEST(jit_direct_convolutions, random_shapes_of_the_replica) { run_random(cases(20), 0); }

TEST(jit_direct_convolutions, results_do_not_depend_on_threads) {
  for (const int rows : {1, 3, 100}) {
    std::vector<float> expected;
    for (int threads = 1; threads <= 5; ++threads) {
      random_numbers random(7);
      direct_case c{.how = {jit::default_configuration(instruction_set::avx2), rows},
                    .shape = {2, 13, 50, {}, {9, 3, 2, 1, 1, 1}, {11, 3, 2, 1, 0, 1}},
                    .finish = {},
                    .threads = threads};
      const std::vector<float> found = run_case(c, random, true, jit::processor_features());
      if (expected.empty()) expected = found;
      EXPECT_EQ(found, expected) << threads << " threads, " << rows << " rows";
    }
  }
}

TEST(jit_direct_convolutions, texts) {
  constexpr const char* example = "direct1 avx512 tile 14x2 unroll 4 prefetch 0 broadcast memory rows 4";
  EXPECT_EQ(jit::to_text(jit::parse_direct_configuration(example)), example);
  const auto fault = [](const std::string& text) -> std::string {
    try {
      static_cast<void>(jit::parse_direct_configuration(text));
    } catch (const collage::error& e) { return e.what(); }
    return "";
  };
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = example;
    return fault(text.replace(text.find(from), from.size(), to));
  };
  EXPECT_NE(with("direct1", "direct2").find("it is for the generator 'direct2'"), std::string::npos);
  EXPECT_NE(with("rows 4", "rows 0").find("the number of rows is 0, and must be from 1 to 65536"), std::string::npos);
  EXPECT_NE(with("rows 4", "rows 04").find("it is written as"), std::string::npos);
  EXPECT_NE(with("14x2", "30x2").find("needs 62 vector registers"), std::string::npos);
  EXPECT_NE(fault(""), "");
}

TEST(jit_direct_convolutions, faults_of_shapes) {
  const auto fault = [](const direct_shape& s) {
    const collage::detail::sentence why = jit::fault_of(s);
    return std::string(why.text, why.size);
  };
  EXPECT_EQ(fault({1, 1, 1, {}, {}, {5, 3}}), "");
  EXPECT_EQ(fault({1, 1, 1, {}, {}, {2, 3}}), "an extent of the output is 0, and must be from 1 to 2147483647");
  EXPECT_EQ(fault({1, 1, 1, {}, {}, {5, 3, 0}}), "a stride is 0, and must be from 1 to 2147483647");
  EXPECT_EQ(fault({0, 1, 1, {}, {}, {}}), "the batch is 0, and must be from 1 to 2147483647");
}

TEST(jit_direct_convolutions, proposed_configurations_fit) {
  random_numbers random;
  for (int i = 0; i < 200; ++i)
    for (const instruction_set set : {instruction_set::avx512, instruction_set::avx2}) {
      const direct_shape s = random_case(random, set).shape;
      const std::vector<direct_configuration> list = jit::propose_direct(s, set, 1 << 20, random.chance(0.5));
      ASSERT_GE(list.size(), 1U);
      ASSERT_LE(list.size(), 2U);
      for (const direct_configuration& c : list) EXPECT_TRUE(jit::fault_of(c).empty()) << jit::to_text(c);
    }
}

}  // namespace jit_direct_convolution_test
