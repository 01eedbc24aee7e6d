// The definitions of collage/backends/openblas.hpp. Included by exactly one file of a program, compiled with OpenMP:
// src/openblas.cpp, which is the target collage::openblas, or one of the user's own. Links only the dynamic loader.
#pragma once

#include <algorithm>
#include <collage/backends/impl/compiled_for.hpp>
#include <collage/backends/impl/elementwise_run.hpp>
#include <collage/backends/impl/im2col.hpp>
#include <collage/backends/impl/matmul_shape.hpp>
#include <collage/backends/impl/openblas_buffers.hpp>
#include <collage/backends/impl/openblas_library.hpp>
#include <collage/backends/impl/team.hpp>
#include <collage/backends/openblas.hpp>
#include <collage/error.hpp>
#include <collage/run/kernel.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace collage::inline v0::detail::host {
namespace {

/// How the rows and columns of a product, [rows, columns] of depth `depth`, are divided into pieces that threads take.
struct product_pieces {
  std::int64_t rows = 1, columns = 1;              ///< of a piece, at most
  std::int64_t row_pieces = 1, column_pieces = 1;  ///< how many there are
  std::int64_t count() const { return row_pieces * column_pieces; }
};

inline std::int64_t divide_up(std::int64_t x, std::int64_t by) { return (x + by - 1) / by; }

/// `copies` products are computed at the same time. `widest` limits a piece's columns.
inline product_pieces divide_product(std::int64_t copies, std::int64_t rows, std::int64_t columns, std::int64_t depth,
                                     std::int64_t widest, int threads) {
  product_pieces p;
  copies = std::max<std::int64_t>(copies, 1);
  p.columns = std::max<std::int64_t>(columns, 1);
  p.rows = std::max<std::int64_t>(rows, 1);
  const auto into_columns = [&](std::int64_t pieces) {
    p.columns = std::max<std::int64_t>(divide_up(divide_up(columns, pieces), 16) * 16, 16);
    p.column_pieces = std::max<std::int64_t>(divide_up(columns, p.columns), 1);
  };
  const auto into_rows = [&](std::int64_t pieces) {
    p.rows = std::max<std::int64_t>(divide_up(divide_up(rows, pieces), 8) * 8, 8);
    p.row_pieces = std::max<std::int64_t>(divide_up(rows, p.rows), 1);
  };
  if (columns > widest) into_columns(divide_up(columns, widest));
  // Two pieces for each thread, so that one that is held up does not hold up all; none so small that dividing costs
  // more.
  const double work = static_cast<double>(rows) * static_cast<double>(columns) * static_cast<double>(depth);
  const std::int64_t wanted =
      threads <= 1
          ? 1
          : std::min<std::int64_t>(2 * threads, static_cast<std::int64_t>(work * static_cast<double>(copies) / 2e5));
  if (copies * p.count() >= wanted) return p;
  const std::int64_t pieces = divide_up(wanted, copies);
  if (columns >= rows || columns >= 128 * pieces)
    into_columns(std::min(std::max(pieces, p.column_pieces), std::max<std::int64_t>(columns / 32, 1)));
  if (copies * p.count() < wanted)
    into_rows(std::min(divide_up(wanted, copies * p.column_pieces), std::max<std::int64_t>(rows / 8, 1)));
  return p;
}

/// One piece of a product.
struct piece {
  std::int64_t copy, row, rows, column, columns;
};
inline piece piece_of(const product_pieces& p, std::int64_t index, std::int64_t rows, std::int64_t columns) {
  piece t{};
  t.copy = index / p.count();
  t.row = index % p.count() / p.column_pieces * p.rows;
  t.column = index % p.column_pieces * p.columns;
  t.rows = std::min(p.rows, rows - t.row);
  t.columns = std::min(p.columns, columns - t.column);
  return t;
}

inline int narrow(std::int64_t x) { return static_cast<int>(x); }

/// c[i] = a[i] b[i], followed by a program over c.
struct openblas_matmul {
  matmul_shape s;
  product_pieces pieces;
  elementwise_program then;
  int threads = 1;
  kernel_input<float> a, b;
  kernel_output<float> c;

