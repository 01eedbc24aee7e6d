// Evaluates elementwise programs over blocks of elements that stay in the first-level cache.
#pragma once

#include <algorithm>
#include <cmath>
#include <collage/backends/impl/elementwise_program.hpp>
#include <collage/backends/impl/team.hpp>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace collage::inline v0::detail::host {
namespace {

/// A block of elements, or one number for all of them (`data` is null).
template <class T>
struct block_operand {
  const T* data = nullptr;
  T number{};
};

// Loops over blocks. Results may lie exactly on an operand, never elsewhere over it: `omp simd` says so to the
// compiler, which would otherwise check for overlap and give up on vectors.
template <class T, class F>
void for_block(std::int64_t count, T* to, const block_operand<T>& a, const F& f) {
  if (a.data == nullptr) return void(std::fill_n(to, count, f(a.number)));
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) to[i] = f(a.data[i]);
}
template <class T, class F>
void for_block(std::int64_t count, T* to, const block_operand<T>& a, const block_operand<T>& b, const F& f) {
  if (a.data != nullptr && b.data != nullptr) {
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) to[i] = f(a.data[i], b.data[i]);
  } else if (a.data != nullptr) {
    const T y = b.number;
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) to[i] = f(a.data[i], y);
  } else if (b.data != nullptr) {
    const T x = a.number;
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) to[i] = f(x, b.data[i]);
  } else {
    std::fill_n(to, count, f(a.number, b.number));
  }
}

/// What the operators mean for one element; functions that a library has as vectors are in `Math`.
template <class T>
struct element_operators {
  static T maximum(T x, T y) { return x > y || x != x ? x : y; }
  static T minimum(T x, T y) { return x < y || x != x ? x : y; }
};

/// int64 wraps around, divides toward zero, and by zero to 0.
template <>
struct element_operators<std::int64_t> {
  static std::int64_t maximum(std::int64_t x, std::int64_t y) { return std::max(x, y); }
  static std::int64_t minimum(std::int64_t x, std::int64_t y) { return std::min(x, y); }
};

/// The functions for which there are no fast vectors without a library, one element at a time.
struct plain_math {
  static constexpr bool has_functions = false;  ///< beyond arithmetic
};

/// One instruction over one block. `Math` says whether and how the transcendental functions are computed.
template <class Math>
void run_instruction(opcode code, std::int64_t n, float* to, const block_operand<float>& a,
                     const block_operand<float>& b, const block_operand<float>& c) {
  using op = element_operators<float>;
  const auto truth = [](bool holds) { return holds ? 1.0F : 0.0F; };
  switch (code) {
    case opcode::add: return for_block(n, to, a, b, [](float x, float y) { return x + y; });
    case opcode::subtract: return for_block(n, to, a, b, [](float x, float y) { return x - y; });
    case opcode::multiply: return for_block(n, to, a, b, [](float x, float y) { return x * y; });
    case opcode::divide: return for_block(n, to, a, b, [](float x, float y) { return x / y; });
    case opcode::minimum: return for_block(n, to, a, b, op::minimum);
    case opcode::maximum: return for_block(n, to, a, b, op::maximum);
    case opcode::negate: return for_block(n, to, a, [](float x) { return -x; });
    case opcode::absolute: return for_block(n, to, a, [](float x) { return std::abs(x); });
    case opcode::square_root: return for_block(n, to, a, [](float x) { return std::sqrt(x); });
    case opcode::less: return for_block(n, to, a, b, [&](float x, float y) { return truth(x < y); });
    case opcode::equal: return for_block(n, to, a, b, [&](float x, float y) { return truth(x == y); });
    case opcode::logical_not: return for_block(n, to, a, [&](float x) { return truth(x == 0); });
    case opcode::logical_and:
      return for_block(n, to, a, b, [&](float x, float y) { return truth((x != 0) & (y != 0)); });
    case opcode::logical_or:
      return for_block(n, to, a, b, [&](float x, float y) { return truth((x != 0) | (y != 0)); });
    case opcode::select:
      for (std::int64_t i = 0; i < n; ++i) {
        const bool first = (a.data != nullptr ? a.data[i] : a.number) != 0;
        const float x = b.data != nullptr ? b.data[i] : b.number;
        const float y = c.data != nullptr ? c.data[i] : c.number;
        to[i] = first ? x : y;
      }
      return;
    default:
      if constexpr (Math::has_functions) Math::run(code, n, to, a, b);
      return;
  }
}

