// Matrix products with Eigen's packets.
#pragma once

#include <algorithm>
#include <collage/backends/impl/eigen_tile.hpp>
#include <collage/backends/impl/elementwise_run.hpp>
#include <collage/backends/impl/matmul_shape.hpp>
#include <collage/backends/impl/team.hpp>
#include <collage/error.hpp>
#include <collage/run/kernel.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace collage::inline v0::detail::host {
namespace {

/// Computes c[i] = a[i] b[i] for each product i, then runs a program over c. The columns of b are divided into panels, each copied
/// so that its rows follow each other. A constant b is copied when the kernel is built, another by the thread that uses it.
class eigen_matmul {
 public:
  eigen_matmul(const any_match& m, std::uint32_t node, build_context& context, elementwise_program program)
      : s_(matmul_shape_of(m, node)), then_(std::move(program)), threads_(context.threads()) {
    std::uint32_t a_value = m.inputs_of(node)[0];
    std::uint32_t b_value = m.inputs_of(node)[1];
    if (s_.n == 1 && s_.m != 1) {  // (a b)' = b' a': the many rows become columns, along which packets lie
      std::swap(a_value, b_value);
      std::swap(s_.a, s_.b);
      std::swap(s_.m, s_.n);
      s_.b_transposed = !std::exchange(s_.a_transposed, false);
    }
    constexpr std::int64_t limit = 0x7FFFFFFF;
    if (m.type_of(a_value).dims.elements() > limit || m.type_of(b_value).dims.elements() > limit)
      throw error(error_kind::unsupported, "a matrix has more than 2^31 elements", "eigen matmul");
    a_ = m.index_of(a_value);
    b_ = m.index_of(b_value);
    divide();
    make_taps();
    if (s_.m != 0 && s_.n != 0 && s_.k != 0 && !single() && s_.one_b()) pack_constant(m, b_value, context);
  }

  kernel make() && {
    const auto workspace = static_cast<std::size_t>(scratch() * threads_) * sizeof(float);
    const bool packed = packed_ != nullptr;
    const std::size_t b = b_;
    const std::size_t a = a_;
    kernel k(single()    ? "dot product"
             : packed    ? "tiles, packed panels"
             : in_place_ ? "tiles in place"
                         : "tiles, copied panels",
             std::move(*this), workspace);
    if (packed && a != b) k.does_not_read(b);
    return k;
  }

  void operator()(const kernel_call& call) const {
    if (s_.m == 0 || s_.n == 0) return;
    const std::int64_t count = s_.products() * panels_ * row_pieces_;
    parallel(threads_, count, [&](std::int64_t index, int thread) { run(call, index, thread); });
  }

 private:
  bool single() const { return s_.m == 1 && s_.n == 1; }

  void divide() {
    const double work =
        static_cast<double>(s_.products()) * static_cast<double>(s_.m * s_.n) * static_cast<double>(s_.k);
    if (work < 3e5) threads_ = 1;  // about 6 microseconds on one thread: too little to divide
    width_ = tile_columns(s_.n);
    panels_ = std::max<std::int64_t>(divide_up(s_.n, width_), 1);
    // Each thread gets two tasks, so that one delayed task does not delay the run.
    const std::int64_t tasks = s_.products() * panels_;
    const std::int64_t pieces = threads_ <= 1 || tasks == 0 ? 1 : divide_up(2 * threads_, tasks);
    rows_ = std::max<std::int64_t>(round_up(divide_up(s_.m, pieces), max_outputs), max_outputs);
    row_pieces_ = std::max<std::int64_t>(divide_up(s_.m, rows_), 1);
    // A block of a panel stays in the second-level cache while all rows of `a` pass over it.
    constexpr std::int64_t most = 1024;
    depth_ = std::max<std::int64_t>(divide_up(s_.k, std::max<std::int64_t>(divide_up(s_.k, most), 1)), 1);
    in_place_ = !s_.b_transposed && s_.n % lanes == 0 && (rows_ <= 16 || s_.k * s_.n <= 65536);
  }
  void make_taps() {
    const std::int64_t x_step = in_place_ ? s_.n : width_;
    const std::int64_t w_step = s_.a_transposed ? s_.m : 1;
    for (std::int64_t k = 0; k < depth_; ++k)
      taps_.push_back({static_cast<std::int32_t>(k * x_step), static_cast<std::int32_t>(k * w_step)});
  }
  /// Floats of scratch memory for each thread: one block of a panel.
  std::int64_t scratch() const { return packed_ != nullptr || in_place_ || single() ? 0 : depth_ * width_; }