  void operator()(const kernel_call& call) const {
    if (s.m == 0 || s.n == 0) return;
    parallel(threads, s.products() * pieces.count(), [&](std::int64_t index, int) { run(call, index); });
  }
  void run(const kernel_call& call, std::int64_t index) const {
    using library = openblas_library;
    const piece t = piece_of(pieces, index, s.m, s.n);
    const auto product = static_cast<std::size_t>(t.copy);
    const float* const from_a = a(call) + s.a[product];
    const float* const from_b = b(call) + s.b[product];
    float* const out = c(call);
    const std::int64_t start = (t.copy * s.m + t.row) * s.n + t.column;
    const float* const a_rows = from_a + (s.a_transposed ? t.row : t.row * s.k);
    const float* const b_columns = from_b + (s.b_transposed ? t.column * s.k : t.column);
    const int a_step = narrow(std::max<std::int64_t>(s.a_transposed ? s.m : s.k, 1));
    const int b_step = narrow(std::max<std::int64_t>(s.b_transposed ? s.k : s.n, 1));
    if (s.k == 0)
      for (std::int64_t i = 0; i < t.rows; ++i) std::fill_n(out + start + i * s.n, t.columns, 0.0F);
    else if (s.m == 1)  // the columns of b times the only row of a
      openblas().sgemv(library::row_major, s.b_transposed ? library::as_is : library::transposed,
                       narrow(s.b_transposed ? t.columns : s.k), narrow(s.b_transposed ? s.k : t.columns), 1.0F,
                       b_columns, b_step, from_a, 1, 0.0F, out + start, 1);
    else if (s.n == 1)
      openblas().sgemv(library::row_major, s.a_transposed ? library::transposed : library::as_is,
                       narrow(s.a_transposed ? s.k : t.rows), narrow(s.a_transposed ? t.rows : s.k), 1.0F, a_rows,
                       a_step, from_b, 1, 0.0F, out + start, 1);
    else
      openblas().sgemm(library::row_major, s.a_transposed ? library::transposed : library::as_is,
                       s.b_transposed ? library::transposed : library::as_is, narrow(t.rows), narrow(t.columns),
                       narrow(s.k), 1.0F, a_rows, a_step, b_columns, b_step, 0.0F, out + start, narrow(s.n));
    run_program<plain_math>(then, call.in, out, start, t.rows, t.columns, s.n);
  }
};

/// A convolution as products of the filters with the matrix of windows, made tile by tile by the thread that uses it.
struct openblas_conv {
  conv_shape s;
  product_pieces pieces;
  elementwise_program then;
  int threads = 1;
  kernel_input<float> x, w, bias;
  kernel_output<float> y;

  /// Floats of scratch memory for each thread.
  std::int64_t scratch() const { return s.pointwise() ? 0 : divide_up(s.depth() * pieces.columns, 16) * 16; }

