// Products by generated kernels against a reference in double precision that knows how far float32 may be off, in memory
// between guard pages.
#pragma once

#include "support/random_numbers.hpp"

#include "jit/code_arena.hpp"
#include "jit/product.hpp"
#include "jit/tile_plan.hpp"

#include <collage/ops.hpp>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace collage_test::jit_testing {

namespace jit = collage::detail::jit;
namespace op = collage::ops;
using jit::configuration;
using jit::epilogue;
using jit::epilogue_value;
using jit::instruction_set;
using jit::operand_shape;
using jit::store_mode;

inline constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

/// Floats that end at a guard page, or begin behind one. The other end has a guard page, too.
class walled_floats {
 public:
  walled_floats(std::size_t count, bool at_end) : count_(count) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t inner = (std::max<std::size_t>(count, 1) * sizeof(float) + page - 1) / page * page;
    mapped_ = inner + 2 * page;
    map_ =
        static_cast<std::byte*>(mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    if (static_cast<void*>(map_) == MAP_FAILED || mprotect(map_ + page, inner, PROT_READ | PROT_WRITE) != 0)
      throw std::bad_alloc();
    data_ = reinterpret_cast<float*>(map_ + page + (at_end ? inner - count * sizeof(float) : 0));
  }
  walled_floats(walled_floats&& other) noexcept
      : count_(other.count_), mapped_(other.mapped_), map_(other.map_), data_(other.data_) {
    other.map_ = nullptr;
  }
  walled_floats& operator=(walled_floats&&) = delete;
  ~walled_floats() {
    if (map_ != nullptr) munmap(map_, mapped_);
  }
  float* data() const { return data_; }
  std::size_t size() const { return count_; }
  float& operator[](std::int64_t i) const { return data_[i]; }

 private:
  std::size_t count_, mapped_ = 0;
  std::byte* map_ = nullptr;
  float* data_ = nullptr;
};

/// Rows of a matrix, some floats apart. There is nothing behind the last row's last element.
struct walled_matrix {
  std::int64_t rows, columns, step;
  walled_floats memory;

  walled_matrix(std::int64_t r, std::int64_t c, std::int64_t s, bool at_end)
      : rows(r),
        columns(c),
        step(s),
        memory(static_cast<std::size_t>(r == 0 || c == 0 ? 0 : (r - 1) * s + c), at_end) {}
  float* data() const { return memory.data(); }
  float& at(std::int64_t i, std::int64_t j) const { return memory[i * step + j]; }
  /// Calls f with each gap between rows, of which large ones are cut short: only their first and last numbers are seen.
  template <class F>
  void for_gaps(const F& f) const {
    for (std::int64_t i = 0; i + 1 < rows && columns > 0; ++i)
      for (std::int64_t j = columns; j < step; ++j) {
        if (j == columns + 64 && step - j > 64) j = step - 64;
        f(memory[i * step + j]);
      }
  }
};

/// A number, and how far a float32 result may be from it.
struct bounded {
  double value = 0, room = 0;
  bool is_certain = true;
};

inline bounded rounded(double value, double room, bool is_certain, double units = 1) {
  return {value, room + units * std::abs(value) * 0x1p-23 + 1e-37, is_certain};
}

