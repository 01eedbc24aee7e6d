// Convolutions by bilinear algorithms against the definition in double precision, in memory between guard pages.
#pragma once

#include "testing.hpp"

#include "jit/bilinear_convolution.hpp"

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace collage_test::jit_testing {

using jit::convolution_configuration;
using jit::convolution_shape;
using jit::image_layout;
using jit::weight_transform_time;
using jit::work_partition;

/// Where an element lies, by the definition of a layout.
struct image_order {
  image_layout layout;
  std::int64_t channels, height, width, depth = 1;
  std::int64_t filled() const { return layout == image_layout::blocked_16 ? (channels + 15) / 16 * 16 : channels; }
  std::int64_t size(std::int64_t batch) const { return batch * filled() * depth * height * width; }
  std::int64_t at(std::int64_t n, std::int64_t c, std::int64_t y, std::int64_t x, std::int64_t z = 0) const {
    switch (layout) {
      case image_layout::plain: return (((n * channels + c) * depth + z) * height + y) * width + x;
      case image_layout::channels_last: return (((n * depth + z) * height + y) * width + x) * channels + c;
      default: return ((((n * (filled() / 16) + c / 16) * depth + z) * height + y) * width + x) * 16 + c % 16;
    }
  }
  static image_order input_of(const convolution_shape& s) { return {s.from, s.channels, s.height, s.width, s.depth}; }
  static image_order output_of(const convolution_shape& s) {
    return {s.to, s.outputs, s.output_height(), s.output_width(), s.output_depth()};
  }
};

struct convolution_case {
  convolution_configuration how;
  convolution_shape shape;
  epilogue finish;
  int threads = 1;
  bool at_end = true;
  std::string text() const {
    const convolution_shape& s = shape;
    const auto n = [](std::int64_t x) { return std::to_string(x); };
    return jit::to_text(how) + ", batch " + n(s.batch) + ", channels " + n(s.channels) + " to " + n(s.outputs) +
           ", image " + n(s.height) + "x" + n(s.width) + ", pads " + n(s.pad_top) + " " + n(s.pad_left) + " " +
           n(s.pad_bottom) + " " + n(s.pad_right) + ", depth " + n(s.depth) + ", window of " + n(s.window_depth) +
           ", pads " + n(s.pad_front) + " " + n(s.pad_back) + ", layouts " + n(static_cast<int>(s.from)) + " to " +
           n(static_cast<int>(s.to)) + ", enlarged by " + n(s.enlargement) + ", " + n(threads) + " threads, " +
           n(std::ssize(finish.steps)) + " steps";
  }
};

/// Convolutions by the definition.
class convolution_reference {
 public:
  convolution_reference(const convolution_shape& s, const float* from, const float* weights)
      : s_(s), in_(image_order::input_of(s)), from_(from), weights_(weights) {}
  double at(std::int64_t n, std::int64_t o, std::int64_t y, std::int64_t x, std::int64_t z = 0) const {
    double sum = 0;
    for (std::int64_t c = 0; c < s_.channels; ++c)
      for (std::int64_t i = 0; i < s_.window_depth; ++i)
        if (const std::int64_t slice = z - s_.pad_front + i; slice >= 0 && slice < s_.depth)
          sum +=
              of_slice(n, c, y, x, slice,
                       weights_ + ((o * s_.channels + c) * s_.window_depth + i) * s_.window_height * s_.window_width);
    return sum;
  }

 private:
  double of_slice(std::int64_t n, std::int64_t c, std::int64_t y, std::int64_t x, std::int64_t slice,
                  const float* weights) const {
    double sum = 0;
    const std::int64_t top = y - s_.pad_top, left = x - s_.pad_left;
    const std::int64_t e = s_.enlargement, height = e * s_.height, width = e * s_.width;
    const std::int64_t first = std::max<std::int64_t>(0, -left), last = std::min(s_.window_width, width - left);
    for (std::int64_t i = std::max<std::int64_t>(0, -top); i < std::min(s_.window_height, height - top); ++i) {
      const float* const w = weights + i * s_.window_width;
      const std::int64_t row = in_.at(n, c, (top + i) / e, 0, slice),
                         step = in_.at(n, c, (top + i) / e, 1, slice) - row;
      for (std::int64_t j = first; j < last; ++j)
        sum += static_cast<double>(from_[row + (left + j) / e * step]) * static_cast<double>(w[j]);
    }
    return sum;
  }
  convolution_shape s_;
  image_order in_;
  const float* from_;
  const float* weights_;
};

/// Runs a case with NaN wherever nothing should be read, and compares all elements.
class convolution_runner {
 public:
  convolution_runner(const convolution_case& c, random_numbers& random, const jit::bilinear_convolution& made)
      : c_(c),
        random_(random),
        made_(made),
        in_(image_order::input_of(c.shape)),
        out_(image_order::output_of(c.shape)),
        from_(size_of(in_), c.at_end),
        weights_(static_cast<std::size_t>(c.shape.outputs * terms()), c.at_end),
        packed_(static_cast<std::size_t>(jit::weight_bytes(c.how, c.shape)) / 4, c.at_end),
        scratch_(static_cast<std::size_t>(jit::scratch_bytes(c.how, c.shape, c.threads)) / 4, c.at_end) {}

  void run() {
    std::fill_n(from_.data(), from_.size(), not_a_number);  // also what fills up blocks of channels
    for_each(in_, [&](std::int64_t i, auto...) { from_[i] = small(); });
    for (std::size_t i = 0; i < weights_.size(); ++i) weights_[static_cast<std::int64_t>(i)] = scale() * small();
    std::fill_n(scratch_.data(), scratch_.size(), not_a_number);
    made_.pack(weights_.data(), packed_.data());
    for (const operand_shape o : c_.finish.operands) {
      const std::size_t size = o == operand_shape::whole        ? size_of(out_)
                               : o == operand_shape::per_column ? static_cast<std::size_t>(c_.shape.outputs)
                                                                : 1;
      operands_.emplace_back(size, c_.at_end);
      for (std::size_t i = 0; i < size; ++i) operands_.back()[static_cast<std::int64_t>(i)] = small();
    }
    std::vector<const float*> operands;
    std::vector<float*> to;
    for (const walled_floats& o : operands_) operands.push_back(o.data());
    for (std::size_t i = 0; i < std::max<std::size_t>(1, c_.finish.outputs.size()); ++i) {
      outputs_.emplace_back(size_of(out_), c_.at_end);
      std::fill_n(outputs_.back().data(), outputs_.back().size(), not_a_number);
      to.push_back(outputs_.back().data());
    }
    EXPECT_TRUE(made_.run({.from = from_.data(),
                           .weights = packed_.data(),
                           .operands = operands,
                           .to = to,
                           .scratch = scratch_.data(),
                           .threads = c_.threads}))
        << c_.text();
    check();
  }

 private:
  float small() { return static_cast<float>(random_.real(-1, 1)); }
  std::int64_t terms() const {
    const convolution_shape& s = c_.shape;
    return s.channels * s.window_depth * s.window_height * s.window_width;
  }
  /// Of weights, so that outputs are of the size of 1.
  float scale() const { return 1.7F / std::sqrt(static_cast<float>(terms())); }
  std::size_t size_of(const image_order& o) const { return static_cast<std::size_t>(o.size(c_.shape.batch)); }
  /// Calls f(place, n, c, y, x, z) for each element.
  template <class F>
  void for_each(const image_order& o, const F& f) const {
    for (std::int64_t n = 0; n < c_.shape.batch; ++n)
      for (std::int64_t c = 0; c < o.channels; ++c)
        for (std::int64_t z = 0; z < o.depth; ++z)
          for (std::int64_t y = 0; y < o.height; ++y)
            for (std::int64_t x = 0; x < o.width; ++x) f(o.at(n, c, y, x, z), n, c, y, x, z);
  }

  void check() {
    const convolution_reference reference(c_.shape, from_.data(), weights_.data());
    const jit::convolution_family& f = c_.how.algorithm();
    // Random terms: far smaller than the bound for every input, which holds as well.
    const double room =
        std::min(16 * f.error.amplification * 0x1p-24,
                 static_cast<double>(scale()) *
                     f.error_bound(static_cast<std::size_t>(c_.shape.channels * c_.shape.window_depth))) +
        1e-37;
    std::vector<char> is_written(size_of(out_));
    for_each(out_, [&](std::int64_t i, std::int64_t n, std::int64_t c, std::int64_t y, std::int64_t x, std::int64_t z) {
      is_written[static_cast<std::size_t>(i)] = 1;
      if (testing::Test::HasFailure()) return;
      const bounded product = {reference.at(n, c, y, x, z), room, true};
      if (c_.finish.empty()) return compare(outputs_[0][i], product, n, c, y, x, z);
      const auto number_of = [&](std::uint32_t index) {
        const operand_shape shape = c_.finish.operands[index];
        const std::int64_t at = shape == operand_shape::whole ? i : shape == operand_shape::per_column ? c : 0;
        return bounded{static_cast<double>(operands_[index][at])};
      };
      const std::vector<bounded> made = epilogue_in_double(c_.finish, product, number_of);
      for (std::size_t o = 0; o < made.size(); ++o) compare(outputs_[o][i], made[o], n, c, y, x, z);
    });
    // What fills up blocks of channels is 0.
    for (const walled_floats& o : outputs_)
      for (std::size_t i = 0; i < is_written.size(); ++i)
        if (is_written[i] == 0) ASSERT_EQ(o[static_cast<std::int64_t>(i)], 0.0F) << c_.text();
  }
  void compare(float found, const bounded& expected, std::int64_t n, std::int64_t c, std::int64_t y, std::int64_t x,
               std::int64_t z) {
    if (!expected.is_certain) return;
    ASSERT_NEAR(static_cast<double>(found), expected.value, expected.room)
        << "at " << n << ", " << c << ", " << z << ", " << y << ", " << x << " of " << c_.text()
        << ", COLLAGE_SEED=" << random_.seed();
  }

  const convolution_case& c_;
  random_numbers& random_;
  const jit::bilinear_convolution& made_;
  image_order in_, out_;
  walled_floats from_, weights_, packed_, scratch_;
  std::vector<walled_floats> operands_, outputs_;
};

/// Vectors of the transforms are those of the instruction set, too.
class target_scope {
 public:
  explicit target_scope(std::int64_t targets) { hwy::SetSupportedTargetsForTest(targets); }
  explicit target_scope(instruction_set set)
      : target_scope(set == instruction_set::avx512
                         ? std::int64_t{0}
                         : hwy::SupportedTargets() & (HWY_AVX2 | HWY_SSE4 | HWY_SCALAR | HWY_EMU128)) {}
  target_scope(const target_scope&) = delete;
  ~target_scope() { hwy::SetSupportedTargetsForTest(0); }
};

inline image_layout random_layout(random_numbers& random) { return static_cast<image_layout>(random.number(0, 2)); }

inline std::int64_t awkward(random_numbers& random, std::int64_t most) {
  constexpr std::int64_t list[] = {1, 1, 2, 3, 4, 5, 7, 8, 13, 15, 16, 17, 31, 32, 33, 48};
  const std::int64_t found = random.chance(0.7) ? list[random.number(0, std::ssize(list) - 1)] : random.number(1, most);
  return std::min(found, most);
}

/// In memory that ends at guard pages, then in memory that begins at them.
inline void run_case(convolution_case c, random_numbers& random, bool generated) {
  auto arena = std::make_shared<jit::code_arena>();
  jit::bilinear_convolution made(c.how, c.shape, c.finish, generated ? arena : nullptr);
  made.bind();
  ASSERT_EQ(made.refusal().empty(), generated) << made.refusal();
  for (const bool at_end : {true, false}) {
    c.at_end = at_end;
    convolution_runner(c, random, made).run();
  }
}

/// An epilogue whose operands are for elements or channels of an image.
inline jit::epilogue random_finish(random_numbers& random) {
  jit::epilogue made = random_epilogue(random, static_cast<int>(random.number(0, 5)));
  for (operand_shape& o : made.operands)
    if (o == operand_shape::per_row) o = operand_shape::per_column;
  return made;
}

/// Runs generated code for `count` cases of each instruction set and algorithm. `make(random, family, set)` makes them.
template <class Make>
void run_random_cases(int count, const Make& make) {
  random_numbers random;
  for (const instruction_set set : {instruction_set::avx512, instruction_set::avx2}) {
    if (!jit::refusal_of(set).empty()) {
      std::cout << jit::refusal_of(set) << ": not tested\n";
      continue;
    }
    const target_scope scope(set);
    for (int family = 0; family < static_cast<int>(jit::convolution_family_count); ++family)
      for (int ran = 0; ran < count && !testing::Test::HasFailure(); ++ran)
        run_case(make(random, family, set), random, true);
  }
}
/// Runs the replica for `count` cases of each of its targets and of each algorithm.
template <class Make>
void run_cases_of_replica(int count, const Make& make) {
  random_numbers random;
  for (std::int64_t rest = hwy::SupportedTargets(); rest != 0; rest &= rest - 1) {
    const target_scope scope(rest & -rest);
    for (int family = 0; family < static_cast<int>(jit::convolution_family_count); ++family)
      for (int i = 0; i < count && !testing::Test::HasFailure(); ++i)
        run_case(make(random, family, i % 2 == 0 ? instruction_set::avx512 : instruction_set::avx2), random, false);
  }
}

/// What a run reads and writes, for tests of single properties.
struct simple_run {
  convolution_shape shape;
  std::vector<float> from, weights, packed, scratch, to;
  simple_run(const convolution_shape& s, std::uint64_t seed) : shape(s) {
    std::mt19937_64 engine(seed);
    std::normal_distribution<float> normal;
    from.resize(static_cast<std::size_t>(jit::image_floats(s.from, s.batch, s.channels, s.height, s.width, s.depth)));
    weights.resize(
        static_cast<std::size_t>(s.outputs * s.channels * s.window_depth * s.window_height * s.window_width));
    for (float& x : from) x = std::max(0.0F, normal(engine));
    for (float& x : weights) x = normal(engine);
  }
  /// False: `run` says so.
  bool run(const convolution_configuration& how, int threads) {
    auto arena = std::make_shared<jit::code_arena>();
    jit::bilinear_convolution made(how, shape, {}, arena);
    made.bind();
    packed.assign(static_cast<std::size_t>(jit::weight_bytes(how, shape)) / 4, 0);
    scratch.assign(static_cast<std::size_t>(jit::scratch_bytes(how, shape, threads)) / 4, 0);
    to.assign(static_cast<std::size_t>(image_order::output_of(shape).size(shape.batch)), -1);
    made.pack(weights.data(), packed.data(), threads);
    float* const outputs[] = {to.data()};
    return made.run(
        {.from = from.data(), .weights = packed.data(), .to = outputs, .scratch = scratch.data(), .threads = threads});
  }
};

}  // namespace collage_test::jit_testing
