// Operators that read or write at the indices of an operand, and operators on the order of elements along an axis.
#include "rules.hpp"

#include <collage/op/elementwise.hpp>
#include <collage/op/gather.hpp>
#include <collage/op/order.hpp>
#include <collage/op/slice.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace collage::inline v0::onnx {
namespace {

void lower_gather(lowering& n) {
  const value x = n.operand(0);
  n.result(0, n(ops::gather, x, n.operand(1), {.axis = n.axis(n.integer("axis", 0), n.rank_of(x))}));
}

void lower_gather_elements(lowering& n) {
  const value x = n.operand(0);
  n.result(0, n(ops::gather_elements, x, n.operand(1), {.axis = n.axis(n.integer("axis", 0), n.rank_of(x))}));
}

void lower_gather_nd(lowering& n) {
  n.result(0, n(ops::gather_nd, n.operand(0), n.operand(1), {.batch_dims = n.integer("batch_dims", 0)}));
}

ops::scatter_reduction reduction_of(lowering& n) {
  const std::string name = n.text("reduction", "none");
  if (name == "none") return ops::scatter_reduction::none;
  if (name == "add") return ops::scatter_reduction::sum;
  if (name == "mul") return ops::scatter_reduction::product;
  if (name == "max") return ops::scatter_reduction::largest;
  if (name == "min") return ops::scatter_reduction::smallest;
  n.invalid("its reduction is none of none, add, mul, max and min");
}

void lower_scatter_elements(lowering& n) {
  const value x = n.operand(0);
  const std::int64_t axis = n.axis(n.integer("axis", 0), n.rank_of(x));
  n.result(0, n(ops::scatter_elements, x, n.operand(1), n.operand(2), {.axis = axis, .reduction = reduction_of(n)}));
}

void lower_scatter_nd(lowering& n) {
  n.result(0, n(ops::scatter_nd, n.operand(0), n.operand(1), n.operand(2), {.reduction = reduction_of(n)}));
}

void lower_trilu(lowering& n) {
  const std::int64_t k = n.has(1) ? n.integer_of(1, "its diagonal") : 0;
  n.result(0, n(ops::trilu, n.operand(0), {.upper = n.integer("upper", 1) != 0, .k = k}));
}

void lower_reverse_sequence(lowering& n) {
  const value x = n.operand(0);
  const std::int64_t batch = n.axis(n.integer("batch_axis", 1), n.rank_of(x));
  const std::int64_t time = n.axis(n.integer("time_axis", 0), n.rank_of(x));
  n.result(0, n(ops::reverse_sequence, x, n.operand(1), {.batch_axis = batch, .time_axis = time}));
}

void lower_cumulative_sum(lowering& n) {
  const value x = n.operand(0);
  n.result(0, n(ops::cumulative_sum, x,
                {.axis = n.axis(n.integer_of(1, "its axis"), n.rank_of(x)),
                 .exclusive = n.integer("exclusive", 0) != 0,
                 .reverse = n.integer("reverse", 0) != 0}));
}

/// In rounds, each of which doubles how many elements are in a product: x times x moved by 1, 2, 4, ... places. Ones come in.
void lower_cumulative_product(lowering& n) {
  value y = n.operand(0);
  const tensor_type type = n.type_of(y);
  const auto axis = static_cast<std::size_t>(n.axis(n.integer_of(1, "its axis"), type.rank()));
  const value one = n.scalar(1, type.type);
  const bool reverse = n.integer("reverse", 0) != 0;
  const auto moved = [&](std::int64_t places) {
    ops::pad_attributes a{.pads_begin = shape::filled(type.rank(), 0), .pads_end = shape::filled(type.rank(), 0)};
    a.pads_begin[axis] = reverse ? -places : places;
    a.pads_end[axis] = -a.pads_begin[axis];
    return n(ops::pad, y, one, a);
  };
  const std::int64_t extent = type.dims[axis];
  if (n.integer("exclusive", 0) != 0 && extent > 0) y = moved(1);
  for (std::int64_t places = 1; places < extent; places *= 2) y = n(ops::mul, y, moved(places));
  n.result(0, y);
}

/// The attribute `sorted` is ignored: the result is always sorted, which is allowed.
void lower_top_k(lowering& n) {
  const value x = n.operand(0);
  if (n.opset() < 10 && !n.has_attribute("k")) n.invalid("its attribute k is missing");
  const std::int64_t k = n.opset() < 10 ? n.integer("k", 0) : n.integer_of(1, "its k");
  const std::int64_t axis = n.axis(n.integer("axis", -1), n.rank_of(x));
  const value values = n(ops::top_k, x, {.k = k, .axis = axis, .largest = n.integer("largest", 1) != 0});
  if (n.wants(0)) n.result(0, values);
  if (n.wants(1)) n.result(1, value{values.index + 1});
}

ops::arg_attributes arg_attributes_of(lowering& n) {
  return {.axis = n.axis(n.integer("axis", 0), n.rank_of(n.operand(0))),
          .keep_dims = n.integer("keepdims", 1) != 0,
          .select_last = n.integer("select_last_index", 0) != 0};
}
void lower_arg_max(lowering& n) { n.result(0, n(ops::arg_max, n.operand(0), arg_attributes_of(n))); }
void lower_arg_min(lowering& n) { n.result(0, n(ops::arg_min, n.operand(0), arg_attributes_of(n))); }

/// 1 at the largest element of each line, at the first if several are equal, and 0 elsewhere. Before opset 13, a line spans the
/// axis and all dimensions after it.
void lower_hardmax(lowering& n) {
  const value x = n.operand(0);
  const tensor_type type = n.type_of(x);
  std::int64_t axis = n.axis(n.integer("axis", n.opset() < 13 ? 1 : -1), type.rank());
  if (type.dims.elements() == 0) return n.result(0, x);
  shape lines = type.dims;
  if (n.opset() < 13) {
    lines = {1, 1};
    for (std::size_t i = 0; i < type.rank(); ++i) lines[static_cast<std::int64_t>(i) < axis ? 0 : 1] *= type.dims[i];
    axis = 1;
  }
  shape single = lines;
  single[static_cast<std::size_t>(axis)] = 1;
  const value largest = n(ops::arg_max, n.reshape(x, lines), {.axis = axis});
  const value zeros = n.filled({type.type, lines}, 0);
  const value ones = n.filled({type.type, single}, 1);
  n.result(0, n.reshape(n(ops::scatter_elements, zeros, largest, ones, {.axis = axis}), type.dims));
}

/// The extents of a pooling's input, as far as the extents of its output, `dims`, determine them.
shape unpooled_dims(lowering& n, const shape& dims) {
  constexpr std::int64_t most = std::int64_t{1} << 30;
  if (dims.size() < 3) n.invalid("its input has rank " + std::to_string(dims.size()) + ", and must be [N, C, ...]");
  const std::size_t rank = dims.size() - 2;
  const std::vector<std::int64_t> window = n.integers("kernel_shape");
  const std::vector<std::int64_t> strides = n.integers("strides", std::vector<std::int64_t>(rank, 1));
  const std::vector<std::int64_t> pads = n.integers("pads", std::vector<std::int64_t>(2 * rank, 0));
  if (window.size() != rank || strides.size() != rank || pads.size() != 2 * rank)
    n.invalid("its window, strides and pads must have an entry for each spatial dimension");
  shape result = dims;
  for (std::size_t i = 0; i < rank; ++i) {
    for (const std::int64_t number : {window[i], strides[i], pads[i], pads[rank + i], dims[i + 2]})
      if (number < 0 || number > most) n.invalid("its window, strides or pads are out of range");
    result[i + 2] = (dims[i + 2] - 1) * strides[i] + window[i] - pads[i] - pads[rank + i];
    if (result[i + 2] < 0) n.invalid("its pads are larger than its output");
  }
  return result;
}

/// An index counts through the whole tensor that was pooled. A larger output shape adds zeros at the end of a dimension.
void lower_max_unpool(lowering& n) {
  const value x = n.operand(0);
  const tensor_type type = n.type_of(x);
  const shape dims = unpooled_dims(n, type.dims);
  if (!(n.dims_of(n.operand(1)) == type.dims)) n.invalid("its indices must have the shape of its input");
  if (!detail::is_countable(dims)) n.invalid("its output is too large");
  const value zeros = n.filled({type.type, {dims.elements()}}, 0);
  const shape list{type.dims.elements()};
  const value scattered = n(ops::scatter_elements, zeros, n.reshape(n.operand(1), list), n.reshape(x, list));
  const value y = n.reshape(scattered, dims);
  if (!n.has(2)) return n.result(0, y);
  const shape wanted = n.to_shape(n.integers_of(2, "its output's shape"), "its output's extents");
  if (wanted.size() != dims.size()) n.invalid("its output's shape must have as many extents as its input");
  ops::pad_attributes a{.pads_begin = shape::filled(dims.size(), 0), .pads_end = shape::filled(dims.size(), 0)};
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (wanted[i] < dims[i] || (i < 2 && wanted[i] != dims[i]))
      n.invalid("its output's shape is smaller than the shape before pooling");
    a.pads_end[i] = wanted[i] - dims[i];
  }
  n.result(0, wanted == dims ? y : n(ops::pad, y, a));
}

constexpr lowering_rule indexing_lowerings[] = {
    {"", "ArgMax", lower_arg_max},
    {"", "ArgMin", lower_arg_min},
    {"", "CumProd", lower_cumulative_product},
    {"", "CumSum", lower_cumulative_sum},
    {"", "Gather", lower_gather},
    {"", "GatherElements", lower_gather_elements},
    {"", "GatherND", lower_gather_nd},
    {"", "Hardmax", lower_hardmax},
    {"", "MaxUnpool", lower_max_unpool},
    {"", "ReverseSequence", lower_reverse_sequence},
    {"", "Scatter", lower_scatter_elements},
    {"", "ScatterElements", lower_scatter_elements},
    {"", "ScatterND", lower_scatter_nd},
    {"", "TopK", lower_top_k},
    {"", "Trilu", lower_trilu},
};

}  // namespace

std::span<const lowering_rule> indexing_rules() { return indexing_lowerings; }

}  // namespace collage::inline v0::onnx