/// One step of an epilogue in double precision.
inline bounded step_of(collage::opcode code, const bounded& a, const bounded& b, const bounded& c) {
  using o = collage::opcode;
  const bool is_certain = a.is_certain && b.is_certain;
  const double x = a.value, y = b.value;
  const auto function = [&](double value, double slope) { return rounded(value, slope * a.room, a.is_certain, 4); };
  switch (code) {
    case o::add: return rounded(x + y, a.room + b.room, is_certain);
    case o::subtract: return rounded(x - y, a.room + b.room, is_certain);
    case o::multiply: return rounded(x * y, std::abs(x) * b.room + std::abs(y) * a.room + a.room * b.room, is_certain);
    case o::divide: {
      const double least = std::abs(y) - b.room;
      return rounded(x / y, (a.room + std::abs(x / y) * b.room) / least, is_certain && least > 1e-3);
    }
    case o::minimum: return {std::min(x, y), std::max(a.room, b.room), is_certain};
    case o::maximum: return {std::max(x, y), std::max(a.room, b.room), is_certain};
    case o::negate: return {-x, a.room, a.is_certain};
    case o::absolute: return {std::abs(x), a.room, a.is_certain};
    case o::square_root: {
      const double least = x - a.room;
      return rounded(std::sqrt(x), a.room / (2 * std::sqrt(least)), a.is_certain && least > 1e-6);
    }
    case o::exponential: return function(std::exp(x), std::exp(x + a.room));
    case o::tangent_hyperbolic: return function(std::tanh(x), 1);
    case o::error_function: return function(std::erf(x), 1.2);
    case o::floor:
    case o::ceiling:
    case o::round_to_even: {
      const auto f = [&](double v) {
        return code == o::floor ? std::floor(v) : code == o::ceiling ? std::ceil(v) : std::nearbyint(v);
      };
      return {f(x), 0, a.is_certain && f(x - a.room) == f(x + a.room)};
    }
    case o::less: return {x < y ? 1.0 : 0.0, 0, is_certain && std::abs(x - y) > a.room + b.room};
    case o::equal: return {x == y ? 1.0 : 0.0, 0, is_certain && std::abs(x - y) > a.room + b.room};
    case o::select:
      return x != 0 ? bounded{b.value, b.room, is_certain} : bounded{c.value, c.room, a.is_certain && c.is_certain};
    default: ADD_FAILURE() << "no reference for a step"; return {};
  }
}

/// The outputs of an epilogue for one element; operand(index) is a number of it.
template <class Operand>
std::vector<bounded> epilogue_in_double(const epilogue& e, const bounded& product, const Operand& operand) {
  std::vector<bounded> made, outputs;
  const auto value = [&](const epilogue_value& v) -> bounded {
    switch (v.from) {
      case epilogue_value::source::product: return product;
      case epilogue_value::source::number: return {static_cast<double>(e.numbers[v.index])};
      case epilogue_value::source::step: return made[v.index];
      default: return operand(v.index);
    }
  };
  for (const jit::epilogue_step& s : e.steps) {
    const int operands = collage::operands_of(s.code);
    made.push_back(
        step_of(s.code, value(s.a), operands > 1 ? value(s.b) : bounded{}, operands > 2 ? value(s.c) : bounded{}));
  }
  for (const epilogue_value& o : e.outputs) outputs.push_back(value(o));
  return outputs;
}

/// All that one product is made of.
struct product_case {
  configuration how;
  jit::product_extents extents;
  std::vector<store_mode> destinations = {store_mode::set};
  epilogue finish;
  bool at_end = true;
  std::int64_t a_gap = 0, to_gap = 0;
  std::string text() const {
    return jit::to_text(how) + ", " + std::to_string(extents.m) + "x" + std::to_string(extents.n) + "x" +
           std::to_string(extents.k) + ", " + std::to_string(destinations.size()) + " destinations, " +
           std::to_string(finish.steps.size()) + " steps, gaps " + std::to_string(a_gap) + " and " +
           std::to_string(to_gap);
  }
};

/// Runs a case in memory between guard pages, with NaN wherever nothing should be read, and compares all elements.
class case_runner {
 public:
  case_runner(const product_case& c, random_numbers& random, jit::product& made)
      : c_(c),
        random_(random),
        made_(made),
        a_(c.extents.m, c.extents.k, c.extents.k + c.a_gap, c.at_end),
        b_(static_cast<std::size_t>(c.extents.k * c.extents.n)),
        packed_(made.packed_size(), c.at_end) {}

  void run() {
    fill();
    std::vector<float*> to, outputs;
    std::vector<const float*> operands;
    std::vector<std::int64_t> operand_steps, output_steps;
    for (const walled_matrix& m : to_) to.push_back(m.data());
    if (!c_.finish.empty() && !jit::reads_destination(c_.destinations[0])) to[0] = nullptr;
    for (const walled_matrix& m : operands_) {
      operands.push_back(m.data());
      operand_steps.push_back(m.step);
    }
    for (const walled_matrix& m : outputs_) {
      outputs.push_back(m.data());
      output_steps.push_back(m.step);
    }
    made_.run({.a = a_.data(),
               .a_step = a_.step,
               .packed = packed_.data(),
               .to = to,
               .to_step = c_.extents.n + c_.to_gap,
               .operands = operands,
               .operand_steps = operand_steps,
               .outputs = outputs,
               .output_steps = output_steps});
    check();
  }

