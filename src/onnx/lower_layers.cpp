// Convolution, matrix products and pooling.
#include "rules.hpp"
#include "windows.hpp"

#include <collage/op/conv.hpp>
#include <collage/op/conv_transpose.hpp>
#include <collage/op/elementwise.hpp>
#include <collage/op/matmul.hpp>
#include <collage/op/pool.hpp>
#include <collage/op/reduce.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace collage::inline v0::onnx {
namespace {

std::vector<value> given_operands(const lowering& n, std::size_t most) {
  std::vector<value> list;
  for (std::size_t i = 0; i < most; ++i)
    if (i < 2 || n.has(i)) list.push_back(n.operand(i));
  return list;
}

// Convolution
// ---------------------------------------------------------------------------------------------------------------------

void lower_conv(lowering& n) {
  const shape extents = spatial_extents(n, n.dims_of(n.operand(0)));
  const sliding_window w = padded_window(n, extents, weights_window(n, n.dims_of(n.operand(1)), extents.size()));
  n.result(0, n(ops::conv, given_operands(n, 3),
                {.groups = n.integer("group", 1),
                 .strides = w.strides,
                 .dilations = w.dilations,
                 .pads_begin = w.pads_begin,
                 .pads_end = w.pads_end}));
}

void lower_conv_transpose(lowering& n) {
  const shape extents = spatial_extents(n, n.dims_of(n.operand(0)));
  const std::size_t rank = extents.size();
  sliding_window w = window_of(n, weights_window(n, n.dims_of(n.operand(1)), rank));
  shape added = entries_of(n, "output_padding", rank, 0, 0);
  std::vector<std::int64_t> wanted = n.integers("output_shape");
  if (wanted.size() == rank + 2) wanted.erase(wanted.begin(), wanted.begin() + 2);  // some exporters add N and C
  if (!wanted.empty() && wanted.size() != rank)
    n.invalid("its output_shape has " + std::to_string(wanted.size()) + " entries, not " + std::to_string(rank));
  for (std::size_t d = 0; d < rank && (!wanted.empty() || w.is_same()); ++d) {
    if (extents[d] > detail::largest_extent / w.strides[d]) n.invalid("its output would be too large");
    const std::int64_t places = wanted.empty() ? extents[d] * w.strides[d] : wanted[d];
    if (places < 1 || places > detail::largest_extent)
      n.invalid("its output_shape has the entry " + std::to_string(places) + ", and must be from 1 to 2^48");
    const std::int64_t total = w.strides[d] * (extents[d] - 1) + added[d] + reach(w, d) - places;
    divide_pads(w, d, std::max<std::int64_t>(total, 0));
    // The windows do not reach the whole output. An explicit output_shape is filled up with the bias. SAME gives the part that
    // they reach, as in shape inference and the runtimes.
    if (total < 0 && !wanted.empty()) added[d] -= total;
  }
  n.result(0, n(ops::conv_transpose, given_operands(n, 3),
                {.groups = n.integer("group", 1),
                 .strides = w.strides,
                 .dilations = w.dilations,
                 .pads_begin = w.pads_begin,
                 .pads_end = w.pads_end,
                 .output_padding = added}));
}

// Pooling
// ---------------------------------------------------------------------------------------------------------------------

ops::pool_attributes pool_of(const lowering& n) {
  const shape extents = spatial_extents(n, n.dims_of(n.operand(0)));
  const shape size = n.to_shape(n.integers("kernel_shape"), "its kernel_shape");
  if (size.size() != extents.size())
    n.invalid("its kernel_shape has " + std::to_string(size.size()) + " entries, not " +
              std::to_string(extents.size()));
  const sliding_window w = padded_window(n, extents, size);
  return {.window = w.size,
          .strides = w.strides,
          .dilations = w.dilations,
          .pads_begin = w.pads_begin,
          .pads_end = w.pads_end,
          .round_up = n.integer("ceil_mode", 0) != 0 && !w.is_same(),
          .count_padding = n.integer("count_include_pad", 0) != 0};
}

void lower_max_pool(lowering& n) {
  const ops::pool_attributes a = pool_of(n);
  if (!n.wants(1)) return n.result(0, n(ops::max_pool, n.operand(0), a));
  const value y = n(ops::max_pool_with_indices, n.operand(0), {a, n.integer("storage_order", 0) != 0});
  n.result(0, y);
  n.result(1, {y.index + 1});
}

void lower_average_pool(lowering& n) { n.result(0, n(ops::average_pool, n.operand(0), pool_of(n))); }

double exponent_of(const lowering& n) {
  const std::int64_t p = n.integer("p", 2);
  if (p < 1) n.invalid("its p is " + std::to_string(p) + ", and must be at least 1");
  return static_cast<double>(p);
}

void lower_lp_pool(lowering& n) { n.result(0, n(ops::lp_pool, n.operand(0), {pool_of(n), exponent_of(n)})); }

/// A reduction over all spatial dimensions.
ops::reduce_attributes everywhere(const lowering& n) {
  ops::reduce_attributes a;
  for (std::size_t d = 0; d < spatial_extents(n, n.dims_of(n.operand(0))).size(); ++d)
    a.axes.push_back(static_cast<std::int64_t>(d + 2));
  return a;
}

void lower_global_average_pool(lowering& n) { n.result(0, n(ops::reduce_mean, n.operand(0), everywhere(n))); }
void lower_global_max_pool(lowering& n) { n.result(0, n(ops::reduce_max, n.operand(0), everywhere(n))); }

void lower_global_lp_pool(lowering& n) {
  const value x = n.operand(0);
  const dtype type = n.element_type_of(x);
  const double p = exponent_of(n);
  if (p == 2) return n.result(0, n(ops::sqrt, n(ops::reduce_sum, n(ops::mul, x, x), everywhere(n))));
  const value powers = n(ops::pow, n(ops::abs, x), n.scalar(p, type));
  n.result(0, n(ops::pow, n(ops::reduce_sum, powers, everywhere(n)), n.scalar(1 / p, type)));
}

// Matrix products
// ---------------------------------------------------------------------------------------------------------------------

void lower_matmul(lowering& n) { n.result(0, n(ops::matmul, n.operand(0), n.operand(1))); }

value scaled(lowering& n, value x, const char* attribute) {
  const double factor = n.real(attribute, 1);
  if (factor == 1) return x;
  const dtype type = n.element_type_of(x);
  if (!is_floating(type) && factor != std::nearbyint(factor))
    n.refuse(std::string("its ") + attribute + " is no integer, but its operands are");
  return n(ops::mul, x, n.scalar(factor, type));
}

void lower_gemm(lowering& n) {
  const value a = n.operand(0);
  const value b = n.operand(1);
  if (n.rank_of(a) != 2 || n.rank_of(b) != 2) n.invalid("its first two operands must be matrices");
  value y =
      n(ops::matmul, a, b, {.transpose_a = n.integer("transA", 0) != 0, .transpose_b = n.integer("transB", 0) != 0});
  y = scaled(n, y, "alpha");
  if (n.has(2) && n.real("beta", 1) != 0) {
    const shape product = n.dims_of(y);
    y = n(ops::add, y, scaled(n, n.operand(2), "beta"));
    if (!(n.dims_of(y) == product)) n.invalid("its third operand does not broadcast to the product");
  }
  n.result(0, y);
}

constexpr lowering_rule layers_lowerings[] = {
    {"", "AveragePool", lower_average_pool},
    {"", "Conv", lower_conv},
    {"", "ConvTranspose", lower_conv_transpose},
    {"", "Gemm", lower_gemm},
    {"", "GlobalAveragePool", lower_global_average_pool},
    {"", "GlobalLpPool", lower_global_lp_pool},
    {"", "GlobalMaxPool", lower_global_max_pool},
    {"", "LpPool", lower_lp_pool},
    {"", "MatMul", lower_matmul},
    {"", "MaxPool", lower_max_pool},
};

}  // namespace

std::span<const lowering_rule> layer_rules() { return layers_lowerings; }

}  // namespace collage::inline v0::onnx