  void pack_constant(const any_match& m, std::uint32_t value, build_context& context) {
    const float* const b = context.constant<float>(value);
    if (b == nullptr) return;
    in_place_ = false;
    taps_.clear();
    make_taps();
    const std::string packing = std::string("eigen panels ") + std::to_string(width_) +
                                (s_.b_transposed ? " of the transposed " : " of ") + std::to_string(s_.k) + 'x' +
                                std::to_string(s_.n);
    const auto bytes = static_cast<std::size_t>(panels_ * s_.k * width_) * sizeof(float);
    packed_ = context.packed(value, packing, bytes, [&](std::byte* to) {
      parallel(threads_, panels_, [&](std::int64_t panel, int) {
        copy_panel(b, panel, 0, s_.k, reinterpret_cast<float*>(to) + panel * s_.k * width_);
      });
    });
    (void)m;
  }

  /// Copies rows [first, last) of a panel of b to rows `width_` apart, and fills them with zeros after the last column of b.
  void copy_panel(const float* b, std::int64_t panel, std::int64_t first, std::int64_t last, float* to) const {
    const std::int64_t column = panel * width_;
    const std::int64_t columns = std::min(width_, s_.n - column);
    if (s_.b_transposed) transpose_block(b + column * s_.k + first, s_.k, columns, last - first, to, width_);
    else
      for (std::int64_t k = first; k < last; ++k)
        std::copy_n(b + k * s_.n + column, columns, to + (k - first) * width_);
    if (columns < width_)
      for (std::int64_t k = first; k < last; ++k)
        std::fill_n(to + (k - first) * width_ + columns, width_ - columns, 0.0F);
  }

  void run(const kernel_call& call, std::int64_t index, int thread) const {
    const std::int64_t product = index / (panels_ * row_pieces_);
    const std::int64_t panel = index / row_pieces_ % panels_;
    const std::int64_t row = index % row_pieces_ * rows_;
    const std::int64_t rows = std::min(rows_, s_.m - row);
    const std::int64_t column = panel * width_;
    const float* const a = static_cast<const float*>(call.in[a_]) + s_.a[static_cast<std::size_t>(product)];
    float* const out = static_cast<float*>(call.out[0]);
    const std::int64_t start = (product * s_.m + row) * s_.n + column;
    const float* b = nullptr;  // stays null if b is packed: the argument is not read then, and may be absent
    if (packed_ == nullptr) b = static_cast<const float*>(call.in[b_]) + s_.b[static_cast<std::size_t>(product)];
    if (single()) {
      out[start] = s_.k == 0 ? 0.0F : (const_array_map(a, s_.k) * const_array_map(b, s_.k)).sum();
      return run_program<eigen_math>(then_, call.in, out, start, start + 1);
    }
    tile t;
    t.taps = taps_.data();
    t.w_row = s_.a_transposed ? 1 : s_.k;
    t.out = out + start;
    t.out_row = s_.n;
    t.columns = std::min(width_, s_.n - column);
    for (std::int64_t k = 0; k == 0 || k < s_.k; k += depth_) {
      t.depth = std::min(depth_, s_.k - k);
      t.w = a + (s_.a_transposed ? k * s_.m + row : row * s_.k + k);
      t.accumulate = k != 0;
      if (packed_ != nullptr) {
        t.x = reinterpret_cast<const float*>(packed_.get()) + (panel * s_.k + k) * width_;
      } else if (in_place_) {
        t.x = b + k * s_.n + column;
      } else {
        float* const to = static_cast<float*>(call.workspace) + thread * scratch();
        copy_panel(b, panel, k, k + t.depth, to);
        t.x = to;
      }
      run_tiles(t, rows);
    }
    run_program<eigen_math>(then_, call.in, out, start, rows, t.columns, s_.n);
  }

  matmul_shape s_;
  elementwise_program then_;
  int threads_;
  std::size_t a_ = 0, b_ = 1;               ///< positions among the kernel's arguments
  std::int64_t width_ = 1, panels_ = 1;     ///< columns of a panel, and how many panels there are
  std::int64_t rows_ = 1, row_pieces_ = 1;  ///< rows of a task, and into how many tasks they are divided
  std::int64_t depth_ = 1;                  ///< rows of a panel's block
  bool in_place_ = false;                   ///< b is read without a copy
  std::vector<tap> taps_;                   ///< taps of one block
  std::shared_ptr<const std::byte> packed_;
};

}  // namespace
}  // namespace collage::inline v0::detail::host