 private:
  float small() { return static_cast<float>(random_.real(-1, 1)); }
  walled_matrix matrix(std::int64_t rows, std::int64_t columns, std::int64_t gap, float between) {
    walled_matrix made(rows, columns, columns + gap, c_.at_end);
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < columns; ++j) made.at(i, j) = small();
    made.for_gaps([&](float& x) { x = between; });
    return made;
  }
  void fill() {
    const auto [m, n, k] = c_.extents;
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < k; ++j) a_.at(i, j) = small();
    a_.for_gaps([](float& x) { x = not_a_number; });
    const float scale = 1 / std::sqrt(static_cast<float>(std::max<std::int64_t>(k, 1)));
    for (float& x : b_) x = scale * 2 * small();
    made_.pack(b_.data(), n, packed_.data());
    poison_pads();
    for (std::size_t i = 0; i < c_.destinations.size(); ++i) to_.push_back(matrix(m, n, c_.to_gap, mark));
    for (const operand_shape s : c_.finish.operands) {
      const bool is_whole = s == operand_shape::whole;
      operands_.push_back(matrix(is_whole ? m : 1,
                                 is_whole || s == operand_shape::per_column ? n
                                 : s == operand_shape::per_row              ? m
                                                                            : 1,
                                 is_whole ? random_.number(0, 5) : 0, not_a_number));
    }
    for (std::size_t i = 0; i < c_.finish.outputs.size(); ++i)
      outputs_.push_back(matrix(m, n, random_.number(0, 5), mark));
    for (const walled_matrix& x : to_) before_.push_back(copy(x));
  }
  /// What fills the last vector of packed rows may be anything.
  void poison_pads() {
    const std::int64_t width = c_.how.columns(), lanes = c_.how.lanes(), rest = c_.extents.n % width;
    const std::int64_t filled = (rest + lanes - 1) / lanes * lanes;
    float* const last = packed_.data() + (c_.extents.n - rest) * c_.extents.k;
    for (std::int64_t k = 0; k < c_.extents.k; ++k)
      std::fill(last + k * filled + rest, last + (k + 1) * filled, not_a_number);
  }
  static std::vector<float> copy(const walled_matrix& x) {
    std::vector<float> elements;
    for (std::int64_t i = 0; i < x.rows; ++i)
      for (std::int64_t j = 0; j < x.columns; ++j) elements.push_back(x.at(i, j));
    return elements;
  }

  void check() {
    const auto [m, n, k] = c_.extents;
    for (std::int64_t i = 0; i < m && !testing::Test::HasFailure(); ++i)
      for (std::int64_t j = 0; j < n; ++j) {
        double sum = 0, size = 0;
        for (std::int64_t q = 0; q < k; ++q) {
          const double term =
              static_cast<double>(a_.at(i, q)) * static_cast<double>(b_[static_cast<std::size_t>(q * n + j)]);
          sum += term;
          size += std::abs(term);
        }
        const bounded product = {sum, (static_cast<double>(k) / 2 + 2) * size * 0x1p-23 + 1e-37, true};
        for (std::size_t d = c_.finish.empty() ? 0 : 1; d < to_.size(); ++d)
          compare(to_[d].at(i, j), combined(d, product, i, j), "destination", d, i, j);
        if (!c_.finish.empty()) check_outputs(combined(0, product, i, j), i, j);
      }
    for (const walled_matrix& x : to_) x.for_gaps([](float g) { ASSERT_EQ(g, mark) << "a gap was written"; });
    for (const walled_matrix& x : outputs_) x.for_gaps([](float g) { ASSERT_EQ(g, mark) << "a gap was written"; });
    if (!c_.finish.empty()) ASSERT_EQ(before_[0], copy(to_[0])) << "outputs take the first destination's place";
  }
  bounded combined(std::size_t d, const bounded& product, std::int64_t i, std::int64_t j) const {
    const double before = static_cast<double>(before_[d][static_cast<std::size_t>(i * to_[d].columns + j)]);
    switch (c_.destinations[d]) {
      case store_mode::set: return product;
      case store_mode::set_negative: return {-product.value, product.room, true};
      case store_mode::add: return rounded(before + product.value, product.room, true);
      default: return rounded(before - product.value, product.room, true);
    }
  }
  void check_outputs(const bounded& product, std::int64_t i, std::int64_t j) {
    const auto operand = [&](std::uint32_t index) -> bounded {
      const walled_matrix& x = operands_[index];
      switch (c_.finish.operands[index]) {
        case operand_shape::whole: return {static_cast<double>(x.at(i, j))};
        case operand_shape::per_row: return {static_cast<double>(x.at(0, i))};
        case operand_shape::per_column: return {static_cast<double>(x.at(0, j))};
        default: return {static_cast<double>(x.at(0, 0))};
      }
    };
    const std::vector<bounded> made = epilogue_in_double(c_.finish, product, operand);
    for (std::size_t o = 0; o < outputs_.size(); ++o) compare(outputs_[o].at(i, j), made[o], "output", o, i, j);
  }
  void compare(float found, const bounded& expected, const char* what, std::size_t index, std::int64_t i,
               std::int64_t j) {
    if (!expected.is_certain) return;
    ASSERT_NEAR(static_cast<double>(found), expected.value, expected.room)
        << what << " " << index << " at " << i << ", " << j << " of " << c_.text()
        << ", COLLAGE_SEED=" << random_.seed();
  }

  static constexpr float mark = 12345.5F;
  const product_case& c_;
  random_numbers& random_;
  jit::product& made_;
  walled_matrix a_;
  std::vector<float> b_;
  walled_floats packed_;
  std::vector<walled_matrix> to_, operands_, outputs_;
  std::vector<std::vector<float>> before_;
};

