// A blocked matrix product in double precision. Both operands are packed into panels that the inner loop reads in order
// (Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication", 2008). The packing of b is a parameter,
// so that convolutions read their input directly and never store a matrix of windows.
#pragma once

#include <algorithm>
#include <collage/backends/impl/reference_loops.hpp>
#include <collage/backends/reference.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

namespace collage::inline v0::detail {

/// An inner loop and the size of its tile. It multiplies two panels: for each step of the depth, `a` holds `rows`
/// elements and `b` holds `columns`. It writes the product to c, or adds it to c if `accumulate`.
struct gemm_kernel {
  using function = void(std::int64_t depth, const double* a, const double* b, double* c, std::int64_t c_row_step,
                        bool accumulate);
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  function* multiply = nullptr;
  const char* instruction_set = "";
};

/// The inner loop: Rows x (Vectors * Lanes) sums in registers. Inlined into one function for each instruction set.
template <int Rows, int Vectors, int Lanes>
[[gnu::always_inline]] inline void multiply_panels(std::int64_t depth, const double* a, const double* b, double* c,
                                                   std::int64_t c_row_step, bool accumulate) {
  typedef double vector [[gnu::vector_size(Lanes * sizeof(double))]];
  vector sum[Rows][Vectors];
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 8
    for (int j = 0; j < Vectors; ++j) sum[i][j] = vector{};
  for (std::int64_t k = 0; k < depth; ++k) {
    vector line[Vectors];
#pragma GCC unroll 8
    for (int j = 0; j < Vectors; ++j) std::memcpy(&line[j], b + j * Lanes, sizeof(vector));
#pragma GCC unroll 8
    for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 8
      for (int j = 0; j < Vectors; ++j) sum[i][j] += a[i] * line[j];
    a += Rows;
    b += Vectors * Lanes;
  }
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 8
    for (int j = 0; j < Vectors; ++j) {
      double* const to = c + i * c_row_step + j * Lanes;
      if (accumulate) {
        vector old;
        std::memcpy(&old, to, sizeof(vector));
        sum[i][j] += old;
      }
      std::memcpy(to, &sum[i][j], sizeof(vector));
    }
}

inline void multiply_panels_portable(std::int64_t depth, const double* a, const double* b, double* c,
                                     std::int64_t c_row_step, bool accumulate) {
  multiply_panels<4, 2, 2>(depth, a, b, c, c_row_step, accumulate);
}
#if defined(__x86_64__)
[[gnu::target("avx2,fma")]] inline void multiply_panels_avx2(std::int64_t depth, const double* a, const double* b,
                                                             double* c, std::int64_t c_row_step, bool accumulate) {
  multiply_panels<4, 3, 4>(depth, a, b, c, c_row_step, accumulate);
}
[[gnu::target("avx512f")]] inline void multiply_panels_avx512(std::int64_t depth, const double* a, const double* b,
                                                              double* c, std::int64_t c_row_step, bool accumulate) {
  multiply_panels<8, 3, 8>(depth, a, b, c, c_row_step, accumulate);
}
#endif

/// The kernels that this processor can run, the fastest first.
inline std::vector<gemm_kernel> gemm_kernels() {
  std::vector<gemm_kernel> list;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) list.push_back({8, 24, multiply_panels_avx512, "avx512f"});
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    list.push_back({4, 12, multiply_panels_avx2, "avx2"});
#endif
  list.push_back({4, 4, multiply_panels_portable, "portable"});
  return list;
}

/// Block sizes of the product: one packed block of a (256 KB) and one of b (480 KB) together fit a second-level cache.
inline constexpr std::int64_t gemm_rows = 128;
inline constexpr std::int64_t gemm_columns = 240;
inline constexpr std::int64_t gemm_depth = 256;

/// Memory for the packed panels of one block and for a tile at the border. Each thread has its own. It is no larger
/// than the product needs, since fresh pages cost more than a small product.
class gemm_scratch {
 public:
  gemm_scratch(const gemm_kernel& kernel, std::int64_t rows, std::int64_t columns, std::int64_t depth)
      : b_(round_up(std::min(rows, gemm_rows), kernel.rows) * std::min(depth, gemm_depth)),
        border_(b_ + round_up(std::min(columns, gemm_columns), kernel.columns) * std::min(depth, gemm_depth)),
        memory_(allocate(border_ + kernel.rows * kernel.columns)) {}
  double* a() const { return memory_.get(); }
  double* b() const { return memory_.get() + b_; }
  double* border() const { return memory_.get() + border_; }

 private:
  struct release {
    void operator()(double* p) const { ::operator delete(p, std::align_val_t{64}); }
  };
  static std::int64_t round_up(std::int64_t x, std::int64_t unit) { return (x + unit - 1) / unit * unit; }
  static double* allocate(std::int64_t elements) {
    return static_cast<double*>(
        ::operator new(static_cast<std::size_t>(elements) * sizeof(double), std::align_val_t{64}));
  }
  std::int64_t b_, border_;
  std::unique_ptr<double, release> memory_;
};

