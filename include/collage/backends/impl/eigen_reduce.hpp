// Reductions with Eigen's array expressions.
#pragma once

#include <algorithm>
#include <collage/backends/impl/eigen_math.hpp>
#include <collage/backends/impl/eigen_tile.hpp>
#include <collage/backends/impl/elementwise_run.hpp>
#include <collage/backends/impl/team.hpp>
#include <collage/op/reduce.hpp>
#include <collage/run/kernel.hpp>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

namespace collage::inline v0::detail::host {
namespace {

enum class reduction : std::uint8_t { sum, mean, largest, smallest };

/// A walk over some dimensions of a dense tensor: their extents, and the distance of neighbouring elements in each.
struct strided_dims {
  shape dims, steps;

  std::int64_t size() const { return dims.elements(); }
  std::int64_t offset(std::int64_t index) const {
    std::int64_t at = 0;
    for (std::size_t d = dims.size(); d-- > 0; index /= dims[d]) at += index % dims[d] * steps[d];
    return at;
  }
  /// Appends an outer-to-inner dimension; joins it to the one before where that is the same walk.
  void append(std::int64_t extent, std::int64_t step) {
    if (extent == 1) return;
    if (!dims.empty() && steps[dims.size() - 1] == step * extent) {
      dims[dims.size() - 1] *= extent;
      steps[dims.size() - 1] = step;
    } else {
      dims.push_back(extent);
      steps.push_back(step);
    }
  }
};

/// Over any axes. Where the innermost dimension is folded, each output is a fold over rows; else rows of outputs are
/// folded side by side.
class eigen_reduce {
 public:
  eigen_reduce(const any_match& m, std::uint32_t node, reduction what, std::size_t argument, int threads)
      : what_(what), argument_(argument), threads_(threads) {
    const ops::reduce_attributes a = m.attributes(node, ops::reduce_sum);  // one record for all reductions
    const shape& x = m.type_of(m.inputs_of(node)[0]).dims;
    std::int64_t step = 1;
    shape steps = x;
    for (std::size_t i = x.size(); i-- > 0; step *= x[i]) steps[i] = step;
    bool inner_folds = false;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const bool folds = std::find(a.axes.begin(), a.axes.end(), static_cast<std::int64_t>(i)) != a.axes.end();
      (folds ? folded_ : kept_).append(x[i], steps[i]);
      if (x[i] != 1) inner_folds = folds;
    }
    count_ = folded_.size();
    strided_dims& inner = inner_folds ? folded_ : kept_;
    along_rows_ = inner_folds;
    if (!inner.dims.empty()) {  // the row is taken off the walk
      row_ = inner.dims[inner.dims.size() - 1];
      inner.dims = inner.dims.first(inner.dims.size() - 1);
      inner.steps = inner.steps.first(inner.steps.size() - 1);
    }
  }
  kernel make() && { return kernel(along_rows_ ? "fold of rows" : "fold of columns", std::move(*this)); }

  void operator()(const kernel_call& call) const {
    switch (what_) {
      case reduction::sum:
      case reduction::mean: return run<reduction::sum>(call);
      case reduction::largest: return run<reduction::largest>(call);
      case reduction::smallest: return run<reduction::smallest>(call);
    }
  }

 private:
  static constexpr std::int64_t block = 1024;

  template <reduction What>
  void run(const kernel_call& call) const {
    const float* const x = static_cast<const float*>(call.in[argument_]);
    float* const out = static_cast<float*>(call.out[0]);
    if (along_rows_)
      parallel_parts(threads_, kept_.size(), 1, static_cast<double>(count_),
                     [&](std::int64_t first, std::int64_t last) {
                       for (std::int64_t i = first; i < last; ++i)
                         out[i] = finish(fold_rows<What>(x + kept_.offset(i)));
                     });
    else
      parallel_parts(threads_, kept_.size() * divide_up(row_, block), 1,
                     static_cast<double>(count_ * std::min(block, row_)), [&](std::int64_t first, std::int64_t last) {
                       for (std::int64_t i = first; i < last; ++i) fold_columns<What>(x, out, i);
                     });
  }

  template <reduction What>
  static constexpr float start() {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    return What == reduction::sum ? 0.0F : What == reduction::largest ? -infinity : infinity;
  }
  float finish(float fold) const { return what_ == reduction::mean ? fold / static_cast<float>(count_) : fold; }

  template <reduction What>
  float fold_rows(const float* x) const {
    float fold = start<What>();
    if (row_ == 0) return fold;
    for (std::int64_t i = 0; i < folded_.size(); ++i) {
      const const_array_map row(x + folded_.offset(i), row_);
      if constexpr (What == reduction::sum) fold += row.sum();
      if constexpr (What == reduction::largest)
        fold = element_operators<float>::maximum(fold, row.maxCoeff<Eigen::PropagateNaN>());
      if constexpr (What == reduction::smallest)
        fold = element_operators<float>::minimum(fold, row.minCoeff<Eigen::PropagateNaN>());
    }
    return fold;
  }
  template <reduction What>
  void fold_columns(const float* x, float* out, std::int64_t index) const {
    const std::int64_t blocks = divide_up(row_, block);
    const std::int64_t column = index % blocks * block;
    const std::int64_t n = std::min(block, row_ - column);
    const std::int64_t kept = index / blocks;
    const float* const from = x + kept_.offset(kept) + column;
    array_map fold(out + kept * row_ + column, n);
    fold.setConstant(start<What>());
    for (std::int64_t i = 0; i < folded_.size(); ++i) {
      const const_array_map row(from + folded_.offset(i), n);
      if constexpr (What == reduction::sum) fold += row;
      // Not Eigen's maximum: in 3.4 that of two arrays does not always answer NaN.
      const block_operand<float> so_far{fold.data(), 0};
      if constexpr (What == reduction::largest)
        for_block(n, fold.data(), so_far, {row.data(), 0}, element_operators<float>::maximum);
      if constexpr (What == reduction::smallest)
        for_block(n, fold.data(), so_far, {row.data(), 0}, element_operators<float>::minimum);
    }
    if (what_ == reduction::mean) fold /= static_cast<float>(count_);
  }

  reduction what_;
  std::size_t argument_;
  int threads_;
  strided_dims kept_, folded_;
  std::int64_t row_ = 1;    ///< extent of the innermost dimension, which is in neither of the two
  std::int64_t count_ = 0;  ///< elements folded into one
  bool along_rows_ = false;
};

}  // namespace
}  // namespace collage::inline v0::detail::host