  void operator()(const kernel_call& call) const {
    if (s.out_channels == 0 || s.place_count() == 0) return;
    parallel(threads, s.images * s.groups * pieces.count(),
             [&](std::int64_t index, int thread) { run(call, index, thread); });
  }
  void run(const kernel_call& call, std::int64_t index, int thread) const {
    using library = openblas_library;
    const std::int64_t places = s.place_count();
    const std::int64_t depth = s.depth();
    const piece t = piece_of(pieces, index, s.out_channels, places);
    const std::int64_t channel = t.copy % s.groups * s.out_channels + t.row;
    const float* columns = x(call) + t.copy * s.in_channels * s.extent_size();
    std::int64_t columns_step = places;
    if (s.pointwise()) {
      columns += t.column;
    } else {
      float* const scratch_memory = static_cast<float*>(call.workspace) + thread * scratch();
      im2col(s, columns, t.column, t.column + t.columns, scratch_memory, t.columns);
      columns = scratch_memory;
      columns_step = t.columns;
    }
    const float* const filters = w(call) + channel * depth;
    float* const out = y(call);
    const std::int64_t start = (t.copy * s.out_channels + t.row) * places + t.column;
    const float* const biases = bias(call);
    if (biases != nullptr || depth == 0)
      for (std::int64_t i = 0; i < t.rows; ++i)
        std::fill_n(out + start + i * places, t.columns, biases != nullptr ? biases[channel + i] : 0.0F);
    if (depth != 0)
      openblas().sgemm(library::row_major, library::as_is, library::as_is, narrow(t.rows), narrow(t.columns),
                       narrow(depth), 1.0F, filters, narrow(depth), columns, narrow(columns_step),
                       biases != nullptr ? 1.0F : 0.0F, out + start, narrow(places));
    run_program<plain_math>(then, call.in, out, start, t.rows, t.columns, places);
  }
};

}  // namespace
}  // namespace collage::inline v0::detail::host

namespace collage::inline v0 {

kernel openblas::build(const any_match& m, build_context& context) {
  using namespace detail::host;
  if (const probe_result here = probe(); !here.available) throw error(error_kind::unsupported, here.reason, name);
  const std::uint32_t product = m.nodes()[0];
  const std::span<const std::uint32_t> inputs = m.inputs_of(product);
  const elementwise_program then = make_program(m, m.nodes().subspan(1), m.output_of(product));
  std::vector<std::size_t> read;
  for (const std::uint32_t v : inputs) read.push_back(m.index_of(v));

  const int threads = std::min(context.threads(), detail::host::openblas().most_threads);
  kernel made;
  if (m.is(product, ops::conv)) {
    openblas_conv run;
    run.s = conv_shape_of(m, product);
    run.threads = threads;
    run.then = then;
    // A tile of the matrix of windows stays in the second-level cache.
    const std::int64_t widest =
        run.s.pointwise() ? run.s.place_count() : std::max<std::int64_t>(131072 / (run.s.depth() + 1), 64);
    run.pieces = divide_product(run.s.images * run.s.groups, run.s.out_channels, run.s.place_count(), run.s.depth(),
                                std::max<std::int64_t>(widest, 1), run.threads);
    run.x = m.in<float>(inputs[0]);
    run.w = m.in<float>(inputs[1]);
    if (inputs.size() == 3) run.bias = m.in<float>(inputs[2]);
    run.y = m.out<float>();
    const auto workspace = static_cast<std::size_t>(run.scratch() * run.threads) * sizeof(float);
    made = kernel(run.s.pointwise() ? "sgemm pointwise" : "im2col sgemm", std::move(run), workspace);
  } else {
    openblas_matmul run;
    run.s = matmul_shape_of(m, product);
    run.threads = threads;
    run.then = then;
    run.pieces =
        divide_product(run.s.products(), run.s.m, run.s.n, run.s.k, std::max<std::int64_t>(run.s.n, 1), run.threads);
    run.a = m.in<float>(inputs[0]);
    run.b = m.in<float>(inputs[1]);
    run.c = m.out<float>();
    made = kernel(run.s.m == 1 || run.s.n == 1 ? "sgemv" : "sgemm", std::move(run));
  }
  drop_constants(made, then, read);
  return made;
}

probe_result openblas::probe() {
  using namespace detail::host;
  if (const char* reason = why_not_here(); *reason != '\0') return {.available = false, .reason = reason};
  const openblas_library& library = detail::host::openblas();
  static const std::string details = library.details.empty() ? compiled_for : library.details + "; " + compiled_for;
  return {.available = library.reason.empty(),
          .version = library.version.c_str(),
          .details = details.c_str(),
          .reason = library.reason.c_str()};
}

int openblas::enter(int threads) {
  detail::host::reserve_buffers(threads);
  return detail::host::enter_team(threads);
}
void openblas::leave(int token) { detail::host::leave_team(token); }

}  // namespace collage::inline v0