/// Copies `depth x across` elements into panels of `width`: element (k, j) goes to to[j / width][k][j % width]. A
/// partial last panel is padded with zeros.
inline void pack_panels(const double* from, std::int64_t depth_step, std::int64_t across_step, std::int64_t depth,
                        std::int64_t across, std::int64_t width, double* to) {
  for (std::int64_t first = 0; first < across; first += width) {
    const std::int64_t count = std::min(width, across - first);
    const double* const panel = from + first * across_step;
    if (across_step == 1) {
      for (std::int64_t k = 0; k < depth; ++k) {
        std::memcpy(to + k * width, panel + k * depth_step, static_cast<std::size_t>(count) * sizeof(double));
        std::fill(to + k * width + count, to + (k + 1) * width, 0.0);
      }
    } else {
      for (std::int64_t j = 0; j < count; ++j)
        for (std::int64_t k = 0; k < depth; ++k) to[k * width + j] = panel[k * depth_step + j * across_step];
      for (std::int64_t k = 0; k < depth; ++k) std::fill(to + k * width + count, to + (k + 1) * width, 0.0);
    }
    to += depth * width;
  }
}

/// The columns of b, where b is a plain matrix.
struct matrix_columns {
  matrix_view b;
  void pack(std::int64_t depth_first, std::int64_t depth, std::int64_t column_first, std::int64_t columns,
            std::int64_t width, double* to) const {
    pack_panels(b.data + depth_first * b.row_step + column_first * b.column_step, b.row_step, b.column_step, depth,
                columns, width, to);
  }
};

/// Computes c += a b on one block of at most gemm_rows x gemm_columns elements. `a` points at the block's first row,
/// `c` at its first row and column. `columns_of.pack` packs b's columns from `column_first` on.
template <class Columns>
void multiply_block(const gemm_kernel& kernel, std::int64_t rows, std::int64_t column_first, std::int64_t columns,
                    std::int64_t depth, matrix_view a, const Columns& columns_of, double* c, std::int64_t c_row_step,
                    const gemm_scratch& scratch) {
  double* const packed_a = scratch.a();
  double* const packed_b = scratch.b();
  double* const border = scratch.border();
  for (std::int64_t k = 0; k < depth; k += gemm_depth) {
    const std::int64_t part = std::min(gemm_depth, depth - k);
    columns_of.pack(k, part, column_first, columns, kernel.columns, packed_b);
    pack_panels(a.data + k * a.column_step, a.column_step, a.row_step, part, rows, kernel.rows, packed_a);
    for (std::int64_t j = 0; j < columns; j += kernel.columns) {
      const std::int64_t width = std::min(kernel.columns, columns - j);
      for (std::int64_t i = 0; i < rows; i += kernel.rows) {
        const std::int64_t height = std::min(kernel.rows, rows - i);
        double* const to = c + i * c_row_step + j;
        if (width == kernel.columns && height == kernel.rows) {
          kernel.multiply(part, packed_a + i * part, packed_b + j * part, to, c_row_step, true);
          continue;
        }
        kernel.multiply(part, packed_a + i * part, packed_b + j * part, border, kernel.columns, false);
        for (std::int64_t y = 0; y < height; ++y)
          for (std::int64_t x = 0; x < width; ++x) to[y * c_row_step + x] += border[y * kernel.columns + x];
      }
    }
  }
}

/// One of several products of the same extents, for multiply_all.
template <class Columns>
struct gemm_problem {
  matrix_view a;
  Columns columns;
  double* c = nullptr;
};

/// Computes `count` products c += a b of the same extents, in parallel over their blocks; problem(i) returns the i-th.
template <class Problem>
void multiply_all(std::int64_t count, std::int64_t rows, std::int64_t columns, std::int64_t depth,
                  std::int64_t c_row_step, const Problem& problem, const gemm_kernel& kernel) {
  const std::int64_t row_blocks = (rows + gemm_rows - 1) / gemm_rows;
  const std::int64_t column_blocks = (columns + gemm_columns - 1) / gemm_columns;
  const std::int64_t blocks = row_blocks * column_blocks;
  parallel_for(depth == 0 ? 0 : count * blocks, 1, [&](std::int64_t first, std::int64_t last) {
    const gemm_scratch scratch(kernel, rows, columns, depth);
    for (std::int64_t task = first; task < last; ++task) {
      const auto p = problem(task / blocks);
      const std::int64_t i = task % blocks / column_blocks * gemm_rows;
      const std::int64_t j = task % column_blocks * gemm_columns;
      const matrix_view a{p.a.data + i * p.a.row_step, p.a.row_step, p.a.column_step};
      multiply_block(kernel, std::min(gemm_rows, rows - i), j, std::min(gemm_columns, columns - j), depth, a, p.columns,
                     p.c + i * c_row_step + j, c_row_step, scratch);
    }
  });
}

template <class Problem>
void multiply_all(std::int64_t count, std::int64_t rows, std::int64_t columns, std::int64_t depth,
                  std::int64_t c_row_step, const Problem& problem) {
  multiply_all(count, rows, columns, depth, c_row_step, problem, gemm_kernels().front());
}

}  // namespace collage::inline v0::detail