template <class Math>
void run_instruction(opcode code, std::int64_t n, std::int64_t* to, const block_operand<std::int64_t>& a,
                     const block_operand<std::int64_t>& b, const block_operand<std::int64_t>&) {
  using op = element_operators<std::int64_t>;
  const auto bits = [](std::int64_t x) { return static_cast<std::uint64_t>(x); };
  const auto wrap = [](std::uint64_t x) { return static_cast<std::int64_t>(x); };
  switch (code) {
    case opcode::add: return for_block(n, to, a, b, [&](auto x, auto y) { return wrap(bits(x) + bits(y)); });
    case opcode::subtract: return for_block(n, to, a, b, [&](auto x, auto y) { return wrap(bits(x) - bits(y)); });
    case opcode::multiply: return for_block(n, to, a, b, [&](auto x, auto y) { return wrap(bits(x) * bits(y)); });
    case opcode::divide:  // no processor divides vectors of integers
      for (std::int64_t i = 0; i < n; ++i) {
        const std::int64_t x = a.data != nullptr ? a.data[i] : a.number;
        const std::int64_t y = b.data != nullptr ? b.data[i] : b.number;
        to[i] = y == 0 ? 0 : y == -1 ? wrap(0 - bits(x)) : x / y;
      }
      return;
    case opcode::minimum: return for_block(n, to, a, b, op::minimum);
    case opcode::maximum: return for_block(n, to, a, b, op::maximum);
    case opcode::negate: return for_block(n, to, a, [&](auto x) { return wrap(0 - bits(x)); });
    case opcode::absolute: return for_block(n, to, a, [&](auto x) { return x < 0 ? wrap(0 - bits(x)) : x; });
    default: return;
  }
}

/// Walks over a program's dimensions but the innermost, keeping every leaf's offset.
class leaf_walk {
 public:
  leaf_walk(const elementwise_program& p, std::int64_t element) : program_(p), inner_(p.dims.size() - 1) {
    for (std::size_t i = p.dims.size(); i-- > 0;) {
      at_[i] = element % p.dims[i];
      element /= p.dims[i];
      for (std::size_t k = 0; k < p.leaves.size(); ++k) offset_[k] += at_[i] * p.leaves[k].steps[i];
    }
  }
  /// Elements until the end of the innermost dimension.
  std::int64_t rest() const { return program_.dims[inner_] - at_[inner_]; }
  std::int64_t offset(std::size_t leaf) const { return offset_[leaf]; }
  /// By any number of elements.
  void advance(std::int64_t count) {
    for (std::size_t i = inner_ + 1; i-- > 0;) {
      const std::int64_t before = at_[i];
      at_[i] += count;
      count = 0;
      if (at_[i] >= program_.dims[i] && i != 0) {
        count = at_[i] / program_.dims[i];
        at_[i] -= count * program_.dims[i];
      }
      for (std::size_t k = 0; k < program_.leaves.size(); ++k)
        offset_[k] += (at_[i] - before) * program_.leaves[k].steps[i];
      if (count == 0) return;
    }
  }

 private:
  const elementwise_program& program_;
  std::size_t inner_;
  std::int64_t at_[shape::max_rank] = {};
  std::int64_t offset_[elementwise_program::max_leaves] = {};
};

