// Evaluates elementwise programs over blocks of elements that stay in the first-level cache.
#pragma once

#include <algorithm>
#include <collage/backends/impl/element_blocks.hpp>
#include <collage/backends/impl/element_operators.hpp>
#include <collage/backends/impl/elementwise_program.hpp>
#include <collage/backends/impl/team.hpp>
#include <collage/dtype.hpp>
#include <cstddef>
#include <cstdint>

namespace collage::inline v0::detail::host {
namespace {

/// A position in a program's result, with every leaf's offset there.
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
  /// Moves on by any number of elements.
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

/// Evaluates `rows` rows of `columns` elements of a program's result, which begins at `result`. The first row begins at element
/// `first`, each further row `row_step` elements after the row before. `in` holds the kernel's arguments. T is the type in which
/// the program is computed. If the result has another type, `result` really points to elements of that type.
template <class Math, class T>
void run_program(const elementwise_program& p, const void* const* in, T* result, std::int64_t first, std::int64_t rows,
                 std::int64_t columns, std::int64_t row_step) {
  if (p.empty() || rows <= 0 || columns <= 0) return;
  if (columns == row_step) {
    columns *= rows;
    rows = 1;
  }
  constexpr std::int64_t block = 4096 / sizeof(T);
  constexpr std::int64_t short_run = 96;  // if rows are shorter, broadcast operands are repeated in memory first
  alignas(64) T slot[elementwise_program::max_slots][block];
  alignas(64) T spread[elementwise_program::max_leaves][block];
  alignas(64) T unconverted[block];  // results, if the result has another type
  const bool converts = !is_stored_as<T>(p.result_type);
  const void* base[elementwise_program::max_leaves];
  block_operand<T> leaf[elementwise_program::max_leaves];
  // Returns elements from an offset on: in place, or converted into `to`.
  const auto read = [&](std::size_t k, std::int64_t offset, std::int64_t count, T* to) -> const T* {
    const dtype type = p.leaves[k].type;
    if (is_stored_as<T>(type)) return static_cast<const T*>(base[k]) + offset;
    const auto bytes = offset * static_cast<std::int64_t>(size_of(type));
    load_block(type, static_cast<const std::byte*>(base[k]) + bytes, count, to);
    return to;
  };
  bool all_linear = true;
  for (std::size_t k = 0; k < p.leaves.size(); ++k) {
    base[k] = p.leaves[k].argument == program_leaf::target ? result : in[p.leaves[k].argument];
    if (p.leaves[k].single) leaf[k] = {nullptr, *read(k, 0, 1, spread[k])};
    all_linear = all_linear && (p.leaves[k].linear || p.leaves[k].single);
  }
  const std::size_t inner = p.dims.size() - 1;
  const bool spreads = !all_linear && p.dims[inner] < short_run;
  leaf_walk walk(p, all_linear ? 0 : first);
  const auto operand = [&](const program_operand& o) -> block_operand<T> {
    switch (o.from) {
      case program_operand::source::slot: return {slot[o.index], T{}};
      case program_operand::source::leaf: return leaf[o.index];
      default: return {nullptr, from_real<T>(o.number)};
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
        if (l.linear) leaf[k] = {read(k, at, count, spread[k]), T{}};
        else if (spreads) leaf[k] = {spread[k], T{}};
        else if (l.steps[inner] == 0) leaf[k] = {nullptr, *read(k, walk.offset(k), 1, spread[k])};
        else leaf[k] = {read(k, walk.offset(k), count, spread[k]), T{}};
      }
      for (std::int64_t s = 0; spreads && s < count;) {
        const std::int64_t run = std::min(count - s, walk.rest());
        for (std::size_t k = 0; k < p.leaves.size(); ++k) {
          const program_leaf& l = p.leaves[k];
          if (l.single || l.linear) continue;
          T* const to = spread[k] + s;
          const T* const from = read(k, walk.offset(k), l.steps[inner] == 0 ? 1 : run, to);
          if (l.steps[inner] == 0) std::fill_n(to, run, *from);
          else if (from != to) std::copy_n(from, run, to);
        }
        walk.advance(run);
        s += run;
      }
      for (const program_step& step : p.steps) {
        const bool last = step.slot == elementwise_program::result;
        T* const to = !last ? slot[step.slot] : converts ? unconverted : result + at;
        run_instruction<Math>(step.code, count, to, operand(step.a), operand(step.b), operand(step.c));
      }
      if (converts)
        store_block(p.conversion(), unconverted, count,
                    reinterpret_cast<std::byte*>(result) + at * static_cast<std::int64_t>(size_of(p.result_type)));
      if (!all_linear && !spreads) walk.advance(count);
      done += count;
    }
    if (!all_linear) walk.advance(row_step - columns);
  }
}

/// Evaluates elements [first, last).
template <class Math, class T>
void run_program(const elementwise_program& p, const void* const* in, T* result, std::int64_t first,
                 std::int64_t last) {
  run_program<Math>(p, in, result, first, 1, last - first, last - first);
}

/// Evaluates the whole result, on all threads.
template <class Math, class T>
void run_program(const elementwise_program& p, int threads, const void* const* in, T* result) {
  const double cost = static_cast<double>(p.leaves.size() + 2 * p.steps.size());
  parallel_parts(threads, p.dims.elements(), 1024, cost,
                 [&](std::int64_t first, std::int64_t last) { run_program<Math>(p, in, result, first, last); });
}

}  // namespace
}  // namespace collage::inline v0::detail::host