/// A random configuration that has no fault.
inline configuration random_configuration(random_numbers& random, instruction_set set) {
  for (;;) {
    configuration c;
    c.set = set;
    c.rows = static_cast<int>(random.number(1, set == instruction_set::avx512 ? 30 : 14));
    c.vectors = static_cast<int>(random.number(1, 4));
    c.unroll = static_cast<int>(random.chance(0.3) ? 1 : random.number(1, 9));
    c.prefetch = static_cast<int>(random.chance(0.5) ? 0 : random.number(1, 16));
    c.broadcast = set == instruction_set::avx2 || random.chance(0.5) ? jit::broadcast_from::vector_register
                                                                     : jit::broadcast_from::memory;
    if (jit::fault_of(c).empty()) return c;
  }
}

/// A random chain of operators with random operands. All values stay of the size of 1.
inline epilogue random_epilogue(random_numbers& random, int steps) {
  jit::epilogue_maker make;
  jit::epilogue_maker::value x = make.product();
  int operands = 0;
  const auto other = [&]() -> jit::epilogue_maker::value {
    if (operands == static_cast<int>(epilogue::most_operands) || random.chance(0.2))
      return make.number(random.real(-1, 1));
    ++operands;
    return make.operand(static_cast<operand_shape>(random.number(0, 3)));
  };
  std::vector<jit::epilogue_maker::value> made = {x};
  const auto one_of_made = [&] {
    return made[static_cast<std::size_t>(random.number(0, static_cast<std::int64_t>(made.size()) - 1))];
  };
  for (int i = 0; i < steps; ++i) {
    switch (random.number(0, 18)) {
      case 0: x = make(op::add, {x, other()}); break;
      case 1: x = make(op::sub, {x, other()}); break;
      case 2: x = make(op::sub, {other(), x}); break;
      case 3: x = make(op::mul, {x, other()}); break;
      case 4: x = make(op::div, {x, make(op::add, {make(op::abs, {other()}), make.number(0.5)})}); break;
      case 5: x = make(op::max, {x, other()}); break;
      case 6: x = make(op::min, {other(), x}); break;
      case 7: x = make(op::relu, {x}); break;
      case 8: x = make(op::clip, {x, make.number(-0.75), make.number(0.5)}); break;
      case 9: x = make(op::sqrt, {make(op::add, {make(op::abs, {x}), make.number(0.25)})}); break;
      case 10: x = make(op::neg, {x}); break;
      case 11: x = make(op::abs, {x}); break;
      case 12: x = make(op::exp, {make(op::min, {x, make.number(1.5)})}); break;
      case 13: x = make(op::tanh, {x}); break;
      case 14: x = make(op::sigmoid, {x}); break;
      case 15: x = make(op::erf, {x}); break;
      case 16: x = make(op::leaky_relu, {x}); break;
      case 17: x = make(op::mul, {x, one_of_made()}); break;
      default: x = make(op::round, {make(op::mul, {x, make.number(4)})}); break;
    }
    made.push_back(x);
  }
  for (std::int64_t more = random.chance(0.6) ? 0 : random.number(1, 3); more > 0; --more) make.output(one_of_made());
  make.output(x);
  return make.finish();
}

}  // namespace collage_test::jit_testing