/// Evaluates rows of elements of a program's result, which begins at `result`: `rows` rows of `columns` elements, the
/// first at element `first`, the others `row_step` further each. `in` are the kernel's arguments.
template <class Math, class T>
void run_program(const elementwise_program& p, const void* const* in, T* result, std::int64_t first, std::int64_t rows,
                 std::int64_t columns, std::int64_t row_step) {
  if (p.empty() || rows <= 0 || columns <= 0) return;
  if (columns == row_step) {
    columns *= rows;
    rows = 1;
  }
  constexpr std::int64_t block = 4096 / sizeof(T);
  constexpr std::int64_t short_run = 96;  // below, broadcast operands are spread out first
  alignas(64) T slot[elementwise_program::max_slots][block];
  alignas(64) T spread[elementwise_program::max_leaves][block];
  const T* base[elementwise_program::max_leaves];
  block_operand<T> leaf[elementwise_program::max_leaves];
  bool all_linear = true;
  for (std::size_t k = 0; k < p.leaves.size(); ++k) {
    base[k] = p.leaves[k].argument == program_leaf::target ? result : static_cast<const T*>(in[p.leaves[k].argument]);
    if (p.leaves[k].single) leaf[k] = {nullptr, *base[k]};
    all_linear = all_linear && (p.leaves[k].linear || p.leaves[k].single);
  }
  const std::size_t inner = p.dims.size() - 1;
  const bool spreads = !all_linear && p.dims[inner] < short_run;
  leaf_walk walk(p, all_linear ? 0 : first);
  const auto operand = [&](const program_operand& o) -> block_operand<T> {
    switch (o.from) {
      case program_operand::source::slot: return {slot[o.index], T{}};
      case program_operand::source::leaf: return leaf[o.index];
      default: return {nullptr, static_cast<T>(o.number)};
    }
  };

  for (std::int64_t row = 0; row < rows; ++row, first += row_step) {
    for (std::int64_t done = 0; done < columns;) {
      const std::int64_t at = first + done;
      std::int64_t count = std::min(block, columns - done);
      if (!all_linear && !spreads) count = std::min(count, walk.rest());
      for (std::size_t k = 0; k < p.leaves.size(); ++k) {
        const program_leaf& l = p.leaves[k];
        if (l.single) continue;
        if (l.linear) leaf[k] = {base[k] + at, T{}};
        else if (spreads) leaf[k] = {spread[k], T{}};
        else if (l.steps[inner] == 0) leaf[k] = {nullptr, base[k][walk.offset(k)]};
        else leaf[k] = {base[k] + walk.offset(k), T{}};
      }
      for (std::int64_t s = 0; spreads && s < count;) {
        const std::int64_t run = std::min(count - s, walk.rest());
        for (std::size_t k = 0; k < p.leaves.size(); ++k) {
          const program_leaf& l = p.leaves[k];
          if (l.single || l.linear) continue;
          const T* const from = base[k] + walk.offset(k);
          if (l.steps[inner] == 0) std::fill_n(spread[k] + s, run, *from);
          else std::copy_n(from, run, spread[k] + s);
        }
        walk.advance(run);
        s += run;
      }
      for (const program_step& step : p.steps) {
        T* const to = step.slot == elementwise_program::result ? result + at : slot[step.slot];
        run_instruction<Math>(step.code, count, to, operand(step.a), operand(step.b), operand(step.c));
      }
      if (!all_linear && !spreads) walk.advance(count);
      done += count;
    }
    if (!all_linear) walk.advance(row_step - columns);
  }
}

/// Elements [first, last).
template <class Math, class T>
void run_program(const elementwise_program& p, const void* const* in, T* result, std::int64_t first,
                 std::int64_t last) {
  run_program<Math>(p, in, result, first, 1, last - first, last - first);
}

/// The same for a whole result, on all threads.
template <class Math, class T>
void run_program(const elementwise_program& p, int threads, const void* const* in, T* result) {
  const double cost = static_cast<double>(p.leaves.size() + 2 * p.steps.size());
  parallel_parts(threads, p.dims.elements(), 1024, cost,
                 [&](std::int64_t first, std::int64_t last) { run_program<Math>(p, in, result, first, last); });
}

}  // namespace
}  // namespace collage::inline v0::detail::host
